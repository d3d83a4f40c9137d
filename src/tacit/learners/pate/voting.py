"""Voting: queries are asked in order, until a limit or a group's budget is reached."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.progress import progress
from tacit.errors import BudgetError
from tacit.learners.common.parameters import one_of
from tacit.learners.pate.aggregators import UNANSWERED, Aggregator
from tacit.learners.pate.data_dependent import DataDependent, Odometer
from tacit.learners.pate.filter import Filter
from tacit.learners.pate.scheme import Scheme
from tacit.mechanisms import votes as mechanism
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.privacy.guarantee import Guarantee

Floats = NDArray[np.float64]

_BLOCK = 512
_POINTS = 16  # of a curve of costs


@dataclass(frozen=True)
class Cost:
    """Epsilon of each group at the delta of the budgets, after so many queries and bought
    labels.
    """

    asked: int
    answered: int
    epsilon: dict[str, float]


@dataclass(frozen=True)
class Answers:
    """What voting released, and its privacy cost.

    Attributes
    ----------
    labels : ndarray of shape (queries,)
        Class of each query, -1 if there is no answer.
    asked : int
        Number of queries that were made, from the first. Each paid for a check, if the aggregator
        checks.
    answered : int
        Number of labels that were bought.
    paid : ndarray of shape (queries,), bool
        Which labels were bought.
    sensitivity : dict of str to float, or to ndarray of shape (queries,)
        How much one record of each group can change, in votes of plain PATE; per query if the
        collector is vanishing.
    scheme : Scheme
        All public facts about the voting: who votes, the noise, budgets and limits.
    guarantee_ : Guarantee
        Known before any vote: each group's budget, or the worst case under the limits if that is
        less.
    spent_ : Guarantee
        Cost of the queries and labels. A report, not a guarantee.
    internal_ : DataDependent
        Figures that depend on the votes: private, never part of a release.
    """

    labels: Integers
    asked: int
    answered: int
    paid: NDArray[np.bool_]
    sensitivity: dict[str, Any]
    guarantee_: Guarantee
    spent_: Guarantee
    internal_: DataDependent = field(repr=False)
    scheme: Scheme = field(repr=False)

    @property
    def costs(self) -> list[Cost]:
        """What was spent at most after some of the queries, the last among them, whatever the
        votes.
        """
        scheme, found = self.scheme, []
        for asked in np.unique(np.linspace(1, self.asked, _POINTS).astype(np.int64)).tolist():
            account = Filter(scheme.collector, scheme.aggregator, scheme.allowances)
            account.charge(scheme.collector.sensitivities(slice(0, asked)), self.paid[:asked])
            spent = scheme.guarantee(dict(zip(scheme.budgets, account.events(), strict=True)))
            names: list[str | None] = [name for name, _ in spent.groups] or [None]
            epsilons = [spent.epsilon(scheme.delta, name) for name in names]
            epsilon = dict(zip(scheme.budgets, epsilons, strict=True))
            found.append(Cost(asked, int(self.paid[:asked].sum()), epsilon))
        return found

    def epsilon_given_votes(self) -> dict[str, float]:
        """What is known of each group's epsilon at `internal_.delta`, given the votes: private.

        It is the smaller of the data-dependent epsilon and of what was spent, which bounds the cost
        of any votes.
        """
        groups: list[str | None] = [name for name, _ in self.spent_.groups] or [None]
        known = zip(groups, self.internal_.epsilon.items(), strict=True)
        return {
            name: min(raw, self.spent_.epsilon(self.internal_.delta, group))
            for group, (name, raw) in known
        }


class Voting:
    """A voting in progress; `stopping` and `exact_q` are those of `tacit.pate.aggregate`."""

    def __init__(
        self, plan: Scheme, classes: NDArray[Any], stopping: str = "filter", exact_q: bool = False
    ) -> None:
        self.plan, self.classes, self.stopping = plan, classes, stopping
        self.account = Filter(plan.collector, plan.aggregator, plan.allowances)
        self.odometer = Odometer(plan.collector, plan.aggregator, plan.budgets, plan.delta, exact_q)
        self.labels = np.full(plan.n_queries, UNANSWERED, dtype=np.int64)
        self.paid = np.zeros(plan.n_queries, dtype=bool)
        self.asked = 0
        self.over = False
        if stopping == "filter" and not plan.affordable():
            raise plan.unaffordable()

    def ask(
        self,
        votes: Integers,
        noise: NoiseSource,
        scores: Floats | None = None,
        aggregator: Aggregator | None = None,
    ) -> None:
        """Ask the next queries, given their votes of shape (queries, teachers), unless voting is
        over.

        `scores` are the student's, of shape (queries, classes), for the interactive aggregator.
        `aggregator` replaces that of the scheme, at the same privacy costs.
        """
        decide = (aggregator or self.plan.aggregator).scaled(self.plan.collector.scale).decide
        first = self.asked
        for start in progress(range(0, len(votes), _BLOCK), "queries", -(-len(votes) // _BLOCK)):
            if self.over:
                break
            block = slice(start, min(start + _BLOCK, len(votes)))
            part = slice(first + block.start, first + block.stop)
            counts = mechanism.vote_counts(
                votes[block], self.plan.collector.weights(part), len(self.classes)
            )
            in_votes = counts / mechanism.UNIT
            labels, paid = decide(
                counts, noise, None if scores is None else scores[block], in_votes.sum(axis=1)
            )
            fit = self._fitting(part, in_votes, paid)
            done = slice(part.start, part.start + fit)
            self.labels[done], self.paid[done] = labels[:fit], paid[:fit]
            self.account.charge(self.plan.collector.sensitivities(part)[:, :fit], paid[:fit])
            self.odometer.charge(done, in_votes[:fit], paid[:fit])
            self.asked = done.stop
            self.over = self.asked < part.stop or self.paid.sum() == self.plan.n_labels

    def _fitting(self, part: slice, counts: Floats, paid: NDArray[np.bool_]) -> int:
        """How many of these queries are within budgets and limits."""
        if self.stopping == "filter":
            fit = self.account.fitting(self.plan.collector.sensitivities(part), paid)
        else:
            fit = self.odometer.fitting(part, counts, paid)
        wanted = np.flatnonzero(np.cumsum(paid) == self.plan.n_labels - self.paid.sum())
        return min(fit, int(wanted[0]) + 1) if len(wanted) else fit

    def replay(self, votes: Integers, labels: Integers, paid: NDArray[np.bool_]) -> None:
        """Take the answers to the first queries from an earlier run."""
        self.labels[: len(labels)], self.paid[: len(paid)] = labels, paid
        for start in range(0, len(votes), _BLOCK):
            part = slice(start, min(start + _BLOCK, len(votes)))
            counts = mechanism.vote_counts(
                votes[part], self.plan.collector.weights(part), len(self.classes)
            )
            self.account.charge(self.plan.collector.sensitivities(part), paid[part])
            self.odometer.charge(part, counts / mechanism.UNIT, paid[part])
        self.asked, self.over = len(votes), True

    def answers(self) -> Answers:
        """What was released, and its privacy cost; an error if no query was within budget."""
        if self.asked == 0:
            raise self.plan.unaffordable()
        plan = self.plan if self.stopping == "filter" else self.plan.without_filter()
        of_payers = plan.collector.sensitivities(slice(0, plan.n_queries))
        by_group = [of_payers[payers].max(axis=0) for payers in plan.collector.payers()]
        sensitivities = [float(values[0]) if len(values) == 1 else values for values in by_group]
        return Answers(
            labels=np.where(self.labels >= 0, self.classes[self.labels], UNANSWERED),
            asked=self.asked,
            answered=int(self.paid.sum()),
            paid=self.paid,
            sensitivity=dict(zip(plan.budgets, sensitivities, strict=True)),
            guarantee_=plan.promise(),
            spent_=plan.guarantee(dict(zip(plan.budgets, self.account.events(), strict=True))),
            internal_=self.odometer.report(),
            scheme=plan,
        )


def check_stopping(stopping: str, noise: str) -> None:
    """Refuse data-dependent stopping under noise that is for release."""
    one_of("stopping", stopping, ("filter", "data-dependent"))
    one_of("noise", noise, ("secure", "research"))
    if stopping == "data-dependent" and noise != "research":
        remedy = "pass stopping='filter', or noise='research' to repeat a published table"
        raise BudgetError(
            "stopping='data-dependent' reveals facts about the votes, which no budget covers;"
            f" {remedy}"
        )
