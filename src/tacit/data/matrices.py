"""Matrices of numbers from files, such as the votes of teachers: one row per line, one column each.

`.npy` and `.npz` hold an array, Parquet and Arrow (files or folders of parts) a column for each or
one column of lists, `.csv` and `.tsv` a header and numbers. Text may be compressed (`.csv.gz`). The
index that pandas writes beside them is left out: a first column without a name, or
`__index_level_0__` in Parquet.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.arrays import choose, existing_here
from tacit.data.formats import parts, table
from tacit.data.formats.arrow import arrow_faults, check_once
from tacit.data.formats.npy import map_npy
from tacit.data.formats.npz import Archive
from tacit.data.formats.text import FEW
from tacit.data.tables import Csv
from tacit.errors import InputError, RowError, excerpt

# the index of a data frame that pandas writes to Parquet
_INDEX = re.compile(r"__index_level_\d+__")

# rows of a table that are read at a time
ROWS = 4096


def read_matrix(path: Path, name: str) -> NDArray[Any]:
    """Read the array in a file; `name` is that of the array in an `.npz` file with several.

    Errors for entries that are no numbers tell where they are; whole numbers in text become int64.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "votes.csv")
    >>> _ = path.write_text("anna,bert\\n0,1\\n2,2\\n")
    >>> read_matrix(path, "votes")
    array([[0, 1],
           [2, 2]])
    """
    ending = Path(existing_here(path).name.removesuffix(".gz")).suffix
    if path.is_dir() and parts.is_parts(path) and not parts.are_texts(path):
        return _of_parts(path, parts.open_parts(path, None))
    if ending == ".npy":
        return map_npy(path)
    if ending == ".npz":
        return _of_archive(path, name)
    if ending in parts.KINDS:
        return _of_parts(path, parts.one_part(path))
    if ending in (".csv", ".tsv"):
        return _of_text(path)
    raise InputError(
        f"{path} has an unknown ending; give {name} as .npy, .npz, .csv, .tsv, .parquet or"
        " .feather, or a folder of such parts"
    )


def _of_archive(path: Path, name: str) -> NDArray[Any]:
    archive = Archive(path)
    usual = choose(archive.names, None, (name,), name, path)
    if usual is None and len(archive.names) != 1:
        array_names = excerpt(", ".join(sorted(archive.names))) or "no array"
        raise InputError(
            f"{path} holds {array_names}; save it with one array, or with one that is named"
            f" {name!r}"
        )
    (array,) = archive.read([usual or archive.names[0]])
    return array


def _of_parts(path: Path, table_parts: parts.Parts) -> NDArray[Any]:
    names = [name for name in table_parts.schema.names if not _INDEX.fullmatch(name)]
    if not names:
        raise InputError(f"{path} has no columns; check how it was made")
    for column in names:
        check_once(names, column, path)
    all(table_parts.types(names))
    for part in table_parts.parts:
        part.check(names, [], None)
    with arrow_faults(path):
        batches = table_parts.batches(names, ROWS)
        blocks = list(table.blocks_of(batches, names[0], path))
    if not blocks:
        raise InputError(f"{path} has no rows; check how it was made")
    return np.concatenate(blocks)


def _of_text(path: Path) -> NDArray[Any]:
    table = Csv(path)
    rows = table.rows()
    header = next(rows, [])

    # pandas and R write the index of a data frame as a first column without a name
    first = 1 if len(header) > 1 and not header[0].strip() else 0
    names = header[first:]
    are_positions = names == [str(place) for place in range(len(names))]
    if all(_is_number(cell) for cell in names) and not (
        are_positions and (first or len(names) >= FEW)
    ):
        raise InputError(
            f"{path} begins with numbers and not with a header; name the columns in its first line"
        )
    with table.places.in_errors():
        numbers = list(_numbers(rows, first, path))
    if not numbers:
        raise InputError(f"{path} has no rows; check how it was made")
    matrix = np.stack(numbers)

    # from 2^53 on, a float may stand for several whole numbers; NaN is no whole number either
    is_exact = np.all(np.abs(matrix) < 2**53)
    if not is_exact:
        return matrix
    integers = matrix.astype(np.int64)
    if np.any(integers != matrix):
        return matrix
    return integers


def _numbers(rows: Iterator[list[str]], first: int, path: Path) -> Iterator[NDArray[np.float64]]:
    """Yield each row as numbers from its column `first` on, (columns,)."""
    for number, row in enumerate(rows):
        try:
            yield np.array(row[first:], dtype=np.float64)
        except ValueError as error:
            column = next(
                place for place, cell in enumerate(row) if place >= first and not _is_number(cell)
            )
            fault = f" has no number in column {column + 1}"
            remedy = "correct it, or drop columns that hold none"
            raise RowError(f"{path} ", number, f"{fault}; {remedy}") from error


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
