"""Noisy votes: counting is exact, noise is as stated, and events follow from the distribution of the release."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from mechanisms.exact_votes import divergence, log_check_chances, log_label_chances
from tacit.mechanisms import votes
from tacit.mechanisms.noise import ResearchNoise, SecureNoise
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
    assert votes.vote_counts(np.zeros((1, n), dtype=np.int64), weights, 2).tolist() == [[n * (votes.UNIT + 1), 0]]


def test_without_noise_the_first_of_the_largest_wins():
    counts = np.array([[1, 3, 3], [2, 2, 2]])
    for noise in (SecureNoise(), ResearchNoise(0)):
        assert votes.noisy_argmax(counts, 0.0, noise).tolist() == [1, 0]
        assert votes.noisy_exceeds(counts.max(axis=1) * votes.UNIT, 3.0, 0.0, noise).tolist() == [True, False]


@pytest.mark.parametrize("noise", [SecureNoise(), ResearchNoise(0)])
def test_noise_is_as_stated(noise):
    n = 4000
    lead = np.tile(np.array([[3, 0]]) * votes.UNIT, (n, 1))
    for chance, found in (
        (norm.cdf(3 / (2 * math.sqrt(2))), votes.noisy_argmax(lead, 2.0, noise) == 0),
        (norm.cdf((3 - 4) / 1.5), votes.noisy_exceeds(lead.max(axis=1), 4.0, 1.5, noise)),
        (1 - (2 + 3 / 2) / (4 * math.exp(3 / 2)), votes.laplace_argmax(lead, 0.5, noise) == 0),
    ):
        assert abs(found.mean() - chance) < 5 * math.sqrt(chance * (1 - chance) / n)


@pytest.mark.parametrize("sensitivity", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("order", [1.5, 2.0, 8.0, 32.0])
def test_events_cover_the_exact_divergence_of_the_release(sensitivity, order):
    rng = np.random.default_rng(round(order * sensitivity))
    for _ in range(20):
        sigma, sigma1 = rng.uniform(1, 5, 2)
        counts = rng.uniform(0, 10, 3) + sensitivity
        other = counts + sensitivity * rng.permutation([1, -1, 0])
        logs = [log_label_chances(own, sigma) for own in (counts, other)]
        label = votes.label_event(sigma, sensitivity)
        assert divergence(*logs, order) <= label.rho * order + 1e-9
        threshold = rng.uniform(0, 10)
        logs = [log_check_chances(own.max(), threshold, sigma1) for own in (counts, other)]
        assert divergence(*logs, order) <= votes.check_event(sigma1, sensitivity).rho * order + 1e-9


def test_the_privacy_cost_of_a_label_is_attained():
    """Two classes, one vote that moves: mu is the distance of the difference of counts, so no less would do."""
    sigma, s = 4.0, 1.5
    exact = norm.cdf(2 * s / (math.sqrt(2) * sigma) - 1) - norm.cdf(-1)  # an attack's advantage at threshold 1
    mu = votes.label_event(sigma, s).mu
    assert exact == pytest.approx(norm.cdf(mu - 1) - norm.cdf(-1))
    assert votes.label_event(sigma, s).rho == pytest.approx(s**2 / sigma**2)
    assert votes.check_event(sigma, s).rho == pytest.approx(s**2 / (2 * sigma**2))
    assert votes.laplace_event(0.1, s).pure == pytest.approx(2 * 0.1 * s)
    assert accounting.epsilon(votes.laplace_event(0.1, s), 0.0) == pytest.approx(0.3)
