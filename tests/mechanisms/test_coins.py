"""Coins of probability exp(-x): their share of heads, and every bit that float64 leaves open."""

import math
import random
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from tacit.mechanisms.coins import flip_exp, flips_exp, powers
from tacit.mechanisms.noise import SecureNoise


@pytest.mark.parametrize("bits", [8, 192, 384])
def test_powers_are_within_their_bounds(bits):
    lows, highs = powers(bits)
    assert len(lows) == len(highs) == bits + 1
    for level in range(0, min(bits, 300), 7):
        true = math.exp(-level)
        assert Fraction(lows[level], 2**bits) <= Fraction(true) * (1 + Fraction(1, 10**12))
        assert Fraction(highs[level], 2**bits) >= Fraction(true) * (1 - Fraction(1, 10**12))
        assert 0 <= highs[level] - lows[level] <= 3


@pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(7, 3)])
def test_flips_have_their_probability(x):
    source = random.Random(2)
    draws = 20_000
    heads = sum(flip_exp(x, source.randrange) for _ in range(draws))
    p = math.exp(-x)
    assert abs(heads - draws * p) <= 5 * math.sqrt(draws * p * (1 - p)) + 1e-9


@pytest.mark.parametrize("scale", [1.0, 7.3, 2.0**40])
def test_many_coins_have_their_probabilities_and_are_independent(scale):
    x = np.array([0.0, 0.01, 0.5, 1.0, 3.0, 900.0])
    gaps, draws = np.repeat(np.rint(x * scale).astype(np.int64), 20_000), 20_000
    random_bits = SecureNoise()
    heads = flips_exp(gaps, scale, random_bits.words, random.Random(1).randrange).reshape(6, draws)
    p = np.exp(-gaps[::draws] / scale)
    assert (np.abs(heads.sum(axis=1) - draws * p) <= 5 * np.sqrt(draws * p * (1 - p)) + 1e-9).all()
    both = (heads[2] & heads[3]).sum()
    assert abs(both - draws * p[2] * p[3]) <= 5 * math.sqrt(draws * p[2] * p[3])


@pytest.mark.parametrize("scale", [3.0, 1e6 / 3, 2.0**55])
@pytest.mark.parametrize(
    "share",
    [
        0.0,
        1e-12,
        0.3,
        1.0,
        20.0,
        44.3,
        46.0,
        80.0,
        1e6,
        *np.random.default_rng(0).uniform(0.01, 3, 30).round(9),
    ],
)
def test_more_bits_decide_coins_that_float64_does_not(scale, share):
    """Numbers of 64 bits within 2^30 of the truth, that at the truth with every kind of bits to
    follow.
    """
    gap = min(round(share * scale), 2**62)
    with localcontext() as context:
        context.prec, context.Emin = 100, -(10**9)
        exact = (-Decimal(gap) / Decimal(scale)).exp() * 2**128
        chance, rest = divmod(int(exact), 2**64)

    for apart in (-(2**30), -(2**10), -3, -2, -1, 0, 1, 2, 3, 2**10, 2**30):
        number = chance + apart
        if not 0 <= number < 2**64:
            continue
        for after in {0, max(rest - 1, 0), rest + 1, 2**64 - 1}:
            following, asked = iter([after, 2**64 - 1]), []
            (found,) = flips_exp(
                np.array([gap]),
                scale,
                lambda n, number=number: np.full(n, number, np.uint64),
                lambda n, following=following, asked=asked: asked.append(n) or next(following),
            )
            assert set(asked) <= {2**64}  # uniform words
            assert found == (apart < 0 or (apart == 0 and after < rest))
            more = len(list(following)) < 2
            assert more if apart == 0 else not more or abs(apart) <= 3


def test_a_gap_beyond_all_bits_is_not_treated_as_zero():
    words, following = iter([0]), iter([0, 0, 1])
    found = flips_exp(
        np.array([10**15]),
        1.0,
        lambda n: np.array([next(words)], np.uint64),
        lambda n: next(following),
    )
    assert not found[0]
    assert not list(following)
