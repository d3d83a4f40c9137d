"""Sums of integers beyond 64 bits, as pairs of int64, which add up exactly in any order.

They hold sums below 2^85: 2^53 records in class sums in units of 2^-32, and 2^49 in second moments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

_BITS = 32
_MASK = 2**_BITS - 1


@dataclass(frozen=True, eq=False)
class Wide:
    """Integers `high` 2^32 + `low`, two int64 arrays of one shape, with 0 <= low < 2^32."""

    high: Integers
    low: Integers

    @classmethod
    def of(cls, values: Totals) -> Wide:
        """The same integers, as pairs."""
        if isinstance(values, Wide):
            return values
        # a shift rounds down, so `low` is never negative
        return cls(values >> _BITS, values & _MASK)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return self.high.shape

    @property
    def size(self) -> int:
        """Number of integers."""
        return self.high.size

    def __getitem__(self, place: Any) -> Wide:
        return Wide(self.high[place], self.low[place])

    def __add__(self, other: Totals) -> Wide:
        other = Wide.of(other)
        low = self.low + other.low
        carry = low >> _BITS
        return Wide(self.high + other.high + carry, low & _MASK)

    def __truediv__(self, unit: int) -> NDArray[np.float64]:
        """Nearest float64 of each integer, divided by a power of two."""
        # The product is exact, since |high| < 2^53, so that only the sum rounds.
        nearest = self.high.astype(np.float64) * 2.0**_BITS + self.low
        return np.asarray(nearest / unit)


Totals = Integers | Wide
"""Exact sums: int64 where they fit, else `Wide`."""


def added(totals: Totals, others: Totals) -> Wide:
    """Add two arrays of exact sums."""
    return Wide.of(totals) + others
