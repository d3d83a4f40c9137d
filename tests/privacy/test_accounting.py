"""Epsilon of sums of events: orders of bounds, ranges, calibration and attack rates."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from privacy.events.samples import gaussian_delta
from tacit.errors import InputError
from tacit.privacy import accounting, attack_rates
from tacit.privacy.events import (
    ZCDP,
    Exponential,
    Gaussian,
    Laplace,
    NoisyArgmax,
    NoisyCheck,
    PureDP,
)
from tacit.privacy.events.base import ORDERS


def test_renyi_alone_is_used_below_the_precision_of_the_curves():
    assert accounting.epsilon(Gaussian(1.0), 1e-31) == accounting.epsilon(ZCDP(0.5), 1e-31)
    assert accounting.epsilon(Gaussian(1.0), 1e-29) < accounting.epsilon(ZCDP(0.5), 1e-29)
    mixed, bound = Gaussian(2.0) + Exponential(0.5), ZCDP(0.125 + 0.5**2 / 8)
    assert accounting.epsilon(mixed, 1e-14) == pytest.approx(
        accounting.epsilon(bound, 1e-14), rel=1e-9
    )
    assert accounting.epsilon(mixed, 1e-12) < accounting.epsilon(bound, 1e-12)


@pytest.mark.parametrize(
    "event", [Gaussian(1.0), Gaussian(30.0) + Exponential(0.1), 3 * Laplace(2.0)], ids=repr
)
def test_epsilon_decreases_in_delta_over_its_whole_range(event):
    deltas = [10.0**-power for power in (300, 100, 40, 31, 29, 14, 12, 9, 6, 3)]
    epsilons = [accounting.epsilon(event, delta) for delta in deltas]
    assert epsilons == sorted(epsilons, reverse=True)


def test_the_gaussian_curve_is_that_of_dp_accounting_and_never_rounded_down():
    from dp_accounting import get_epsilon_gaussian

    for mu in 10.0 ** np.arange(-6, 2.1, 0.9):
        for delta in 10.0 ** -np.arange(0.3, 30, 2.7):
            found = accounting.gaussian_epsilon(mu, delta)
            assert found == pytest.approx(get_epsilon_gaussian(1 / mu, delta), rel=1e-12, abs=2e-12)
            assert accounting.log_gaussian_delta(mu, found) <= math.log(delta)


def test_renyi_curves_are_converted_as_dp_accounting_converts_them():
    from dp_accounting.rdp import compute_epsilon

    for rate in 10.0 ** np.arange(-9, 3.0):
        for curve in (rate * ORDERS, np.minimum(rate * ORDERS, 3 * rate), 0 * ORDERS):
            for delta in (0.3, 1e-2, 1e-6, 1e-12):
                expected = pytest.approx(compute_epsilon(ORDERS, curve, delta), rel=1e-12)
                assert accounting.best_conversion(ORDERS, curve, delta) == expected


def test_mixtures_beat_basic_composition_and_stay_valid():
    mixed = Gaussian(2.0) + Exponential(0.5)
    assert accounting.epsilon(mixed, 1e-5) < accounting.epsilon(Gaussian(2.0), 1e-5) + 0.5
    # an exponential mechanism contains binary randomized response with losses +-epsilon/2
    p = 1 / (1 + math.exp(-0.25))
    epsilon = accounting.epsilon(mixed, 1e-5)
    true_delta = p * gaussian_delta(0.5, epsilon - 0.25) + (1 - p) * gaussian_delta(
        0.5, epsilon + 0.25
    )
    assert true_delta <= 1e-5


def test_functions_of_gaussian_releases_have_their_curve_where_it_is_lower():
    label, check = NoisyArgmax(9.0, order=1.5), NoisyCheck(12.0, order=1.5)
    both, behind = 3 * label + 2 * check, 3 * label.behind() + 2 * check.behind()
    assert accounting.epsilon(both, 1e-5) == accounting.epsilon(behind, 1e-5)
    mu = math.sqrt(3 * 2 / 9**2 + 2 / 12**2)
    assert gaussian_delta(mu, accounting.epsilon(both, 1e-5)) == pytest.approx(1e-5)
    # not where other losses are added
    more = accounting.epsilon(both + Exponential(0.5), 1e-5)
    assert accounting.epsilon(both, 1e-5) < more < accounting.epsilon(both, 1e-5) + 0.5
    assert 2 * accounting.work(both, 1e-5) < accounting.work(both + Exponential(0.5), 1e-5)


def test_attack_rate_is_the_gaussian_trade_off():
    assert attack_rates.attack_rate(Gaussian(1.0), 0.01) == pytest.approx(
        norm.cdf(norm.ppf(0.01) + 1.0)
    )
    assert attack_rates.attack_rate(Exponential(0.0), 0.01) == 0.01
    assert attack_rates.attack_rate(Gaussian(0.0), 0.01) == 1.0
    assert attack_rates.attack_rate(PureDP(0.5), 0.01) <= 0.01 * math.exp(0.5)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 8.0, 50.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1])
def test_the_largest_rho_keeps_epsilon_and_is_the_largest(epsilon, delta):
    rho = accounting.largest_rho(epsilon, delta)
    assert accounting.epsilon(ZCDP(rho), delta) <= epsilon
    assert accounting.epsilon(ZCDP(rho * 1.0001), delta) > epsilon


@given(z=st.floats(0.05, 50), delta=st.floats(1e-12, 0.1))
def test_the_calibrated_multiplier_never_exceeds_the_target(z, delta):
    target = accounting.epsilon(Gaussian(z), delta)
    if 1e-6 < target < 1e3:
        found = accounting.gaussian_multiplier(target, delta)
        assert found == pytest.approx(z, rel=1e-5)
        assert accounting.epsilon(Gaussian(found), delta) <= target


@pytest.mark.parametrize("delta", [-1e-9, 1.0, math.nan])
def test_bad_delta_is_refused(delta):
    with pytest.raises(InputError, match="delta="):
        accounting.epsilon(Gaussian(1.0), delta)
