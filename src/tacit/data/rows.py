"""Rules for rows of features: two-dimensional, numeric, finite, never all zeros.

A zero row has no direction and a row that is not finite has no bound, so no clipping could make
either safe to sum. Rows are read block by block: arrays on disk may exceed the memory.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.bits import CACHED, all_finite, zero_rows
from tacit.compute.features import array_of
from tacit.compute.progress import progress
from tacit.compute.threads import in_threads
from tacit.errors import InputError, RowError, excerpt

# values of a block that is read at a time
BLOCK_VALUES = 1 << 22

# types whose squares stay in the range of float64
_SHORT = (np.dtype(np.float16), np.dtype(np.float32))


def refuse_sparse(x: Any, name: str) -> None:
    """Refuse a sparse matrix of scipy, with the remedy."""
    if hasattr(x, "tocsr"):
        raise InputError(f"{name} is a sparse matrix; pass a dense array, {name}.toarray()")


def as_rows(x: Any, name: str = "X") -> Any:
    """Return a 2-D array of any kind as it is, without a copy; make others into one, such as a data
    frame or a column of vectors.
    """
    x = array_of(x, name)
    is_data_frame = hasattr(x, "columns") and hasattr(x, "to_numpy")
    if is_data_frame:
        x = x.to_numpy()
    refuse_sparse(x, name)

    if not hasattr(x, "shape"):
        if hasattr(x, "x"):
            raise InputError(
                f"{name} is a {type(x).__name__}, not an array; pass its rows, {name}=store.x"
            )
        x = numeric_array(x, name)
    if len(x.shape) != 2:
        fault = f"{name} has {len(x.shape)} dimension(s), not two (rows, columns)"
        raise InputError(f"{fault}; reshape it to one row per record")
    if 0 in x.shape:
        fault = f"{name} has shape {tuple(x.shape)}"
        raise InputError(f"{fault}; it needs at least one row and one column, so check its source")
    return x


def checked_blocks(
    x: Any, *, dtype: np.dtype[Any] | None = None, cut: int | None = None, name: str = "X"
) -> Iterator[NDArray[Any]]:
    """Check `x` and yield it in blocks of rows, converted to `dtype`; no block crosses a multiple
    of `cut`.
    """
    x = as_rows(x, name)
    rows, columns = x.shape
    cut = cut or rows
    step = max(1, BLOCK_VALUES // columns)
    for first in range(0, rows, cut):
        end = min(first + cut, rows)
        for start in range(first, end, step):
            block = numeric_array(x[start : min(start + step, end)], name)
            yield _checked(block, start, dtype or block.dtype, name)


def check_rows(x: Any, *, name: str = "X") -> None:
    """Check features against the rules without keeping a copy.

    Parameters
    ----------
    x : array of shape (rows, columns)
        Features; a memory-mapped array is read once, block by block.
    name : str
        What to call `x` in messages.

    Raises
    ------
    InputError
        Naming the first offending row, the rule and the remedy.
    """
    x = as_rows(x, name)
    step = max(1, BLOCK_VALUES // x.shape[1])

    def check_block(start: int) -> int:
        """Check the block that begins at a row, and return its number of rows."""
        block = numeric_array(x[start : start + step], name)

        # blocks are read large and checked in pieces that fit the processor's cache
        piece_rows = max(1, CACHED // block[0].nbytes)
        for first in range(0, len(block), piece_rows):
            _checked(block[first : first + piece_rows], start + first, block.dtype, name)
        return len(block)

    row_counts = in_threads(check_block, range(0, len(x), step))
    for _ in progress(row_counts, "checking rows", len(x), int):
        pass


def one_line(error: Exception) -> str:
    """Return the message of another library's error, on one line of at most 200 characters."""
    return excerpt(" ".join(str(error).split()))


def numeric_array(values: Any, name: str) -> NDArray[Any]:
    """Return values as an array of real numbers; an error calls them `name`."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        fault = f"{name} cannot be read as a numeric array ({one_line(error)})"
        raise InputError(f"{fault}; convert it to numpy first") from error
    is_text = array.dtype.kind in "US" or (
        array.dtype.kind == "O" and any(isinstance(value, str) for value in array.flat)
    )
    if is_text:
        raise InputError(
            f"{name} holds texts, and features are numbers; encode texts first (tacit.Encoder,"
            " tacit encode), or a table with tacit.TableEncoder"
        )
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"{name} has dtype {array.dtype}; features must be real numbers, so convert it to"
            " float32"
        )
    return array


def _checked(block: NDArray[Any], start: int, dtype: np.dtype[Any], name: str) -> NDArray[Any]:
    """Check a block of rows, (rows, columns), that begins at row `start`; return it as `dtype`."""
    # most blocks pass this test, which is as fast as memory
    keeps_type = dtype == block.dtype and dtype in _SHORT
    if keeps_type and all_finite(block) and not zero_rows(block).any():
        return block

    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        doubles = block.astype(np.float64, copy=False)
        squared_norms = np.einsum("ij,ij->i", doubles, doubles)
        if dtype == doubles.dtype:
            converted = doubles
        else:
            converted = block.astype(dtype, copy=False)

    finite = "is not finite (NaN, infinity, or a norm beyond float64); drop or repair that row"
    _refuse(~np.isfinite(squared_norms), start, name, finite)
    _refuse(squared_norms == 0, start, name, "is all zeros, which has no direction; drop that row")

    may_lose_values = dtype not in (block.dtype, doubles.dtype)
    if may_lose_values:
        wider_dtype = "float32" if dtype == np.float16 else "float64"
        remedy = f'rescale all rows by one public factor, or pass dtype="{wider_dtype}"'
        overflow = f"exceeds the largest {dtype} ({np.finfo(dtype).max:.6g}); {remedy}"
        _refuse(~np.isfinite(converted).all(axis=1), start, name, overflow)
        _refuse(~converted.any(axis=1), start, name, f"becomes all zeros in {dtype}; {remedy}")
    return converted


def _refuse(bad: Any, start: int, name: str, fault: str) -> None:
    """Refuse rows of a block that begins at row `start` if one is bad; the error names the
    first.
    """
    if bad.any():
        raise RowError(f"{name} ", start + int(bad.argmax()), f" {fault}")
