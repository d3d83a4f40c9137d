"""Tests of floats by their bits: as fast as memory, while numpy converts float16 before it
computes.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.threads import in_threads

# Bytes of a block of rows, which stays in the processor's cache for a second test.
CACHED = 2**22


def all_finite(block: NDArray[Any]) -> bool:
    """Tell whether no number in a block of floats is NaN or infinite.

    The exponent bits of NaN and infinity are all ones: read as integers they are at least as large
    as infinity (signed integers for positive numbers, unsigned ones for negative numbers).
    """
    if block.size == 0 or not _has_native_bits(block):
        return bool(np.isfinite(block).all())

    infinity = np.array([np.inf], block.dtype)
    if _signed(block).max() >= _signed(infinity)[0]:
        return False
    return bool(_unsigned(block).max() < _unsigned(-infinity)[0])


def first_not_finite(rows: NDArray[Any]) -> int | None:
    """Index of the first row of floats of shape (n, d) with NaN or infinity; None if all numbers
    are finite.
    """
    bytes_per_row = rows.dtype.itemsize * rows.shape[1]
    step = max(1, CACHED // max(1, bytes_per_row))

    def first_in_block(start: int) -> int | None:
        block = rows[start : start + step]
        if all_finite(block):
            return None
        finite_rows = np.isfinite(block).all(axis=1)
        return start + int(finite_rows.argmin())

    firsts = in_threads(first_in_block, range(0, len(rows), step))
    return next((row for row in firsts if row is not None), None)


def zero_rows(block: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which rows of a block of floats of shape (n, d) are all zeros, of either sign; shape
    (n,).
    """
    if block.shape[1] == 0 or not _has_native_bits(block):
        return np.asarray(~block.any(axis=1))

    # As unsigned integers, 0.0 is the smallest float, and -0.0 is above all positive floats.
    zeros = np.array([0.0, -0.0], block.dtype)
    largest = _unsigned(block).max(axis=1)
    is_zero = np.isin(largest, _unsigned(zeros))

    # So a row whose largest is -0.0 may hold positive numbers.
    is_zero[is_zero] = ~block[is_zero].any(axis=1)
    return is_zero


def _has_native_bits(block: NDArray[Any]) -> bool:
    """Tell whether integers of the same size order the floats of a block."""
    return block.dtype.kind == "f" and block.dtype.itemsize <= 8 and block.dtype.isnative


def _signed(block: NDArray[Any]) -> NDArray[Any]:
    """The bits of floats as signed integers, which order positive floats above negative ones."""
    return block.view(f"i{block.dtype.itemsize}")


def _unsigned(block: NDArray[Any]) -> NDArray[Any]:
    """The bits of floats as unsigned integers, which order negative floats by their size, above
    positive ones.
    """
    return block.view(f"u{block.dtype.itemsize}")
