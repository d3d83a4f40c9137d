"""Randomized bits: exact ratios, the words at each limit, and the distribution of bits."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import chisquare

from mechanisms.given_words import Words
from tacit.mechanisms import unary
from tacit.mechanisms.noise import ResearchNoise, SecureNoise
from tacit.mechanisms.randomized_response import WORDS

KINDS = [unary.symmetric, unary.optimised]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "epsilon", [1e-6, 0.5, 1.0, 4.0, 40.0, *np.random.default_rng(0).uniform(0.1, 3, 10)]
)
def test_bits_keep_epsilon_exactly(kind, epsilon):
    """Two labels differ in two bits: the ratio of all outputs is at most the product of their two
    ratios.
    """
    one, zero = kind(epsilon)
    assert 0 < zero < one < WORDS
    ratio = Fraction(one * (WORDS - zero), (WORDS - one) * zero)
    with mpmath.workdps(60):
        assert mpmath.mpf(ratio.numerator) / ratio.denominator <= mpmath.exp(epsilon)
    assert unary.epsilon_of((one, zero)) == pytest.approx(
        epsilon, rel=1e-9 if epsilon < 20 else 1e-3
    )


def test_the_two_kinds_have_their_published_probabilities():
    assert sum(unary.symmetric(1.0)) == WORDS
    assert unary.symmetric(1.0)[1] / WORDS == pytest.approx(1 / (1 + math.exp(0.5)))
    assert unary.optimised(1.0)[0] == WORDS // 2
    assert unary.optimised(1.0)[1] / WORDS == pytest.approx(1 / (1 + math.e))


@pytest.mark.parametrize("kind", KINDS)
def test_as_many_words_as_stated_give_a_one(kind):
    """Of the 2^64 words those below the stated number: the last of them, and the first beyond."""
    words = one, zero = kind(1.3)
    for label in (0, 1):
        limits = (one, zero) if label == 0 else (zero, one)
        for apart, bit in ((-1, True), (0, False)):
            drawn = unary.sample(
                np.array([label]), 2, words, Words([limit + apart for limit in limits])
            )
            assert drawn.tolist() == [[bit, bit]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("noise", [ResearchNoise(0), SecureNoise()], ids=["research", "secure"])
def test_bits_follow_their_probabilities(kind, noise):
    words = kind(1.0)
    bits = unary.sample(np.ones(100_000, dtype=np.int64), 3, words, noise)
    p, q = (count / WORDS for count in words)
    codes = np.bincount(bits @ [1, 2, 4], minlength=8)
    expected = [
        math.prod((rate if (code >> i) & 1 else 1 - rate) for i, rate in enumerate((q, p, q)))
        for code in range(8)
    ]
    assert chisquare(codes, np.array(expected) * 100_000).pvalue > 1e-6
