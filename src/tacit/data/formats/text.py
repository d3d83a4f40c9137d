"""Comma-separated text (`.csv`): numbers, under a heading or none. No error shows a cell."""

import csv
import re
from collections import Counter, deque
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tacit.data.arrays import Arrays, choose, make_arrays
from tacit.data.formats.arrow import as_numpy, check_once
from tacit.data.formats.table import LABELS
from tacit.data.sizes import check_width
from tacit.errors import InputError

FEW = 4  # columns from which a record is hardly 0,1,2,3 by chance, but numbered columns are
BLOCK = 1 << 24  # bytes that are parsed at once; no line may be longer
_NUMBER = re.compile(
    r"[ \t]*[+-]?(\d+\.?\d*(e[+-]?\d+)?|\.\d+(e[+-]?\d+)?|nan|inf(inity)?)[ \t]*",
    re.ASCII | re.IGNORECASE,
)
_KIND = "is not a CSV file of numbers in UTF-8"


def read(
    path: Path, x: str | None, y: str | None, persons: str | None, width: int | None
) -> Arrays:
    """Read the columns of numbers, labels and ids of persons; all columns but those two are
    features.
    """
    import pyarrow as pa
    from pyarrow import csv as text

    if x is not None:
        raise InputError(
            f"x={x} does not apply to {path}, whose columns are the features; leave it out"
        )
    names, heading, skipped = _heading(path)
    _check_quotes(path)
    label, ids = choose(names, y, LABELS, "y", path), choose(names, persons, (), "persons", path)
    features = [name for name in names if name not in (label, ids)]
    if not features:
        raise InputError(f"{path} has no column of features; give a column for each")
    types = dict.fromkeys(features, pa.float64()) | ({} if ids is None else {ids: pa.string()})
    try:
        table = text.read_csv(
            path,
            text.ReadOptions(
                block_size=BLOCK, skip_rows=skipped, column_names=None if heading else names
            ),
            convert_options=text.ConvertOptions(
                column_types=types, null_values=[""], strings_can_be_null=True
            ),
        )
    # whose texts quote cells
    except (OSError, ValueError, KeyError, MemoryError, pa.ArrowException) as error:
        _check_cells(path, names, {label, ids})
        raise InputError(f"{path} {_KIND}; save it again") from error
    if any(table[name].null_count for name in features):
        _check_cells(path, names, {label, ids})
    check_width(path, (table.num_rows, len(features)), width)
    rows = np.empty((table.num_rows, len(features)))
    for place, name in enumerate(features):
        rows[:, place] = as_numpy(table[name])
    if label is not None and pa.types.is_integer(table[label].type):
        _check_spellings(path, label, table[label].type, heading, names, skipped)
    labels, persons_of = (None if name is None else as_numpy(table[name]) for name in (label, ids))
    return make_arrays(rows, labels, (path,), path.stem, persons=persons_of)


def _heading(path: Path) -> tuple[list[str], bool, int]:
    """Names of the columns, whether the file states them, and how many empty lines come before."""
    for line, cells in _lines(path):
        numbers = [cell for cell in cells if _NUMBER.fullmatch(cell)]
        # pandas names columns by their numbers
        if numbers != [str(place) for place in range(len(numbers))]:
            return [str(place) for place in range(len(cells))], False, line - 1
        if len(cells) == len(numbers) < FEW:
            fault = f"{path} starts with {','.join(cells)}, which may be a header or a record"
            raise InputError(f"{fault}; put column names in the first line, such as x0,x1,label")
        check_once(cells, Counter(cells).most_common(1)[0][0], path)
        if "" in cells:
            fault = f"{path} has a column without a name, such as the index that pandas writes"
            raise InputError(f"{fault}; leave it out with index=False, or name it")
        return cells, True, line - 1
    raise InputError(f"{path} is empty; write rows of numbers with commas between them")


def _check_cells(path: Path, names: list[str], others: set[str | None]) -> None:
    """Refuse the first line with too many or too few cells, or with a feature that is not a
    number.
    """
    features = [place for place, name in enumerate(names) if name not in others]
    for place, (line, cells) in enumerate(_lines(path)):
        if len(cells) != len(names):
            raise InputError(
                f"{path} line {line} has {len(cells)} cells and the first has {len(names)};"
                " correct it"
            )
        bad = next((column for column in features if not _NUMBER.fullmatch(cells[column])), None)
        if bad is not None and (place or cells != names):
            fault = f"{path} line {line}, column {bad + 1} is not a number"
            raise InputError(f"{fault}; write rows of numbers with commas between them")


def _check_spellings(
    path: Path, label: str, kind: Any, heading: bool, names: list[str], skipped: int
) -> None:
    """Refuse labels that are different texts and one number, which may be different classes."""
    import pyarrow as pa
    from pyarrow import csv as text

    texts = text.read_csv(
        path,
        text.ReadOptions(
            block_size=BLOCK, skip_rows=skipped, column_names=None if heading else names
        ),
        convert_options=text.ConvertOptions(
            include_columns=[label], column_types={label: pa.string()}
        ),
    )[label].unique()
    distinct = pa.array({one.strip() for one in texts.to_pylist()} - {""}, pa.string())
    if len(distinct.cast(kind).unique()) < len(distinct):
        fault = (
            f"{path} has labels in {label!r} that are different texts but the same number, such as"
            " 1 and 01"
        )
        raise InputError(f"{fault}; write each class in one way, or as a word")


def _check_quotes(path: Path) -> None:
    """Refuse a quote that does not close on its line: it would hide the records up to the next
    one.
    """
    with path.open("rb") as file:
        quotes = any(b'"' in block for block in iter(partial(file.read, BLOCK), b""))
    if quotes:
        deque(_lines(path), maxlen=0)


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The number of each line that is not empty, and its cells, which hold no line breaks."""
    csv.field_size_limit(max(csv.field_size_limit(), BLOCK))
    fault, before = "has a cell that is too long, or whose quotes do not close on that line", 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(file, strict=True)
            for cells in lines:
                if lines.line_num > before + 1:
                    raise csv.Error
                before = lines.line_num
                if cells:
                    yield before, cells
    except csv.Error as error:
        raise InputError(
            f"{path} line {before + 1} {fault}; write each record on one line"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} {_KIND}; save it again") from error
