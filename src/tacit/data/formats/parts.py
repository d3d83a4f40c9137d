"""Tables in one file or in a folder of parts, as Spark, Dask, DuckDB and Hugging Face write them.

Parts are Parquet or Arrow files (`.parquet`, `.arrow`, `.feather`, `.ipc`), read in the order of
their paths, in which numbers count as numbers: `part.2` comes before `part.10`. Names that begin
with `_` or `.` are no parts. A folder `NAME=VALUE` gives its parts a column (Hive). A part is read
batch by batch and never held whole.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tacit.compute.remote import RemotePath
from tacit.data.formats.arrow import arrow_faults, decoded, decoded_type, is_list
from tacit.data.formats.footer import value_counts
from tacit.data.labels import WHOLE_NUMBER
from tacit.data.sizes import check_unpacked, check_width
from tacit.errors import InputError

# labels read at a time, since a file does not state the size of texts
LABELS_READ = 4096

# bytes of a Parquet file that are read at a time from each column
READ_BYTES = 1 << 22

# the value of a Hive partition for rows without one
MISSING = "__HIVE_DEFAULT_PARTITION__"

# names that begin so are splits
_SPLIT = re.compile(
    r"(train|training|test|testing|validation|valid|val|dev|eval)(?![a-z0-9])", re.I
)


class Part(ABC):
    """One file of a table.

    Attributes
    ----------
    path : Path
    schema : pyarrow.Schema
    rows : int
    """

    path: Path
    schema: Any
    rows: int

    @abstractmethod
    def batches(self, names: list[str], rows: int) -> Iterator[Any]:
        """Yield batches of at most so many rows of some columns, in the order of `names`."""

    @abstractmethod
    def check(self, features: list[str], other_columns: list[str], width: int | None) -> None:
        """Refuse a part with too many values, or with rows of another width, before it is read."""

    def column(self, name: str) -> Any:
        """Read a column, in batches until they exceed what `check_unpacked` allows."""
        import pyarrow as pa

        chunks = []
        n_bytes = 0
        for batch in self.batches([name], LABELS_READ):
            n_bytes += batch.nbytes
            check_unpacked(self.path, n_bytes)
            chunks.append(decoded(batch.column(0)))
        return chunks or [pa.array([], decoded_type(self.schema.field(name).type))]


class ParquetPart(Part):
    """A Parquet file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._opened() as file:
            self.schema = file.schema_arrow
            self.rows = file.metadata.num_rows

    def batches(self, names: list[str], rows: int) -> Iterator[Any]:
        with arrow_faults(self.path), self._opened() as file:
            for batch in file.iter_batches(rows, columns=names):
                yield batch.select(names)

    def check(self, features: list[str], other_columns: list[str], width: int | None) -> None:
        """Refuse a file with too many values, or rows of another width (for lists, their mean
        length).
        """
        with arrow_faults(self.path):
            check_sizes(self.path, self.schema, self.rows, features, other_columns, width)

    def _opened(self) -> Any:
        """Open the file so that columns are read a part at a time."""
        import pyarrow.parquet as pq

        with arrow_faults(self.path):
            source: Any = self.path
            if isinstance(source, RemotePath):
                source = source.open()
            return pq.ParquetFile(source, buffer_size=READ_BYTES, pre_buffer=False)


class ArrowPart(Part):
    """An Arrow IPC file, also called feather."""

    def __init__(self, path: Path) -> None:
        import pyarrow.dataset as ds
        from pyarrow.fs import LocalFileSystem

        self.path = path
        with arrow_faults(path, "is truncated or not an Arrow IPC file"):
            # a file may be one large batch: mapped, it need not fit the memory
            files: Any = LocalFileSystem(use_mmap=True)
            place = str(path.absolute())
            if isinstance(path, RemotePath):
                files = path.filesystem
                place = path.key
            self._dataset = ds.dataset(place, filesystem=files, format="ipc")
            self.schema = self._dataset.schema
            self.rows = self._dataset.count_rows()

    def batches(self, names: list[str], rows: int) -> Iterator[Any]:
        with arrow_faults(self.path, "is truncated or not an Arrow IPC file"):
            scanner = self._dataset.scanner(
                columns=names, batch_size=rows, batch_readahead=1, fragment_readahead=1
            )
            for batch in scanner.to_batches():
                # offsets may point outside of the file
                batch.validate(full=True)
                yield batch

    def check(self, features: list[str], other_columns: list[str], width: int | None) -> None:
        """Refuse rows of another width; that of lists shows once they are read."""
        if not is_list(self.schema.field(features[0]).type):
            check_width(self.path, (self.rows, len(features)), width)


KINDS: dict[str, type[ParquetPart] | type[ArrowPart]] = {
    ".parquet": ParquetPart,
    ".pq": ParquetPart,
    ".arrow": ArrowPart,
    ".feather": ArrowPart,
    ".ipc": ArrowPart,
}


# endings of text, whose rows are collected as it is parsed, and not streamed
TEXTS = (
    *(".csv", ".tsv", ".csv.gz", ".tsv.gz"),
    *(".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz"),
)


class Parts:
    """The parts of a table, one below another.

    Parameters
    ----------
    parts : list of Part
    partitions : list of dict
        The values that the folders of each part state, by the name of the column.
    """

    def __init__(self, parts: list[Part], partitions: list[dict[str, str]]) -> None:
        self.parts = parts
        self._partitions = partitions
        self.rows = sum(part.rows for part in parts)
        self.files = tuple(part.path for part in parts)

    @cached_property
    def schema(self) -> Any:
        """The columns of the first part, then those that folders state."""
        import pyarrow as pa

        schema = self.parts[0].schema
        for name in self._partitions[0]:
            if name not in schema.names:
                kind = pa.int64() if self._are_integers(name) else pa.string()
                schema = schema.append(pa.field(name, kind))
        return schema

    def types(self, names: list[str]) -> Iterator[Any]:
        """Yield the types of some columns in each part; a part that lacks one is refused."""
        for name in names:
            self.check_has(name)
        for part in self.parts:
            for name in names:
                yield part.schema.field(name).type

    def check_has(self, name: str) -> None:
        """Refuse parts of which one lacks a column."""
        for part in self.parts:
            if name not in part.schema.names:
                raise InputError(
                    f"{part.path} has no column {name!r}, which other parts have; write all parts"
                    " with the same columns"
                )

    def batches(self, names: list[str], rows: int) -> Iterator[Any]:
        """Yield batches of at most so many rows of columns that the parts hold."""
        for part in self.parts:
            if part.rows:
                yield from part.batches(names, rows)

    def column(self, name: str) -> Any:
        """Return a column of all rows, from the parts or from the names of their folders."""
        import pyarrow as pa

        if name in self._partitions[0] and name not in self.parts[0].schema.names:
            return self._stated(name)
        self.check_has(name)
        tables = []
        for part in self.parts:
            tables.append(pa.table({"values": pa.chunked_array(part.column(name))}))
        try:
            table = pa.concat_tables(tables, promote_options="permissive")
        except (pa.ArrowException, TypeError) as error:
            folder = self.parts[0].path.parent
            fault = f"column {name!r} is of several types in the parts of {folder}"
            raise InputError(f"{fault}; write all parts with the same types") from error
        return table["values"]

    def _stated(self, name: str) -> Any:
        """Return a column that the names of folders state."""
        import pyarrow as pa

        kind = self.schema.field(name).type
        chunks = []
        for part, partition in zip(self.parts, self._partitions, strict=True):
            value: Any = partition[name]
            if self._are_integers(name):
                value = int(value)
            elif value == MISSING:
                value = None
            chunks.append(pa.repeat(pa.scalar(value, kind), part.rows))
        return pa.chunked_array(chunks, kind)

    def _are_integers(self, name: str) -> bool:
        """Tell whether all values of a folder are integers as they are usually written: 01 is a
        text.
        """
        return all(WHOLE_NUMBER.fullmatch(partition[name]) for partition in self._partitions)


def one_part(path: Path) -> Parts:
    """Open a file as the only part of a table."""
    return Parts([_open(path)], [{}])


def is_parts(folder: Path) -> bool:
    """Tell whether a folder holds parts of a table."""
    return folder.is_dir() and next(_part_paths(folder), None) is not None


def holds_parts_alone(folder: Path) -> bool:
    """Tell whether all files of a folder are parts of a table, but for those whose names begin with
    `_` or `.`, and there is one at least.
    """
    n_parts = 0
    for path in folder.rglob("*"):
        if _is_hidden(path, folder) or path.is_dir():
            continue
        if path.suffix.lower() not in KINDS and ending(path) not in TEXTS:
            return False
        n_parts += 1
    return n_parts > 0


def are_texts(folder: Path) -> bool:
    """Tell whether the parts of a folder are text."""
    first = next(_part_paths(folder), None)
    return first is not None and ending(first) in TEXTS


def splits(folder: Path) -> list[str]:
    """Return the names of the splits in a folder of parts: of folders that are no partition, or how
    the names of its files begin; empty if it has none.
    """
    if not folder.is_dir():
        return []
    names = {_split(path.relative_to(folder)) for path in _part_paths(folder)}
    if names <= {None}:
        return []
    if None in names:
        others = ", ".join(sorted(name for name in names if name is not None))
        raise InputError(
            f"{folder} holds parts of {others}, and parts of none; keep them in folders of their"
            " own"
        )
    return sorted(name for name in names if name is not None)


def open_parts(folder: Path, split: str | None) -> Parts:
    """Open the parts of a folder, or those of one of its splits."""
    paths = _ordered(folder, split)
    partitions = [_partition(path.relative_to(folder)) for path in paths]
    for path, partition in zip(paths, partitions, strict=True):
        if list(partition) != list(partitions[0]):
            raise InputError(
                f"{path} is in other partitions than {paths[0]}; write all parts with the same ones"
            )
    return Parts([_open(path) for path in paths], partitions)


def text_paths(folder: Path, split: str | None) -> list[Path]:
    """Return the files of text in a folder, or of one of its splits, which end alike and hold all
    columns.
    """
    paths = _ordered(folder, split)
    for path in paths:
        if _partition(path.relative_to(folder)):
            raise InputError(
                f"{path} is in a folder NAME=VALUE, which states a column of Parquet and Arrow"
                " alone; write the column into the parts"
            )
        if ending(path) != ending(paths[0]):
            raise InputError(
                f"{path} and {paths[0]} end otherwise; write all parts in the same format"
            )
    return paths


def ending(path: Path) -> str:
    """Return the ending of a file in small letters, with that before `.gz`."""
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return path.with_suffix("").suffix.lower() + suffix
    return suffix


def check_sizes(
    path: Path,
    schema: Any,
    n_rows: int,
    features: list[str],
    other_columns: list[str],
    width: int | None,
) -> None:
    """Refuse a Parquet file with too many values, or rows of another width (for lists, their mean
    length).
    """
    counts = value_counts(path)

    # eight bytes a value, and a value at least in each row
    n_values = sum(max(counts.get(name, 0), n_rows) for name in (*features, *other_columns))
    check_unpacked(path, 8 * n_values)

    if not is_list(schema.field(features[0]).type):
        check_width(path, (n_rows, len(features)), width)
        return
    n_list_values = counts.get(features[0], 0)
    if n_rows and width is not None and n_list_values != n_rows * width:
        mean_length = -(-n_list_values // n_rows)
        check_width(path, (n_rows, mean_length), width)


def _open(path: Path) -> Part:
    return KINDS[path.suffix.lower()](path)


def _is_hidden(path: Path, folder: Path) -> bool:
    """Tell whether a name on the way from the folder to a path begins with `_` or `.`."""
    return any(name.startswith(("_", ".")) for name in path.relative_to(folder).parts)


def _part_paths(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder that are parts of a table, in no order: text only if there are
    no others.
    """
    texts = []
    n_others = 0
    for path in folder.rglob("*"):
        if _is_hidden(path, folder):
            continue
        if path.suffix.lower() in KINDS and path.is_file():
            n_others += 1
            yield path
        elif ending(path) in TEXTS and path.is_file():
            texts.append(path)
    if n_others == 0:
        yield from texts


def _ordered(folder: Path, split: str | None) -> list[Path]:
    """Return the parts of a folder, or of one of its splits, in the order of their paths."""
    paths = [path for path in _part_paths(folder) if _split(path.relative_to(folder)) == split]
    return sorted(paths, key=lambda path: _natural(path.relative_to(folder)))


def _split(path: Path) -> str | None:
    """Return the split that a part belongs to, by its path within the folder."""
    folders = [name for name in path.parts[:-1] if "=" not in name]
    if folders:
        return "-".join(folders)
    start = _SPLIT.match(path.name)
    return start[0] if start else None


def _partition(path: Path) -> dict[str, str]:
    """Return what the folders NAME=VALUE on a path within the folder state."""
    pairs = [name.partition("=") for name in path.parts[:-1] if "=" in name]
    return {unquote(name): unquote(value) for name, _, value in pairs}


def _natural(path: Path) -> list[list[tuple[bool, int, str]]]:
    """Return what paths are sorted by: each name in turn, its numbers as numbers."""
    return [
        [
            (piece.isdecimal(), int(piece) if piece.isdecimal() else 0, piece)
            for piece in re.split(r"(\d+)", name)
        ]
        for name in path.parts
    ]
