"""Exact choice by levels: the probabilities, whatever the precision it starts from."""

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from tacit.mechanisms import levels
from tacit.mechanisms.levels import choose

CASES = [
    ([0, 0, 0], 1.0),
    ([5, 3, 0], 1.0),
    ([100, 99, 98, 97, 90, 60], 7.5),
    ([2**61, 2**61 - 2**58, -(2**60)], 2.0**58),
    ([0, -1, -2, -3, -4, -5, -6, -7], 0.9999999),
    ([10, 0], 3.3333333333333335),
]


@pytest.mark.parametrize(("scores", "scale"), CASES)
@pytest.mark.parametrize("bits", [2, 192])
def test_probabilities_are_those_of_the_exponential_mechanism(scores, scale, bits, monkeypatch):
    """With two bits to begin with, nearly every draw needs more."""
    monkeypatch.setattr(levels, "BITS", bits)
    source = random.Random(1)
    scores = np.array(scores, dtype=np.int64)
    draws = 20_000
    found = np.bincount(
        [choose(scores, scale, source.randrange) for _ in range(draws)], minlength=len(scores)
    )
    weights = np.array(
        [math.exp(-float(Fraction(int(scores.max() - s)) / Fraction(scale))) for s in scores]
    )
    expected = draws * weights / weights.sum()
    usual = expected > 5
    assert found[~usual].sum() < 60
    if usual.sum() > 1:
        observed = found[usual]
        assert (
            chisquare(observed, expected[usual] * observed.sum() / expected[usual].sum()).pvalue
            > 1e-6
        )


@pytest.mark.parametrize("bits", [2, 3, 4])
def test_levels_are_decided_by_correct_bounds(bits):
    """Every number of few bits: a level is told only if all numbers that go on from it fall
    there.
    """
    for counts in itertools.product(range(4), repeat=3):
        if not counts[0]:
            continue
        m = sum(counts)
        ends = np.cumsum([count * math.exp(-level) for level, count in enumerate(counts)])
        for number in range(2**bits):
            found = levels.level_at(number, bits, np.array(counts)[:bits], m)
            if found is None:
                continue
            low, high = (ends[-1] * (number + step) / 2**bits for step in (0, 1))
            assert high <= ends[found] + 1e-12
            assert found == 0 or low >= ends[found - 1] - 1e-12


def test_no_level_is_above_its_gap(monkeypatch):
    """What is left of a gap beside its level is from 0 to 1.01, also where gap and quotient are
    rounded up.
    """
    left = []

    def flip(rest, randbelow):
        left.append(rest)
        return True

    monkeypatch.setattr(levels, "flip_exp", flip)
    source = random.Random(0)
    cases = [(low * 2**60 - apart, 2.0**60) for low in (1, 3, 7) for apart in (1, 2, 100)]
    cases += [(low * 3**20, math.nextafter(3.0**20, math.inf)) for low in (1, 2, 3, 5)]
    for gap, scale in cases:
        scores = np.append(0, np.full(10_000, -gap))
        assert choose(scores, scale, source.randrange) > 0
        assert 0 <= left[-1] < 1.01
        assert left[-1] != 1


@pytest.mark.thorough
def test_a_million_candidates_have_their_probabilities():
    """One candidate ahead by exactly what makes it as likely as all others together."""
    m = 2**20
    scores = np.zeros(m, np.int64)
    scores[777] = 2**30
    scale = 2**30 / math.log(m - 1)
    source = random.Random(3)
    wins = sum(choose(scores, scale, source.randrange) == 777 for _ in range(300))
    assert 100 < wins < 200
