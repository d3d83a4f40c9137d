"""HDF5 files (`.h5`, `.hdf5`): several named arrays, named as in `.npz`; features are read batch by
batch.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.extras import check_installed
from tacit.data.arrays import Arrays, from_named
from tacit.data.rows import BLOCK_VALUES, one_line
from tacit.data.sizes import check_unpacked
from tacit.data.streams import StreamedRows
from tacit.errors import InputError

# what h5py raises for a damaged file
FAULTS = (OSError, RuntimeError, ValueError, KeyError, TypeError, MemoryError)


def read(
    path: Path, x: str | None, y: str | None, persons: str | None, width: int | None
) -> Arrays:
    """Read features, labels, ids of persons and the class list, whichever are there."""

    def arrays(names: list[str]) -> list[Any]:
        """Return the features, to be read as they are asked for, and the other arrays."""
        check_unpacked(path, sum(file[name].nbytes for name in names))
        features, *others = names
        return [_features(path, features), *(_array(file[name]) for name in others)]

    with _opened(path) as file:
        names = [name for name in file if _is_array(file, name)]
        return from_named(path, names, lambda name: file[name].shape, arrays, x, y, persons, width)


def column_names(path: Path) -> list[str]:
    """Return the names of the arrays of one axis, which must be of one length."""
    with _opened(path) as file:
        names = [name for name in file if _is_array(file, name) and file[name].ndim == 1]
        if len({len(file[name]) for name in names}) > 1:
            raise InputError(f"{path} has arrays of several lengths; give columns of one length")
        return names


def column_chunks(path: Path, name: str, rows: int) -> Iterator[list[Any]]:
    """Yield the values of an array of one axis, `rows` at a time; bytes are texts."""
    with _opened(path) as file:
        n_rows = len(file[name])
        for start in range(0, n_rows, rows):
            yield _array(file[name], slice(start, start + rows)).tolist()


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a file; errors within the block become one-line InputErrors."""
    check_installed("h5py")
    import h5py

    try:
        with h5py.File(path, "r") as file:
            yield file
    except InputError:
        raise
    except FAULTS as error:
        fault = f"{path} is truncated or not an HDF5 file ({one_line(error)})"
        raise InputError(f"{fault}; save it again") from error


def _is_array(file: Any, name: str) -> bool:
    """Tell whether a name is an array that lies in this file: links may lead to other files."""
    import h5py

    if not isinstance(file.get(name, getlink=True), h5py.HardLink):
        return False
    array = file[name]
    return isinstance(array, h5py.Dataset) and not array.external and not array.is_virtual


def _features(path: Path, name: str) -> StreamedRows:
    """Return an array that is read in blocks of rows."""
    import h5py

    with h5py.File(path, "r") as file:
        shape = file[name].shape
        dtype = file[name].dtype
        values_of_row = max(1, int(np.prod(shape[1:])))
    step = max(1, BLOCK_VALUES // values_of_row)

    def blocks() -> Iterator[NDArray[Any]]:
        with h5py.File(path, "r") as file:
            for start in range(0, shape[0], step):
                yield file[name][start : start + step]

    return StreamedRows(blocks, shape, dtype)


def _array(array: Any, rows: slice | Any = ...) -> NDArray[Any]:
    """Return rows of an array in memory; texts as objects."""
    import h5py

    if h5py.check_string_dtype(array.dtype) is not None:
        array = array.asstr()
    values: NDArray[Any] = np.asarray(array[rows])
    return values
