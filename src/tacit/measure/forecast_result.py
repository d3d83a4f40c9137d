"""The result of a forecast: its table, and the sentences that follow from it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from tacit.learners.methods import (
    load,
)
from tacit.measure.enough import Enough
from tacit.measure.pseudo_classes import (
    Kind,
)
from tacit.measure.simulated_fits import (
    StatedTask,
)
from tacit.privacy.budget import Budget
from tacit.privacy.decimals import rounded_up
from tacit.privacy.unit import Unit


class ForecastRow(NamedTuple):
    """Accuracy to expect at one budget."""

    pseudo_classes: Kind
    """What stands in for the private classes."""
    budget: str
    epsilon: float
    """Of the promise, at the delta of the forecast; inf without privacy."""
    balanced: float
    """Balanced accuracy, the mean over seeds."""
    minority: float
    """Accuracy of the 25 % smallest classes, the mean over seeds."""
    sd: float
    """Standard deviation of the balanced accuracy over seeds, which draw classes and noise; NaN
    of one seed."""


@dataclass(frozen=True)
class Forecast:
    """The accuracy to expect of a fit, as `tacit.forecast` returns it."""

    method: str
    declared: tuple[str, ...]
    """What was stated about the private records, which nothing protects."""
    guesses: tuple[str, ...]
    """What was not stated, and is assumed."""
    delta: float
    table: tuple[ForecastRow, ...]
    """A row for each kind of pseudo-classes and budget, the last of each kind without privacy."""
    basis: Kind
    """The pseudo-classes of `enough_records` and of `sentence`."""
    enough_records: Mapping[str, Enough]
    """What is enough at each budget."""
    sentence: str

    def rows(self, kind: Kind) -> list[ForecastRow]:
        """Return the rows of one kind of pseudo-classes."""
        return [row for row in self.table if row.pseudo_classes == kind]

    def figure(self) -> Any:
        """Draw balanced and minority accuracy against epsilon, as an altair chart.

        It needs the extra `experiments`.
        """
        # by name, since the library that draws lies above this package
        return load("tacit.report.forecasts:forecast_chart")(self)

    def facts(self) -> dict[str, Any]:
        """Return the forecast as plain values, for JSON."""
        enough = {}
        for budget, needs in self.enough_records.items():
            enough[budget] = needs._asdict()
            if needs.budget_for_minority is not None:
                enough[budget]["budget_for_minority"] = str(needs.budget_for_minority)
        table = [row._asdict() for row in self.table]
        return {**asdict(self), "table": table, "enough_records": enough}


def declared_facts(task: StatedTask, unit: Unit) -> tuple[str, ...]:
    """Say what was stated about the private records."""
    facts = [
        f"{task.n_classes} classes",
        f"{task.records} records of the largest class",
        f"imbalance {task.imbalance:g}",
    ]
    if unit.per_person:
        facts.append(f"{task.records_per_person} records of each person")
    return tuple(facts)


def sentence_of(
    table: tuple[ForecastRow, ...],
    basis: Kind,
    enough: Mapping[str, Enough],
    task: StatedTask,
    delta: float,
) -> str:
    """Say at which budgets the records are enough, and what the others and small classes need."""
    rows = [row for row in table if row.pseudo_classes == basis]
    private = rows[:-1]
    best = max(row.balanced for row in rows)
    sufficient = [row for row in private if _is_enough(enough[row.budget].records, task)]
    others = [row for row in private if row not in sufficient]

    start = (
        f"For a balanced accuracy within 5 points of the best in the table, {best:.2f},"
        f" {task.records} records of the largest class are"
    )
    phrases = []
    if sufficient:
        figures = [f"{label_of(row.budget, delta)} ({row.balanced:.2f})" for row in sufficient]
        phrases.append(f"enough at {_listed(figures)}")
    if others:
        figures = [
            f"{label_of(row.budget, delta)} ({row.balanced:.2f};"
            f" {_records_text(enough[row.budget].records)})"
            for row in others
        ]
        phrases.append(f"not enough at {_listed(figures)}")
    text = f"{start} {', but '.join(phrases)}"
    if task.imbalance > 1:
        text += f"; {_about_small_classes(private, enough, task, delta)}"
    return f"{text}."


def label_of(budget: str, delta: float) -> str:
    """Return how a budget is shown beside the delta of the forecast.

    >>> label_of("epsilon=0.5,delta=1e-06", 1e-6), label_of("rho=inf", 1e-6)
    ('epsilon=0.5', 'no privacy')
    """
    parsed = Budget.parse(budget)
    if parsed.infinite:
        return "no privacy"
    if parsed.delta == delta:
        return budget.partition(",")[0]
    return budget


def _listed(items: list[str]) -> str:
    """Join items with commas and a last "and"."""
    *first, last = items
    if not first:
        return last
    return f"{', '.join(first)} and {last}"


def _is_enough(records: int | None, task: StatedTask) -> bool:
    return records is not None and records <= task.records


def _records_text(records: int | None) -> str:
    if records is None:
        return "you need more than 64 times as many"
    return f"you need about {_two_digits(records)}"


def _two_digits(number: int) -> int:
    """Round a number of records up to two digits."""
    unit: int = 10 ** max(0, len(str(number)) - 2)
    return math.ceil(number / unit) * unit


def _about_small_classes(
    private: list[ForecastRow], enough: Mapping[str, Enough], task: StatedTask, delta: float
) -> str:
    """Say what small classes need at the largest budget."""
    row = max(private, key=lambda row: row.epsilon)
    needs = enough[row.budget]
    start = f"small classes ({row.minority:.2f} at {label_of(row.budget, delta)})"
    if needs.records_for_minority is None:
        return f"{start} need more than 64 times as many records, or as large a budget"
    if _is_enough(needs.records_for_minority, task):
        return f"{start} have enough"
    smallest = math.ceil(needs.records_for_minority / task.imbalance)
    return (
        f"{start} need about {_two_digits(smallest)} records of the smallest class or a budget of"
        f" {label_of(_rounded(needs.budget_for_minority), delta)}"
    )


def _rounded(budget: Budget | None) -> str:
    """Write a budget that was interpolated, to two digits, rounded up."""
    assert budget is not None
    return ",".join(f"{name}={rounded_up(value, 2)}" for name, value in budget._parts().items())
