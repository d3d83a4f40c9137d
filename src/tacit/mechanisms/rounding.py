"""Convert rows of floats to rows of integers with an exact bound on their norm.

A row longer than 1 is scaled down to norm 1. Then each row is multiplied by unit (1 - 2^-32) and
rounded toward zero, which never lengthens it. The factor covers the float64 error of the norm and
of the divisions, which is at most (d + 8) 2^-53 relative in any order of summation, and so below
2^-32 for d <= 2^20. Hence every integer row has norm at most `unit`. A row with an entry that is
not finite, or whose norm overflows, becomes zeros. This depends on the row alone, so such a row too
changes a sum by at most `unit`. `tests/mechanisms/test_rounding.py` checks the bound in exact
arithmetic.

A person's records are bounded together. Let S be the sum of their integer rows, or products of
rows, as one long vector of D entries over all classes and columns, and rho = unit (1 - 2^-32). If
the float64 norm of S exceeds rho, S is multiplied by rho over that norm and rounded toward zero.
Its squares are summed row by row, and rows one after another, so that the relative error of the
norm is below (d + C + 16) 2^-54 < 2^-33 for C rows of d entries, and what is added has norm at most
`unit`: the sensitivity under add/remove of one person. It depends on that person's rows alone:
entries are exact up to 2^53, and beyond, added in the order of the rows.

The same noise covers one record, of norm r <= unit, that is added to a person's or removed, if it
is scaled to `sensitivity` = unit (1 + 2^-31) + sqrt(D). Projection on a ball lengthens no
difference, so the projections of S and S + r on the ball of radius rho differ by r at most. What is
added differs from a projection by at most unit 2^-32, by which a norm just above rho, or the float
norm, may be off, and by rounding toward zero, which lengthens the difference of two vectors by at
most 1 in each entry.

The standard deviation of noise is the product of such a sensitivity and a noise multiplier, rounded
up (`product_up`), so that the noise is never less than the event states.
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError

SLACK = 1 - 2.0**-32
_MAX_WIDTH = 2**20


def check_width(width: int) -> None:
    """Refuse rows too wide for the proof above."""
    if width > _MAX_WIDTH:
        raise InputError(
            f"rows of {width} columns exceed {_MAX_WIDTH}; project them to fewer columns first"
        )


def sensitivity(unit: int, entries: int, *, per_person: bool) -> float:
    """L2 sensitivity of sums of `entries` integers to one record, or to one person and any record
    of theirs.
    """
    if per_person:
        # the last factor covers the float64 error of the others
        return (unit * (1 + 2.0**-31) + math.sqrt(entries)) * (1 + 2.0**-50)
    return float(unit)


def product_up(*factors: float) -> float:
    """The exact product of factors above 0, rounded up to a float64: a scale of noise that is never
    below the one that is meant.
    """
    product = math.prod(factors)
    if not math.isfinite(product):
        return product
    exact = math.prod(map(Fraction, factors))
    product = float(exact)
    if product < exact:
        return math.nextafter(product, math.inf)
    return product


def row_norms(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Euclidean norms, of shape (n,), of contiguous rows (n, d); each depends on its own row alone,
    to the last bit.

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
