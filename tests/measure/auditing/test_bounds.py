"""Bounds of audits against closed forms, exact enumeration and mechanisms that are at the limit."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from tacit.measure.auditing.bounds import (
    Guesses,
    Rates,
    epsilon_of_guesses,
    epsilon_of_guesses_by_randomized_response,
    epsilon_of_mu,
    epsilon_of_rates,
    is_refuted,
    lower_share,
    mu_of_guesses,
    mu_of_rates,
    upper_share,
)
from tacit.measure.auditing.result import Audit, Bound, rounded_down
from tacit.privacy.unit import Unit


@pytest.mark.parametrize(("successes", "n"), [(0, 10), (3, 10), (10, 10), (57, 400)])
def test_shares_are_those_of_scipy(successes, n):
    interval = binomtest(successes, n).proportion_ci(0.9, method="exact")
    assert lower_share(successes, n, 0.05) == pytest.approx(interval.low, abs=1e-12)
    assert upper_share(successes, n, 0.05) == pytest.approx(interval.high, abs=1e-12)


def test_epsilon_of_rates_is_the_log_ratio_of_its_bounds():
    rates = Rates(800, 1000, 100, 1000)
    true_rate, false_rate = rates.bounds(0.05)
    assert true_rate == pytest.approx(lower_share(800, 1000, 0.025))
    assert false_rate == pytest.approx(upper_share(100, 1000, 0.025))
    by_positives = math.log((true_rate - 1e-5) / false_rate)
    by_negatives = math.log((1 - false_rate - 1e-5) / (1 - true_rate))
    assert epsilon_of_rates(rates, 1e-5, 0.05) == max(by_positives, by_negatives)
    assert mu_of_rates(rates, 0.05) == pytest.approx(norm.ppf(true_rate) - norm.ppf(false_rate))


@pytest.mark.parametrize("rates", [Rates(0, 10, 10, 10), Rates(5, 10, 5, 10), Rates(0, 1, 0, 1)])
def test_no_advantage_proves_nothing(rates):
    assert epsilon_of_rates(rates, 1e-5, 0.05) == 0
    assert mu_of_rates(rates, 0.05) == 0
    assert epsilon_of_mu(0.0, 1e-5) == 0


def responses(epsilon, n, rng):
    """Numbers of right guesses of n randomized responses, which are at the limit of epsilon."""
    return rng.binomial(n, 1 / (1 + math.exp(-epsilon)), 2000)


def test_bounds_of_one_run_hold_for_randomized_responses_and_are_not_far_below():
    rng = np.random.default_rng(0)
    counts = np.unique(responses(1.0, 200, rng), return_counts=True)
    for bound in (epsilon_of_guesses, epsilon_of_guesses_by_randomized_response):
        bounds = [bound(Guesses(int(right), 200, 200), 1e-5, 0.05) for right in counts[0]]
        too_large = counts[1][np.array(bounds) > 1.0].sum() / counts[1].sum()
        # the bound is exact for these, up to the steps of a count
        assert 0.02 < too_large < 0.06
        assert np.average(bounds, weights=counts[1]) > 0.7


def test_the_bound_of_one_run_holds_however_canaries_depend_on_one_another():
    """A mechanism that reveals all coins or none is (0, delta)-DP for no delta below its chance."""
    # all guesses right with probability 0.2, which (epsilon, 0.2)-DP allows
    guesses = Guesses(30, 30, 30)
    assert epsilon_of_guesses(guesses, 0.2, 0.05) == 0
    assert epsilon_of_guesses_by_randomized_response(guesses, 0.2, 0.05) == 0
    assert epsilon_of_guesses(guesses, 1e-5, 0.05) > 1


def most_probable(guesses, inverse):
    """P(N >= v) at most, by a grid over all distributions of N for few canaries."""
    right, made, canaries = guesses
    best = 0.0
    steps = 40
    for parts in itertools.product(range(steps + 1), repeat=made):
        if sum(parts) > steps:
            continue
        chances = np.array([steps - sum(parts), *parts]) / steps
        j = np.arange(made + 1)
        r = np.append(np.cumsum((j * chances)[::-1])[::-1], 0) / canaries
        h = np.cumsum(((made - j) * chances)[::-1])[::-1] / canaries
        if all(inverse(r[n + 1]) <= h[n] + 1e-12 for n in range(made + 1)):
            best = max(best, chances[right:].sum())
    return best


@pytest.mark.parametrize("guesses", [Guesses(2, 2, 2), Guesses(1, 2, 3)])
def test_what_is_refuted_is_the_largest_probability_of_any_distribution(guesses):
    def inverse(probability):
        return float(norm.cdf(norm.ppf(probability) - 0.8))

    largest = most_probable(guesses, inverse)
    assert not is_refuted(guesses, inverse, largest - 1e-9)
    assert is_refuted(guesses, inverse, largest + 0.06)


def test_many_canaries_on_axes_of_their_own_prove_most_of_mu():
    rng = np.random.default_rng(1)
    coins = rng.random(100_000) < 0.5
    scores = rng.normal(size=100_000) + coins - 0.5
    guessed = np.argsort(-np.abs(scores))[:1000]
    right = int(((scores > 0) == coins)[guessed].sum())
    guesses = Guesses(right, 1000, 100_000)
    assert 2.28 < epsilon_of_guesses(guesses, 1e-5, 0.05) < epsilon_of_mu(1.0, 1e-5)
    assert 0.7 < mu_of_guesses(guesses, 0.05) < 1
    # the earlier bound pays for delta once a canary
    assert epsilon_of_guesses_by_randomized_response(guesses, 1e-5, 0.05) < 3


def test_an_audit_shows_its_best_bound_and_fails_by_those_that_decide():
    weak = Bound("pairs", 1.2345, 0.9, "runs")
    sharp = Bound("sharp", 3.0, 2.5, "axes", decides=False)
    audit = Audit("noisy-sum", Unit.ADD_REMOVE, 2.0, 1e-5, (weak, sharp), 0)
    assert (audit.epsilon_lower, audit.assumption) == (3.0, "axes")
    assert audit.attacks == ("pairs", "sharp")
    assert not audit.exceeded
    broken = Audit("noisy-sum", Unit.ADD_REMOVE, 0.8, 1e-5, (weak, sharp), 0)
    assert broken.exceeded
    assert "BROKEN" in broken.sentence
    assert broken.to_json()["exceeded"] is True


@pytest.mark.parametrize(
    ("number", "shown"), [(1.2399, "1.23"), (0.0, "0"), (12.0, "12"), (0.045678, "0.0456")]
)
def test_lower_bounds_are_rounded_down(number, shown):
    assert rounded_down(number) == shown
