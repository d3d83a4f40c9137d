"""What the bits of floats tell without arithmetic, as fast as they are read; numpy converts float16 first."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

CACHED = 2**22  # bytes that stay in the caches while they are looked at twice


def all_finite(block: NDArray[Any]) -> bool:
    """Whether no number of a block of floats is NaN or infinite.

    Those have exponents of ones: no smaller than infinity as signed integers, or, with a sign, as unsigned ones.
    """
    if block.size == 0 or not _plain(block):
        return bool(np.isfinite(block).all())
    signed, unsigned = _views(block)
    positive, negative = _views(np.array([np.inf, -np.inf], block.dtype))
    return bool(signed.max() < positive[0] and unsigned.max() < negative[1])


def zero_rows(block: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows of a block of floats of shape (n, d) are all zeros, of either sign; of shape (n,)."""
    if block.shape[1] == 0 or not _plain(block):
        return np.asarray(~block.any(axis=1))
    largest = _views(block)[1].max(axis=1)
    zero = np.isin(largest, _views(np.array([0.0, -0.0], block.dtype))[1])  # or zeros with a sign, and positive numbers
    zero[zero] = ~block[zero].any(axis=1)
    return zero


def _plain(block: NDArray[Any]) -> bool:
    return block.dtype.kind == "f" and block.dtype.itemsize <= 8 and block.dtype.isnative


def _views(block: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    return block.view(f"i{block.dtype.itemsize}"), block.view(f"u{block.dtype.itemsize}")
