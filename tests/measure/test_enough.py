"""The search for enough records, on curves whose answers are known."""

import math

import pytest

from tacit.measure.enough import enough_records
from tacit.measure.simulated_fits import Accuracy, StatedTask, scaled, strength
from tacit.privacy.budget import Budget


def figure(amount: float) -> float:
    """An accuracy that reaches 0.75, five points below 0.8, at an amount of 1."""
    return 0.75 + 0.1 * math.log10(amount)


def measure(budget: Budget, factor: float) -> Accuracy:
    """Small classes need four times as much; each halving of the records costs as the noise does."""
    amount = strength(budget) * factor
    return Accuracy(figure(amount), figure(amount / 4))


BASELINE = Accuracy(0.8, 0.8)


def test_more_records_are_needed_in_proportion_to_the_missing_strength():
    budgets = [Budget.gdp(0.1), Budget.gdp(0.5), Budget.gdp(2)]
    task = StatedTask(n_classes=10, records=800, imbalance=5)

    enough = enough_records(measure, budgets, BASELINE, task)

    assert [found.records for found in enough.values()] == pytest.approx([8000, 1600, 400], abs=1)
    minority = [found.records_for_minority for found in enough.values()]
    assert minority == pytest.approx([32000, 6400, 1600], abs=1)
    budgets_for_minority = [found.budget_for_minority.mu for found in enough.values()]
    assert budgets_for_minority == pytest.approx([4, 4, 4])


def test_what_64_times_as_many_do_not_reach_is_none():
    task = StatedTask(n_classes=10, records=100, imbalance=1)

    enough = enough_records(measure, [Budget.zcdp(1e-5)], BASELINE, task)

    assert enough["rho=1e-05"] == (None, None, None)


def test_one_record_of_the_largest_class_ends_the_search():
    task = StatedTask(n_classes=2, records=8, imbalance=1)

    enough = enough_records(lambda *_: Accuracy(0.8, 0.8), [Budget.pure(1)], BASELINE, task)

    assert enough["epsilon=1"].records == 1


@pytest.mark.parametrize("text", ["epsilon=0.5", "rho=0.02", "mu=0.3", "epsilon=0.5,delta=1e-6"])
def test_a_scaled_budget_is_as_much_stronger(text):
    budget = Budget.parse(text)

    stronger = scaled(budget, 3)

    assert stronger.kind == budget.kind
    assert stronger.delta == budget.delta
    assert strength(stronger) == pytest.approx(3 * strength(budget), rel=1e-6)
    assert scaled(Budget.zcdp(math.inf), 3).infinite


def test_a_baseline_that_overfits_is_not_what_private_figures_are_held_to():
    task = StatedTask(n_classes=2, records=8, imbalance=1)
    overfitted = Accuracy(0.5, 0.5)

    enough = enough_records(measure, [Budget.gdp(0.1), Budget.gdp(10)], overfitted, task)

    # 0.85 at mu = 10, so 0.8, which mu = 10^0.5 reaches
    assert enough["mu=0.1"].records == pytest.approx(8 * 10**1.5, abs=1)
