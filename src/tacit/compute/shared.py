"""Work that several cells of an experiment share: computed once, and stored as arrays in a folder.

Within `sharing(folder)`, `shared` looks for a result in the folder before it computes; a second
process that needs the same result waits for the first. File names are hashes of everything that
decides a result, so none is ever stale. The folder may hold private data, such as scores of private
rows; that of a sweep is readable by its owner alone.

Within `caching()`, `cached` keeps results of public rows in the memory of this process, keyed by
the identity of the arrays: for work that takes about as long as hashing them.
"""

import hashlib
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.compute.checkpoint import Checkpoint
from tacit.compute.locks import lock
from tacit.version import __version__

# Rows that are hashed at a time.
BLOCK_ROWS = 8192

# Results that `cached` keeps.
CACHE_SIZE = 6

_folder: ContextVar[Path | None] = ContextVar("folder", default=None)
_caching: ContextVar[bool] = ContextVar("caching", default=False)

# From a function and the ids of its arrays: weak references to the arrays, and the result.
CACHE: OrderedDict[tuple[Any, ...], tuple[list[weakref.ref[Any]], Any]] = OrderedDict()

Result = TypeVar("Result")


@contextmanager
def sharing(folder: Path | str) -> Iterator[None]:
    """Look for shared work in `folder`, which must exist, and in memory within the block."""
    token = _folder.set(Path(folder))
    try:
        with caching():
            yield
    finally:
        _folder.reset(token)


def shared(
    label: str, inputs: Callable[[], Sequence[Any]], compute: Callable[[], NDArray[Any]]
) -> NDArray[Any]:
    """The result of `compute`, from the folder if it is there: then read-only and mapped into
    memory.

    `label` is the first word of the file's name. `inputs` returns everything that decides the
    result: arrays, and values whose `repr` tells them apart.
    """
    folder = _folder.get()
    if folder is None:
        return compute()

    checkpoint = Checkpoint(folder)
    name = f"{label}-{digest([_versions(), *inputs()])}"
    result_file = f"{name}.npy"
    if not checkpoint.has(result_file):
        with locked(checkpoint.path(f"{name}.lock")):
            # another process may have computed it while this one waited for the lock
            if not checkpoint.has(result_file):
                checkpoint.write(result_file, np.asarray(compute()))
    return np.asarray(checkpoint.read(result_file))


@contextmanager
def caching() -> Iterator[None]:
    """Let `cached` use earlier results within the block; arrays that it is given must never
    change.
    """
    token = _caching.set(True)
    try:
        yield
    finally:
        _caching.reset(token)


def cached(compute: Callable[..., Result], *arrays: Any) -> Result:
    """`compute` of these arrays (or None); the result is not to be changed in place.

    A result leaves the cache when one of its arrays is freed, or when there are six newer ones.
    """
    if not _caching.get():
        return compute(*arrays)

    key = (compute, *map(id, arrays))
    entry = CACHE.get(key)
    if entry is None:
        # The id of an array that is freed may become that of another array, so its entry goes too.
        references = [
            weakref.ref(array, lambda _: CACHE.pop(key, None))
            for array in arrays
            if array is not None
        ]
        entry = (references, compute(*arrays))
        CACHE[key] = entry
        while len(CACHE) > CACHE_SIZE:
            CACHE.popitem(last=False)
    return entry[1]


@lru_cache(maxsize=1)
def _versions() -> str:
    """Versions of the libraries that compute: after an upgrade, everything is computed again."""
    libraries = " ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn"))
    return f"tacit {__version__} {libraries}"


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold a lock on a file, which the system releases however the process ends; BlockingIOError
    without `wait`.
    """
    with path.open("a") as file:
        lock(file, wait=wait)
        yield


def digest(inputs: Sequence[Any]) -> str:
    """Hash of arrays, by content and type, and of other values, by `repr`."""
    total = hashlib.sha256()
    for value in inputs:
        if not hasattr(value, "dtype"):
            total.update(f"{value!r}\0".encode())
            continue

        total.update(f"{np.dtype(value.dtype).str}{value.shape}\0".encode())
        if value.ndim == 0:
            total.update(np.asarray(value).tobytes())
            continue

        # by blocks, since an array may be mapped from a file that is larger than memory
        for start in range(0, len(value), BLOCK_ROWS):
            total.update(np.ascontiguousarray(value[start : start + BLOCK_ROWS]).data)
    return total.hexdigest()[:32]
