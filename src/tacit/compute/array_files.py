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
    """The file that holds a contiguous array."""

    path: str
    dtype: str
    shape: tuple[int, ...]
    offset: int  # of the array's first byte
    size: int  # of the file; size and time of change (nanoseconds) tell when the file was replaced
    changed: int

    def open(self) -> Any:
        """The array, mapped into memory; writing to it does not change the file."""
        return np.memmap(self.path, self.dtype, "c", self.offset, self.shape)


@dataclass(frozen=True)
class ShardFiles:
    """The files that hold the shards of an array; `joined` is the class that reads them as one
    array.
    """

    files: tuple[ArrayFile, ...]
    joined: Any

    def open(self) -> Any:
        """The array, mapped into memory; writing to it does not change the files."""
        return self.joined([file.open() for file in self.files])


def files_of(array: Any) -> ArrayFile | ShardFiles | None:
    """The file or files that hold an array, or None for an array in memory."""
    shards = getattr(array, "shards", None)
    if shards is not None:
        files = tuple(file for file in map(files_of, shards) if isinstance(file, ArrayFile))
        return ShardFiles(files, type(array)) if len(files) == len(shards) else None
    mapped = (
        isinstance(array, np.memmap)
        and isinstance(array.base, mmap.mmap)
        and array.flags.c_contiguous
    )
    # a writable map may differ from its file
    if not mapped or array.filename is None or array.mode != "r":
        return None
    path = Path(array.filename).absolute()
    try:
        facts = path.stat()
    except OSError:  # deleted since it was mapped
        return None
    return ArrayFile(
        str(path), array.dtype.str, array.shape, int(array.offset), facts.st_size, facts.st_mtime_ns
    )


def to_files(array: Any, folder: Path) -> ArrayFile | ShardFiles:
    """The files that hold an array; an array in memory is first written to the folder, named by its
    hash.
    """
    files = files_of(array)
    if files is None:
        checkpoint, name = (
            Checkpoint(folder, private=True),
            f"{digest([np.asarray(array)])}.array.npy",
        )
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
