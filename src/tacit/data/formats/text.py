"""Text separated by commas (`.csv`) or tabs (`.tsv`), also with `.gz` after it: numbers, under a
heading or none. No error shows a cell.
"""

import csv
import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from tacit.data.arrays import Arrays, choose, commands_of_a_table, make_arrays, named_columns
from tacit.data.formats.arrow import as_numpy, check_once
from tacit.data.formats.table import LABELS
from tacit.data.label_lists import separated
from tacit.data.labels import WHOLE_NUMBER
from tacit.data.places import Places
from tacit.data.sizes import check_unpacked, check_width
from tacit.data.streams import Spool
from tacit.errors import InputError

# columns from which a record is hardly 0,1,2,3 by chance, but numbered columns are
FEW = 4

# bytes that are parsed at once; no line may be longer
BLOCK = 1 << 24

_NUMBER = re.compile(
    r"[ \t]*[+-]?(\d+\.?\d*(e[+-]?\d+)?|\.\d+(e[+-]?\d+)?|nan|inf(inity)?)[ \t]*",
    re.ASCII | re.IGNORECASE,
)

# whole numbers as programs write them: 1, 1.0 (pandas), 1.000000000000000000e+00 (numpy.savetxt)
_WHOLE_NUMBERS = (
    WHOLE_NUMBER,
    re.compile(r"-?(0|[1-9]\d{0,14})\.0", re.ASCII),
    re.compile(r"-?\d\.\d{18}e[+-]\d\d", re.ASCII),
)
_FAULT = "is not a CSV file of numbers in UTF-8"

# what reading a file raises, packed or not
FAULTS = (OSError, EOFError, zlib.error, UnicodeDecodeError)


class _Heading(NamedTuple):
    """Names of the columns, whether the file states them, and the number of empty lines before."""

    names: list[str]
    in_file: bool
    empty_lines: int


def read(
    path: Path,
    x: str | None,
    y: str | None,
    persons: str | None,
    width: int | None,
    separator: str | None = None,
    group: str | None = None,
) -> Arrays:
    """Read the columns of numbers, labels, ids of persons and groups; all columns but these three
    are features.
    """
    return read_files([path], path, stem(path), x, y, persons, width, separator, group)


def read_files(
    paths: list[Path],
    path: Path,
    identity: str,
    x: str | None,
    y: str | None,
    persons: str | None,
    width: int | None,
    separator: str | None = None,
    group: str | None = None,
) -> Arrays:
    """Read files one after another, batch by batch; each has the heading of the first, or none."""
    if x is not None:
        raise InputError(
            f"x={x} does not apply to {path}, whose columns are the features; leave it out"
        )
    if len(paths) > 1:
        # Spark writes empty files for empty partitions; if all are empty, the first says so
        with_lines = [part for part in paths if next(_lines(part), None) is not None]
        paths = with_lines or paths[:1]
    headings = _headings(paths)
    heading = headings[0]
    names = heading.names
    label = choose(names, y, LABELS, "y", path)
    ids = choose(names, persons, (), "persons", path)
    choose(names, group, (), "by", path)
    features = [name for name in names if name not in (label, ids, group)]
    if not features:
        raise InputError(f"{path} has no column of features; give a column for each")

    rows = Spool()
    rows.append(np.empty((0, len(features))))
    texts: dict[str, list[Any]] = {name: [] for name in (label, ids, group) if name is not None}
    for part, part_heading in zip(paths, headings, strict=True):
        for batch in _batches(part, part_heading, features, list(texts)):
            # one array in the order of rows, as a store keeps them
            block = np.empty((batch.num_rows, len(features)))
            for column, name in enumerate(features):
                block[:, column] = as_numpy(batch.column(name))
            rows.append(block)
            for name, chunks in texts.items():
                chunks.append(batch.column(name))
    check_width(path, (rows.n_rows, len(features)), width)
    places = Places(tuple(paths), has_header=heading.in_file)
    labels = None
    if label is not None:
        with places.in_errors():
            labels = _labels_of(_column(texts[label]), separator)
    return make_arrays(
        rows.array(),
        labels,
        tuple(paths),
        identity,
        card=named_columns(features) if heading.in_file else None,
        persons=None if ids is None else as_numpy(_column(texts[ids])),
        groups=None if group is None else as_numpy(_column(texts[group])),
        places=places,
    )


def _labels_of(column: Any, separator: str | None) -> Any:
    """Return a column of labels, or with a separator the several labels of each record; an empty
    cell has none.
    """
    import pyarrow as pa

    if separator is None:
        return as_numpy(_labels(column))
    lists = separated((text or "" for text in column.to_pylist()), separator)
    values = pa.chunked_array([pa.array(lists.values.tolist(), pa.string())])
    return replace(lists, values=as_numpy(_labels(values)))


def _column(chunks: list[Any]) -> Any:
    import pyarrow as pa

    return pa.chunked_array(chunks, pa.string())


def _headings(paths: list[Path]) -> list[_Heading]:
    """Return the headings of parts, which all have the columns of the first."""
    headings = [_heading(path) for path in paths]
    for path, heading in zip(paths, headings, strict=True):
        if heading[:2] != headings[0][:2]:
            raise InputError(
                f"{path} has other columns than {paths[0]}; write all parts with the same header"
            )
    return headings


def _batches(path: Path, heading: _Heading, features: list[str], texts: list[str]) -> Iterator[Any]:
    """Yield batches of all columns; features are floats, labels and ids stay as they are
    written.
    """
    import pyarrow as pa

    has_quotes = check_text(path)
    if has_quotes:
        # reading all lines refuses a quote that does not close on its line: it would hide the
        # records up to the next one
        for _ in _lines(path):
            pass

    types = dict.fromkeys(features, pa.float64())
    types |= dict.fromkeys(texts, pa.string())
    try:
        with _reader(
            path, heading, column_types=types, null_values=[""], strings_can_be_null=True
        ) as reader:
            for batch in reader:
                if any(batch.column(name).null_count for name in features):
                    _check_cells(path, heading.names, features)
                yield batch
    except (OSError, ValueError, KeyError, MemoryError, pa.ArrowException) as error:
        if isinstance(error, InputError):
            raise
        # pyarrow's message quotes cells, which may be private: look for the cell again
        _check_cells(path, heading.names, features)
        raise InputError(f"{path} {_FAULT}; save it again") from error


def _heading(path: Path) -> _Heading:
    """Return the heading of a file, from its first line that is not empty."""
    for line, cells in _lines(path):
        numbers = [cell for cell in cells if _NUMBER.fullmatch(cell)]

        # a heading holds no numbers but 0, 1, 2, ..., the names that pandas gives to columns
        may_be_heading = numbers == [str(place) for place in range(len(numbers))]
        if not may_be_heading:
            names = [str(place) for place in range(len(cells))]
            return _Heading(names, in_file=False, empty_lines=line - 1)

        # a line of few such numbers may be a record too
        if len(cells) == len(numbers) < FEW:
            fault = f"{path} starts with {','.join(cells)}, which may be a header or a record"
            raise InputError(f"{fault}; put column names in the first line, such as x0,x1,label")
        most_frequent, _ = Counter(cells).most_common(1)[0]
        check_once(cells, most_frequent, path)
        if "" in cells:
            fault = f"{path} has a column without a name, such as the index that pandas writes"
            raise InputError(f"{fault}; leave it out with index=False, or name it")
        return _Heading(cells, in_file=True, empty_lines=line - 1)
    raise InputError(f"{path} is empty; write rows of numbers with commas between them")


def _reader(path: Path, heading: _Heading, **conversion: Any) -> Any:
    """Open a table; pyarrow takes the names of columns from the file if it is given none."""
    from pyarrow import csv as arrow_csv

    return arrow_csv.open_csv(
        path,
        arrow_csv.ReadOptions(
            block_size=BLOCK,
            skip_rows=heading.empty_lines,
            column_names=None if heading.in_file else heading.names,
        ),
        arrow_csv.ParseOptions(delimiter=_separator(path)),
        convert_options=arrow_csv.ConvertOptions(**conversion),
    )


def _check_cells(path: Path, names: list[str], features: list[str]) -> None:
    """Refuse the first line with too many or too few cells, or with a feature that is not a
    number.
    """
    feature_names = set(features)
    feature_columns = [column for column, name in enumerate(names) if name in feature_names]
    for record, (line, cells) in enumerate(_lines(path)):
        if len(cells) != len(names):
            raise InputError(
                f"{path} line {line} has {len(cells)} cells and the first has {len(names)};"
                " correct it"
            )
        is_heading = record == 0 and cells == names
        if is_heading:
            continue
        for column in feature_columns:
            if not _NUMBER.fullmatch(cells[column]):
                fault = f"{path} line {line}, column {column + 1} is not a number"
                remedy = "encode texts first (tacit encode)"
                if len(features) > 1:
                    remedy = "encode a table with texts first: " + commands_of_a_table(path)
                raise InputError(
                    f"{fault}; write rows of numbers with commas between them, or {remedy}"
                )


def _labels(column: Any) -> Any:
    """Return a column of texts as whole numbers if all are spelled in one usual way, so that each
    number has one text; else as it is.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(column)
    texts = [text for text in trimmed.unique().to_pylist() if text is not None]
    for spelling in _WHOLE_NUMBERS:
        if not all(spelling.fullmatch(text) for text in texts):
            continue
        numbers = trimmed
        if spelling is not WHOLE_NUMBER:
            numbers = trimmed.cast(pa.float64())
        try:
            numbers = numbers.cast(pa.int64())
        except pa.ArrowInvalid:
            # a fraction
            return column
        return numbers if len(numbers.unique()) == len(trimmed.unique()) else column
    return column


def check_text(path: Path) -> bool:
    """Refuse a packed text that would unpack to too much, and tell whether it holds quotes."""
    has_quotes = False
    n_bytes = 0
    try:
        with opened(path) as file:
            for block in iter(partial(file.read, BLOCK), b""):
                has_quotes = has_quotes or b'"' in block
                n_bytes += len(block)
                check_unpacked(path, n_bytes)
    except FAULTS as error:
        raise InputError(f"{path} is damaged or cannot be read; save it again") from error
    return has_quotes


def stem(path: Path) -> str:
    """Return the name of a file without its ending and that of its compression."""
    name = path.with_suffix("") if _is_packed(path) else path
    return name.stem


def _is_packed(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def opened(path: Path) -> IO[bytes] | gzip.GzipFile:
    """Open a file to read its bytes, unpacked."""
    if _is_packed(path):
        return gzip.open(path)
    return path.open("rb")


def _separator(path: Path) -> str:
    """Return what separates the cells of a file, by its ending."""
    name = path.with_suffix("") if _is_packed(path) else path
    return "\t" if name.suffix.lower() == ".tsv" else ","


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each line that is not empty, and its cells, which hold no line breaks."""
    csv.field_size_limit(max(csv.field_size_limit(), BLOCK))
    last_line = 0
    try:
        with TextIOWrapper(opened(path), encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True, delimiter=_separator(path))
            for cells in reader:
                # a cell with a line break takes several lines
                if reader.line_num > last_line + 1:
                    raise csv.Error
                last_line = reader.line_num
                if cells:
                    yield last_line, cells
    except csv.Error as error:
        fault = "has a cell that is too long, or whose quotes do not close on that line"
        raise InputError(
            f"{path} line {last_line + 1} {fault}; write each record on one line"
        ) from error
    except FAULTS as error:
        raise InputError(f"{path} {_FAULT}; save it again") from error
