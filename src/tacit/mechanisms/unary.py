"""Randomized bits of a one-hot label.

Unit: change one label, which changes two bits.
Bit 1 stays 1 with probability p, bit 0 becomes 1 with probability q, all independently.
Theorem: epsilon-DP if p (1 - q)/((1 - p) q) <= e^epsilon. Symmetric: p = 1 - q = e^(epsilon/2)/(1 +
e^(epsilon/2)).
Optimised: p = 1/2, q = 1/(e^epsilon + 1).
Sampling: one 64-bit word for each bit. The number of words that give 1 is rounded so that epsilon
is kept.
Source: Erlingsson et al. 2014 (symmetric), Wang et al. 2017 (optimised); "vector approximation" in
the label-privacy literature.
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.mechanisms.randomized_response import WORDS

_BLOCK = 1 << 14


def symmetric(epsilon: float) -> tuple[int, int]:
    """Compute how many of the 2^64 words give 1 for a bit that is 1, and for a bit that is 0."""
    half = Fraction(math.expm1(epsilon / 2)) * (1 - Fraction(1, 2**50))
    flipped = math.ceil(WORDS / (half + 2))
    return WORDS - flipped, flipped


def optimised(epsilon: float) -> tuple[int, int]:
    """Like `symmetric`, with p = 1/2."""
    rest = Fraction(math.expm1(epsilon)) * (1 - Fraction(1, 2**50))
    return WORDS // 2, math.ceil(WORDS / (rest + 2))


def epsilon_of(words: tuple[int, int]) -> float:
    """The epsilon of these numbers of words: ln of p (1 - q)/((1 - p) q)."""
    one, zero = words
    return math.log(Fraction(one * (WORDS - zero), (WORDS - one) * zero))


def sample(
    labels: Integers, n_classes: int, words: tuple[int, int], noise: NoiseSource
) -> NDArray[np.bool_]:
    """Bits of each label, of shape (n, n_classes)."""
    one, zero = (np.uint64(count) for count in words)
    result = np.empty((len(labels), n_classes), dtype=bool)
    for start in range(0, len(labels), _BLOCK):
        block = labels[start : start + _BLOCK]
        drawn = noise.words(len(block) * n_classes).reshape(len(block), n_classes)
        bits = drawn < zero
        rows = np.arange(len(block))
        bits[rows, block] = drawn[rows, block] < one
        result[start : start + len(block)] = bits
    return result
