"""Tables with a column of texts or of pictures: CSV, TSV, JSON lines, Parquet, and saved Hugging Face data sets.

A table is read in batches of rows, never whole.
"""

from __future__ import annotations

import gzip
import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tacit.compute.documents import parse_json
from tacit.data.formats import huggingface
from tacit.data.formats.table import check_once, open_parquet, parquet_faults
from tacit.data.labels import ClassValue
from tacit.data.rows import one_line
from tacit.encoding.sources.base import (
    Record,
    Rows,
    Source,
    by_index,
    class_values,
    empty,
    file_stamp,
    named_classes,
    stamp,
)
from tacit.errors import InputError, excerpt, quoted

LABELS = ("label", "labels", "y", "target", "class", "category")
TEXTS = ("text", "sentence", "document", "content", "review", "question", "x")
IMAGES = ("image", "img", "picture", "pixels", "bytes", "x")
BATCH = 1024
BLOCK = 1 << 24  # bytes of a CSV file that are parsed together
ENDINGS = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")


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

    @staticmethod
    def open(path: Path) -> Table:
        """The table of a file, or of a folder saved by Hugging Face `datasets`."""
        if not path.exists():
            raise InputError(f"{path} does not exist; check its name")
        if path.is_dir():
            return _Saved(path)
        kind: dict[str, Callable[[Path], Table]] = {
            ".csv": _Csv, ".tsv": _Csv, ".jsonl": _Lines, ".ndjson": _Lines, ".parquet": _Parquet
        }  # fmt: skip
        ending = Path(path.name.removesuffix(".gz")).suffix
        if ending not in kind:
            raise InputError(f"{path} has an unknown ending; give a table that ends in {', '.join(ENDINGS)}")
        return kind[ending](path)

    @abstractmethod
    def batches(self, name: str) -> Iterator[Sequence[Any]]:
        """Values of a column, some rows at a time."""

    def column(self, name: str) -> list[Any]:
        """All values of a column."""
        return [value for batch in self.batches(name) for value in batch]

    def count(self, name: str) -> int:
        """Number of rows."""
        return sum(len(batch) for batch in self.batches(name))

    def holds_pictures(self, name: str) -> bool:
        """Whether a column holds bytes rather than texts."""
        return False

    def classes(self, name: str) -> list[ClassValue] | None:
        """Class names that the table states for a column of indexes."""
        return None

    @property
    def stamp(self) -> str:
        """Changes when the table does."""
        return file_stamp(self.path)


def read(path: Path, x: str | None, y: str | None, public: bool) -> Source:
    """Texts or pictures of a table, with its labels if there is a column of them and they are not to be public."""
    table = Table.open(path)
    content = choose_column(table.names, x, (*TEXTS[:-1], *IMAGES), "x", path)
    if content is None:
        raise InputError(
            f"{path} has the columns {excerpt(', '.join(table.names))}; name the one of texts or pictures with --x"
        )
    label = choose_column([name for name in table.names if name != content], y, LABELS, "y", path)
    label = None if public else label
    labels = None if label is None else table.column(label)
    rows = table.count(content) if labels is None else len(labels)
    if rows == 0:
        raise empty(path, "rows")
    classes = None if label is None else table.classes(label)

    def records(start: int) -> Iterator[Record]:
        passed = 0
        for batch in table.batches(content):
            if passed + len(batch) > start:
                yield from batch[max(start - passed, 0) :]
            passed += len(batch)

    return Source(
        "picture" if table.holds_pictures(content) else "text",
        Rows(rows),
        records,
        stamp(table.stamp, content, label),
        _class_values(labels, classes, rows, path),
        classes,
        classes is not None,
    )


def choose_column(names: Sequence[str], given: str | None, usual: Iterable[str], option: str, path: Path) -> str | None:
    """The column that was named, else the first usual one, else None."""
    if given is not None and given not in names:
        raise InputError(f"{path} has no column {given!r}; choose --{option} from: {excerpt(', '.join(names))}")
    lower = {name.lower(): name for name in names}
    found = given or next((lower[one] for one in usual if one in lower), None)
    if found is not None and list(names).count(found) > 1:
        raise InputError(f"{path} has several columns {quoted(found)}; rename all but one")
    return found


def _class_values(labels: list[Any] | None, classes: list[ClassValue] | None, rows: int, path: Path) -> Any:
    if labels is None:
        return None
    found = class_values(labels, rows, path)
    return found if classes is None else by_index(found, classes, path)


class _Csv(Table):
    """Text with commas or tabs; every cell is a string."""

    def __init__(self, path: Path) -> None:
        self.path = path
        reader = self._open(None)
        try:
            self.names = list(reader.schema.names)
        except UnicodeDecodeError as error:
            raise self._broken(error) from error

    def batches(self, name: str) -> Iterator[Sequence[Any]]:
        import pyarrow as pa

        reader = self._open([name])
        try:
            for batch in reader:
                yield batch.column(0).to_pylist()
        except (OSError, ValueError, pa.ArrowException) as error:
            raise self._broken(error) from error

    def _open(self, columns: list[str] | None) -> Any:
        import pyarrow as pa
        from pyarrow import csv

        delimiter = "\t" if ".tsv" in self.path.suffixes else ","
        try:
            convert = None
            if columns is not None:
                kinds = dict.fromkeys(columns, pa.string())
                convert = csv.ConvertOptions(include_columns=columns, column_types=kinds, strings_can_be_null=False)
            return csv.open_csv(
                self.path,
                read_options=csv.ReadOptions(block_size=BLOCK),
                parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                convert_options=convert,
            )
        except (OSError, ValueError, KeyError, pa.ArrowException) as error:
            raise self._broken(error) from error

    def _broken(self, error: Exception) -> InputError:
        said = re.sub(r"(got \d+).*", r"\1", one_line(error))  # the rest is a row, which may be private
        if "straddling" in said:
            return InputError(f"{self.path} has a row of more than {BLOCK >> 20} MiB; shorten it, or use Parquet")
        return InputError(f"{self.path} is no table in UTF-8 ({said}); save it as CSV in UTF-8")


class _Lines(Table):
    """One JSON object a line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names = list(next(self._rows(), {}))

    def batches(self, name: str) -> Iterator[Sequence[Any]]:
        batch = []
        for number, row in enumerate(self._rows()):
            if name not in row:
                raise InputError(f"{self.path} row {number} has no {name!r}; give one in each")
            batch.append(row[name])
            if len(batch) == BATCH:
                yield batch
                batch = []
        yield batch

    def _rows(self) -> Iterator[dict[str, Any]]:
        place = 0
        try:
            with self._open() as file:
                while line := file.readline(BLOCK):
                    place += 1
                    if len(line) == BLOCK:
                        raise ValueError(f"it has {BLOCK} characters or more")
                    if line.strip():
                        row = parse_json(line)
                        if not isinstance(row, dict):
                            raise ValueError("it is no object")
                        yield row
        except (OSError, EOFError, ValueError, zlib.error) as error:
            said = f"{self.path} line {max(place, 1)} is no JSON in UTF-8 ({one_line(error)})"
            raise InputError(f"{said}; write one object a line") from error

    def _open(self) -> Any:
        if self.path.suffix == ".gz":
            return gzip.open(self.path, "rt", encoding="utf-8-sig")
        return self.path.open(encoding="utf-8-sig")


class _Parquet(Table):
    """Parquet; pictures are bytes, or structs of bytes and path as Hugging Face writes them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with parquet_faults(path), open_parquet(path) as file:
            self._schema = file.schema_arrow
            self._rows = file.metadata.num_rows
            self.names = list(self._schema.names)

    def batches(self, name: str) -> Iterator[Sequence[Any]]:
        check_once(self.names, name, self.path)
        with parquet_faults(self.path), open_parquet(self.path) as file:
            for batch in file.iter_batches(BATCH, columns=[name]):
                yield _values(batch.column(0))

    def count(self, name: str) -> int:
        return int(self._rows)

    def holds_pictures(self, name: str) -> bool:
        return _is_binary(self._schema.field(name).type)


class _Saved(Table):
    """A folder saved by Hugging Face `datasets`, memory-mapped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._table = huggingface.read_table(path)
        self.names = list(self._table.column_names)

    def batches(self, name: str) -> Iterator[Sequence[Any]]:
        check_once(self.names, name, self.path)
        with parquet_faults(self.path):
            for batch in self._table.select([name]).to_batches(BATCH):
                batch.validate(full=True)  # offsets may point outside of the file
                yield _values(batch.column(0))

    def count(self, name: str) -> int:
        return int(self._table.num_rows)

    def holds_pictures(self, name: str) -> bool:
        return _is_binary(self._table.schema.field(name).type)

    def classes(self, name: str) -> list[ClassValue] | None:
        names = huggingface.class_names(self.path, name)
        return None if names is None else named_classes(names, self.path)

    @property
    def stamp(self) -> str:
        return stamp([file_stamp(file) for file in huggingface.data_files(self.path)])


def _values(column: Any) -> list[Any]:
    """Python values; the bytes of a struct."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_struct(column.type):
        return [None if value is None else value.get("bytes") for value in column.to_pylist()]
    return list(column.to_pylist())


def _is_binary(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return bool(kind.get_field_index("bytes") >= 0)
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
