"""The privacy filter: how far voting may go, and what it cost.

Each payer (a group, or a teacher; see `collectors.py`) has an allowance rho. Before a query is asked, its check and its
label must fit in what is left of every allowance of those who vote. Costs follow from public facts and from what was
released already, never from the votes, so that stopping is private: a zCDP filter [Whitehouse et al. 2023, Thm 1].
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tacit.learners.pate.aggregators import Aggregator
from tacit.learners.pate.collectors import Collector
from tacit.privacy import accounting
from tacit.privacy.events import ZCDP, Event, compose

Floats = NDArray[np.float64]


def allowances(budgets: Mapping[str, float], delta: float) -> dict[str, float]:
    """The largest rho of each group whose epsilon at delta is within its budget."""
    return {group: accounting.largest_rho(epsilon, delta) for group, epsilon in budgets.items()}


class ZCDPFilter:
    """What each payer has spent, and which queries still fit in the allowances `rhos` of the groups.

    `aggregator` is as for plain PATE: the collector's scale is in the sensitivities.
    """

    def __init__(self, collector: Collector, aggregator: Aggregator, rhos: Mapping[str, float]) -> None:
        self.aggregator = aggregator
        self.payers = collector.payers()
        allowed = np.array(list(rhos.values()))[:, None]
        self.allowance = np.where(self.payers, allowed, np.inf).min(axis=0)
        self.spent = np.zeros(len(self.allowance))
        self.uses: dict[tuple[float, ...], tuple[int, int]] = {}

    def costs(self, sensitivities: Floats) -> tuple[Floats, Floats]:
        """rho of the check and of the label of each query for each payer, of the shape of `sensitivities`."""
        check, label = np.zeros_like(sensitivities), np.zeros_like(sensitivities)
        for value in np.unique(sensitivities[sensitivities > 0]):
            check_event = self.aggregator.check(float(value))
            check[sensitivities == value] = 0.0 if check_event is None else check_event.rho
            label[sensitivities == value] = self.aggregator.label(float(value)).rho
        return check, label

    def fitting(self, sensitivities: Floats, paid: NDArray[np.bool_]) -> int:
        """How many of these queries may be asked in order, where `paid` says which of them buy a label."""
        if np.all(np.isinf(self.allowance)):
            return len(paid)
        check, label = self.costs(np.broadcast_to(sensitivities, (len(self.spent), len(paid))))
        cost = check + label * paid
        before = self.spent[:, None] + np.cumsum(cost, axis=1) - cost
        fits = (before + check + label <= self.allowance[:, None]) | (check + label == 0)
        all_fit = fits.all(axis=0)
        return len(paid) if all_fit.all() else int(np.argmin(all_fit))

    def charge(self, sensitivities: Floats, paid: NDArray[np.bool_]) -> None:
        """Record these queries."""
        of_all = np.broadcast_to(sensitivities, (len(self.spent), len(paid)))
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
        """What each group spent: the events of its most expensive payer."""
        return [self._events(int(np.flatnonzero(who)[np.argmax(self.spent[who])])) for who in self.payers]

    def _events(self, payer: int) -> Event:
        parts: list[Event] = []
        for column, (asked, bought) in self.uses.items():
            if column[payer] > 0:
                check = self.aggregator.check(column[payer])
                parts += [] if check is None else [asked * check]
                parts.append(bought * self.aggregator.label(column[payer]))
        return compose(parts)


def promised(
    collector: Collector, aggregator: Aggregator, rhos: Mapping[str, float], queries: int, labels: int
) -> dict[str, Event]:
    """The smaller of each group's allowance and what the public limits allow at worst."""
    worst = ZCDPFilter(collector, aggregator, rhos)
    if collector.varies:
        for part in (slice(start, min(start + 1024, queries)) for start in range(0, queries, 1024)):
            paid = np.ones(part.stop - part.start, dtype=bool)  # any of the queries may be the ones answered
            worst.charge(collector.sensitivities(part), paid)
    else:
        worst.charge_alike(collector.sensitivities(slice(0, 1)), queries, min(labels, queries))
    caps = zip(rhos.items(), worst.events(), strict=True)
    return {group: event if event.rho <= rho else ZCDP(rho) for (group, rho), event in caps}
