"""Votes to labels within every group's budget: `tacit.pate.aggregate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.shared import digest
from tacit.data.labels import class_list
from tacit.errors import InputError
from tacit.learners.common.parameters import array_of, flag, numbers_of
from tacit.learners.pate.aggregators import Interactive
from tacit.learners.pate.run_folder import RunFolder, run_hash
from tacit.learners.pate.scheme import Scheme, scheme
from tacit.learners.pate.voting import Answers, Voting, check_stopping
from tacit.mechanisms.noise import Integers, noise_source
from tacit.privacy.unit import Unit

Floats = NDArray[np.float64]

DELTA = 1e-5


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
    values = _classes(classes)
    indices = _vote_indices(votes, values)
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
    scores = _scores(student_scores, plan, len(values))
    voting = Voting(plan, values, stopping, exact_q)
    kept, of_student = RunFolder(folder), [] if scores is None else [digest([scores])]
    run = run_hash(plan, [], [noise, random_state, stopping, exact_q, values.tolist(), *of_student])
    with kept.held():
        stored = kept.read_answers(run, len(values))
        if stored is None:
            voting.ask(indices, noise_source(noise, random_state), scores)
            kept.write_answers(run, voting, indices, {})
        else:
            kept.resume(stored, voting, indices)
    return voting.answers()


def _classes(classes: Any) -> NDArray[np.int64]:
    values = np.asarray(class_list(classes))
    if values.dtype.kind != "i" or values.min() < 0:
        raise InputError(
            "classes of votes must be whole numbers >= 0, since -1 is not a label; number them"
            " from 0"
        )
    return values


def _vote_indices(votes: Any, classes: NDArray[np.int64]) -> Integers:
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
    outside = classes[indices] != ballots
    if outside.any():
        query, teacher = np.argwhere(outside)[0]
        fault = f"teacher {teacher} votes for {ballots[query, teacher]} at query {query}"
        rule = f"which is not one of the {len(classes)} classes"
        remedy = "correct the vote, or complete the list from public knowledge, not from the votes"
        raise InputError(f"{fault}, {rule}; {remedy}")
    return np.asarray(indices, dtype=np.int64)


def _scores(scores: Any, plan: Scheme, n_classes: int) -> Floats | None:
    if not isinstance(plan.aggregator, Interactive):
        if scores is not None:
            raise InputError("student_scores are for aggregator='interactive'; leave them out")
        return None
    if scores is None:
        raise InputError(
            "aggregator 'interactive' needs student_scores, of shape (queries, classes); pass them"
        )
    remedy, shape = "pass predict_proba of the student", (plan.n_queries, n_classes)
    array = numbers_of(scores, "student_scores", remedy)
    if (
        array.shape != shape
        or not np.all(array >= 0)
        or not np.allclose(array.sum(axis=1), 1, atol=1e-3)
    ):
        raise InputError(
            f"student_scores of shape {array.shape} must be probabilities of shape {shape};"
            f" {remedy}"
        )
    return array
