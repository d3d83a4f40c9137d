"""One voting read at smaller budgets: the answers that a voting of each budget would have released.

Queries are asked in order, and the filter stops by public costs and by what was released. So a
voting with the same votes, weights and noise and a smaller budget releases what this one did, up to
where its filter stops: a prefix. With other noise it would release something else; noise that is
calibrated for one budget is read at the others as it is.

A prefix is computed from what was released, and has no privacy cost of its own. Publishing several
prefixes, or one that was chosen by what it shows, releases the longest of them: the guarantee of
the whole voting covers them all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tacit.errors import BudgetError, InputError
from tacit.learners.pate.aggregators import UNANSWERED
from tacit.learners.pate.filter import Filter, allowance_of
from tacit.learners.pate.scheme import ALL, Scheme, checked_budgets
from tacit.learners.pate.voting import Answers
from tacit.mechanisms.noise import Integers
from tacit.privacy.allowance import Allowance
from tacit.privacy.budget import Budget
from tacit.privacy.decimals import rounded_up
from tacit.privacy.guarantee import Guarantee

# Queries that are read together.
_BLOCK = 512

Limit = dict[str, Budget]
"""A budget for each group."""


@dataclass(frozen=True)
class Reading:
    """The answers that a voting with a smaller budget would have released; see `readings`.

    Attributes
    ----------
    limit : str
        The budget, or epsilon of each group.
    asked, answered : int
        Number of queries that were made, and of labels that were bought.
    labels : ndarray of shape (queries,)
        As `Answers.labels`; -1 after the last query that was made.
    spent_ : Guarantee
        Cost of these queries and labels. A report, not a guarantee.
    test_accuracy : float or None
        Accuracy of the student of these labels, if a test set was passed to `PATE.fit`.
    """

    limit: str
    asked: int
    answered: int
    labels: Integers = field(repr=False)
    spent_: Guarantee = field(repr=False)
    test_accuracy: float | None = None


def readings(answers: Answers, limits: Any) -> list[Reading]:
    """Return the answers of votings of smaller budgets, with the same votes and noise.

    Parameters
    ----------
    answers : Answers
        Of a voting that was stopped by the filter, or by limits alone.
    limits : float, Budget, str, dict of str to float, or list of these
        Smaller budgets. A number is epsilon at the delta of the voting. With budget groups each is
        a dict with an epsilon for every group; weights and copies stay those of the voting.

    Returns
    -------
    list of Reading

    Raises
    ------
    BudgetError
        If a limit is of another kind than the budget of the voting, or above it.
    InputError
        If `answers` are not those of a voting.

    Notes
    -----
    Guarantee: readings cost nothing beyond the voting, and its guarantee covers all of them
    together. It does not shrink to that of a smaller reading if larger ones were looked at or
    published.
    Source: the noise does not depend on the budget and the filter stops by public costs, so that a
    smaller voting releases a prefix.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> votes = np.repeat(np.arange(100)[:, None] % 3, 1000, axis=1)
    >>> out = tacit.pate.aggregate(votes, classes=3, aggregator="gnmax", sigma=40, budgets=1.0)
    >>> [(one.limit, one.answered) for one in tacit.pate.readings(out, [0.5, 1.0])]
    [('epsilon=0.5,delta=1e-05', 20), ('epsilon=1,delta=1e-05', 75)]
    """
    if not isinstance(answers, Answers):
        raise InputError(
            f"answers are of type {type(answers).__name__}; pass what aggregate returns, or"
            " model.answers_"
        )
    return [_read(answers, limit) for limit in limits_of(limits, answers.scheme)]


def limits_of(limits: Any, scheme: Scheme, stopping: str = "filter") -> list[Limit]:
    """Return the budgets at which a voting of this scheme is to be read; refuse those of which no
    prefix can tell.
    """
    # a budget that is finite, with an allowance that is not, was not filtered
    without_filter = any(
        allowance.budget.infinite and math.isfinite(scheme.budgets[group])
        for group, allowance in scheme.allowances.items()
    )
    if stopping != "filter" or without_filter:
        raise BudgetError(
            "limits need a voting that stops by the filter; vote with stopping='filter', or leave"
            " them out"
        )
    limit_list = list(limits) if isinstance(limits, list | tuple | np.ndarray) else [limits]
    if not limit_list:
        raise BudgetError("limits is empty; pass at least one smaller budget, such as limits=[0.5]")
    return [_limit(limit, scheme) for limit in limit_list]


def words_of(limit: Limit) -> str:
    """Return a limit on one line: the budget, or epsilon of each group."""
    if list(limit) == [ALL]:
        return str(limit[ALL])
    return " ".join(
        f"{group}={rounded_up(budget.epsilon or 0.0)}" for group, budget in limit.items()
    )


def _limit(limit: Any, scheme: Scheme) -> Limit:
    """Return a limit as a budget for each group, none above that of the voting."""
    groups = list(scheme.budgets)
    if groups != [ALL]:
        if not isinstance(limit, Mapping) or set(limit) != set(groups):
            example = ", ".join(f"{group!r}: ..." for group in groups)
            raise BudgetError(
                f"limit {limit!r:.60} does not name every budget group; pass {{{example}}}"
            )
        epsilons = checked_budgets(limit)
        budgets = {group: Budget.approx(epsilons[group], scheme.delta) for group in groups}
    elif isinstance(limit, Budget | str):
        budgets = {ALL: Budget.parse(limit)}
    else:
        epsilon = checked_budgets({ALL: limit})[ALL]
        budgets = {ALL: Budget.approx(epsilon, scheme.delta)}

    for group, budget in budgets.items():
        _check_smaller(budget, _voting_budget(scheme, group))
    return budgets


def _check_smaller(budget: Budget, voting_budget: Budget) -> None:
    """Refuse a limit of another kind than the budget of the voting, or above it."""
    if voting_budget.infinite:
        return
    if budget.kind != voting_budget.kind:
        raise BudgetError(
            f"limit {budget} is of another kind than the voting's budget {voting_budget}; pass one"
            " of its kind"
        )
    # rho, mu or epsilon, and delta
    if any(value > getattr(voting_budget, name) for name, value in vars(budget).items() if value):
        remedy = "vote with the largest budget, and read it at smaller ones"
        raise BudgetError(
            f"limit {budget} is more than the voting's budget {voting_budget}; {remedy}"
        )


def _voting_budget(scheme: Scheme, group: str) -> Budget:
    """Return the budget of a group in the voting itself."""
    epsilon = scheme.budgets[group]
    if math.isinf(epsilon):
        # the voting was given no epsilon, but perhaps a budget in zCDP or mu
        return scheme.allowances[group].budget
    return Budget.approx(epsilon, scheme.delta)


def _read(answers: Answers, limit: Limit) -> Reading:
    """Run the filter of a smaller budget over the queries of the voting."""
    scheme = answers.scheme
    allowances = {group: _allowance(scheme, group, budget) for group, budget in limit.items()}
    account = Filter(scheme.collector, scheme.aggregator, allowances)
    asked = 0
    for start in range(0, answers.asked, _BLOCK):
        block = slice(start, min(start + _BLOCK, answers.asked))
        sensitivities = scheme.collector.sensitivities(block)
        paid = answers.paid[block]
        n_fitting = account.fitting(sensitivities, paid)
        account.charge(sensitivities[:, :n_fitting], paid[:n_fitting])
        asked += n_fitting
        if asked < block.stop:
            break

    events = account.spent_events(scheme.delta)
    in_prefix = np.arange(len(answers.labels)) < asked
    return Reading(
        limit=words_of(limit),
        asked=asked,
        answered=int(answers.paid[:asked].sum()),
        labels=np.where(in_prefix, answers.labels, UNANSWERED),
        spent_=scheme.guarantee(dict(zip(scheme.budgets, events, strict=True))),
    )


def _allowance(scheme: Scheme, group: str, budget: Budget) -> Allowance:
    """Return what a voting of this budget and the noise of the scheme would be allowed."""
    if budget == _voting_budget(scheme, group):
        return scheme.allowances[group]
    return allowance_of(budget, scheme.aggregator)
