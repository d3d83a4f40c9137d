"""A pure epsilon alone, by binary randomized response."""

import math

import mpmath
import numpy as np
import pytest
from scipy.stats import norm

from privacy.events.samples import response_divergence
from tacit.privacy.events import Gaussian, PureDP


def test_mu_of_pure_events_touches_the_pure_curve():
    mu = PureDP(1.0).mu
    corner = 1 / (1 + math.e)
    assert norm.cdf(norm.ppf(1 - corner) - mu) == pytest.approx(corner)
    assert Gaussian(2.0).mu == 0.5
    assert (Gaussian(2.0) + Gaussian(2.0)).mu == pytest.approx(math.sqrt(0.5))


@pytest.mark.parametrize("epsilon", [1e-15, 1e-9, 1e-4, 0.0199, 0.0201, 0.5, 5.0])
def test_mu_of_a_pure_mechanism_is_not_below_the_quantile(epsilon):
    """By 60 digits: mu = 2 Phi^-1(1/2 + tanh(epsilon/2)/2)."""
    with mpmath.workdps(60):
        exact = 2 * mpmath.sqrt(2) * mpmath.erfinv(mpmath.tanh(mpmath.mpf(epsilon) / 2))
        found = mpmath.mpf(PureDP(epsilon).mu)
        assert exact * (1 - mpmath.mpf(10) ** -12) <= found <= exact * (1 + mpmath.mpf(10) ** -8)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("order", [1.5, 4.0, 32.0])
def test_the_renyi_curve_is_that_of_binary_randomized_response(epsilon, order):
    assert PureDP(epsilon).renyi(np.array([order]))[0] == pytest.approx(
        response_divergence(epsilon, 2, order)
    )


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 2.0, 6.0])
def test_rho_is_the_largest_divergence_over_order(epsilon):
    orders = 1 + np.logspace(-3, 4, 400)
    pure = [response_divergence(epsilon, 2, a) / a if a < 100 else epsilon / a for a in orders]
    assert max(pure) == pytest.approx(PureDP(epsilon).rho, rel=2e-3)
    assert max(pure) <= PureDP(epsilon).rho * (1 + 1e-7)
