"""`.npz` files: several named arrays, of which only those used are read, once their sizes are known
to be fair.
"""

import lzma
import struct
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.arrays import FEATURES, Arrays, from_named
from tacit.data.formats import npy
from tacit.data.sizes import check_unpacked, quiet
from tacit.errors import InputError

# what a damaged archive raises, or one that is encrypted (RuntimeError) or packed by a method that
# Python lacks
FAULTS = (
    OSError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    RuntimeError,
    AttributeError,
    *npy.FAULTS,
)


def read(
    path: Path, x: str | None, y: str | None, persons: str | None, width: int | None
) -> Arrays:
    """Read features, labels, ids of persons and the class list (an array `classes`), whichever are
    there.
    """
    archive = Archive(path)
    return from_named(
        path,
        archive.names,
        lambda name: archive.header(name).shape,
        archive.read,
        x,
        y,
        persons,
        width,
    )


def split_of(path: Path, split: str | None, role: str | None) -> str | None:
    """Return the split to read of a file with arrays such as `train_x` and `test_x`: the one that
    is named, or else that of the role.

    None stands for a file without splits, and for one that lacks the split of the role.
    """
    names = Archive(path).names
    splits = sorted(name.removesuffix("_x") for name in names if name.endswith("_x"))
    has_usual_names = any(name in names for name in FEATURES)
    if has_usual_names or not splits:
        return None
    if split is not None and split not in splits:
        raise InputError(
            f"{path} has no split {split!r}; choose split from: {', '.join(splits)} (never learn"
            " from the one that tests)"
        )
    if split is None and role not in splits:
        return None
    return split or role


def read_split(path: Path, split: str, persons: str | None, width: int | None) -> Arrays:
    """Read features and labels of a split; the training split has the identity of the file."""
    labels_name = f"{split}_y"
    has_labels = labels_name in Archive(path).names
    arrays = read(path, f"{split}_x", labels_name if has_labels else None, persons, width)
    if split == "train":
        return arrays
    return replace(arrays, identity=f"{path.stem}-{split}")


class Archive:
    """The arrays of a `.npz` file, of which none is read until `read` is called."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with zipfile.ZipFile(path) as file:
                self.names = [
                    name.removesuffix(".npy") for name in file.namelist() if name.endswith(".npy")
                ]
        except FAULTS as error:
            raise self._broken(error) from error

    def open(self, name: str) -> IO[bytes]:
        """Open the `.npy` file of an array, to read from."""
        return zipfile.ZipFile(self.path).open(f"{name}.npy")

    def header(self, name: str) -> npy.Header:
        """Return the header of an array, checked against the size that the archive states."""
        try:
            with zipfile.ZipFile(self.path) as file, file.open(f"{name}.npy") as member:
                return npy.read_header(member, file.getinfo(f"{name}.npy").file_size)
        except FAULTS as error:
            raise self._broken(error) from error

    def read(self, names: Sequence[str]) -> list[NDArray[Any]]:
        """Read arrays, unless together they unpack to more than `check_unpacked` allows."""
        check_unpacked(self.path, sum(self.header(name).bytes for name in names))
        try:
            with quiet(), np.load(self.path, allow_pickle=False) as file:
                return [np.asarray(file[name]) for name in names]
        except FAULTS as error:
            raise self._broken(error) from error

    def _broken(self, error: Exception) -> InputError:
        return npy.broken(self.path, error, "a .npz file", "numpy.savez")
