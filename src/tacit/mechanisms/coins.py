"""Coins that show heads with probability exp(-x), exactly: one at a time, or a million at once.

A single coin is flipped by algorithm 1 of Canonne, Kamath and Steinke 2020. Many coins at once get
a uniform number each, of which 64 bits are drawn; a coin shows heads if its number is below
exp(-x). Numbers are compared in float64 with a margin of 2^5 times its error. Within the margin,
integer bounds of exp(-x) decide, with more and more bits of both numbers, so that no rounding error
remains.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
RandBelow = Callable[[int], int]
"""Maps n to a uniformly random integer from 0 to n - 1."""
Words = Callable[[int], NDArray[np.uint64]]
"""Maps n to n uniformly random 64-bit words."""

# rounding of gap, gap/scale and exp changes exp(-x) by less than a factor 1 + 2^-45, above 2^-64
MARGIN = 2.0**-40


def flip_exp(x: Fraction, randbelow: RandBelow) -> bool:
    """True with probability exp(-x), x >= 0."""
    while x > 1:
        if not flip_exp(Fraction(1), randbelow):
            return False
        x -= 1
    k = 1
    while randbelow(x.denominator * k) < x.numerator:
        k += 1
    return k % 2 == 1


def flips_exp(
    gaps: Integers, scale: float, words: Words, randbelow: RandBelow
) -> NDArray[np.bool_]:
    """Flip one coin for each gap >= 0, of shape (m,): True with probability exp(-gap/scale),
    independently.
    """
    numbers = words(len(gaps))
    drawn = numbers.astype(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        chances = np.exp(-(gaps / scale)) * 2.0**64
    heads = drawn + 2 < chances * (1 - MARGIN)
    for i in np.flatnonzero(~heads & (drawn < chances * (1 + MARGIN) + 1)):
        heads[i] = _is_below(int(numbers[i]), Fraction(int(gaps[i])) / Fraction(scale), randbelow)
    return heads


def _is_below(number: int, x: Fraction, randbelow: RandBelow) -> bool:
    """Tell whether a uniform number whose first 64 bits are `number` is below exp(-x)."""
    bits = 64
    while True:
        low, high = _enclosed(x, bits)
        if number + 1 <= low:
            return True
        if number >= high:
            return False
        number, bits = (number << 64) + randbelow(2**64), bits + 64


def _enclosed(x: Fraction, bits: int) -> tuple[int, int]:
    """Bounds of 2^bits exp(-x)."""
    level = int(x)
    if level > bits:
        return 0, 1
    lows, highs = powers(bits)
    below, above = _series(x - level, bits)
    return int(lows[level] * below), -int(-(highs[level] * above) // 1)


def _series(x: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Bounds of exp(-x), 0 <= x <= 1, less than 2^-bits apart."""
    term, total, k = Fraction(1), Fraction(0), 0
    while term > Fraction(1, 4 << bits):
        total += term if k % 2 == 0 else -term
        k += 1
        term *= x / k
    return total - term, total + term  # the series alternates


@lru_cache(maxsize=4)
def powers(bits: int) -> tuple[list[int], list[int]]:
    """Bounds of 2^bits exp(-l) for l = 0..bits."""
    below, above = _series(Fraction(1), bits)
    lows, highs = [1 << bits], [1 << bits]
    for _ in range(bits):
        lows.append(int(lows[-1] * below))
        highs.append(-int(-(highs[-1] * above) // 1))
    return lows, highs
