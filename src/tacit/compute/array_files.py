"""Arrays in files: passed from process to process by them, or kept there because they are large."""

import math
import mmap
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tacit.compute.checkpoint import Checkpoint
from tacit.compute.shared import digest
from tacit.errors import InputError


@dataclass(frozen=True)
class ArrayFile:
    """The file that holds a contiguous array.

    `offset` is that of the array's first byte. The size of the file and the time of its last
    change, in nanoseconds, differ where the file was replaced since.
    """

    path: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    file_size: int
    change_time: int

    def open(self) -> Any:
        """The array, mapped into memory; writing to it does not change the file."""
        return np.memmap(self.path, self.dtype, "c", self.offset, self.shape)


@dataclass(frozen=True)
class ShardFiles:
    """The files that hold the shards of an array; `array_class` reads them as one array."""

    files: tuple[ArrayFile, ...]
    array_class: Any

    def open(self) -> Any:
        """The array, mapped into memory; writing to it does not change the files."""
        return self.array_class([file.open() for file in self.files])


def files_of(array: Any) -> ArrayFile | ShardFiles | None:
    """The file or files that hold an array, or None for an array in memory."""
    shards = getattr(array, "shards", None)
    if shards is not None:
        files = tuple(file for file in map(files_of, shards) if isinstance(file, ArrayFile))
        if len(files) < len(shards):
            return None
        return ShardFiles(files, type(array))

    # A slice of a map is a memmap too, whose base is the map; its offset is not that of the slice.
    is_whole_map = isinstance(array, np.memmap) and isinstance(array.base, mmap.mmap)
    if not is_whole_map or not array.flags.c_contiguous or array.filename is None:
        return None
    if array.mode != "r":
        # a writable map may differ from its file
        return None

    path = Path(array.filename).absolute()
    try:
        status = path.stat()
    except OSError:
        # deleted since it was mapped
        return None
    return ArrayFile(
        path=str(path),
        dtype=array.dtype.str,
        shape=array.shape,
        offset=int(array.offset),
        file_size=status.st_size,
        change_time=status.st_mtime_ns,
    )


def to_files(array: Any, folder: Path) -> ArrayFile | ShardFiles:
    """The files that hold an array; an array in memory is first written to the folder, named by its
    hash.
    """
    files = files_of(array)
    if files is None:
        checkpoint = Checkpoint(folder, private=True)
        name = f"{digest([np.asarray(array)])}.array.npy"
        if not checkpoint.has(name):
            checkpoint.write(name, np.asarray(array))
        files = files_of(checkpoint.read(name))
    assert files is not None
    return files


def array_in(file: Path, dtype: Any, shape: tuple[int, ...]) -> Any:
    """A mapped array in a file of full size: if the disk filled up later, writing would kill the
    process.
    """
    size = max(1, math.prod(shape) * np.dtype(dtype).itemsize)
    try:
        with file.open("wb") as part:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(part.fileno(), 0, size)
            else:
                part.truncate(size)
    except OSError as error:
        fault = f"{file.parent} has no room for {size} bytes ({error.strerror})"
        raise InputError(f"{fault}; choose a folder that has") from error
    return np.memmap(file, dtype, "r+", shape=shape)
