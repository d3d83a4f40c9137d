"""The privacy filter: how far voting may go, and what it cost.

Each payer (a group, or a teacher; see `collectors.py`) has the allowance of every group whose
records it holds. Before a query is asked, its check and its label must fit in what is left of every
allowance of those who vote. A failed check costs the check alone. Costs follow from public facts
and from what was released already, never from the votes, so a sum in one currency
(`tacit.privacy.allowance`) that stops before its limit is a privacy filter.

For a budget of epsilon and delta the currency is Renyi divergence at one order, which follows from
epsilon and delta alone: at it, an argmax and a check cost about .64 of their noisy counts. Where
the noise is such that no price is certified, it is mu^2 of Gaussian differential privacy, if that
buys more. Budgets in mu are counted in mu^2 too, budgets in zCDP and Laplace noise in rho.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BudgetError
from tacit.learners.pate.aggregators import Aggregator, GNMax
from tacit.learners.pate.collectors import Collector
from tacit.privacy import accounting
from tacit.privacy import budget as budgets
from tacit.privacy.allowance import Allowance
from tacit.privacy.budget import Budget
from tacit.privacy.events import ZCDP, Event, FilteredVotes, Gaussian, compose
from tacit.privacy.prices import LEAST

Floats = NDArray[np.float64]
Measure = Callable[[Allowance, Event], float]

_TYPICAL = GNMax(100.0)  # stands for noise that is not chosen yet
_ROUNDING = 1e-10  # relative: what sums of costs in floating point may lack


def allowance_of(budget: Budget, aggregator: Aggregator | None) -> Allowance:
    """What a budget allows in the currency that buys most; `aggregator` is None if its noise is not
    chosen yet.
    """
    if budget.infinite or budget.kind in ("zcdp", "gdp"):
        return Allowance.of(budget)
    # `FilteredVotes` bounds rho and mu for Gaussian noise alone
    if not isinstance(aggregator, GNMax | None):
        rho = accounting.largest_rho(float(budget.epsilon or 0), float(budget.delta or 0))
        if rho < budgets.LEAST:
            raise BudgetError(
                f"budget {budget} is too small for a label at any noise; use Gaussian noise (gnmax)"
            )
        return Allowance.of(Budget.zcdp(rho))
    renyi, mu = Allowance.of(budget, currency="renyi"), Allowance.of(budget, currency="mu")
    query = _TYPICAL if aggregator is None else aggregator
    return max(
        renyi,
        mu,
        key=lambda allowance: allowance.total / allowance.cost(query_event(query, allowance)),
    )


def query_event(aggregator: Aggregator, allowance: Allowance, sensitivity: float = 1.0) -> Event:
    """Event of a query that buys a label, as it is priced in the currency of the allowance."""
    order = order_of(allowance)
    check = aggregator.check(sensitivity, order)
    label = aggregator.label(sensitivity, order)
    return label if check is None else check + label


def order_of(allowance: Allowance) -> float | None:
    """The Renyi order at which labels are priced; None where the noisy counts are priced."""
    return allowance.order if allowance.currency == "renyi" else None


class Filter:
    """What each payer has spent of each of its allowances, and which queries still fit.

    `aggregator` is as for plain PATE: the collector's scale is in the sensitivities.
    """

    def __init__(
        self, collector: Collector, aggregator: Aggregator, allowances: Mapping[str, Allowance]
    ) -> None:
        self.aggregator = aggregator
        self.allowances = list(allowances.values())
        self.groups, self.payers = np.nonzero(collector.payers())  # of each account
        self.limits = np.array([self.allowances[group].total for group in self.groups]) * (
            1 - _ROUNDING
        )
        self.spent = np.zeros(len(self.groups))
        self.uses: dict[tuple[float, ...], tuple[int, int]] = {}
        self.priced: dict[tuple[int, float, Measure], tuple[float, float]] = {}

    def costs(
        self, sensitivities: Floats, measure: Measure = Allowance.cost
    ) -> tuple[Floats, Floats]:
        """Cost of the check and of the label of each query to each account, of shape (accounts,
        queries).
        """
        of_accounts = sensitivities[self.payers]
        check, label = np.zeros_like(of_accounts), np.zeros_like(of_accounts)
        for group in range(len(self.allowances)):
            rows = self.groups == group
            for value in np.unique(of_accounts[rows][of_accounts[rows] > 0]):
                alike = rows[:, None] & (of_accounts == value)
                check[alike], label[alike] = self._prices(group, float(value), measure)
        return check, label

    def _prices(self, group: int, sensitivity: float, measure: Measure) -> tuple[float, float]:
        """Cost of a check and of a label to an account of this group."""
        key, allowance = (group, sensitivity, measure), self.allowances[group]
        if key not in self.priced:
            order = order_of(allowance)
            check, label = (
                self.aggregator.check(sensitivity, order),
                self.aggregator.label(sensitivity, order),
            )
            self.priced[key] = (
                (0.0 if check is None else measure(allowance, check)),
                measure(allowance, label),
            )
        return self.priced[key]

    def fitting(self, sensitivities: Floats, paid: NDArray[np.bool_]) -> int:
        """How many of these queries may be asked in order, where `paid` says which of them buy a
        label.
        """
        if np.all(np.isinf(self.limits)):
            return len(paid)
        check, label = self.costs(_by_query(sensitivities, len(paid)))
        cost = check + label * paid
        before = self.spent[:, None] + np.cumsum(cost, axis=1) - cost
        fits = (before + check + label <= self.limits[:, None]) | (check + label == 0)
        all_fit = fits.all(axis=0)
        return len(paid) if all_fit.all() else int(np.argmin(all_fit))

    def charge(self, sensitivities: Floats, paid: NDArray[np.bool_]) -> None:
        """Record these queries."""
        of_all = _by_query(sensitivities, len(paid))
        check, label = self.costs(of_all)
        self.spent += (check + np.where(paid, label, 0.0)).sum(axis=1)
        columns, place = np.unique(of_all, axis=1, return_inverse=True)
        for i, column in enumerate(columns.T):
            asked, bought = self.uses.get(tuple(column), (0, 0))
            alike = place.ravel() == i
            self.uses[tuple(column)] = asked + int(alike.sum()), bought + int(paid[alike].sum())

    def charge_alike(self, sensitivities: Floats, asked: int, bought: int) -> None:
        """Record so many queries of the same sensitivities, of shape (payers, 1)."""
        check, label = self.costs(sensitivities)
        self.spent += (asked * check + bought * label)[:, 0]
        self.uses[tuple(sensitivities[:, 0])] = asked, bought

    def events(self) -> list[Event]:
        """What each group spent: the events of its dearest payer, or what covers all payers if none
        is so in all.

        A payer with fewer votes of more weight may cost less at the order that is counted, and more
        at others.
        """
        cost, rho, pure = (self._totals(measure) for measure in (Allowance.cost, _rho, _pure))
        found: list[Event] = []
        for group, allowance in enumerate(self.allowances):
            own = np.flatnonzero(self.groups == group)
            dearest, order = int(own[np.argmax(cost[own])]), order_of(allowance)
            if all(
                total[dearest] >= total[own].max() * (1 - _ROUNDING) for total in (cost, rho, pure)
            ):
                found.append(self._events(dearest))
            elif order is None:
                found.append(ZCDP(float(rho[own].max())))
            else:
                found.append(
                    FilteredVotes(order, float(cost[dearest]), math.sqrt(0.5 / rho[own].max()))
                )
        return found

    def _totals(self, measure: Measure) -> Floats:
        """What each account spent by this measure, of shape (accounts,)."""
        if not self.uses:
            return np.zeros(len(self.groups))
        asked, bought = np.array(list(self.uses.values()), dtype=np.float64).T
        check, label = self.costs(np.array(list(self.uses)).T, measure)
        return np.asarray(check @ asked + label @ bought)

    def _events(self, account: int) -> Event:
        payer, order = self.payers[account], order_of(self.allowances[self.groups[account]])
        parts: list[Event] = []
        for column, (asked, bought) in self.uses.items():
            if column[payer] > 0:
                check = self.aggregator.check(float(column[payer]), order)
                parts += [] if check is None else [asked * check]
                parts.append(bought * self.aggregator.label(float(column[payer]), order))
        return compose(parts)


def promised(
    collector: Collector,
    aggregator: Aggregator,
    allowances: Mapping[str, Allowance],
    queries: int,
    labels: int,
) -> dict[str, Event]:
    """The smaller of each group's allowance and what the public limits allow at worst."""
    worst = Filter(collector, aggregator, allowances)
    if collector.varies:
        for part in (slice(start, min(start + 1024, queries)) for start in range(0, queries, 1024)):
            # any of the queries may be the ones answered
            paid = np.ones(part.stop - part.start, dtype=bool)
            worst.charge(collector.sensitivities(part), paid)
    else:
        worst.charge_alike(collector.sensitivities(slice(0, 1)), queries, min(labels, queries))
    caps = zip(allowances.items(), worst.events(), strict=True)
    return {
        group: event if allowance.cost(event) <= allowance.total else cap(allowance)
        for (group, allowance), event in caps
    }


def cap(allowance: Allowance) -> Event:
    """The event of a voting that may spend the whole allowance."""
    if allowance.budget.infinite or allowance.currency == "rho":
        return ZCDP(allowance.total)
    if allowance.currency == "mu":
        return Gaussian(allowance.total**-0.5)
    largest_rho = allowance.total / (allowance.order * LEAST)
    return FilteredVotes(allowance.order, allowance.total, math.sqrt(0.5 / largest_rho))


def _rho(allowance: Allowance, event: Event) -> float:
    return event.rho


def _pure(allowance: Allowance, event: Event) -> float:
    return 0.0 if math.isinf(event.pure) else event.pure


def _by_query(sensitivities: Floats, queries: int) -> Floats:
    """Sensitivities of shape (payers, queries)."""
    return np.broadcast_to(sensitivities, (len(sensitivities), queries))
