"""CIFAR-10 and CIFAR-100 as their owners ship them: the archive, or its folder, for Python or in
bytes.

The files for Python are pickles. They are read by an unpickler that knows arrays of numbers and
nothing else.
"""

import io
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.rows import one_line
from tacit.encoding.sources.base import Record, Rows, Source, by_index, named_classes, stamp
from tacit.encoding.sources.tree import Tree
from tacit.errors import InputError

SHAPE = (3, 32, 32)
PIXELS = 3072


@dataclass(frozen=True)
class _Version:
    """The layout of an archive: its files, and where labels and names of classes are in them.

    `names` is the file of class names. In pickles, `labels` and `class_names` are keys; in files of
    bytes, `label_bytes` labels come before each picture, the last of which is the class.
    """

    splits: dict[str, tuple[str, ...]]
    names: str
    labels: bytes = b""
    class_names: bytes = b""
    label_bytes: int = 0


BATCHES = tuple(f"data_batch_{number}" for number in range(1, 6))
BINARY_BATCHES = tuple(f"{name}.bin" for name in BATCHES)
VERSIONS = (
    # CIFAR-10 for Python
    _Version(
        {"train": BATCHES, "test": ("test_batch",)},
        "batches.meta",
        labels=b"labels",
        class_names=b"label_names",
    ),
    # CIFAR-100 for Python
    _Version(
        {"train": ("train",), "test": ("test",)},
        "meta",
        labels=b"fine_labels",
        class_names=b"fine_label_names",
    ),
    # CIFAR-10 in bytes
    _Version(
        {"train": BINARY_BATCHES, "test": ("test_batch.bin",)},
        "batches.meta.txt",
        label_bytes=1,
    ),
    # CIFAR-100 in bytes: a coarse and a fine label
    _Version(
        {"train": ("train.bin",), "test": ("test.bin",)},
        "fine_label_names.txt",
        label_bytes=2,
    ),
)


def splits(files: Tree) -> list[str]:
    """Return which splits are there, if this is one of the archives."""
    version = _version(files)
    if version is None:
        return []
    return [split for split, names in version.splits.items() if files.find(*names)]


def read(files: Tree, split: str) -> Source:
    """Read a split. Labels are the fine ones of CIFAR-100."""
    version = _version(files)
    # a split is chosen among those that `splits` returns
    assert version is not None

    paths = []
    for name in version.splits[split]:
        path = files.find(name)
        if path is None:
            raise InputError(f"{files.path} lacks {name}; get the archive again")
        paths.append(path)
    labels_of_files = [_batch(files, path, version)[1] for path in paths]
    file_starts = np.cumsum([0, *map(len, labels_of_files)])

    def records(start: int) -> Iterator[Record]:
        for number, path in enumerate(paths):
            if file_starts[number + 1] <= start:
                continue
            pixels, _ = _batch(files, path, version)
            first = max(start - file_starts[number], 0)
            for row in pixels[first:]:
                # channels come first in the files, and last in a record
                yield row.reshape(SHAPE).transpose(1, 2, 0)

    classes = named_classes(_class_names(files, version), files.path)
    values = by_index(np.concatenate(labels_of_files), classes, files.path)
    return Source(
        "picture",
        Rows(len(values)),
        records,
        stamp(files.stamp, split),
        labels=values,
        classes=classes,
        label_kind="index",
        classes_declared=True,
    )


def _version(files: Tree) -> _Version | None:
    """Return the version of which these are the files."""
    for version in VERSIONS:
        if files.find(version.names) and files.find(*version.splits["train"]):
            return version
    return None


def _batch(files: Tree, path: str, version: _Version) -> tuple[NDArray[np.uint8], NDArray[Any]]:
    """Read pixels, (rows, 3072), and label indexes, (rows,), of a file."""
    data = files.read(path)
    if version.label_bytes == 0:
        content = _unpickle(data, path)
        pixels = content.get(b"data")
        labels = content.get(version.labels)
        if not isinstance(pixels, np.ndarray) or pixels.shape != (len(labels or ()), PIXELS):
            raise InputError(f"{path} is not a batch of CIFAR pictures; get the archive again")
        return pixels.astype(np.uint8, copy=False), np.array(labels)

    record_bytes = version.label_bytes + PIXELS
    if not data or len(data) % record_bytes:
        raise InputError(
            f"{path} has {len(data)} bytes, no multiple of {record_bytes}; get the archive again"
        )
    rows = np.frombuffer(data, np.uint8).reshape(-1, record_bytes)
    fine_labels = rows[:, version.label_bytes - 1]
    return rows[:, version.label_bytes :], fine_labels.astype(np.int64)


def _class_names(files: Tree, version: _Version) -> list[str]:
    path = str(files.find(version.names))
    data = files.read(path)
    if version.label_bytes > 0:
        return data.decode().split()
    names = _unpickle(data, path).get(version.class_names) or []
    return [name.decode() if isinstance(name, bytes) else str(name) for name in names]


class _Unpickler(pickle.Unpickler):
    """Read numbers, texts, lists, dicts and arrays; refuse a pickle that needs any other class."""

    def find_class(self, module: str, name: str) -> Any:
        if module in ("numpy.core.multiarray", "numpy._core.multiarray") and name == "_reconstruct":
            return np._core.multiarray._reconstruct  # type: ignore[attr-defined]
        if (module, name) in (("numpy", "ndarray"), ("numpy", "dtype")):
            return getattr(np, name)
        if (module, name) == ("_codecs", "encode"):
            import _codecs

            return _codecs.encode
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")


def _unpickle(data: bytes, path: str) -> dict[bytes, Any]:
    try:
        content = _Unpickler(io.BytesIO(data), encoding="bytes").load()
    except Exception as error:
        # a damaged pickle may raise anything
        fault = f"{path} is not a batch of CIFAR pictures ({one_line(error)})"
        raise InputError(f"{fault}; get the archive again") from error
    if not isinstance(content, dict):
        raise InputError(f"{path} is not a batch of CIFAR pictures; get the archive again")

    # keys are bytes, since Python 2 wrote the files; a file that Python 3 wrote again has texts
    return {key.encode() if isinstance(key, str) else key: value for key, value in content.items()}
