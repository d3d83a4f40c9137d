"""A noisy argmax: noise is as stated, and its events cover the distribution of what is released."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from mechanisms.exact_votes import divergence, log_label_chances
from tacit.mechanisms.noise import ResearchNoise, SecureNoise
from tacit.mechanisms.noisy_argmax import label_event, noisy_argmax
from tacit.mechanisms.votes import UNIT
from tacit.privacy.events import Gaussian, NoisyArgmax

ORDERS = [1.5, 8.0, 32.0]


def test_without_noise_the_first_of_the_largest_wins():
    counts = np.array([[1, 3, 3], [2, 2, 2]])
    for noise in (SecureNoise(), ResearchNoise(0)):
        assert noisy_argmax(counts, 0.0, noise).tolist() == [1, 0]


@pytest.mark.parametrize("noise", [SecureNoise(), ResearchNoise(0)])
def test_noise_is_as_stated(noise):
    n = 4000
    found = noisy_argmax(np.tile(np.array([[3, 0]]) * UNIT, (n, 1)), 2.0, noise) == 0
    chance = norm.cdf(3 / (2 * math.sqrt(2)))
    assert abs(found.mean() - chance) < 5 * math.sqrt(chance * (1 - chance) / n)


@pytest.mark.parametrize("sensitivity", [0.5, 2.0])
@pytest.mark.parametrize("order", ORDERS)
def test_both_events_cover_the_exact_divergence_of_the_release(sensitivity, order):
    rng = np.random.default_rng(round(order * sensitivity))
    for sigma in (2.0, 6.0):
        events = [label_event(sigma, sensitivity), label_event(sigma, sensitivity, order)]
        stated = [event.renyi(np.array([order]))[0] for event in events]
        worst = 0.0
        for n_classes in (2, 3, 5, 10):
            for _ in range(15):
                counts = rng.uniform(0, 2 * sigma, n_classes) + sensitivity
                other = counts + sensitivity * rng.permutation([1, -1] + [0] * (n_classes - 2))
                worst = max(
                    worst,
                    divergence(*(log_label_chances(own, sigma) for own in (counts, other)), order),
                )
        assert worst <= stated[1] + 1e-12
        assert stated[1] <= stated[0] * (1 + 1e-12)


def test_several_votes_that_move_cost_no_more_than_one_of_their_weight():
    """Upsampling: d votes move, each from any class to any other."""
    sigma, rng = 12.0, np.random.default_rng(0)
    event = label_event(sigma, 3.0, 18.0)
    stated = event.renyi(np.array([18.0]))[0]
    for _ in range(200):
        counts = rng.uniform(0, 15, 4) + 3
        moves = [rng.permutation([1.0, -1.0, 0.0, 0.0]) for _ in range(3)]
        other = counts + sum(moves)
        assert (
            divergence(*(log_label_chances(own, sigma) for own in (counts, other)), 18.0) <= stated
        )


def test_the_gaussian_price_of_a_label_is_attained():
    """Two classes, one vote that moves: mu is the distance of the difference of counts, so no less
    would do.
    """
    sigma, s = 4.0, 1.5
    # an attack's advantage at threshold 1
    exact = norm.cdf(2 * s / (math.sqrt(2) * sigma) - 1) - norm.cdf(-1)
    event = label_event(sigma, s)
    assert exact == pytest.approx(norm.cdf(event.mu - 1) - norm.cdf(-1))
    assert event == Gaussian(sigma / (math.sqrt(2) * s))
    assert event.rho == label_event(sigma, s, 10.0).rho == pytest.approx(s**2 / sigma**2)
    assert label_event(sigma, s, 10.0).mu == pytest.approx(event.mu)


def test_coarse_noise_gets_the_gaussian_price():
    """Below a vote the grid of the noise is too coarse for a price that holds for continuous
    noise.
    """
    assert label_event(0.99, 1e-3, 5.0) == Gaussian(0.99 / (math.sqrt(2) * 1e-3))
    assert label_event(1.0, 1e-3, 5.0) == NoisyArgmax(1e3, 5.0)


@pytest.mark.parametrize("sigma", [5, 10, 20])
@pytest.mark.parametrize("order", [2.0, 6.0])
def test_discrete_noise_adds_less_than_the_inverse_of_its_variance(order, sigma):
    """Exact enumeration, ties and all. Votes have 2^20 units, so the excess is below 1e-12 in what
    is deployed.
    """
    certified = NoisyArgmax(float(sigma), order).renyi(np.array([order]))[0]
    k = np.arange(-12 * sigma, 12 * sigma + 1)
    mass = -(k**2) / (2 * sigma**2)
    mass -= logsumexp(mass)
    below = np.logaddexp.accumulate(mass)  # log P(noise <= k)
    worst = 0.0
    for lead, rest in itertools.product(range(-sigma, 2 * sigma, max(1, sigma // 10)), repeat=2):
        counts = np.array([lead, rest, 0])
        laws = [
            _discrete_law(own, k, mass, below) for own in (counts, counts + np.array([-1, 1, 0]))
        ]
        worst = max(worst, divergence(*laws, order), divergence(*laws[::-1], order))
    assert 0.97 < worst / certified < 1 + 0.5 / sigma**2


def _discrete_law(counts, k, mass, below):
    """Log law of the argmax under discrete noise, the first of equals winning."""
    logs = []
    for own, count in enumerate(counts):
        total = mass.copy()
        for other, rival in enumerate(counts):
            if other != own:
                at_most = count + k - rival - (1 if other < own else 0)
                total = total + np.where(
                    at_most < k[0], -np.inf, below[np.clip(at_most - k[0], 0, len(k) - 1)]
                )
        logs.append(logsumexp(total))
    return np.array(logs)
