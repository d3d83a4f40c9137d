"""A voting scheme: everything about a voting that is public, checked, and its guarantee."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.errors import BudgetError, InputError
from tacit.learners.common.parameters import one_of, real, whole
from tacit.learners.pate.aggregators import Aggregator, Plurality, aggregator_of
from tacit.learners.pate.calibrate import Calibration, best, simulated_counts
from tacit.learners.pate.collectors import (
    COLLECTORS,
    Collector,
    PlainCollector,
    UpsamplingCollector,
    all_infinite,
    copies_for,
    holds_of,
    teachers_of,
)
from tacit.learners.pate.filter import Filter, allowance_of, promised
from tacit.privacy.allowance import Allowance
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event, compose
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.unit import Unit

# The group of plain PATE.
ALL = "all"

UNLIMITED = Allowance.of(Budget.zcdp(math.inf))

# Queries that are simulated to calibrate noise.
SIMULATED = 400


@dataclass(frozen=True)
class Scheme:
    """The weight of each vote, the noise, budgets and limits.

    `aggregator` is as for plain PATE; `allowances` are those of the groups; `n_labels` is the most
    labels to buy. `unit` says what is dealt out to teachers: records or persons.
    """

    collector: Collector
    aggregator: Aggregator
    budgets: dict[str, float]
    delta: float
    allowances: dict[str, Allowance]
    n_queries: int
    n_labels: int
    unit: Unit = Unit.REPLACE

    def promise(self) -> Guarantee:
        """Return what voting costs at most, whatever the votes."""
        events = promised(
            self.collector, self.aggregator, self.allowances, self.n_queries, self.n_labels
        )
        return self.guarantee(events)

    def without_filter(self) -> Scheme:
        """The scheme with limits alone."""
        return replace(self, allowances=dict.fromkeys(self.allowances, UNLIMITED))

    def affordable(self) -> bool:
        """Return whether the first query fits in every allowance."""
        account = Filter(self.collector, self.aggregator, self.allowances)
        first_query = self.collector.sensitivities(slice(0, 1))
        return account.fitting(first_query, np.array([True])) == 1

    def unaffordable(self) -> BudgetError:
        """The error for a scheme under which no query is within budget."""
        fault = f"budgets ({self._allowed()}) do not allow one query under {self.aggregator}"
        return BudgetError(f"{fault}; add more noise to votes, and more teachers to outweigh it")

    def _allowed(self) -> str:
        return ", ".join(
            f"{allowance} of group {group!r}" for group, allowance in self.allowances.items()
        )

    def calibrated(
        self, name: str, n_classes: int, accuracy: float, label_accuracy: float | None
    ) -> tuple[Scheme, Calibration]:
        """Return the scheme with noise that is chosen on simulated queries within every allowance,
        and what it should do.

        The aggregator of this `name` is "confident" or "gnmax"; teachers of this `accuracy` are
        simulated. The noise is the one whose labels tell most, or with most labels of which the
        share `label_accuracy` is right.
        """
        squares = self.collector.sensitivities(slice(0, self.n_queries)) ** 2
        n_teachers = round(self.collector.n_teachers / self.collector.scale)
        counts = simulated_counts(SIMULATED, n_teachers, max(n_classes, 2), accuracy)

        # Costs grow with the square of the sensitivity, so a budget for all queries is that of
        # their mean square. Where the mean leaves too little for the query that costs most, the
        # largest square decides.
        for payer_squares in (squares.mean(axis=1), squares.max(axis=1)):
            payers = [
                (allowance, math.sqrt(payer_squares[of_group].max()))
                for allowance, of_group in zip(
                    self.allowances.values(), self.collector.payers(), strict=True
                )
            ]
            choice = best(payers, counts, self.n_queries, name, label_accuracy)
            if choice is None:
                break
            scheme = replace(self, aggregator=choice.noise())
            if scheme.affordable():
                return scheme, choice

        allowed = self._allowed()
        fault = f"budgets ({allowed}) allow no query of {n_teachers} teachers at any noise tried"
        raise BudgetError(f"{fault}; pass more teachers")

    def guarantee(self, events: Mapping[str, Event]) -> Guarantee:
        """The guarantee of these events of the groups, under replacement of one record or
        person.
        """
        if list(events) == [ALL]:
            return Guarantee(self.unit, events[ALL], unprotected(self.unit), delta=self.delta)
        groups = tuple(events.items())
        return Guarantee(
            self.unit, compose([]), unprotected(self.unit, groups=True), groups, delta=self.delta
        )


def scheme(
    n_queries: int,
    n_teachers: int,
    *,
    aggregator: str,
    collector: str,
    budgets: Mapping[str, float] | float | None,
    shares: Mapping[str, float] | None,
    teacher_groups: Sequence[str | Sequence[str]] | None,
    copies: Mapping[str, int] | None,
    delta: float,
    n_labels: int | None,
    unit: Unit | str = Unit.REPLACE,
    **noise: float | None,
) -> Scheme:
    """Check what is public about a voting; the parameters are those of `tacit.pate.aggregate`."""
    one_of("collector", collector, COLLECTORS)
    real("delta", delta, 1e-30, 1 - 1e-9)
    one_of("unit", unit, (Unit.REPLACE, Unit.REPLACE_PERSON))
    epsilons = checked_budgets(math.inf if budgets is None else budgets)

    if isinstance(budgets, Mapping):
        members = _collector(collector, epsilons, n_teachers, shares, teacher_groups, copies)
    else:
        group_facts = (shares, teacher_groups, copies)
        if collector != "gnmax" or any(fact is not None for fact in group_facts):
            raise InputError(
                "groups need a budget each; pass budgets={'a': 1.0, 'b': 2.0}, or no groups"
            )
        members = PlainCollector(epsilons, np.ones((1, n_teachers), dtype=bool))

    infinite = budgets is not None and all(math.isinf(epsilon) for epsilon in epsilons.values())
    if infinite:
        voting: Aggregator = Plurality()
    else:
        voting = aggregator_of(aggregator, **noise)

    most_labels = n_queries
    if n_labels is not None:
        most_labels = whole("n_labels", n_labels, 1, 2**53)
    if most_labels > n_queries:
        raise InputError(
            f"n_labels={most_labels} is more than the {n_queries} queries, so it is never met; ask"
            " for fewer"
        )
    allowances = {
        group: allowance_of(Budget.approx(epsilon, delta), voting)
        for group, epsilon in epsilons.items()
    }
    return Scheme(
        members, voting, epsilons, float(delta), allowances, n_queries, most_labels, Unit(unit)
    )


def plain_scheme(
    n_queries: int,
    n_teachers: int,
    budget: Budget,
    allowance: Allowance,
    delta: float,
    n_labels: int | None,
    aggregator: Aggregator,
    unit: Unit,
) -> Scheme:
    """The scheme of a fit of PATE without groups; `delta` counts where the budget names none."""
    epsilons = {ALL: math.inf if budget.epsilon is None else budget.epsilon}
    members = PlainCollector(epsilons, np.ones((1, n_teachers), dtype=bool))
    voting = Plurality() if budget.infinite else aggregator
    most_labels = n_queries
    if n_labels is not None:
        most_labels = whole("n_labels", n_labels, 1, n_queries)
    return Scheme(
        members,
        voting,
        epsilons,
        budget.delta or delta,
        {ALL: allowance},
        n_queries,
        most_labels,
        unit,
    )


def unprotected(unit: Unit, groups: bool = False) -> tuple[str, ...]:
    """Return what voting does not protect, with budget groups or without."""
    entity = unit.entity
    facts = [f"number of {entity}s"]
    if groups:
        facts += [f"which {entity} is in which budget group", "budgets of the groups"]
    return tuple(facts)


def _collector(
    name: str,
    budgets: dict[str, float],
    n_teachers: int,
    shares: Mapping[str, float] | None,
    teacher_groups: Sequence[str | Sequence[str]] | None,
    copies: Mapping[str, int] | None,
) -> Collector:
    """Return the collector of budget groups, whose teachers follow from shares or are named."""
    if (shares is None) == (teacher_groups is None):
        raise InputError(
            "budget groups need either shares= of the records or teacher_groups= of each column;"
            " pass one"
        )
    if copies is not None and name != "upsampling":
        raise InputError(f"copies={copies} is for collector='upsampling'; leave it out")
    # plain PATE stops at the smallest budget, so there some may be infinite
    infinite = name != "gnmax" and all_infinite(budgets)
    if name == "upsampling":
        return _upsampling(budgets, n_teachers, shares, copies)

    if shares is not None:
        sizes = teachers_of(checked_shares(shares, budgets), n_teachers)
        teacher_groups = [group for group in shares for _ in range(sizes[group])]
    if not isinstance(teacher_groups, Sequence | np.ndarray) or isinstance(teacher_groups, str):
        raise InputError(
            f"teacher_groups={teacher_groups!r:.60} must be a list of names; pass one for each"
            " teacher"
        )
    if len(teacher_groups) != n_teachers:
        raise InputError(
            f"teacher_groups has {len(teacher_groups)} entries for {n_teachers} teachers; pass as"
            " many"
        )
    kind = PlainCollector if infinite else COLLECTORS[name]
    collector: Collector = kind(budgets, holds_of(teacher_groups, list(budgets)))
    return collector


def _upsampling(
    budgets: dict[str, float],
    n_teachers: int,
    shares: Mapping[str, float] | None,
    copies: Mapping[str, int] | None,
) -> UpsamplingCollector:
    """Return the collector whose every teacher may hold records of all groups."""
    if shares is None:
        raise InputError(
            "upsampling gives every teacher records of all groups; pass shares= of the records"
        )
    group_shares = checked_shares(shares, budgets)
    if not isinstance(copies, Mapping | None):
        raise InputError(f"copies={copies!r:.60} must name groups; pass copies={{'a': 1, 'b': 2}}")

    numbers = copies_for(budgets) if copies is None else dict(copies)
    if set(numbers) != set(budgets):
        raise InputError(
            f"copies={numbers} must name the groups {', '.join(budgets)}; pass one number for each"
        )
    for group, number in numbers.items():
        whole(f"copies of group {group!r}", number, 1, n_teachers)
    holds = np.ones((len(budgets), n_teachers), dtype=bool)
    return UpsamplingCollector(budgets, holds, numbers, group_shares)


def checked_budgets(budgets: Any) -> dict[str, float]:
    """Return epsilon of each group, from a dict or from one number for all."""
    epsilons = budgets if isinstance(budgets, Mapping) else {ALL: budgets}
    if not epsilons:
        raise BudgetError("budgets is empty; pass an epsilon for each group, such as {'a': 1.0}")
    for group, epsilon in epsilons.items():
        if not isinstance(group, str) or not group.isprintable() or not group:
            raise BudgetError(f"group {group!r} must be printable text; rename it")
        is_number = isinstance(epsilon, int | float | np.number) and not isinstance(epsilon, bool)
        if not is_number or not (1e-3 <= epsilon <= 1e6 or epsilon == math.inf):
            raise BudgetError(
                f"budget {epsilon!r} of group {group!r} must be an epsilon from 0.001 to 1e+06,"
                " or inf"
            )
    return {group: float(epsilon) for group, epsilon in epsilons.items()}


def checked_shares(shares: Mapping[str, float], budgets: Mapping[str, float]) -> dict[str, float]:
    """Return shares of the groups in the records, which name the groups with budgets and add up to
    1.
    """
    if not isinstance(shares, Mapping) or set(shares) != set(budgets):
        names = ", ".join(map(str, shares)) if isinstance(shares, Mapping) else repr(shares)
        raise InputError(
            f"shares name {names} and budgets {', '.join(budgets)}; name the same groups in both"
        )
    for group, share in shares.items():
        real(f"share of group {group!r}", share, 0, 1)
        if share == 0:
            raise InputError(
                f"group {group!r} has share 0, so no record; leave it out of budgets and shares"
            )
    if not math.isclose(sum(shares.values()), 1, abs_tol=1e-6):
        raise InputError(f"shares add up to {sum(shares.values()):g}, not 1; correct them")
    return {group: float(share) for group, share in shares.items()}
