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
from copy import copy

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

# Stands for noise that is not chosen yet.
_TYPICAL = GNMax(100.0)

# Relative error that sums of costs in floating point may have.
_ROUNDING = 1e-10

# Orders this near to each other price labels alike, so a second price is not worth its time.
NEAR = 0.1

# Queries whose sensitivities are held in memory at once.
_BLOCK = 1024


def allowance_of(budget: Budget, aggregator: Aggregator | None) -> Allowance:
    """Return what a budget allows, in the currency that buys most labels.

    `aggregator` is None if its noise is not chosen yet.
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

    query = _TYPICAL if aggregator is None else aggregator

    def queries_within(allowance: Allowance) -> float:
        return allowance.total / allowance.cost(query_event(query, allowance))

    renyi = Allowance.of(budget, currency="renyi")
    mu = Allowance.of(budget, currency="mu")
    return max(renyi, mu, key=queries_within)


def query_event(aggregator: Aggregator, allowance: Allowance, sensitivity: float = 1.0) -> Event:
    """Event of a query that buys a label, as it is priced in the currency of the allowance."""
    order = order_of(allowance)
    check = aggregator.check(sensitivity, order)
    label = aggregator.label(sensitivity, order)
    if check is None:
        return label
    return check + label


def order_of(allowance: Allowance) -> float | None:
    """The Renyi order at which labels are priced; None where the noisy counts are priced."""
    if allowance.currency == "renyi":
        return allowance.order
    return None


class Filter:
    """Accounts of what was spent, which decide whether another query fits.

    An account is a payer together with one of its allowances. `groups` and `payers`, both of shape
    (accounts,), have the group whose allowance it is, and the payer. `aggregator` is as for plain
    PATE: the collector's scale is in the sensitivities.
    """

    def __init__(
        self, collector: Collector, aggregator: Aggregator, allowances: Mapping[str, Allowance]
    ) -> None:
        self.aggregator = aggregator
        self.allowances = list(allowances.values())
        self.groups, self.payers = np.nonzero(collector.payers())

        totals = np.array([self.allowances[group].total for group in self.groups])
        self.limits = totals * (1 - _ROUNDING)
        self.spent = np.zeros(len(self.groups))

        # Numbers of queries and of bought labels, by the sensitivities of all payers.
        self.uses: dict[tuple[float, ...], tuple[int, int]] = {}
        # Costs of a check and of a label, by group, sensitivity and measure.
        self.prices: dict[tuple[int, float, Measure], tuple[float, float]] = {}

    def costs(
        self, sensitivities: Floats, measure: Measure = Allowance.cost
    ) -> tuple[Floats, Floats]:
        """Cost of the check and of the label of each query to each account, of shape (accounts,
        queries).
        """
        by_account = sensitivities[self.payers]
        check = np.zeros_like(by_account)
        label = np.zeros_like(by_account)
        for group in range(len(self.allowances)):
            of_group = self.groups == group
            group_sensitivities = by_account[of_group]
            # a payer that does not vote has sensitivity 0 and pays nothing
            for value in np.unique(group_sensitivities[group_sensitivities > 0]):
                same_sensitivity = of_group[:, None] & (by_account == value)
                check_cost, label_cost = self._price(group, float(value), measure)
                check[same_sensitivity] = check_cost
                label[same_sensitivity] = label_cost
        return check, label

    def _price(self, group: int, sensitivity: float, measure: Measure) -> tuple[float, float]:
        """Return the cost of a check and of a label to an account of this group."""
        key = (group, sensitivity, measure)
        if key in self.prices:
            return self.prices[key]

        allowance = self.allowances[group]
        order = order_of(allowance)
        check = self.aggregator.check(sensitivity, order)
        label = self.aggregator.label(sensitivity, order)

        # GNMax and plurality have no check
        check_cost = 0.0
        if check is not None:
            check_cost = measure(allowance, check)
        self.prices[key] = (check_cost, measure(allowance, label))
        return self.prices[key]

    def fitting(self, sensitivities: Floats, paid: NDArray[np.bool_]) -> int:
        """Return how many of these queries may be asked, in order; `paid` says which of them buy a
        label.
        """
        n_queries = len(paid)
        if np.all(np.isinf(self.limits)):
            return n_queries

        check, label = self.costs(_by_query(sensitivities, n_queries))
        cost = check + label * paid
        before = self.spent[:, None] + np.cumsum(cost, axis=1) - cost

        # A query must be affordable with its label, since it is not known yet whether it buys one.
        is_free = check + label == 0
        fits = (before + check + label <= self.limits[:, None]) | is_free
        all_fit = fits.all(axis=0)
        if all_fit.all():
            return n_queries
        return int(np.argmin(all_fit))

    def charge(self, sensitivities: Floats, paid: NDArray[np.bool_]) -> None:
        """Record these queries; `paid` says which of them bought a label."""
        by_query = _by_query(sensitivities, len(paid))
        check, label = self.costs(by_query)
        self.spent += (check + np.where(paid, label, 0.0)).sum(axis=1)

        columns, column_of_query = np.unique(by_query, axis=1, return_inverse=True)
        for i, column in enumerate(columns.T):
            queries = column_of_query.ravel() == i
            n_queries, n_labels = self.uses.get(tuple(column), (0, 0))
            n_queries += int(queries.sum())
            n_labels += int(paid[queries].sum())
            self.uses[tuple(column)] = (n_queries, n_labels)

    def charge_alike(self, sensitivities: Floats, n_queries: int, n_labels: int) -> None:
        """Record queries of the same sensitivities, of shape (payers, 1), of which some bought a
        label.
        """
        check, label = self.costs(sensitivities)
        self.spent += (n_queries * check + n_labels * label)[:, 0]
        self.uses[tuple(sensitivities[:, 0])] = (n_queries, n_labels)

    def events(self) -> list[Event]:
        """Return an event for each group that covers what every payer of the group spent.

        It is that of the most expensive payer, if no other payer spent more by any measure. A payer
        with fewer votes of more weight may cost less at the order that is counted, and more at
        others. Then the event has the largest total of any payer for each measure.
        """
        cost = self._totals(Allowance.cost)
        rho = self._totals(_rho)
        pure = self._totals(_pure)

        events: list[Event] = []
        for group, allowance in enumerate(self.allowances):
            accounts = np.flatnonzero(self.groups == group)
            most_expensive = int(accounts[np.argmax(cost[accounts])])
            covers_all = all(
                total[most_expensive] >= total[accounts].max() * (1 - _ROUNDING)
                for total in (cost, rho, pure)
            )
            order = order_of(allowance)
            if covers_all:
                event = self._event_of(most_expensive)
            elif order is None:
                event = ZCDP(float(rho[accounts].max()))
            else:
                noise_multiplier = math.sqrt(0.5 / rho[accounts].max())
                event = FilteredVotes(order, float(cost[most_expensive]), noise_multiplier)
            events.append(event)
        return events

    def spent_events(self, delta: float) -> list[Event]:
        """Return an event for each group that covers what it spent, at an order that suits it.

        The filter prices labels at the Renyi order that suits the budget of a group. A group that
        spent less is reported at the order that suits what it spent: groups with the same votes
        then state the same epsilon at `delta`, whatever their budgets.
        """
        events = self.events()
        # other noise is not priced at an order
        if not isinstance(self.aggregator, GNMax):
            return events
        return [self._at_suitable_order(group, event, delta) for group, event in enumerate(events)]

    def _at_suitable_order(self, group: int, event: Event, delta: float) -> Event:
        """Return an event of what a group spent, priced at the order that suits its epsilon."""
        # about the epsilon of the labels, from their zCDP; the order needs no more precision
        rho = LEAST * event.rho
        epsilon = rho + 2 * math.sqrt(rho * -math.log(delta))
        if not budgets.LEAST < epsilon < budgets.MOST:
            return event

        allowance = Allowance.of(Budget.approx(epsilon, delta), currency="renyi")
        used_order = order_of(self.allowances[group])
        is_near = used_order is not None and allowance.order < (1 + NEAR) * used_order
        if is_near:
            return event
        repriced = copy(self)
        repriced.allowances = [allowance] * len(self.allowances)
        # cached prices are those at the other order
        repriced.prices = {}
        return repriced.events()[group]

    def _totals(self, measure: Measure) -> Floats:
        """Return what each account spent by this measure, of shape (accounts,)."""
        if not self.uses:
            return np.zeros(len(self.groups))
        n_queries, n_labels = np.array(list(self.uses.values()), dtype=np.float64).T
        sensitivities = np.array(list(self.uses)).T
        check, label = self.costs(sensitivities, measure)
        return np.asarray(check @ n_queries + label @ n_labels)

    def _event_of(self, account: int) -> Event:
        """Return the composed event of the checks and labels that an account paid for."""
        payer = self.payers[account]
        order = order_of(self.allowances[self.groups[account]])
        parts: list[Event] = []
        for column, (n_queries, n_labels) in self.uses.items():
            sensitivity = float(column[payer])
            if sensitivity == 0:
                # the payer did not vote on these queries
                continue
            check = self.aggregator.check(sensitivity, order)
            if check is not None:
                parts.append(n_queries * check)
            parts.append(n_labels * self.aggregator.label(sensitivity, order))
        return compose(parts)


def promised(
    collector: Collector,
    aggregator: Aggregator,
    allowances: Mapping[str, Allowance],
    n_queries: int,
    n_labels: int,
) -> dict[str, Event]:
    """Return the smaller of each group's allowance and of what the public limits allow at worst."""
    worst = Filter(collector, aggregator, allowances)
    if collector.varies:
        # any of the queries may be the ones answered, so all count as answered
        for start in range(0, n_queries, _BLOCK):
            block = slice(start, min(start + _BLOCK, n_queries))
            paid = np.ones(block.stop - block.start, dtype=bool)
            worst.charge(collector.sensitivities(block), paid)
    else:
        sensitivities = collector.sensitivities(slice(0, 1))
        worst.charge_alike(sensitivities, n_queries, min(n_labels, n_queries))

    promises: dict[str, Event] = {}
    for (group, allowance), event in zip(allowances.items(), worst.events(), strict=True):
        within_allowance = allowance.cost(event) <= allowance.total
        promises[group] = event if within_allowance else cap(allowance)
    return promises


def cap(allowance: Allowance) -> Event:
    """Return the event of a voting that may spend the whole allowance."""
    if allowance.budget.infinite or allowance.currency == "rho":
        return ZCDP(allowance.total)
    if allowance.currency == "mu":
        # the total is mu^2 = 1/z^2 of noise multiplier z
        return Gaussian(allowance.total**-0.5)
    # the price of an argmax or a check is at least LEAST times that of its noisy counts
    largest_rho = allowance.total / (allowance.order * LEAST)
    return FilteredVotes(allowance.order, allowance.total, math.sqrt(0.5 / largest_rho))


def _rho(allowance: Allowance, event: Event) -> float:
    """Measure an event by its rho of zCDP."""
    return event.rho


def _pure(allowance: Allowance, event: Event) -> float:
    """Measure an event by its pure epsilon; 0 if it has none, as no Gaussian event has."""
    return 0.0 if math.isinf(event.pure) else event.pure


def _by_query(sensitivities: Floats, n_queries: int) -> Floats:
    """Repeat sensitivities of shape (payers, 1) or (payers, queries) for each query."""
    return np.broadcast_to(sensitivities, (len(sensitivities), n_queries))
