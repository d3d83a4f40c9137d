"""Tables on disk: a column in chunks of rows, and a copy of the table with one column replaced.

`KINDS` lists the endings; text may be compressed, with `.gz` after the ending. No table is read
into memory whole.
"""

import csv
import gzip
import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

from tacit.compute.documents import parse_json
from tacit.compute.remote import RemotePath
from tacit.data.arrays import existing
from tacit.data.formats import hdf5, huggingface, parts
from tacit.data.formats.arrow import as_python, check_once, holds_bytes, open_parquet
from tacit.data.places import ROWS, Places
from tacit.data.rows import one_line
from tacit.errors import InputError, excerpt

# rows
CHUNK = 1024

# characters of a line
LONGEST = 1 << 24

# what reading text may raise, compressed or not
FAULTS = (OSError, EOFError, ValueError, zlib.error, csv.Error)

_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*", re.ASCII | re.IGNORECASE)
T = TypeVar("T")
Replace = Callable[[list[Any]], list[Any]]
"""A function from values of a column to as many new values."""


class Table(ABC):
    """A table on disk.

    Attributes
    ----------
    path : Path
    names : list of str
        Its columns.
    """

    path: Path
    names: list[str]

    @abstractmethod
    def chunks(
        self, name: str, rows: int = CHUNK, *, check_all: bool = False
    ) -> Iterator[list[Any]]:
        """Values of a column, `rows` at a time; `check_all` reads the other columns too, so that
        damage shows.
        """

    def records(self, names: list[str], rows: int = CHUNK) -> Iterator[dict[str, list[Any]]]:
        """Values of several columns by name, `rows` at a time."""
        for chunks in zip(*(self.chunks(name, rows) for name in names), strict=True):
            yield dict(zip(names, chunks, strict=True))

    def column(self, name: str) -> list[Any]:
        """All values of a column."""
        return [value for chunk in self.chunks(name) for value in chunk]

    def count(self, name: str) -> int:
        """Number of rows."""
        return sum(len(chunk) for chunk in self.chunks(name))

    def holds_bytes(self, name: str) -> bool:
        """Tell whether a column holds bytes, such as pictures, rather than texts."""
        return False

    def class_names(self, name: str) -> list[str] | None:
        """Class names that the table states for a column of indexes."""
        return None

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that hold the rows."""
        return (self.path,)

    @property
    def places(self) -> Places:
        """Places of the rows, as messages name them."""
        return ROWS

    def place(self, name: str) -> int:
        """Position of a column."""
        if name not in self.names:
            column_names = excerpt(", ".join(self.names))
            fault = f"column {name!r} is not in {self.path}, which has {column_names}"
            raise InputError(f"{fault}; choose one of them")
        check_once(self.names, name, self.path)
        return self.names.index(name)


class Csv(Table):
    """Comma- or tab-separated text. Every cell is a string, and every row has as many cells as the
    header.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        csv.field_size_limit(max(csv.field_size_limit(), LONGEST))
        self.names = next(self.rows(), [])
        if not self.names:
            raise InputError(
                f"{path} is not a CSV file in UTF-8 (it is empty); give a table with a header"
            )

        # 0, 1, 2, ... are column names that pandas gives
        positions = [str(i) for i in range(len(self.names))]
        all_numbers = all(_NUMBER.fullmatch(name) for name in self.names)
        if all_numbers and self.names != positions:
            fault = f"{path} starts with a row of numbers, which would be lost as its header"
            raise InputError(f"{fault}; put column names in the first line")

    def chunks(
        self, name: str, rows: int = CHUNK, *, check_all: bool = False
    ) -> Iterator[list[Any]]:
        place = self.place(name)
        values = (row[place] for row in self._records())
        return _chunked(values, rows)

    def records(self, names: list[str], rows: int = CHUNK) -> Iterator[dict[str, list[Any]]]:
        places = {name: self.place(name) for name in names}
        for chunk in _chunked(self._records(), rows):
            yield {name: [row[place] for row in chunk] for name, place in places.items()}

    def write_replaced(self, name: str, replace: Replace, out: Path, rows: int, note: str) -> None:
        """Write a copy to `out` with the values of a column passed through `replace`; CSV has no
        place for `note`.
        """
        place = self.place(name)
        with out.open("w", encoding="utf-8", newline="") as file:
            minimal = csv.writer(file, lineterminator="\n")
            quoting = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)

            def write(row: list[str]) -> None:
                # csv by itself does not quote a cell with a lone carriage return
                has_return = any("\r" in cell for cell in row)
                writer = quoting if has_return else minimal
                writer.writerow(row)

            write(self.names)
            for chunk in _chunked(self._records(), rows):
                new_values = replace([row[place] for row in chunk])
                for row, value in zip(chunk, new_values, strict=True):
                    row[place] = str(value)
                    write(row)

    def rows(self) -> Iterator[list[str]]:
        """Yield the header and the rows."""
        delimiter = "\t" if ".tsv" in self.path.suffixes else ","
        try:
            width = None
            reader = csv.reader(_lines(self.path), strict=True, delimiter=delimiter)
            line = 1
            for row in reader:
                width = width or len(row)
                if len(row) != width:
                    cells = f"{len(row)} cells where the header has {width}"
                    raise InputError(f"{self.path} line {line} has {cells}; correct it")
                yield row
                # a cell with a line break takes several lines
                line = reader.line_num + 1
        except InputError:
            raise
        except FAULTS as error:
            raise InputError(
                f"{self.path} is not a CSV file in UTF-8 ({one_line(error)}); save it as one"
            ) from error

    @property
    def places(self) -> Places:
        return Places((self.path,), has_header=True)

    def _records(self) -> Iterator[list[str]]:
        """Yield the rows without the header."""
        return islice(self.rows(), 1, None)


class JsonLines(Table):
    """One JSON object a line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names = list(next(self._rows(), {}))

    def chunks(
        self, name: str, rows: int = CHUNK, *, check_all: bool = False
    ) -> Iterator[list[Any]]:
        for n_earlier_chunks, chunk in enumerate(_chunked(self._rows(), rows)):
            # all earlier chunks are full
            for number, row in enumerate(chunk, n_earlier_chunks * rows):
                if name not in row:
                    place = self.places.of(number)
                    raise InputError(f"{self.path} {place} has no {name!r}; give one in each")
            yield [row[name] for row in chunk]

    def records(self, names: list[str], rows: int = CHUNK) -> Iterator[dict[str, list[Any]]]:
        for chunk in _chunked(self._rows(), rows):
            yield {name: [row.get(name) for row in chunk] for name in names}

    @property
    def places(self) -> Places:
        return Places((self.path,))

    def _rows(self) -> Iterator[dict[str, Any]]:
        number = 0
        try:
            for line in _lines(self.path):
                number += 1
                if line.strip():
                    row = parse_json(line)
                    if not isinstance(row, dict):
                        raise ValueError("it is no object")
                    yield row
        except InputError:
            raise
        except FAULTS as error:
            # 0 if the file could not be opened
            line_number = max(number, 1)
            fault = f"{self.path} line {line_number} is not JSON in UTF-8 ({one_line(error)})"
            raise InputError(f"{fault}; write one object per line") from error


class ArrowTable(Table):
    """A table whose schema and number of rows are stated; pictures are bytes, or structs of bytes
    and path.
    """

    def __init__(self, path: Path, schema: Any, rows: int) -> None:
        self.path = path
        self.schema = schema
        self.rows = rows
        self.names = list(schema.names)

    def count(self, name: str) -> int:
        return self.rows

    def holds_bytes(self, name: str) -> bool:
        return holds_bytes(self.schema.field(name).type)


class Parquet(ArrowTable):
    """Parquet."""

    def __init__(self, path: Path) -> None:
        with open_parquet(path) as file:
            super().__init__(path, file.schema_arrow, file.metadata.num_rows)

    def chunks(
        self, name: str, rows: int = CHUNK, *, check_all: bool = False
    ) -> Iterator[list[Any]]:
        columns = None if check_all else [name]
        for _, values in self._batches(name, rows, columns):
            yield values

    def write_replaced(self, name: str, replace: Replace, out: Path, rows: int, note: str) -> None:
        """Write a copy to `out` with the values of a column passed through `replace`, and `note` in
        the schema.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        place = self.place(name)

        # other metadata may reveal the old values, as the categories in pandas' metadata do
        metadata = {b"tacit": note.encode()}
        writer = None
        for batch, values in self._batches(name, rows):
            columns = list(batch.columns)
            columns[place] = pa.array(replace(values))
            table = pa.table(columns, names=self.names).replace_schema_metadata(metadata)

            # the type of the new column is known with the first batch
            if writer is None:
                writer = pq.ParquetWriter(out, table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()

    def _batches(
        self, name: str, rows: int, columns: list[str] | None = None
    ) -> Iterator[tuple[Any, list[Any]]]:
        """Yield batches of rows of some columns or of all, and the values of the column `name` in
        each.
        """
        self.place(name)
        with open_parquet(self.path) as file:
            for batch in file.iter_batches(rows, columns=columns):
                yield batch, as_python(batch.column(name))


class SavedDataset(ArrowTable):
    """A folder saved by Hugging Face `datasets`, memory-mapped."""

    def __init__(self, path: Path) -> None:
        self._table = huggingface.read_table(path)
        super().__init__(path, self._table.schema, self._table.num_rows)

    def chunks(
        self, name: str, rows: int = CHUNK, *, check_all: bool = False
    ) -> Iterator[list[Any]]:
        self.place(name)
        with huggingface.faults(self.path):
            for batch in self._table.select([name]).to_batches(rows):
                # offsets may point outside of the file
                batch.validate(full=True)
                yield as_python(batch.column(0))

    def class_names(self, name: str) -> list[str] | None:
        return huggingface.class_names(self.path, name)

    @property
    def files(self) -> tuple[Path, ...]:
        return huggingface.data_files(self.path)


class ArrowParts(ArrowTable):
    """Parquet and Arrow files one below another, and columns that the names of their folders
    state.
    """

    def __init__(self, path: Path, table_parts: parts.Parts) -> None:
        self._parts = table_parts
        super().__init__(path, table_parts.schema, table_parts.rows)

    def chunks(
        self, name: str, rows: int = CHUNK, *, check_all: bool = False
    ) -> Iterator[list[Any]]:
        self.place(name)
        if check_all:
            for _ in self._parts.batches(self._parts.parts[0].schema.names, rows):
                pass
        return _chunked(self._values(name, rows), rows)

    def _values(self, name: str, rows: int) -> Iterator[Any]:
        if name not in self._parts.parts[0].schema.names:
            # a folder states it
            yield from self._parts.column(name).to_pylist()
            return
        self._parts.check_has(name)
        for batch in self._parts.batches([name], rows):
            yield from as_python(batch.column(0))

    @property
    def files(self) -> tuple[Path, ...]:
        return self._parts.files


class TextParts(Table):
    """Files of text one below another, with the same columns."""

    def __init__(self, path: Path, tables: list[Table]) -> None:
        self.path = path
        self._tables = tables
        self.names = tables[0].names
        for table in tables:
            if table.names != self.names:
                raise InputError(
                    f"{table.path} has other columns than {tables[0].path}; write all parts with"
                    " the same ones"
                )

    def chunks(
        self, name: str, rows: int = CHUNK, *, check_all: bool = False
    ) -> Iterator[list[Any]]:
        all_chunks = (table.chunks(name, rows, check_all=check_all) for table in self._tables)
        return _chunked(chain.from_iterable(chain.from_iterable(all_chunks)), rows)

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(table.path for table in self._tables)

    @property
    def places(self) -> Places:
        return Places(self.files, has_header=self._tables[0].places.has_header)


class Hdf5(Table):
    """The arrays of one axis in an HDF5 file, which are as long as one another."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names = hdf5.column_names(path)

    def chunks(
        self, name: str, rows: int = CHUNK, *, check_all: bool = False
    ) -> Iterator[list[Any]]:
        self.place(name)
        return hdf5.column_chunks(self.path, name, rows)


def _arrow(path: Path) -> Table:
    return ArrowParts(path, parts.one_part(path))


KINDS: dict[str, Callable[[Path], Table]] = {
    ".csv": Csv,
    ".tsv": Csv,
    ".jsonl": JsonLines,
    ".ndjson": JsonLines,
    ".parquet": Parquet,
    ".arrow": _arrow,
    ".feather": _arrow,
    ".ipc": _arrow,
    ".h5": Hdf5,
    ".hdf5": Hdf5,
}


def is_table(path: Path) -> bool:
    """Tell whether `path` is a table by its ending, a saved data set, or a folder that holds the
    parts of a table and nothing else.
    """
    if path.is_dir():
        return huggingface.is_dataset(path) or _is_parts(path)
    return _ending(path) in KINDS


def _is_parts(folder: Path) -> bool:
    return parts.holds_parts_alone(folder) and not parts.splits(folder)


def _open_parts(folder: Path) -> Table:
    """Open a folder of parts; empty files of text are passed over."""
    if not parts.are_texts(folder):
        return ArrowParts(folder, parts.open_parts(folder, None))
    paths = parts.text_paths(folder, None)
    filled = [path for path in paths if path.stat().st_size > 0]
    return TextParts(folder, [open_table(path) for path in filled or paths])


def open_table(path: Path) -> Table:
    """Open the table of a file, of a folder of parts, or of one that Hugging Face `datasets` saved;
    a table at a URL is copied to this machine.
    """
    if isinstance(path, RemotePath):
        existing(path)
        path = path.copied()
    if path.is_dir() and not huggingface.is_dataset(path) and _is_parts(path):
        return _open_parts(path)
    if path.is_dir():
        return SavedDataset(path)
    ending = _ending(path)
    if ending not in KINDS:
        raise InputError(
            f"{path} has an unknown ending; give a table that ends in {', '.join(KINDS)}"
        )
    kind = KINDS[ending]
    return kind(path)


def _ending(path: Path) -> str:
    """Return the ending of a file's name, without that of its compression."""
    return Path(path.name.removesuffix(".gz")).suffix.lower()


def _chunked(values: Iterator[T], rows: int) -> Iterator[list[T]]:
    """Yield the values in lists of `rows`; the last list may be shorter."""
    while chunk := list(islice(values, rows)):
        yield chunk


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text file, each with its own end."""
    if not path.exists():
        raise InputError(f"{path} does not exist; check its name")
    open_text = gzip.open if path.suffix == ".gz" else open

    # newline="": csv and JSON see the ends of lines as they stand in the file
    with open_text(path, "rt", encoding="utf-8-sig", newline="") as file:
        while line := file.readline(LONGEST):
            if len(line) == LONGEST:
                raise ValueError(f"a line has {LONGEST} characters or more")
            yield str(line)
