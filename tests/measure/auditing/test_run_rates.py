"""Bounds of means over runs: valid at the limit, however canaries of a run depend on one another."""

import numpy as np
import pytest

from tacit.measure.auditing.bounds import epsilon_of_rates, mu_of_rates
from tacit.measure.auditing.run_rates import RunRates, lower_mean

DRAWS, ERROR = 300, 0.1


@pytest.mark.parametrize("mean", [0.02, 0.3, 0.9])
def test_a_lower_bound_is_seldom_above_the_mean_of_coins(mean):
    """Coins have the largest variance of all numbers in [0, 1] with their mean."""
    rng = np.random.default_rng(0)
    bounds = [lower_mean((rng.random(60) < mean).astype(float), ERROR) for _ in range(DRAWS)]
    # four standard errors above what is allowed
    assert np.mean(np.array(bounds) > mean) < ERROR + 4 * np.sqrt(ERROR / DRAWS)
    # 60 runs are few for a mean of 0.02
    assert np.mean(bounds) > mean - 0.2


def test_a_lower_bound_is_close_where_runs_hardly_differ():
    rng = np.random.default_rng(0)
    values = 0.4 + 0.01 * rng.normal(size=200)
    assert 0.35 < lower_mean(values, 1e-6) < values.mean()
    assert lower_mean(np.zeros(50), 0.05) == pytest.approx(0, abs=1e-9)


def test_rates_bound_both_sides_and_an_attack_that_is_always_right_has_a_finite_mu():
    coins = np.random.default_rng(0).integers(0, 2, size=(300, 20))
    always_right = RunRates(coins.mean(axis=1), np.zeros(300))
    true_rate, false_rate = always_right.bounds(0.05)
    assert true_rate > 0.9
    assert 0 < false_rate < 0.1
    assert 2 < mu_of_rates(always_right, 0.05) < np.inf
    assert epsilon_of_rates(always_right, 1e-5, 0.05) > 2

    blind = RunRates(np.full(300, 0.25), np.full(300, 0.25))
    assert mu_of_rates(blind, 0.05) == 0
    assert epsilon_of_rates(blind, 1e-5, 0.05) == 0
