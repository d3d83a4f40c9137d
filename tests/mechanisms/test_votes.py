"""Votes: counting is exact, and Laplace noise is as stated."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tacit.mechanisms import votes
from tacit.mechanisms.noise import ResearchNoise, SecureNoise
from tacit.mechanisms.noisy_argmax import label_event, noisy_argmax
from tacit.mechanisms.noisy_check import check_event, noisy_exceeds
from tacit.mechanisms.votes import UNIT, laplace_argmax, laplace_event
from tacit.privacy import accounting


def test_counts_are_exact_sums_of_weights():
    rng = np.random.default_rng(0)
    ballots, weights = rng.integers(0, 4, (50, 30)), rng.integers(0, 2**21, (50, 30))
    counts = votes.vote_counts(ballots, weights, 4)
    for query in range(50):
        for c in range(4):
            assert counts[query, c] == weights[query][ballots[query] == c].sum()
    assert np.array_equal(votes.vote_counts(ballots, weights[0], 4)[0], counts[0])
    assert counts.dtype == np.int64
    assert (
        votes.vote_counts(np.zeros((3, 2), dtype=np.int64), np.ones(2, dtype=np.int64), 4).tolist()
        == [[2, 0, 0, 0]] * 3
    )


def test_counts_of_very_many_teachers_are_exact():
    n = 2**16 + 1
    weights = np.full(n, votes.UNIT + 1)
    assert votes.vote_counts(np.zeros((1, n), dtype=np.int64), weights, 2).tolist() == [
        [n * (votes.UNIT + 1), 0]
    ]


def test_counts_do_not_depend_on_how_many_are_counted_at_once_or_on_the_type(monkeypatch):
    rng = np.random.default_rng(0)
    ballots, weights = rng.integers(0, 200, (50, 30)), rng.integers(0, 2**21, (50, 30))
    whole = votes.vote_counts(ballots, weights, 200)
    for cells in (1, 100, 10_000):
        monkeypatch.setattr(votes, "CELLS", cells)
        assert np.array_equal(votes.vote_counts(ballots.astype(np.uint8), weights, 200), whole)


@pytest.mark.parametrize("noise", [SecureNoise(), ResearchNoise(0)])
def test_laplace_noise_is_as_stated(noise):
    n = 4000
    lead = np.tile(np.array([[3, 0]]) * votes.UNIT, (n, 1))
    chance = 1 - (2 + 3 / 2) / (4 * math.exp(3 / 2))
    found = votes.laplace_argmax(lead, 0.5, noise) == 0
    assert abs(found.mean() - chance) < 5 * math.sqrt(chance * (1 - chance) / n)


def test_laplace_votes_are_pure():
    assert votes.laplace_event(0.1, 1.5).pure == pytest.approx(2 * 0.1 * 1.5)
    assert accounting.epsilon(votes.laplace_event(0.1, 1.5), 0.0) == pytest.approx(0.3)


@pytest.mark.parametrize("draw", ["label", "check", "laplace"])
def test_noise_is_never_below_that_of_its_event(draw):
    """In exact arithmetic, for noise and sensitivities whose quotients are rounded up."""
    scales = []

    class Recorded(SecureNoise):
        def gaussian(self, values, scale):
            scales.append(scale)
            return values

        laplace = gaussian

    source = np.random.default_rng(0)
    counts = np.zeros((1, 3), dtype=np.int64)
    for sigma, s in zip(source.uniform(1, 300, 500), source.uniform(0.1, 3, 500), strict=True):
        sigma, s = float(sigma), float(s)
        if draw == "label":
            noisy_argmax(counts, sigma, Recorded())
            noise_of_event = (
                Fraction(label_event(sigma, s).noise_multiplier) ** 2 * 2 * Fraction(s) ** 2
            )
            assert (Fraction(scales[-1]) / UNIT) ** 2 >= noise_of_event
        elif draw == "check":
            noisy_exceeds(counts, 1.0, sigma, Recorded())
            assert Fraction(scales[-1]) / UNIT >= Fraction(
                check_event(sigma, s).noise_multiplier
            ) * Fraction(s)
        else:
            laplace_argmax(counts, 1 / sigma, Recorded())
            stated = Fraction(laplace_event(1 / sigma, s).noise_multiplier)
            assert Fraction(scales[-1]) / UNIT >= stated * 2 * Fraction(s)
