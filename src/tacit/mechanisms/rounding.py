"""Convert rows of floats to rows of integers with an exact bound on their norm.

A row longer than 1 is scaled down to norm 1. Then each row is multiplied by unit (1 - 2^-32) and rounded toward zero,
which never lengthens it. The factor covers the float64 error of the norm and of the divisions, which is at most
(d + 8) 2^-53 relative in any order of summation, and so below 2^-32 for d <= 2^20. Hence every integer row has norm at
most `unit`. A row with an entry that is not finite, or whose norm overflows, becomes zeros. This depends on the row
alone, so such a row too changes a sum by at most `unit`. `tests/mechanisms/test_rounding.py` checks the bound in exact
arithmetic.
"""

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError

First = TypeVar("First", bound=Any)
Second = TypeVar("Second", bound=Any)

SLACK = 1 - 2.0**-32
_MAX_WIDTH = 2**20


def check_width(width: int) -> None:
    """Refuse rows too wide for the proof above."""
    if width > _MAX_WIDTH:
        raise InputError(f"rows of {width} columns exceed {_MAX_WIDTH}; project them to fewer columns first")


def row_norms(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Euclidean norms, of shape (n,), of contiguous rows (n, d); each depends on its own row alone, to the last bit.

    (`einsum` sums a single row of more than 8192 columns in another order than several rows.)
    """
    return np.asarray(np.linalg.norm(rows, axis=1))


def integer_rows(rows: NDArray[np.float64], unit: int) -> NDArray[np.int64]:
    """Round rows of shape (n, d), scaled into the unit ball, to integers of norm at most `unit`."""
    return np.asarray(whole_rows(rows, unit).astype(np.int64))


def whole_rows(rows: NDArray[np.float64], unit: int) -> NDArray[np.float64]:
    """The same integers in float64, which holds those up to 2^53."""
    from tacit.mechanisms.kernels import truncate_rows

    check_width(rows.shape[1])
    whole = np.array(rows, np.float64, order="C")
    truncate_rows(whole, unit * SLACK)
    return whole


def short_blocks(blocks: Iterable[tuple[First, Second]], rows: int, most: int) -> Iterator[tuple[First, Second]]:
    """Cut pairs of equal length into pairs of at most `rows` rows; refuse more than `most` rows in all."""
    n = 0
    for first, second in blocks:
        n += len(first)
        if n > most:
            raise InputError(f"more than {most} rows would overflow 64-bit sums; learn from fewer")
        for start in range(0, len(first), rows):
            yield first[start : start + rows], second[start : start + rows]
