"""Laplace noise, by quadrature, and against the discrete noise that is drawn."""

import math

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad

from tacit.privacy.events import Laplace


def laplace_divergence(scale, order):
    def integrand(x):
        return math.exp(order * -abs(x) / scale + (1 - order) * -abs(x - 1) / scale) / (2 * scale)

    total = sum(
        quad(integrand, a, b, epsabs=1e-13)[0]
        for a, b in ((-60 * scale, 0), (0, 1), (1, 60 * scale))
    )
    return math.log(total) / (order - 1)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("order", [1.5, 4.0, 32.0])
def test_the_renyi_curve_is_that_of_the_densities(epsilon, order):
    found = Laplace(1 / epsilon).renyi(np.array([order]))[0]
    assert found == pytest.approx(laplace_divergence(1 / epsilon, order), rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 2.0, 6.0])
def test_rho_is_the_largest_divergence_over_order(epsilon):
    orders = 1 + np.logspace(-3, 4, 400)
    laplace = Laplace(1 / epsilon).renyi(orders[orders > 1.001]) / orders[orders > 1.001]
    assert laplace.max() == pytest.approx(Laplace(1 / epsilon).rho, rel=2e-3)
    assert laplace.max() <= Laplace(1 / epsilon).rho * (1 + 1e-7)


def discrete_divergence(units, scale, order):
    """Renyi divergence between discrete Laplace noise of this scale and the same, shifted by so
    many units.
    """
    step, a, shift = 1 / mpmath.mpf(scale), mpmath.mpf(order), units / mpmath.mpf(scale)
    ratio = mpmath.exp(-(2 * a - 1) * step)
    outside = (mpmath.exp((a - 1) * shift) + mpmath.exp(-a * shift)) / (1 - mpmath.exp(-step))
    between = mpmath.exp((a - 1) * shift) * (ratio - ratio**units) / (1 - ratio)
    return mpmath.log(mpmath.tanh(step / 2) * (outside + between)) / (a - 1)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0, 20.0])
@pytest.mark.parametrize("order", [1.01, 2.0, 50.0])
def test_discrete_noise_adds_less_than_the_card_states(epsilon, order):
    """Noise on votes, in units of 2^-20: 1e-8 in all is 1e-12 for a use of epsilon 1, and so for
    10^4 of them.
    """
    units = 2**20
    with mpmath.workdps(60):
        a, e = mpmath.mpf(order), mpmath.mpf(epsilon)
        moment = (a * mpmath.exp((a - 1) * e) + (a - 1) * mpmath.exp(-a * e)) / (2 * a - 1)
        added = discrete_divergence(units, units / e, order) - mpmath.log(moment) / (a - 1)
        assert 0 < added < 1e-12 * e**2
    assert "below 1e-8" in Laplace.assumption
