"""Draw an index with probability proportional to exp(score / scale), exactly, from integer scores.

Each candidate's gap to the largest score is split into an integer level L_i and a rest: gap_i =
scale (L_i + x_i) with 0 <= x_i < 1.01. (Levels end at 2^40; beyond, x_i is larger.) A level l is
drawn with probability proportional to N_l exp(-l), where N_l is its number of candidates; then a
candidate of the level is drawn uniformly and accepted with probability exp(-x_i). After a rejection
everything is drawn again. So P(i) is proportional to exp(-L_i - x_i). At most e^1.01 rounds are
needed on average, for any scores.

Exactness: the level is found by comparing a uniform number with the partial sums of N_l exp(-l).
Bits of the number are drawn as they are needed, and the sums are bounded by integers with as many
bits. If the bounds do not decide the comparison, both get twice as many bits, so no rounding error
remains (von Neumann 1951; Knuth and Yao 1976). x_i is an exact fraction, for which `coins.py` flips
a coin.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.coins import RandBelow, flip_exp, powers

Integers = NDArray[np.int64]

BITS = 192
_SAFE = 1 - 2.0**-48  # keeps a level at or below its gap despite three rounding errors


def choose(scores: Integers, scale: float, randbelow: RandBelow) -> int:
    """An index with probability proportional to exp(scores / scale), for scores of shape (m,) and a
    finite scale.
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
        level = level_at(number, bits, counts, len(levels))
        if level is not None:
            return level
        number = (number << bits) + randbelow(2**bits)
        bits *= 2


def level_at(number: int, bits: int, counts: Integers, m: int) -> int | None:
    """The level in which a number of so many bits falls; None if bounds of so many bits do not
    decide it.

    `counts` are those of the levels below `bits`; at most m candidates, of small weight, are in
    levels beyond.
    """
    lows, highs = powers(bits)
    ends, low, high = [], 0, 0
    for count, least, most in zip(counts.tolist(), lows, highs, strict=False):
        low, high = low + count * least, high + count * most
        ends.append((low, high))
    high += m * highs[bits]
    least, most = number * low, (number + 1) * high  # bounds of the number times the total weight
    before = 0
    for level, (end_low, end_high) in enumerate(ends):
        if most <= end_low << bits:
            return level if least >= before << bits else None
        before = end_high
    return None
