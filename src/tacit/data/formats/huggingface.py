"""Folders saved by Hugging Face `datasets.save_to_disk`, read with pyarrow alone."""

import os
import struct
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from tacit.compute.documents import read_object
from tacit.data.arrays import Arrays
from tacit.data.formats import table as tables
from tacit.data.formats.arrow import arrow_faults, is_list
from tacit.data.formats.parts import Part, Parts
from tacit.data.manifest import plain_name
from tacit.data.sizes import check_width
from tacit.errors import InputError, quoted

# features of `datasets` whose values are lists
LISTS = ("Sequence", "List", "LargeList")


def is_dataset(folder: Path) -> bool:
    """Tell whether `folder` is one saved data set."""
    return (folder / "state.json").is_file()


def is_dataset_dict(folder: Path) -> bool:
    """Tell whether `folder` holds a data set for each of several splits."""
    return (folder / "dataset_dict.json").is_file()


def splits(folder: Path) -> list[str]:
    """Return the names of the splits of a saved `DatasetDict`."""
    with faults(folder):
        names = _json(folder / "dataset_dict.json").get("splits") or []
        return [plain_name(name) for name in names]


def read(
    folder: Path,
    x: str | None,
    y: str | None,
    persons: str | None = None,
    *,
    identity: str | None = None,
    width: int | None = None,
    separator: str | None = None,
    group: str | None = None,
) -> Arrays:
    """Read features, labels, ids of persons and groups; the names of a `ClassLabel` column are the
    declared classes.
    """
    parts: list[Part] = [SavedPart(folder, path) for path in data_files(folder)]
    _, label = tables.columns(parts[0].schema, x, y, persons, folder, group)
    return tables.read_parts(
        Parts(parts, [{}] * len(parts)),
        folder,
        identity or folder.absolute().name,
        x,
        y,
        persons,
        width,
        separator,
        group,
        classes=None if label is None else class_names(folder, label),
        # a `ClassLabel` column holds positions
        label_kind="index",
    )


class SavedPart(Part):
    """A file of a saved data set, memory-mapped."""

    def __init__(self, folder: Path, path: Path) -> None:
        self.path = path
        self._folder = folder
        with faults(folder):
            self._table = _stream(path)
            self.schema = self._table.schema
            self.rows = self._table.num_rows

    def batches(self, names: list[str], rows: int) -> Iterator[Any]:
        with faults(self._folder):
            for batch in self._table.select(names).to_batches(rows):
                # offsets may point outside of the file
                batch.validate(full=True)
                yield batch

    def check(self, features: list[str], other_columns: list[str], width: int | None) -> None:
        """Refuse rows of another width; that of lists shows once they are read."""
        if not is_list(self.schema.field(features[0]).type):
            check_width(self._folder, (self.rows, len(features)), width)


def data_files(folder: Path) -> tuple[Path, ...]:
    """Return the Arrow files of a saved data set."""
    state = _json(folder / "state.json")
    if state.get("_indices_data_files"):
        raise InputError(
            f"{folder} is an indexed view of its rows; save it again after"
            " Dataset.flatten_indices()"
        )
    with faults(folder):
        files = tuple(folder / plain_name(entry["filename"]) for entry in state["_data_files"])
    if not files:
        raise InputError(f"{folder} lists no data files; save the data set again with save_to_disk")
    return files


def read_table(folder: Path) -> Any:
    """Return all rows as an Arrow table, memory-mapped."""
    import pyarrow as pa

    with faults(folder):
        return pa.concat_tables([_stream(path) for path in data_files(folder)])


def _stream(path: Path) -> Any:
    """Return the rows of a file, memory-mapped.

    Compressed batches are refused, since nothing states their size.
    """
    import pyarrow as pa

    with pa.memory_map(os.fsencode(path)) as source:
        for message in pa.ipc.MessageReader.open_stream(source):
            is_batch = message.type == "record batch"
            if is_batch and _is_compressed(message.metadata.to_pybytes()):
                raise InputError(
                    f"{path} holds packed batches, which are not read; save it with save_to_disk"
                )
        source.seek(0)
        with pa.ipc.open_stream(source) as reader:
            return pa.Table.from_batches(list(reader), reader.schema)


def _is_compressed(metadata: bytes) -> bool:
    """Tell whether a record batch is compressed, by its metadata.

    The metadata are a flatbuffer, a table Message, whose field 2 is the header: a table
    RecordBatch, whose field 3 is the compression (Message.fbs of Arrow).
    """
    message = _unsigned(metadata, 0)
    header_field = _field(metadata, message, 2)
    if header_field is None:
        return False
    record_batch = header_field + _unsigned(metadata, header_field)
    return _field(metadata, record_batch, 3) is not None


def _field(data: bytes, table: int, number: int) -> int | None:
    """Return the position of a field of a flatbuffer's table; None if it is absent.

    A table begins with the distance to its vtable. That holds two sizes, of two bytes each, the
    first of which is its own; then, for each field, the distance from the table, or 0.
    """
    (distance,) = struct.unpack_from("<i", data, table)
    vtable = table - distance
    (vtable_bytes,) = struct.unpack_from("<H", data, vtable)
    entry = 4 + 2 * number
    if entry >= vtable_bytes:
        return None
    (offset,) = struct.unpack_from("<H", data, vtable + entry)
    return table + offset if offset else None


def _unsigned(data: bytes, position: int) -> int:
    (number,) = struct.unpack_from("<I", data, position)
    return int(number)


def class_names(folder: Path, label: str) -> list[str] | None:
    """Return the names of a column of `ClassLabel`, or of lists of it; None for a column of another
    kind.
    """
    features = _json(folder / "dataset_info.json").get("features") or {}
    feature = features.get(label) if isinstance(features, dict) else None
    if isinstance(feature, dict) and feature.get("_type") in LISTS:
        feature = feature.get("feature")
    elif isinstance(feature, list) and len(feature) == 1:
        # as `datasets` wrote lists before it had a class for them
        feature = feature[0]
    if not isinstance(feature, dict) or feature.get("_type") != "ClassLabel":
        return None
    names = feature.get("names")
    if names is None:
        return None
    if not isinstance(names, list):
        raise InputError(
            f"{folder} names the classes of {quoted(label)} as {quoted(names)}; list them"
        )
    return names


def faults(folder: Path) -> AbstractContextManager[None]:
    """Turn what a damaged data set raises into a one-line InputError."""
    return arrow_faults(
        folder, "is not a complete saved data set", "save it again with save_to_disk"
    )


def _json(path: Path) -> dict[str, Any]:
    with faults(path.parent):
        return read_object(path)
