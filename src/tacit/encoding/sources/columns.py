"""Tables with a column of texts or of pictures: CSV, TSV, JSON lines, Parquet, and saved Hugging
Face data sets.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from tacit.data.arrays import choose
from tacit.data.formats.arrow import check_once
from tacit.data.label_sets import holds_sets
from tacit.data.labels import ClassValue
from tacit.data.tables import Table, open_table
from tacit.encoding.sources import base
from tacit.encoding.sources.base import Faults, Record, Rows, Source, file_stamp, stamp
from tacit.errors import InputError, excerpt

LABELS = ("label", "labels", "y", "target", "class", "category")
TEXTS = ("text", "sentence", "document", "content", "review", "question")
# label of a record without one, as Hugging Face `datasets` writes it beside class names
NO_INDEX = -1
PICTURES = ("image", "img", "picture", "pixels", "bytes", "x")


def read(
    path: Path,
    x: str | None,
    y: str | None,
    persons: str | None,
    public: bool,
    faults: Faults | None = None,
    separator: str | None = None,
) -> Source:
    """Read texts or pictures of a table, with labels if it has a label column and the source is not
    public.

    Records without a label or an id are added to `faults`; if that is None, they are refused.
    """
    table = open_table(path)
    person_column = choose_column(table.names, persons, (), "persons", path)
    other_columns = [name for name in table.names if name != person_column]
    content_column = choose_column(other_columns, x, (*TEXTS, *PICTURES), "x", path)
    if content_column is None:
        columns = excerpt(", ".join(table.names))
        raise InputError(
            f"{path} has the columns {columns}; name the one of texts or pictures with --x"
        )

    other_columns.remove(content_column)
    label_column = choose_column(other_columns, y, LABELS, "y", path)
    if public:
        label_column = None

    labels = None
    classes = None
    declared = False
    if label_column is None:
        n_rows = table.count(content_column)
        if n_rows == 0:
            raise base.empty(path, "rows")
    else:
        with table.places.in_errors():
            labels, classes, declared = _labels_and_classes(
                table, label_column, path, faults, separator
            )
        n_rows = len(labels)

    def records(start: int) -> Iterator[Record]:
        n_earlier = 0
        for chunk in table.chunks(content_column):
            if n_earlier + len(chunk) > start:
                yield from chunk[max(start - n_earlier, 0) :]
            n_earlier += len(chunk)

    ids = None
    if person_column is not None:
        with table.places.in_errors():
            ids = base.persons_of(table.column(person_column), n_rows, path, faults)
    return Source(
        "picture" if table.holds_bytes(content_column) else "text",
        Rows(n_rows),
        records,
        stamp([file_stamp(file) for file in table.files], content_column, label_column),
        labels,
        classes,
        classes_declared=declared,
        persons=ids,
        faults=faults or {},
        places=table.places,
    )


def _labels_and_classes(
    table: Table, column: str, path: Path, faults: Faults | None, separator: str | None
) -> tuple[NDArray[Any], list[ClassValue] | None, bool]:
    """Read the labels, (rows,) or (rows, C), and the class list if the table names its classes, or
    several labels a record do; the last value tells whether the table names them.
    """
    values = table.column(column)
    if not values:
        raise base.empty(path, "rows")
    class_names = table.class_names(column)
    if class_names is None:
        return *base.table_labels(values, path, faults, separator), False

    # labels are positions in the class list, and -1 is no label
    classes = base.named_classes(class_names, path)
    if holds_sets(values):
        sets = base.label_sets(values, path, faults, separator, classes, "index")
        return sets.matrix, classes, True
    values = [None if value == NO_INDEX else value for value in values]
    indexes = base.class_values(values, len(values), path, faults)
    return base.by_index(indexes, classes, path), classes, True


def choose_column(
    names: Sequence[str], name: str | None, usual_names: Iterable[str], option: str, path: Path
) -> str | None:
    """Choose the column or array of that `name`, else the first usual one, in letters of any case,
    else None.
    """
    name_of_lower = {name.strip().lower(): name for name in names}
    candidates = tuple(name_of_lower[lower] for lower in usual_names if lower in name_of_lower)
    choice = choose(list(names), name, candidates, f"--{option}", path)
    if choice is not None:
        check_once(list(names), choice, path)
    return choice
