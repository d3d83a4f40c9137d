"""An index drawn with probability proportional to exp(score / scale), exactly, from integer scores.

Gaps to the largest score are cut into levels, whole numbers L_i with gap_i = scale (L_i + x_i), 0 <= x_i < 1.01. A
level is drawn with probability proportional to N_l exp(-l), N_l the number of candidates in it, then one of them
uniformly, and it is kept with probability exp(-x_i), else all is drawn anew: P(i) is proportional to exp(-L_i - x_i),
as it should be. At most e^1.01 rounds are needed on average, whatever the scores.

Exactness. The level is where a uniform number falls among the partial sums of N_l exp(-l). The number's bits are drawn
as they are needed, the sums are enclosed in integers of as many bits, and when the enclosures do not tell where it
falls both get twice as many bits: no rounding enters (von Neumann 1951; Knuth and Yao 1976). exp(-x) for a rational x
is flipped exactly as in Canonne, Kamath and Steinke 2020, algorithm 1. The chosen candidate's x is an exact fraction.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
RandBelow = Callable[[int], int]
"""From n to a uniformly random whole number below n."""

BITS = 192
_SAFE = 1 - 2.0**-48  # keeps a level at or below its gap despite two roundings


def choose(scores: Integers, scale: float, randbelow: RandBelow) -> int:
    """An index with probability proportional to exp(scores / scale).

    Parameters
    ----------
    scores : ndarray of shape (m,), int64
    scale : float
        Finite and above 0.
    randbelow : callable
        The source of randomness.

    Returns
    -------
    int
    """
    gaps = scores.max() - scores
    levels = np.floor(gaps / scale * _SAFE).clip(max=2.0**40).astype(np.int64)
    while True:
        level = _level(levels, randbelow)
        members = np.flatnonzero(levels == level)
        chosen = int(members[randbelow(len(members))])
        rest = Fraction(int(gaps[chosen])) / Fraction(scale) - level
        if flip_exp(rest, randbelow):
            return chosen


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


def _level(levels: Integers, randbelow: RandBelow) -> int:
    """A level l with probability proportional to its count times exp(-l)."""
    bits, number = BITS, randbelow(2**BITS)
    while True:
        counts = np.bincount(levels[levels < bits])
        found = _located(number, bits, counts, len(levels))
        if found is not None:
            return found
        number = (number << bits) + randbelow(2**bits)
        bits *= 2


def _located(number: int, bits: int, counts: Integers, m: int) -> int | None:
    """The level in which a number of so many bits falls; None if enclosures of so many bits do not tell.

    `counts` are those of levels below `bits`, beyond which m candidates at most have so little weight.
    """
    lows, highs = _powers(bits)
    ends, low, high = [], 0, 0
    for count, least, most in zip(counts.tolist(), lows, highs, strict=False):
        low, high = low + count * least, high + count * most
        ends.append((low, high))
    high += m * highs[bits]
    least, most = number * low, (number + 1) * high  # the number times the total weight lies between
    before = 0
    for level, (end_low, end_high) in enumerate(ends):
        if most <= end_low << bits:
            return level if least >= before << bits else None
        before = end_high
    return None


@lru_cache(maxsize=4)
def _powers(bits: int) -> tuple[list[int], list[int]]:
    """Bounds of 2^bits exp(-l) for l = 0..bits."""
    term, total, k = Fraction(1), Fraction(0), 0
    while term > Fraction(1, 4 << bits):
        total += term if k % 2 == 0 else -term
        k += 1
        term /= k
    below, above = total - term, total + term  # the series alternates
    lows, highs = [1 << bits], [1 << bits]
    for _ in range(bits):
        lows.append(int(lows[-1] * below))
        highs.append(-int(-(highs[-1] * above) // 1))
    return lows, highs
