"""Figures that depend on the votes: what voting cost, given the votes, and how far teachers agree.

They are private: for the data's owner and for published tables, never for a release.

Renyi costs of each payer (see `collectors.py`) add up over queries; `tacit.mechanisms.vote_bounds`
has the bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.learners.common.parameters import array_of, flag, numbers_of, real
from tacit.learners.pate.aggregators import Aggregator, Plurality, aggregator_of
from tacit.learners.pate.collectors import Collector
from tacit.mechanisms.noise import Integers
from tacit.mechanisms.vote_bounds import LogQ, blocks, log_q_exact, log_q_union
from tacit.mechanisms.votes import UNIT, vote_counts
from tacit.privacy.accounting import renyi_epsilons

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Renyi orders of data-dependent costs.
ORDERS = 1 + np.geomspace(0.02, 5000.0, 120)

# Shares of teachers for the top class that `consensus` tells apart, and the queries that it counts
# together.
BINS = 20
_BLOCK = 512


@dataclass(frozen=True)
class DataDependent:
    """Epsilon of each group by data-dependent costs, at `delta`. Private: it depends on the votes.

    `orders` of shape (orders,) and `costs` of shape (groups, orders) are the Renyi curves behind
    it.
    """

    epsilon: dict[str, float]
    delta: float
    orders: Floats
    costs: Floats


class Odometer:
    """Adds up data-dependent costs; `aggregator` is as for plain PATE, and `exact_q` as in
    `rdp_per_vote`.
    """

    def __init__(
        self,
        collector: Collector,
        aggregator: Aggregator,
        budgets: Mapping[str, float],
        delta: float,
        exact_q: bool,
    ) -> None:
        self.collector = collector
        self.budgets = dict(budgets)
        self.delta = delta
        self.aggregator = aggregator.scaled(collector.scale)
        self.log_q = _log_q(exact_q)
        self.payers = collector.payers()

        # Renyi costs of each payer, of shape (payers, orders); the smallest budget of its groups.
        self.totals = np.zeros((self.payers.shape[1], len(ORDERS)))
        epsilons = np.array(list(budgets.values()))
        self.allowance = np.where(self.payers, epsilons[:, None], np.inf).min(axis=0)

    def fitting(self, queries: slice, counts: Floats, paid: Bools) -> int:
        """Return how many of these queries, in order, leave every payer within its budget; counts
        are in votes.
        """
        pays, costs = self._curves(queries, counts, paid)

        def fits(n_queries: int) -> bool:
            totals = self.totals + np.tensordot(pays[:, :, :n_queries], costs[:, :n_queries], 2)
            return bool(np.all(renyi_epsilons(totals, ORDERS, self.delta) <= self.allowance))

        # Bisection for the largest number that fits, since costs only grow. Mostly all queries
        # fit, so they are tried first.
        n_queries = len(paid)
        low = 0
        high = n_queries + 1
        while high - low > 1:
            is_first = low == 0 and high == n_queries + 1
            middle = n_queries if is_first else (low + high) // 2
            if fits(middle):
                low = middle
            else:
                high = middle
        return low

    def charge(self, queries: slice, counts: Floats, paid: Bools) -> None:
        """Record these queries."""
        if isinstance(self.aggregator, Plurality):
            self.totals[:] = np.inf
        else:
            pays, costs = self._curves(queries, counts, paid)
            self.totals += np.tensordot(pays, costs, 2)

    def report(self) -> DataDependent:
        """The figures so far."""
        epsilons = renyi_epsilons(self.totals, ORDERS, self.delta)
        group_epsilons = {
            group: float(epsilons[payers].max())
            for group, payers in zip(self.budgets, self.payers, strict=True)
        }
        costs = np.stack([self.totals[payers].max(axis=0) for payers in self.payers])
        return DataDependent(group_epsilons, self.delta, ORDERS, costs)

    def _curves(self, queries: slice, counts: Floats, paid: Bools) -> tuple[Floats, Floats]:
        """Return who pays which curve, of shape (payers, curves, queries), and the curves, of shape
        (curves, queries, orders).
        """
        sensitivities = self.collector.sensitivities(queries) * self.collector.scale
        curve_sensitivities: list[Floats | float]
        if self.collector.varies:
            # all who take part in a query have the same sensitivity, so one curve serves all
            curve_sensitivities = [sensitivities.max(axis=0)]
            pays = (sensitivities > 0)[:, None].astype(np.float64)
        else:
            # a payer has one sensitivity for all queries, and a curve of its own
            curve_sensitivities = [float(value) for (value,) in sensitivities]
            pays = np.eye(len(curve_sensitivities))[:, :, None] * np.ones(len(paid))

        curves = []
        for sensitivity in curve_sensitivities:
            check, label = self.aggregator.renyi(counts, sensitivity, ORDERS, self.log_q)
            curves.append(charged(check, label, paid))
        return np.asarray(pays), np.stack(curves)


def charged(check: Floats, label: Floats, answered: Any) -> Floats:
    """Cost of each query, of shape (queries, orders): the check, and the label where it was
    bought.
    """
    share = np.asarray(answered, dtype=np.float64)[:, None]
    return check + np.where(share > 0, label, 0.0) * share


def rdp_per_vote(
    votes: Any,
    *,
    sigma: float | None = None,
    orders: Any,
    sensitivity: float = 1.0,
    aggregator: str = "gnmax",
    sigma1: float | None = None,
    threshold: float | None = None,
    gamma: float | None = None,
    answered: Any = None,
    exact_q: bool = False,
) -> Floats:
    """Data-dependent Renyi cost of each query. Private: it depends on the votes.

    Parameters
    ----------
    votes : array of shape (queries, classes)
        Votes per class; weights count as they are.
    sigma, sigma1, threshold, gamma : float
        Of the aggregator, for these counts.
    orders : array of shape (orders,)
        Renyi orders, above 1.
    sensitivity : float, default=1.0
        What one record can move, in the votes of `votes`.
    aggregator : {"gnmax", "confident", "laplace"}
    answered : array of shape (queries,), optional
        Which queries were answered and so paid for a label; all by default. Probabilities give the
        expected cost: a planning figure.
    exact_q : bool, default=False
        Use the exact probability of another label, by quadrature, and not the union bound.

    Returns
    -------
    ndarray of shape (queries, orders)

    Notes
    -----
    Source: Papernot et al. 2018, Theorem 6; see `tacit.mechanisms.vote_bounds`.

    Examples
    --------
    >>> import tacit
    >>> tacit.pate.rdp_per_vote([[180, 70]], sigma=20, orders=[2, 50]).round(9)
    array([[3.72010000e-05, 1.15186485e-01]])
    """
    noise = {"sigma": sigma, "sigma1": sigma1, "threshold": threshold, "gamma": gamma}
    blocks = _costs(votes, orders, sensitivity, answered, exact_q, aggregator, noise)
    return np.concatenate([charged(*block) for block in blocks])


def rdp(
    votes: Any,
    *,
    sigma: float | None = None,
    orders: Any,
    sensitivity: float = 1.0,
    aggregator: str = "gnmax",
    sigma1: float | None = None,
    threshold: float | None = None,
    gamma: float | None = None,
    answered: Any = None,
    exact_q: bool = False,
) -> Floats:
    """Sum over queries of `rdp_per_vote`, of shape (orders,), in memory that does not grow with the
    queries.
    """
    noise = {"sigma": sigma, "sigma1": sigma1, "threshold": threshold, "gamma": gamma}
    blocks = _costs(votes, orders, sensitivity, answered, exact_q, aggregator, noise)
    return np.asarray(sum(check.sum(axis=0) + answers @ label for check, label, answers in blocks))


def _costs(
    votes: Any,
    orders: Any,
    sensitivity: float,
    answered: Any,
    exact_q: bool,
    aggregator: str,
    noise: Mapping[str, float | None],
) -> Iterator[tuple[Floats, Floats, Floats]]:
    """Costs of checks and labels of blocks of queries, and which were answered; arguments as in
    `rdp_per_vote`.
    """
    remedy = "pass votes per class, >= 0, of shape (queries, classes)"
    counts = array_of(votes, "votes", remedy)
    is_table = counts.dtype.kind in "iuf" and counts.ndim == 2 and 0 not in counts.shape
    if not is_table or not np.all((counts >= 0) & np.isfinite(counts)):
        raise InputError(f"votes have dtype {counts.dtype} and shape {counts.shape}; {remedy}")

    renyi_orders = np.atleast_1d(numbers_of(orders, "orders", "pass for example [2, 8, 32]"))
    if renyi_orders.ndim != 1 or not np.all((renyi_orders > 1) & np.isfinite(renyi_orders)):
        raise InputError(
            f"orders={orders!r:.80} must be finite and above 1; pass for example [2, 8, 32]"
        )
    real("sensitivity", sensitivity, 1e-9, 1e9)
    flag("exact_q", exact_q)
    if isinstance(aggregator, str) and aggregator == "interactive":
        raise InputError(
            "aggregator='interactive' depends on a student too; see `internal_` of"
            " tacit.pate.aggregate"
        )
    voting = aggregator_of(aggregator, **noise)

    rule = f"pass one value from 0 to 1 for each of {len(counts)} queries"
    shares = np.ones(len(counts))
    if answered is not None:
        shares = numbers_of(answered, "answered", rule)
    if shares.shape != (len(counts),) or not np.all((shares >= 0) & (shares <= 1)):
        raise InputError(f"answered has shape {shares.shape}; {rule}")

    log_q = _log_q(exact_q)
    for block in blocks(len(counts)):
        check, label = voting.renyi(counts[block], sensitivity, renyi_orders, log_q)
        yield check, label, shares[block]


def _log_q(exact: bool) -> LogQ:
    """Return the bound on the probability of another label: by quadrature, or the union bound."""
    return log_q_exact if exact else log_q_union


def consensus(votes: Integers) -> Integers:
    """Count the queries with each share of teachers for their top class, of shape (20,): up to 5 %,
    up to 10 %, ...

    `votes` are class indices of shape (queries, teachers). Every teacher counts alike, whatever its
    vote weighs.
    """
    n_queries, n_teachers = votes.shape
    equal_weights = np.full(n_teachers, UNIT)
    numbers = np.zeros(BINS, dtype=np.int64)
    for start in range(0, n_queries, _BLOCK):
        block = votes[start : start + _BLOCK]
        counts = vote_counts(block, equal_weights, int(block.max()) + 1)
        top_count = counts.max(axis=1) // UNIT
        # the share times BINS, rounded up, less 1
        bins = (top_count * BINS + n_teachers - 1) // n_teachers - 1
        numbers += np.bincount(bins, minlength=BINS)
    return numbers
