"""Rules for rows of features: two-dimensional, numeric, finite, never all zeros.

A zero row has no direction and a row that is not finite has no bound, so no clipping could make
either safe to sum. Rows are read block by block: arrays on disk may exceed the memory.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.bits import CACHED, all_finite, zero_rows
from tacit.compute.foreign import of_tensor, refuse_times
from tacit.compute.progress import progress
from tacit.compute.threads import in_threads
from tacit.errors import InputError, excerpt

BLOCK_VALUES = 1 << 22
_SHORT = (np.dtype(np.float16), np.dtype(np.float32))  # whose squares stay in float64's range


def refuse_sparse(x: Any, name: str) -> None:
    """Refuse a sparse matrix of scipy, with the remedy."""
    if hasattr(x, "tocsr"):
        raise InputError(f"{name} is a sparse matrix; pass a dense array, {name}.toarray()")


def as_rows(x: Any, name: str = "X") -> Any:
    """`x` itself when it is a 2-D array of any kind (it is not copied), else made into one, as a
    data frame is.
    """
    refuse_times(x, name)
    x = x.to_numpy() if hasattr(x, "columns") and hasattr(x, "to_numpy") else of_tensor(x)
    refuse_sparse(x, name)
    if hasattr(x, "x") and not hasattr(x, "shape"):
        raise InputError(
            f"{name} is a {type(x).__name__}, not an array; pass its rows, {name}=store.x"
        )
    if not hasattr(x, "shape"):
        x = numeric_array(x, name)
    if len(x.shape) != 2:
        said = f"{name} has {len(x.shape)} dimension(s), not two (rows, columns)"
        raise InputError(f"{said}; reshape it to one row per record")
    if 0 in x.shape:
        said = f"{name} has shape {tuple(x.shape)}"
        raise InputError(f"{said}; it needs at least one row and one column, so check its source")
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

    def checked(start: int) -> int:
        block = numeric_array(x[start : start + step], name)
        # blocks are read large and checked in runs that fit the caches
        cached = max(1, CACHED // block[0].nbytes)
        for first in range(0, len(block), cached):
            _checked(block[first : first + cached], start + first, block.dtype, name)
        return len(block)

    for _ in progress(in_threads(checked, range(0, len(x), step)), "checking rows", len(x), int):
        pass


def one_line(error: Exception) -> str:
    """The message of another library's error, on one line of at most 200 characters."""
    return excerpt(" ".join(str(error).split()))


def numeric_array(values: Any, name: str) -> NDArray[Any]:
    """`values` as an array of real numbers; anything else is an error that calls them `name`."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        said = f"{name} cannot be read as a numeric array ({one_line(error)})"
        raise InputError(f"{said}; convert it to numpy first") from error
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"{name} has dtype {array.dtype}; features must be real numbers, so convert it to"
            " float32"
        )
    return array


def _checked(block: NDArray[Any], start: int, dtype: np.dtype[Any], name: str) -> NDArray[Any]:
    if (
        dtype == block.dtype
        and dtype in _SHORT
        and all_finite(block)
        and not zero_rows(block).any()
    ):
        return block
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        exact = block.astype(np.float64, copy=False)
        squared_norms = np.einsum("ij,ij->i", exact, exact)
        stored = exact if dtype == exact.dtype else block.astype(dtype, copy=False)
    finite = "is not finite (NaN, infinity, or a norm beyond float64); drop or repair that row"
    _refuse(~np.isfinite(squared_norms), start, name, finite)
    _refuse(squared_norms == 0, start, name, "is all zeros, which has no direction; drop that row")
    if dtype not in (block.dtype, exact.dtype):
        wider = "float32" if dtype == np.float16 else "float64"
        remedy = f'rescale all rows by one public factor, or pass dtype="{wider}"'
        overflow = f"exceeds the largest {dtype} ({np.finfo(dtype).max:.6g}); {remedy}"
        _refuse(~np.isfinite(stored).all(axis=1), start, name, overflow)
        _refuse(~stored.any(axis=1), start, name, f"becomes all zeros in {dtype}; {remedy}")
    return stored


def _refuse(bad: Any, start: int, name: str, fault: str) -> None:
    if bad.any():
        raise InputError(f"{name} row {start + int(bad.argmax())} {fault}")
