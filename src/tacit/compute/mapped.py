"""Arrays that lie in files, as a process hands them to another: by where they lie."""

import mmap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tacit.compute.checkpoint import Checkpoint
from tacit.compute.shared import digest


@dataclass(frozen=True)
class Mapped:
    """Where a contiguous array lies.

    Parameters
    ----------
    path : str
    dtype : str
    shape : tuple of int
    offset : int
        Of its first byte.
    size, changed : int
        Of the file, and when it was changed last, in nanoseconds: another file of the same name is told apart.
    """

    path: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    size: int
    changed: int

    def open(self) -> Any:
        """The array; writing to it would reach nobody."""
        return np.memmap(self.path, self.dtype, "c", self.offset, self.shape)


@dataclass(frozen=True)
class MappedShards:
    """Several, which read as one array of the class `joined`."""

    parts: tuple[Mapped, ...]
    joined: Any

    def open(self) -> Any:
        """The array; writing to it would reach nobody."""
        return self.joined([part.open() for part in self.parts])


def located(array: Any) -> Mapped | MappedShards | None:
    """Where an array lies, if it is a file mapped as a whole, or several."""
    shards = getattr(array, "shards", None)
    if shards is not None:
        parts = tuple(one for one in map(located, shards) if isinstance(one, Mapped))
        return MappedShards(parts, type(array)) if len(parts) == len(shards) else None
    whole = isinstance(array, np.memmap) and isinstance(array.base, mmap.mmap) and array.flags.c_contiguous
    if not whole or array.filename is None or array.mode != "r":  # what may be written to is not what the file holds
        return None
    path = Path(array.filename).absolute()
    try:
        facts = path.stat()
    except OSError:  # deleted since
        return None
    return Mapped(str(path), array.dtype.str, array.shape, int(array.offset), facts.st_size, facts.st_mtime_ns)


def mapped(array: Any, folder: Path) -> Mapped | MappedShards:
    """Where an array lies; one that lies in memory is written into the folder first, under a hash of its content."""
    found = located(array)
    if found is None:
        checkpoint, name = Checkpoint(folder), f"{digest([np.asarray(array)])}.array.npy"
        if not checkpoint.has(name):
            checkpoint.write(name, np.asarray(array))
        found = located(checkpoint.read(name))
    assert found is not None
    return found
