"""An index drawn with probability proportional to exp(score / scale), exactly, from integer scores.

Gaps to the largest score are cut into levels, whole numbers L_i with gap_i = scale (L_i + x_i), 0 <= x_i < 1.01 (levels
end at 2^40; beyond, x_i is what is left). A level is drawn with probability proportional to N_l exp(-l), N_l the number
of candidates in it, then one of them uniformly, and it is kept with probability exp(-x_i), else all is drawn anew: P(i)
is proportional to exp(-L_i - x_i), as it should be. At most e^1.01 rounds are needed on average, whatever the scores.

Exactness. The level is where a uniform number falls among the partial sums of N_l exp(-l). The number's bits are drawn
as they are needed, the sums are enclosed in integers of as many bits, and when the enclosures do not tell where it
falls both get twice as many bits: no rounding enters (von Neumann 1951; Knuth and Yao 1976). The chosen candidate's x
is an exact fraction, whose coin `coins.py` flips.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.coins import RandBelow, flip_exp, powers

Integers = NDArray[np.int64]

BITS = 192
_SAFE = 1 - 2.0**-48  # keeps a level at or below its gap despite three roundings


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
    with np.errstate(over="ignore"):
        levels = np.floor(gaps / scale * _SAFE).clip(max=2.0**40).astype(np.int64)
    while True:
        level = _level(levels, randbelow)
        members = np.flatnonzero(levels == level)
        chosen = int(members[randbelow(len(members))])
        rest = Fraction(int(gaps[chosen])) / Fraction(scale) - level
        if flip_exp(rest, randbelow):
            return chosen


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
    lows, highs = powers(bits)
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
