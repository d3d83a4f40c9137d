"""The number of records that is enough: a private figure within five points of the non-private one.

Noise that is f times smaller disturbs means as much as f times more records do. So one curve, of
accuracy against the strength of budgets at the stated number of records, also answers how many more
records a budget needs. Fewer records have larger errors of sampling too, so they are tried.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tacit.compute.progress import progress
from tacit.measure.simulated_fits import Accuracy, StatedTask, scaled, strength
from tacit.privacy.budget import Budget

# points of accuracy, as a share
CLOSE = 0.05

# The search ends at this many times the strongest budget, and at this ratio of neighbours.
MOST_FACTOR = 64.0
FINE = 2.0

Measure = Callable[[Budget, float], Accuracy]
Curve = list[tuple[float, Accuracy]]


class Enough(NamedTuple):
    """What is enough at one budget; None stands for more than 64 times what is stated."""

    records: int | None
    """Of the largest class, for the balanced accuracy."""
    records_for_minority: int | None
    """Of the largest class, for the accuracy of the small classes."""
    budget_for_minority: Budget | None
    """At the stated number of records, for the accuracy of the small classes."""


def enough_records(
    measure: Measure, budgets: Sequence[Budget], baseline: Accuracy, task: StatedTask
) -> dict[str, Enough]:
    """Find what is enough at each budget.

    Parameters
    ----------
    measure : callable
        Accuracy of a budget and a factor of the number of records.
    budgets : sequence of Budget
        Finite budgets of one kind.
    baseline : Accuracy
        Without privacy, at the stated number of records.
    task : StatedTask
        What is stated.
    """
    ordered = sorted(budgets, key=strength)
    curve = [(strength(budget), measure(budget, 1.0)) for budget in ordered]

    # Without noise some learners overfit, above all rows that are repeated, and do worse than with.
    accuracies = [baseline, *(accuracy for _, accuracy in curve)]
    target = Accuracy(
        max(accuracy.balanced for accuracy in accuracies) - CLOSE,
        max(accuracy.minority for accuracy in accuracies) - CLOSE,
    )
    _lengthen(curve, measure, ordered[0], target)

    needed = [_crossing(curve, measure, ordered[0], target, which) for which in (0, 1)]
    results = {}
    for budget in progress(ordered, "search for enough records", len(ordered)):
        factors = [_factor(figure, budget) for figure in needed]
        if factors[0] is not None and factors[0] <= 1:
            factors[0] = _smaller(measure, budget, target, task)

        minority_budget = None
        if factors[1] is not None:
            minority_budget = scaled(budget, factors[1])
        results[str(budget)] = Enough(
            _records(factors[0], task), _records(factors[1], task), minority_budget
        )
    return results


def _lengthen(curve: Curve, measure: Measure, weakest: Budget, target: Accuracy) -> None:
    """Add stronger budgets until both figures reach their targets."""
    first = curve[0][0]
    most = MOST_FACTOR * curve[-1][0]
    while not _reaches(curve[-1][1], target):
        stronger = 2 * curve[-1][0]
        if stronger > most:
            return
        curve.append((stronger, measure(scaled(weakest, stronger / first), 1.0)))


def _reaches(accuracy: Accuracy, target: Accuracy) -> bool:
    return all(figure >= least for figure, least in zip(accuracy, target, strict=True))


def _crossing(
    curve: Curve, measure: Measure, weakest: Budget, target: Accuracy, which: int
) -> float | None:
    """Return the strength at which one of the two figures reaches its target; None if none does."""
    first = curve[0][0]
    while True:
        above = [i for i, (_, accuracy) in enumerate(curve) if accuracy[which] >= target[which]]
        if not above:
            return None
        if above[0] == 0:
            return first

        low, below = curve[above[0] - 1]
        high, reached = curve[above[0]]
        if high <= FINE * low * (1 + 1e-9):
            return _interpolated(low, high, below[which], reached[which], target[which])
        middle = math.sqrt(low * high)
        accuracy = measure(scaled(weakest, middle / first), 1.0)
        curve.insert(above[0], (middle, accuracy))


def _interpolated(low: float, high: float, below: float, reached: float, target: float) -> float:
    """Return where a figure that is linear in the logarithm reaches the target."""
    share = (target - below) / (reached - below)
    return float(low * (high / low) ** share)


def _factor(needed: float | None, budget: Budget) -> float | None:
    """Return how many times more records do what a budget of the needed strength does."""
    if needed is None:
        return None
    return max(1.0, needed / strength(budget))


def _smaller(measure: Measure, budget: Budget, target: Accuracy, task: StatedTask) -> float:
    """Return the smallest factor, at most 1, at which the balanced accuracy reaches its target."""
    factor = 1.0
    reached = measure(budget, factor).balanced
    while factor * task.records >= 2:
        balanced = measure(budget, factor / 2).balanced
        if balanced < target.balanced:
            if reached < target.balanced:
                # the interpolation between budgets was optimistic
                return factor
            return _interpolated(factor / 2, factor, balanced, reached, target.balanced)
        factor /= 2
        reached = balanced
    return factor


def _records(factor: float | None, task: StatedTask) -> int | None:
    if factor is None:
        return None
    return math.ceil(factor * task.records)
