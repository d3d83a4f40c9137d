"""Tables with a column of texts or of pictures: CSV, TSV, JSON lines, Parquet, and saved Hugging
Face data sets.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tacit.data.arrays import choose
from tacit.data.formats.arrow import check_once
from tacit.data.tables import open_table
from tacit.encoding.sources import base
from tacit.encoding.sources.base import Record, Rows, Source, file_stamp, stamp
from tacit.errors import InputError, excerpt

LABELS = ("label", "labels", "y", "target", "class", "category")
TEXTS = ("text", "sentence", "document", "content", "review", "question")
PICTURES = ("image", "img", "picture", "pixels", "bytes", "x")


def read(path: Path, x: str | None, y: str | None, persons: str | None, public: bool) -> Source:
    """Read texts or pictures of a table, with labels if it has a label column and the source is not
    public.
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

    # where labels are read, they are counted; to count other rows may take a pass over the table
    column = None
    if label_column is None:
        n_rows = table.count(content_column)
    else:
        column = table.column(label_column)
        n_rows = len(column)
    if n_rows == 0:
        raise base.empty(path, "rows")

    # labels are indexes if the table names its classes
    names = None if label_column is None else table.class_names(label_column)
    classes = None if names is None else base.named_classes(names, path)
    labels = None if column is None else base.class_values(column, n_rows, path)
    if classes is not None:
        labels = base.by_index(labels, classes, path)

    def records(start: int) -> Iterator[Record]:
        n_earlier = 0
        for chunk in table.chunks(content_column):
            if n_earlier + len(chunk) > start:
                yield from chunk[max(start - n_earlier, 0) :]
            n_earlier += len(chunk)

    ids = None
    if person_column is not None:
        ids = base.persons_of(table.column(person_column), n_rows, path)
    return Source(
        "picture" if table.holds_bytes(content_column) else "text",
        Rows(n_rows),
        records,
        stamp([file_stamp(file) for file in table.files], content_column, label_column),
        labels,
        classes,
        classes_declared=classes is not None,
        persons=ids,
    )


def choose_column(
    names: Sequence[str], name: str | None, usual_names: Iterable[str], option: str, path: Path
) -> str | None:
    """Choose the column or array of that `name`, else the first usual one, in letters of any case,
    else None.
    """
    name_of_lower = {name.lower(): name for name in names}
    candidates = tuple(name_of_lower[lower] for lower in usual_names if lower in name_of_lower)
    choice = choose(list(names), name, candidates, f"--{option}", path)
    if choice is not None:
        check_once(list(names), choice, path)
    return choice
