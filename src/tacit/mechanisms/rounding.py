"""Rows of floats become rows of integers with an exact bound on their norm.

Each row is scaled into the unit ball where it is longer, multiplied by unit (1 - 2^-32) and rounded toward
zero. Rounding toward zero never lengthens a row; the factor covers the float64 error of the norm and of
the divisions, at most (d + 8) 2^-53 relative and so below 2^-32 for d <= 2^20. Hence every integer
row has norm at most `unit`. A row with an infinite or undefined entry, or whose norm overflows, becomes
zeros: by its own values alone, so that it too moves a sum by no more than `unit`.
`tests/mechanisms/test_rounding.py` checks it in exact arithmetic.
"""

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError

SLACK = 1 - 2.0**-32
_MAX_WIDTH = 2**20


def check_width(width: int) -> None:
    """Refuse rows too wide for the proof above."""
    if width > _MAX_WIDTH:
        raise InputError(f"rows of {width} columns exceed {_MAX_WIDTH}; project them to fewer columns first")


def row_norms(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Euclidean norms of contiguous rows (n, d), of shape (n,): each by its own values alone, to the last bit.

    (`einsum` sums in another order where there is one row only, beyond 8192 columns.)
    """
    return np.asarray(np.linalg.norm(rows, axis=1))


def integer_rows(rows: NDArray[np.float64], unit: int) -> NDArray[np.int64]:
    """Round rows of shape (n, d), scaled into the unit ball, to integers of norm at most `unit`."""
    check_width(rows.shape[1])
    rows = np.ascontiguousarray(rows)  # so that a row's norm does not depend, in its bits, on the rows beside it
    with np.errstate(over="ignore", invalid="ignore"):
        norms = row_norms(rows)
        factor = unit * SLACK / np.maximum(norms, 1.0)
        scaled = np.trunc(rows * factor[:, None])
    scaled[~np.isfinite(norms)] = 0.0
    result: NDArray[np.int64] = scaled.astype(np.int64)
    return result
