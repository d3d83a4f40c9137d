"""A noisy check: noise is as stated, and its events cover the distribution of what is released."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from mechanisms.exact_votes import divergence, log_check_chances
from tacit.mechanisms.noise import ResearchNoise, SecureNoise
from tacit.mechanisms.noisy_check import check_event, noisy_exceeds
from tacit.mechanisms.votes import UNIT
from tacit.privacy.events import Gaussian, NoisyCheck


def test_without_noise_the_threshold_itself_passes():
    for noise in (SecureNoise(), ResearchNoise(0)):
        assert noisy_exceeds(np.array([3, 2]) * UNIT, 3.0, 0.0, noise).tolist() == [True, False]


@pytest.mark.parametrize("noise", [SecureNoise(), ResearchNoise(0)])
def test_noise_is_as_stated(noise):
    n = 4000
    found = noisy_exceeds(np.full(n, 3 * UNIT), 4.0, 1.5, noise)
    chance = norm.cdf((3 - 4) / 1.5)
    assert abs(found.mean() - chance) < 5 * math.sqrt(chance * (1 - chance) / n)


@pytest.mark.parametrize("sensitivity", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("order", [1.5, 2.0, 8.0, 32.0])
def test_both_events_cover_the_exact_divergence_of_the_release(sensitivity, order):
    for sigma in (1.5, 4.0, 10.0):
        events = [check_event(sigma, sensitivity), check_event(sigma, sensitivity, order)]
        stated = [event.renyi(np.array([order]))[0] for event in events]
        worst = 0.0
        for largest in np.linspace(-4 * sigma, 4 * sigma, 400):
            laws = [
                log_check_chances(count, 0.0, sigma) for count in (largest, largest + sensitivity)
            ]
            worst = max(worst, divergence(*laws, order), divergence(*laws[::-1], order))
        assert worst <= stated[1] <= stated[0] * (1 + 1e-12)
        assert worst > 0.99 * stated[1] or stated[1] == pytest.approx(stated[0])


def test_the_gaussian_price_of_a_check():
    assert check_event(4.0, 1.5) == Gaussian(4.0 / 1.5)
    assert check_event(4.0, 1.5, 10.0).rho == pytest.approx(1.5**2 / (2 * 4.0**2))
    assert check_event(4.0, 1.5, 10.0).mu == pytest.approx(1.5 / 4)


def test_coarse_noise_gets_the_gaussian_price():
    assert check_event(0.99, 1e-3, 5.0) == Gaussian(0.99 / 1e-3)
    assert check_event(1.0, 1e-3, 5.0) == NoisyCheck(1e3, 5.0)
