"""Voting: queries are asked in order, until a limit or a group's budget is reached.

`aggregate` turns votes into labels; `PATE` trains the teachers, and runs a `Voting` itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.progress import progress
from tacit.compute.shared import digest
from tacit.data.labels import class_list
from tacit.errors import BudgetError, InputError
from tacit.learners.common.parameters import array_of, flag, numbers_of, one_of
from tacit.learners.pate.aggregators import UNANSWERED, Aggregator, Interactive
from tacit.learners.pate.data_dependent import DataDependent, Odometer
from tacit.learners.pate.filter import Filter
from tacit.learners.pate.run_folder import RunFolder, run_hash
from tacit.learners.pate.scheme import Scheme, scheme
from tacit.mechanisms import votes as mechanism
from tacit.mechanisms.noise import NOISES, SAMPLERS, Integers, NoiseSource, noise_source
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.unit import Unit

Floats = NDArray[np.float64]

DELTA = 1e-5

# Queries that are decided together.
_BLOCK = 512

# Points of a curve of costs.
_POINTS = 16


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
    """Released answers of a voting, and their privacy cost.

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
        """Largest costs after some of the queries, the last among them, whatever the votes."""
        scheme = self.scheme
        points = np.unique(np.linspace(1, self.asked, _POINTS).astype(np.int64))
        costs = []
        for asked in points.tolist():
            account = Filter(scheme.collector, scheme.aggregator, scheme.allowances)
            account.charge(scheme.collector.sensitivities(slice(0, asked)), self.paid[:asked])

            group_events = account.spent_events(scheme.delta)
            events = dict(zip(scheme.budgets, group_events, strict=True))
            spent = scheme.guarantee(events)
            # plain PATE has one group, which its guarantee does not name
            groups: list[str | None] = [group for group, _ in spent.groups] or [None]
            epsilons = [spent.epsilon(scheme.delta, group) for group in groups]

            n_labels = int(self.paid[:asked].sum())
            costs.append(Cost(asked, n_labels, dict(zip(scheme.budgets, epsilons, strict=True))))
        return costs

    def epsilon_given_votes(self) -> dict[str, float]:
        """Upper bound on each group's epsilon at `internal_.delta`, given the votes: private.

        It is the smaller of the data-dependent epsilon and of what was spent, which bounds the cost
        of any votes.
        """
        groups: list[str | None] = [group for group, _ in self.spent_.groups] or [None]
        data_dependent = self.internal_.epsilon.items()
        return {
            name: min(epsilon, self.spent_.epsilon(self.internal_.delta, group))
            for group, (name, epsilon) in zip(groups, data_dependent, strict=True)
        }


class Voting:
    """A voting in progress; `stopping` and `exact_q` are those of `tacit.pate.aggregate`.

    `account` has the costs that are charged, `odometer` those that depend on the votes. `labels`
    and `paid`, of shape (queries,), are filled for the first `asked` queries.
    """

    def __init__(
        self, plan: Scheme, classes: NDArray[Any], stopping: str = "filter", exact_q: bool = False
    ) -> None:
        self.plan = plan
        self.classes = classes
        self.stopping = stopping
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
        if aggregator is None:
            aggregator = self.plan.aggregator
        # upsampling has more teachers than plain PATE, so noise and threshold grow with them
        scaled_aggregator = aggregator.scaled(self.plan.collector.scale)

        first = self.asked
        n_blocks = -(-len(votes) // _BLOCK)
        for start in progress(range(0, len(votes), _BLOCK), "queries", n_blocks):
            if self.over:
                break
            block = slice(start, min(start + _BLOCK, len(votes)))
            queries = slice(first + block.start, first + block.stop)
            counts = self._counts(votes[block], queries)
            counts_in_votes = counts / mechanism.UNIT
            block_scores = None if scores is None else scores[block]
            labels, paid = scaled_aggregator.decide(
                counts, noise, block_scores, counts_in_votes.sum(axis=1)
            )
            self._record(queries, labels, paid, counts_in_votes)

    def _counts(self, votes: Integers, queries: slice) -> Integers:
        """Return weighted votes per class in units of 2^-20, of shape (queries, classes)."""
        return mechanism.vote_counts(votes, self.plan.collector.weights(queries), len(self.classes))

    def _record(
        self, queries: slice, labels: Integers, paid: NDArray[np.bool_], counts: Floats
    ) -> None:
        """Release the labels of these queries as far as they fit in budgets and limits, and charge
        them.
        """
        n_fitting = self._fitting(queries, counts, paid)
        released = slice(queries.start, queries.start + n_fitting)
        self.labels[released] = labels[:n_fitting]
        self.paid[released] = paid[:n_fitting]

        # sensitivities are those of the block: a collector may give one column for all queries
        sensitivities = self.plan.collector.sensitivities(queries)
        self.account.charge(sensitivities[:, :n_fitting], paid[:n_fitting])
        self.odometer.charge(released, counts[:n_fitting], paid[:n_fitting])

        self.asked = released.stop
        has_all_labels = self.paid.sum() == self.plan.n_labels
        self.over = self.asked < queries.stop or bool(has_all_labels)

    def _fitting(self, queries: slice, counts: Floats, paid: NDArray[np.bool_]) -> int:
        """Return how many of these queries, in order, are within budgets and limits."""
        if self.stopping == "filter":
            n_fitting = self.account.fitting(self.plan.collector.sensitivities(queries), paid)
        else:
            n_fitting = self.odometer.fitting(queries, counts, paid)

        # the last query is the one that buys the last of the `n_labels` labels
        n_missing = self.plan.n_labels - self.paid.sum()
        reaches_limit = np.flatnonzero(np.cumsum(paid) == n_missing)
        if len(reaches_limit):
            n_fitting = min(n_fitting, int(reaches_limit[0]) + 1)
        return n_fitting

    def replay(self, votes: Integers, labels: Integers, paid: NDArray[np.bool_]) -> None:
        """Take the answers to the first of these queries from an earlier run, and charge them.

        Labels are bought once, so no noise is drawn.
        """
        n_queries = len(labels)
        self.labels[:n_queries] = labels
        self.paid[:n_queries] = paid
        for start in range(0, n_queries, _BLOCK):
            block = slice(start, min(start + _BLOCK, n_queries))
            counts = self._counts(votes[block], block)
            self.account.charge(self.plan.collector.sensitivities(block), paid[block])
            self.odometer.charge(block, counts / mechanism.UNIT, paid[block])
        self.asked = n_queries
        self.over = True

    def released(self) -> tuple[Integers, NDArray[np.bool_]]:
        """Class indices of the queries so far, -1 where there is no label, and which of them were
        bought.
        """
        return self.labels[: self.asked], self.paid[: self.asked]

    def answers(self) -> Answers:
        """Return what was released, and its privacy cost; an error if no query was within
        budget.
        """
        if self.asked == 0:
            raise self.plan.unaffordable()

        plan = self.plan
        if self.stopping != "filter":
            plan = plan.without_filter()
        events = self.account.spent_events(plan.delta)
        spent = dict(zip(plan.budgets, events, strict=True))
        return Answers(
            labels=np.where(self.labels >= 0, self.classes[self.labels], UNANSWERED),
            asked=self.asked,
            answered=int(self.paid.sum()),
            paid=self.paid,
            sensitivity=_sensitivity_of_groups(plan),
            guarantee_=plan.promise(),
            spent_=plan.guarantee(spent),
            internal_=self.odometer.report(),
            scheme=plan,
        )


def _sensitivity_of_groups(plan: Scheme) -> dict[str, Any]:
    """Return how much one record of each group can change; per query if the collector is
    vanishing.
    """
    by_payer = plan.collector.sensitivities(slice(0, plan.n_queries))
    by_group: dict[str, Any] = {}
    for group, payers in zip(plan.budgets, plan.collector.payers(), strict=True):
        values = by_payer[payers].max(axis=0)
        by_group[group] = float(values[0]) if len(values) == 1 else values
    return by_group


def check_stopping(stopping: str, noise: str) -> None:
    """Refuse data-dependent stopping under noise that is for release."""
    one_of("stopping", stopping, ("filter", "data-dependent"))
    one_of("noise", noise, NOISES)
    if stopping == "data-dependent" and noise != "research":
        remedy = "pass stopping='filter', or noise='research' to repeat a published table"
        raise BudgetError(
            "stopping='data-dependent' reveals facts about the votes, which no budget covers;"
            f" {remedy}"
        )


def aggregate(
    votes: Any,
    *,
    classes: Any,
    aggregator: str = "confident",
    collector: str = "gnmax",
    sigma: float | None = None,
    sigma1: float | None = None,
    threshold: float | None = None,
    gamma: float | None = None,
    confidence: float | None = None,
    student_scores: Any = None,
    budgets: Mapping[str, float] | float | None = None,
    shares: Mapping[str, float] | None = None,
    teacher_groups: Sequence[str | Sequence[str]] | None = None,
    copies: Mapping[str, int] | None = None,
    delta: float = DELTA,
    n_labels: int | None = None,
    stopping: str = "filter",
    exact_q: bool = False,
    noise: str = "secure",
    random_state: Any = None,
    unit: Unit | str = "replace",
    folder: Any = None,
) -> Answers:
    """Turn teachers' votes into labels, until a limit or a group's budget is reached.

    Parameters
    ----------
    votes : int array of shape (queries, teachers)
        Each teacher's class for each query, in the order of the queries. Under upsampling, one
        column for each of the T' real teachers.
    classes : sequence of int, or int
        The public class list, integers >= 0; N stands for 0..N-1.
    aggregator : {"confident", "gnmax", "interactive", "laplace"}
        See `GNMax`, `Confident`, `Interactive` and `LaplaceMax`.
    collector : {"gnmax", "upsampling", "vanishing", "weighting"}
        How groups with different budgets vote together; see `tacit.learners.pate.collectors`.
    sigma, sigma1, threshold : float
        Noise on counts, noise of the check and its threshold, in votes of plain PATE: under
        upsampling all three are multiplied by the growth in teachers.
    gamma : float
        For "laplace": the noise has scale 1/gamma.
    confidence, student_scores : float, array of shape (queries, classes)
        For "interactive". Scores are public, not negative, and add up to 1 for each query.
    budgets : dict of str to float, or float, optional
        Epsilon of each budget group at `delta`, or of all records. Without it the limits alone end
        the voting.
        Infinite budgets are plurality without noise.
    shares : dict of str to float, optional
        Share of each group in the records; adds up to 1. Columns belong to the groups in this
        order, for plans and simulations.
    teacher_groups : sequence of length teachers, optional
        Instead of `shares`: the group of each teacher's records, or several names for mixed
        budgets.
    copies : dict of str to int, optional
        For upsampling: the number of teachers that hold a record of each group; by default the
        smallest integers in proportion to the budgets, within 5 %.
    delta : float, default=1e-5
        Delta of the budgets.
    n_labels : int, optional
        Stop after this many bought labels.
    stopping : {"filter", "data-dependent"}
        "filter" keeps every budget whatever the votes. "data-dependent" stops where the
        data-dependent costs reach a budget, as published tables do. When it stops tells about the
        votes, so the promise is what the limits allow, and secure noise refuses it.
    exact_q : bool, default=False
        As in `rdp_per_vote`, for the data-dependent figures.
    noise, random_state
        As in `NoisySumPrototypes`.
    unit : {"replace", "replace-person"}
        What reaches one teacher only: each record, or each person with all their records.
    folder : path, optional
        Private folder that keeps the answers. The same voting, asked again, takes them from it and
        draws no noise: new noise on the same votes would cost as much again.

    Returns
    -------
    Answers

    Raises
    ------
    InputError, BudgetError
        If something is out of range, or no query fits a budget.

    Notes
    -----
    Guarantee: under replacement of one record of group g, epsilon_g at delta, provided that a
    record reaches one teacher only, or its d_g under upsampling. Numbers of records, groups and
    budgets are public. Under "replace-person" the same of one person, provided that all their
    records reach that teacher, and that no teacher depends on the number of records of another. See
    `tacit.mechanisms.votes` for the cost of a query and `tacit.learners.pate.filter` for why
    stopping is private.
    Source: Papernot et al. 2017 and 2018; Boenisch et al. 2022.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> votes = np.repeat([[0], [1], [2], [1]], 1000, axis=1)
    >>> out = tacit.pate.aggregate(votes, classes=3, aggregator="gnmax", sigma=9, budgets=1.0)
    >>> out.labels, out.asked, round(out.guarantee_.epsilon(1e-5), 4)
    (array([ 0,  1,  2, -1]), 3, 1.0)
    """
    class_values = _classes(classes)
    indices = _vote_indices(votes, class_values)
    plan = scheme(
        *indices.shape,
        aggregator=aggregator,
        collector=collector,
        budgets=budgets,
        shares=shares,
        teacher_groups=teacher_groups,
        copies=copies,
        delta=delta,
        n_labels=n_labels,
        unit=unit,
        sigma=sigma,
        sigma1=sigma1,
        threshold=threshold,
        gamma=gamma,
        confidence=confidence,
    )
    check_stopping(stopping, noise)
    flag("exact_q", exact_q)
    scores = _scores(student_scores, plan, len(class_values))
    voting = Voting(plan, class_values, stopping, exact_q)

    samplers = SAMPLERS[noise]
    settings: list[object] = [samplers, random_state, stopping, exact_q, class_values.tolist()]
    if scores is not None:
        settings.append(digest([scores]))
    run = run_hash(plan, [], settings)

    run_folder = RunFolder(folder)
    with run_folder.held():
        stored = run_folder.read_answers(run, len(class_values))
        if stored is None:
            voting.ask(indices, noise_source(noise, random_state), scores)
            run_folder.write_answers(run, indices, *voting.released(), {})
        else:
            run_folder.check_votes(stored, indices)
            voting.replay(indices, stored.labels, stored.paid)
    return voting.answers()


def _classes(classes: Any) -> NDArray[np.int64]:
    """Check a class list, which must be whole numbers >= 0."""
    values = np.asarray(class_list(classes))
    if values.dtype.kind != "i" or values.min() < 0:
        raise InputError(
            "classes of votes must be whole numbers >= 0, since -1 is not a label; number them"
            " from 0"
        )
    return values


def _vote_indices(votes: Any, classes: NDArray[np.int64]) -> Integers:
    """Return votes as class indices, of shape (queries, teachers)."""
    ballots = array_of(votes, "votes", "pass one vote of every teacher for every query")
    if ballots.ndim != 2 or 0 in ballots.shape or ballots.dtype == object:
        raise InputError(
            f"votes have shape {ballots.shape}; pass whole numbers of shape (queries, teachers)"
        )
    if ballots.dtype.kind not in "iu":
        raise InputError(
            f"votes have dtype {ballots.dtype}; pass whole numbers, the class that each teacher"
            " votes for"
        )

    order = np.argsort(classes)
    place = np.searchsorted(classes, ballots, sorter=order).clip(max=len(classes) - 1)
    indices = order[place]

    is_unknown = classes[indices] != ballots
    if is_unknown.any():
        query, teacher = np.argwhere(is_unknown)[0]
        fault = f"teacher {teacher} votes for {ballots[query, teacher]} at query {query}"
        rule = f"which is not one of the {len(classes)} classes"
        remedy = "correct the vote, or complete the list from public knowledge, not from the votes"
        raise InputError(f"{fault}, {rule}; {remedy}")
    return np.asarray(indices, dtype=np.int64)


def _scores(scores: Any, plan: Scheme, n_classes: int) -> Floats | None:
    """Check a student's scores, which interactive voting needs and no other takes."""
    if not isinstance(plan.aggregator, Interactive):
        if scores is not None:
            raise InputError("student_scores are for aggregator='interactive'; leave them out")
        return None
    if scores is None:
        raise InputError(
            "aggregator 'interactive' needs student_scores, of shape (queries, classes); pass them"
        )

    remedy = "pass predict_proba of the student"
    shape = (plan.n_queries, n_classes)
    array = numbers_of(scores, "student_scores", remedy)
    are_probabilities = (
        array.shape == shape and np.all(array >= 0) and np.allclose(array.sum(axis=1), 1, atol=1e-3)
    )
    if not are_probabilities:
        raise InputError(
            f"student_scores of shape {array.shape} must be probabilities of shape {shape};"
            f" {remedy}"
        )
    return array
