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
    """The layout of an archive; `label_bytes` are 0 in those of pickles."""

    splits: dict[str, tuple[str, ...]]
    names: str
    labels: bytes = b""
    class_names: bytes = b""
    label_bytes: int = 0


TEN = tuple(f"data_batch_{number}" for number in range(1, 6))
TEN_BINARY = tuple(f"{name}.bin" for name in TEN)
VERSIONS = (
    _Version({"train": TEN, "test": ("test_batch",)}, "batches.meta", b"labels", b"label_names"),
    _Version({"train": ("train",), "test": ("test",)}, "meta", b"fine_labels", b"fine_label_names"),
    _Version({"train": TEN_BINARY, "test": ("test_batch.bin",)}, "batches.meta.txt", label_bytes=1),
    _Version(
        {"train": ("train.bin",), "test": ("test.bin",)}, "fine_label_names.txt", label_bytes=2
    ),
)


def splits(files: Tree) -> list[str]:
    """Which splits are there, if this is one of the archives."""
    version = _version(files)
    return (
        []
        if version is None
        else [split for split, names in version.splits.items() if files.find(*names)]
    )


def read(files: Tree, split: str) -> Source:
    """A split. Labels are the fine ones of CIFAR-100."""
    version = _version(files)
    assert version is not None  # `splits` found it
    paths = [files.find(name) for name in version.splits[split]]
    if None in paths:
        raise InputError(
            f"{files.path} lacks {version.splits[split][paths.index(None)]}; get the archive again"
        )
    labels = [_batch(files, str(path), version)[1] for path in paths]
    starts = np.cumsum([0, *map(len, labels)])

    def records(start: int) -> Iterator[Record]:
        for first, end, path in zip(starts, starts[1:], paths, strict=False):
            if end > start:
                pixels, _ = _batch(files, str(path), version)
                yield from (
                    row.reshape(SHAPE).transpose(1, 2, 0) for row in pixels[max(start - first, 0) :]
                )

    classes = named_classes(_class_names(files, version), files.path)
    values = by_index(np.concatenate(labels), classes, files.path)
    return Source(
        "picture", Rows(len(values)), records, stamp(files.stamp, split), values, classes, True
    )


def _version(files: Tree) -> _Version | None:
    def fits(version: _Version) -> bool:
        return bool(files.find(version.names) and files.find(*version.splits["train"]))

    return next(filter(fits, VERSIONS), None)


def _batch(files: Tree, path: str, version: _Version) -> tuple[NDArray[np.uint8], NDArray[Any]]:
    """Pixels (rows, 3072) and label indexes of a file."""
    data = files.read(path)
    if not version.label_bytes:
        content = _unpickle(data, path)
        pixels, labels = content.get(b"data"), content.get(version.labels)
        if not isinstance(pixels, np.ndarray) or pixels.shape != (len(labels or ()), PIXELS):
            raise InputError(f"{path} is not a batch of CIFAR pictures; get the archive again")
        return pixels.astype(np.uint8, copy=False), np.array(labels)
    width = version.label_bytes + PIXELS
    if not data or len(data) % width:
        raise InputError(
            f"{path} has {len(data)} bytes, no multiple of {width}; get the archive again"
        )
    rows = np.frombuffer(data, np.uint8).reshape(-1, width)
    return rows[:, version.label_bytes :], rows[:, version.label_bytes - 1].astype(np.int64)


def _class_names(files: Tree, version: _Version) -> list[str]:
    path = str(files.find(version.names))
    data = files.read(path)
    if version.label_bytes:
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
    except Exception as error:  # a damaged pickle may raise anything
        fault = f"{path} is not a batch of CIFAR pictures ({one_line(error)})"
        raise InputError(f"{fault}; get the archive again") from error
    if not isinstance(content, dict):
        raise InputError(f"{path} is not a batch of CIFAR pictures; get the archive again")
    return {key.encode() if isinstance(key, str) else key: value for key, value in content.items()}
