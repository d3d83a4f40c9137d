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
    """Texts or pictures of a table, with labels if it has a label column and the source is not
    public.
    """
    table = open_table(path)
    person = choose_column(table.names, persons, (), "persons", path)
    others = [name for name in table.names if name != person]
    content = choose_column(others, x, (*TEXTS, *PICTURES), "x", path)
    if content is None:
        listed = excerpt(", ".join(table.names))
        raise InputError(
            f"{path} has the columns {listed}; name the one of texts or pictures with --x"
        )
    label = choose_column([name for name in others if name != content], y, LABELS, "y", path)
    label = None if public else label
    column = None if label is None else table.column(label)
    rows = table.count(content) if column is None else len(column)
    if rows == 0:
        raise base.empty(path, "rows")
    names = None if label is None else table.class_names(label)
    classes = None if names is None else base.named_classes(names, path)
    labels = None if column is None else base.class_values(column, rows, path)
    if classes is not None:
        labels = base.by_index(labels, classes, path)

    def records(start: int) -> Iterator[Record]:
        passed = 0
        for chunk in table.chunks(content):
            if passed + len(chunk) > start:
                yield from chunk[max(start - passed, 0) :]
            passed += len(chunk)

    kind: base.Kind = "picture" if table.holds_bytes(content) else "text"
    changes = stamp([file_stamp(file) for file in table.files], content, label)
    ids = None if person is None else base.persons_of(table.column(person), rows, path)
    return Source(
        kind, Rows(rows), records, changes, labels, classes, classes is not None, persons=ids
    )


def choose_column(
    names: Sequence[str], wanted: str | None, usual: Iterable[str], option: str, path: Path
) -> str | None:
    """The column or array `wanted`, else the first usual one, in letters of any case, else None."""
    lower = {name.lower(): name for name in names}
    usual = tuple(lower[name] for name in usual if name in lower)
    name = choose(list(names), wanted, usual, f"--{option}", path)
    if name is not None:
        check_once(list(names), name, path)
    return name
