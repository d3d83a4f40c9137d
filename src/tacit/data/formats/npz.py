"""`.npz` files: several named arrays, of which only those used are read, once their sizes are known
to be fair.
"""

import lzma
import struct
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.arrays import Arrays, from_named
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
