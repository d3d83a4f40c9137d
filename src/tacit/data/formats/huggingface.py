"""Folders saved by Hugging Face `datasets.save_to_disk`, read with pyarrow alone."""

import json
from pathlib import Path
from typing import Any

from tacit.data.arrays import Arrays, make_arrays
from tacit.data.formats import table as tables
from tacit.data.manifest import plain_name
from tacit.data.rows import one_line
from tacit.errors import InputError


def is_dataset(folder: Path) -> bool:
    """Whether `folder` is one saved data set."""
    return (folder / "state.json").is_file()


def is_dataset_dict(folder: Path) -> bool:
    """Whether `folder` holds a data set for each of several splits."""
    return (folder / "dataset_dict.json").is_file()


def splits(folder: Path) -> list[str]:
    """Names of the splits of a saved `DatasetDict`."""
    listed = _json(folder / "dataset_dict.json").get("splits")
    try:
        return [plain_name(name) for name in listed or ()]
    except ValueError as error:
        raise _damaged(folder, error) from error


def read(folder: Path, x: str | None, y: str | None, *, identity: str | None = None) -> Arrays:
    """Read features and labels; the names of a `ClassLabel` column are the declared classes."""
    files = data_files(folder)
    table = read_table(folder)
    features, label = tables.columns(table.schema, x, y, folder)
    return make_arrays(
        tables.matrix(table, features, folder),
        None if label is None else tables.values(table[label]),
        classes=None if label is None else class_names(folder, label),
        files=files,
        identity=identity or folder.absolute().name,
        card={},
    )


def data_files(folder: Path) -> tuple[Path, ...]:
    """The Arrow files of a saved data set."""
    state = _json(folder / "state.json")
    if state.get("_indices_data_files"):
        raise InputError(f"{folder} is an indexed view of its rows; save it again after Dataset.flatten_indices()")
    try:
        files = tuple(folder / plain_name(entry["filename"]) for entry in state["_data_files"])
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(folder, error) from error
    if not files:
        raise InputError(f"{folder} lists no data files; save the data set again with save_to_disk")
    return files


def read_table(folder: Path) -> Any:
    """All rows as an Arrow table, memory-mapped."""
    import pyarrow as pa

    try:
        return pa.concat_tables([_stream(path) for path in data_files(folder)])
    except (OSError, pa.ArrowException) as error:
        raise _damaged(folder, error) from error


def _stream(path: Path) -> Any:
    import pyarrow as pa

    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_stream(source).read_all()


def class_names(folder: Path, label: str) -> list[str] | None:
    """The names of a `ClassLabel` column."""
    feature = (_json(folder / "dataset_info.json").get("features") or {}).get(label, {})
    names: list[str] | None = feature.get("names") if feature.get("_type") == "ClassLabel" else None
    return names


def _json(path: Path) -> dict[str, Any]:
    try:
        stated: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _damaged(path.parent, error) from error
    return stated


def _damaged(folder: Path, error: Exception) -> InputError:
    return InputError(f"{folder} is not a complete saved data set ({one_line(error)}); save it again with save_to_disk")
