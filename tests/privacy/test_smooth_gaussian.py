"""Noise that follows a smooth sensitivity: its price against the divergence of the two Gaussians, integrated."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from tacit.errors import InputError
from tacit.privacy import accounting
from tacit.privacy.events import SmoothGaussian
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.unit import Unit


def price(event, order):
    return float(accounting.renyi(event, np.array([order]))[0])


def divergence(shift, one, other, order):
    """Renyi divergence of N(0, one^2) from N(shift, other^2), by quadrature."""

    def integrand(x):
        log_p = -(x**2) / (2 * one**2) - math.log(one)
        log_q = -((x - shift) ** 2) / (2 * other**2) - math.log(other)
        return math.exp(order * log_p + (1 - order) * log_q) / math.sqrt(2 * math.pi)

    variance = 1 / (order / one**2 + (1 - order) / other**2)
    centre = variance * (1 - order) * shift / other**2
    reach = 12 * math.sqrt(variance)
    total = quad(integrand, centre - reach, centre + reach, limit=500, epsabs=0, epsrel=1e-11)[0]
    return math.log(total) / (order - 1)


@pytest.mark.parametrize(
    ("b", "s", "order"), [(0.02, 10.0, 8.5), (0.05, 4.0, 5.0), (0.01, 20.0, 30.0), (0.2, 3.0, 2.0)]
)
def test_the_price_is_the_largest_divergence_of_neighbours(b, s, order):
    event = SmoothGaussian(b, s)
    ratios = np.exp(np.linspace(-b, b, 9))
    found = [divergence(min(1.0, ratio), s, s * ratio, order) for ratio in ratios]
    assert price(event, order) == pytest.approx(max(found), rel=1e-7)
    assert max(found) == pytest.approx(found[0], rel=1e-9)


def test_published_numbers():
    assert price(SmoothGaussian(0.02, 10.0), 8.5) == pytest.approx(0.0656, abs=5e-5)
    b, s, order = 0.02, 10.0, 8.5
    published = order * math.exp(2 * b) / s**2 + (b * order - math.log(1 - 2 * b * order) / 2) / (order - 1)
    assert published == pytest.approx(0.1388366121, rel=1e-9)


def test_the_published_price_is_no_bound():
    b, s, order = 0.015, 3.0, 20.0
    published = order * math.exp(2 * b) / s**2 + (b * order - math.log(1 - 2 * b * order) / 2) / (order - 1)
    exact = divergence(math.exp(-b), s, s * math.exp(-b), order)
    assert price(SmoothGaussian(b, s), order) == pytest.approx(exact, rel=1e-6)
    assert published < 0.9 * exact


def test_orders_without_a_bound_are_left_out():
    event = SmoothGaussian(0.1, 10.0)
    assert math.isinf(price(event, 6.0))
    epsilon = accounting.epsilon(event, 1e-6)
    orders = np.linspace(1.02, 5.5, 20_000)
    curve = np.array([price(event, order) for order in orders[::40]])
    slack = np.log1p(-1 / orders[::40]) - np.log(1e-6 * orders[::40]) / (orders[::40] - 1)
    assert epsilon <= np.min(curve[np.isfinite(curve)] + slack[np.isfinite(curve)]) + 1e-9
    assert 0 < epsilon < math.inf
    assert math.isinf(accounting.epsilon(event, 0.0))


def test_two_changes():
    b, s = 0.02, 10.0
    twice = SmoothGaussian(b, s).twice()
    found = []
    for ratio in np.exp(np.linspace(-2 * b, 2 * b, 9)):
        step = min(1.0, math.sqrt(ratio), ratio) + min(math.sqrt(ratio), ratio)  # through a neighbour of both
        found.append(divergence(step, s, s * ratio, 6.0))
    assert 0.9 * price(twice, 6.0) <= max(found) <= price(twice, 6.0) * (1 + 1e-9)
    own = Guarantee(Unit.REPLACE, SmoothGaussian(b, s))
    assert "no bound" not in own.statement()
    assert own.rho is None


@pytest.mark.parametrize("given", [(0.0, 1.0), (0.1, 0.0), (math.nan, 1.0), (0.1, math.inf)])
def test_bad_parameters(given):
    with pytest.raises(InputError, match="must be a positive number"):
        SmoothGaussian(*given)
