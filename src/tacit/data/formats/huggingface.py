"""Folders saved by Hugging Face `datasets.save_to_disk`, read with pyarrow alone."""

import os
import struct
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from tacit.compute.documents import read_object
from tacit.data.arrays import Arrays, make_arrays
from tacit.data.formats import table as tables
from tacit.data.formats.arrow import arrow_faults, as_numpy
from tacit.data.manifest import plain_name
from tacit.data.sizes import check_width
from tacit.errors import InputError, quoted


def is_dataset(folder: Path) -> bool:
    """Tell whether `folder` is one saved data set."""
    return (folder / "state.json").is_file()


def is_dataset_dict(folder: Path) -> bool:
    """Tell whether `folder` holds a data set for each of several splits."""
    return (folder / "dataset_dict.json").is_file()


def splits(folder: Path) -> list[str]:
    """Names of the splits of a saved `DatasetDict`."""
    with faults(folder):
        return [
            plain_name(name) for name in _json(folder / "dataset_dict.json").get("splits") or []
        ]


def read(
    folder: Path,
    x: str | None,
    y: str | None,
    persons: str | None = None,
    *,
    identity: str | None = None,
    width: int | None = None,
) -> Arrays:
    """Read features, labels and ids of persons; the names of a `ClassLabel` column are the declared
    classes.
    """
    table = read_table(folder)
    with faults(folder):
        features, label = tables.columns(table.schema, x, y, persons, folder)
        table = table.select([*features, *(name for name in (label, persons) if name is not None)])
        table.validate(full=True)  # offsets may point outside of the file
        if len(features) > 1:
            check_width(folder, (table.num_rows, len(features)), width)
        rows = tables.matrix(table, features, folder)
        check_width(folder, rows.shape, width)
        labels, ids = (None if name is None else as_numpy(table[name]) for name in (label, persons))
    classes = None if label is None else class_names(folder, label)
    return make_arrays(
        rows, labels, data_files(folder), identity or folder.absolute().name, classes, persons=ids
    )


def data_files(folder: Path) -> tuple[Path, ...]:
    """The Arrow files of a saved data set."""
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
    """All rows as an Arrow table, memory-mapped."""
    import pyarrow as pa

    with faults(folder):
        return pa.concat_tables([_stream(path) for path in data_files(folder)])


def _stream(path: Path) -> Any:
    """The rows of a file, memory-mapped. Compressed batches are refused, since nothing states their
    size.
    """
    import pyarrow as pa

    with pa.memory_map(os.fsencode(path)) as source:
        for message in pa.ipc.MessageReader.open_stream(source):
            if message.type == "record batch" and _is_packed(message.metadata.to_pybytes()):
                raise InputError(
                    f"{path} holds packed batches, which are not read; save it with save_to_disk"
                )
        source.seek(0)
        with pa.ipc.open_stream(source) as reader:
            return pa.Table.from_batches(list(reader), reader.schema)


def _is_packed(metadata: bytes) -> bool:
    """Tell whether a record batch is compressed: field 3 of the flatbuffer header, which is field 2
    of the message.
    """

    def field(table: int, number: int) -> int:
        """Where a field of a table is; 0 if it is absent."""
        fields = table - struct.unpack_from("<i", metadata, table)[0]
        if 4 + 2 * number >= struct.unpack_from("<H", metadata, fields)[0]:
            return 0
        offset = struct.unpack_from("<H", metadata, fields + 4 + 2 * number)[0]
        return table + offset if offset else 0

    header = field(struct.unpack_from("<I", metadata)[0], 2)
    return bool(header and field(header + struct.unpack_from("<I", metadata, header)[0], 3))


def class_names(folder: Path, label: str) -> list[str] | None:
    """The names of a `ClassLabel` column."""
    features = _json(folder / "dataset_info.json").get("features") or {}
    feature = features.get(label, {}) if isinstance(features, dict) else {}
    if (
        not isinstance(feature, dict)
        or feature.get("_type") != "ClassLabel"
        or feature.get("names") is None
    ):
        return None
    names = feature["names"]
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
