"""Tests of floats by their bits: as fast as memory, while numpy converts float16 before it
computes.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.threads import in_threads

CACHED = 2**22  # bytes of a block that stays in the processor's cache for a second test


def all_finite(block: NDArray[Any]) -> bool:
    """Tell whether no number in a block of floats is NaN or infinite.

    The exponent bits of NaN and infinity are all ones: read as integers they are at least as large
    as infinity (signed integers for positive numbers, unsigned ones for negative numbers).
    """
    if block.size == 0 or not _plain(block):
        return bool(np.isfinite(block).all())
    signed, unsigned = _views(block)
    positive, negative = _views(np.array([np.inf, -np.inf], block.dtype))
    return bool(signed.max() < positive[0] and unsigned.max() < negative[1])


def first_not_finite(rows: NDArray[Any]) -> int | None:
    """Index of the first row of floats of shape (n, d) with NaN or infinity; None if all numbers
    are finite.
    """
    step = max(1, CACHED // max(1, rows.dtype.itemsize * rows.shape[1]))

    def first_of(start: int) -> int | None:
        block = rows[start : start + step]
        return None if all_finite(block) else start + int(np.isfinite(block).all(axis=1).argmin())

    found = in_threads(first_of, range(0, len(rows), step))
    return next((row for row in found if row is not None), None)


def zero_rows(block: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows of a block of floats of shape (n, d) are all zeros, of either sign; of shape
    (n,).
    """
    if block.shape[1] == 0 or not _plain(block):
        return np.asarray(~block.any(axis=1))
    largest = _views(block)[1].max(axis=1)
    # -0.0 may hide positive numbers
    zero = np.isin(largest, _views(np.array([0.0, -0.0], block.dtype))[1])
    zero[zero] = ~block[zero].any(axis=1)
    return zero


def _plain(block: NDArray[Any]) -> bool:
    return block.dtype.kind == "f" and block.dtype.itemsize <= 8 and block.dtype.isnative


def _views(block: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    return block.view(f"i{block.dtype.itemsize}"), block.view(f"u{block.dtype.itemsize}")
