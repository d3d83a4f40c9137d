"""Collectors: how teachers whose records have different budgets vote together.

A budget group is a set of records with one budget. A collector says how much each vote weighs, and
what one record of each group can move: its sensitivity, in votes of plain PATE. The more a group
allows, the more it moves.

`gnmax`      every vote weighs 1; all stop at the smallest budget
`upsampling` a record is copied to d_g teachers, d_g proportional to its budget; noise grows with
the teachers, by f
`vanishing`  a teacher of group g votes in a share of the queries proportional to its budget; votes
             weigh T/participants
`weighting`  a vote weighs in proportion to the budget of its teacher

Weights are whole multiples of 2^-20, so that the stated sensitivity is what a computer adds up.
Source: Boenisch et al. 2022 (Individualized PATE). A published code multiplies a weight by its
group's share of the teachers, which has no privacy meaning, and pairs sorted budgets with
separately sorted weights; here both are by group. A new collector is a class with these methods and
its line in COLLECTORS.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BudgetError, InputError
from tacit.mechanisms.noise import Integers
from tacit.mechanisms.votes import UNIT

Group = TypeVar("Group")
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Relative error that copies may have as multiples of the budgets.
PRECISION = 0.05

# Copies of a record of the smallest budget, at most.
_MOST_COPIES = 1000


class Collector(ABC):
    """Base of the collectors.

    Parameters
    ----------
    budgets : dict of str to float
        Epsilon of each group.
    holds : ndarray of shape (groups, teachers), bool
        Which teachers learned from records of which group, in the order of `budgets`.
    """

    scale = 1.0
    """Factor of noise and threshold, beside those of plain PATE."""

    varies = False
    """True if sensitivities differ by query."""

    def __init__(self, budgets: Mapping[str, float], holds: Bools) -> None:
        self.budgets = dict(budgets)
        self.holds = holds
        self.n_teachers = holds.shape[1]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.budgets})"

    def weights(self, queries: slice) -> Integers:
        """Weight of each vote in units of 2^-20, of shape (teachers,) or (queries, teachers)."""
        return np.full(self.n_teachers, UNIT, dtype=np.int64)

    def payers(self) -> Bools:
        """Payers of each group, of shape (groups, payers): a group pays the largest cost of its
        payers.
        """
        return np.eye(len(self.budgets), dtype=bool)

    @abstractmethod
    def sensitivities(self, queries: slice) -> Floats:
        """Largest change by one record, in votes of plain PATE, of shape (payers, 1) or (payers,
        queries); 0 is no vote.
        """


class PlainCollector(Collector):
    """Every vote weighs 1."""

    def sensitivities(self, queries: slice) -> Floats:
        return np.ones((len(self.budgets), 1))


class UpsamplingCollector(Collector):
    """Every teacher holds records of all groups: d_g = `copies[g]` teachers hold a record of g, a
    share `shares[g]`.
    """

    def __init__(
        self,
        budgets: Mapping[str, float],
        holds: Bools,
        copies: Mapping[str, int],
        shares: Mapping[str, float],
    ) -> None:
        super().__init__(budgets, holds)
        self.copies = np.array([copies[group] for group in budgets], dtype=np.float64)
        self.scale = float(sum(shares[group] * copies[group] for group in budgets))

    def sensitivities(self, queries: slice) -> Floats:
        return np.asarray(self.copies[:, None] / self.scale)


class WeightingCollector(Collector):
    """A vote weighs in proportion to the smallest budget among the records behind it; all weights
    add up to T.
    """

    def __init__(self, budgets: Mapping[str, float], holds: Bools) -> None:
        super().__init__(budgets, holds)
        smallest = smallest_budgets(budgets, holds)
        weights = UNIT * self.n_teachers * (smallest / smallest.sum())
        self.teacher_weights = np.floor(weights).astype(np.int64)

    def weights(self, queries: slice) -> Integers:
        return np.asarray(self.teacher_weights)

    def sensitivities(self, queries: slice) -> Floats:
        # the largest weight of a vote behind which there is a record of the group
        largest = [self.teacher_weights[teachers].max() for teachers in self.holds]
        return np.array([[weight / UNIT] for weight in largest])


class VanishingCollector(Collector):
    """A teacher takes part in a share of the queries: its smallest budget over the largest of all.

    Teachers with the same budget take turns, so that no two of them differ by more than one query.
    """

    varies = True

    def __init__(self, budgets: Mapping[str, float], holds: Bools) -> None:
        super().__init__(budgets, holds)
        self.smallest = smallest_budgets(budgets, holds)
        self.ranks = [
            np.flatnonzero(self.smallest == budget) for budget in np.unique(self.smallest)
        ]

    def participation(self, queries: slice) -> Bools:
        """Return who votes, of shape (queries, teachers)."""
        places = np.arange(queries.start, queries.stop)
        participates = np.zeros((len(places), self.n_teachers), dtype=bool)
        largest = Fraction(float(self.smallest.max()))
        for teachers in self.ranks:
            share = Fraction(float(self.smallest[teachers[0]])) / largest
            votes_per_query = share * len(teachers)

            # Teachers sit in a circle. Of query t, those from place floor(t v) to floor((t + 1) v)
            # vote, v votes per query; fractions keep the turns exact.
            boundaries = np.array(
                [math.floor(votes_per_query * int(place)) for place in [*places, queries.stop]]
            )
            first = boundaries[:-1, None]
            n_voters = (boundaries[1:] - boundaries[:-1])[:, None]
            distance = (np.arange(len(teachers)) - first) % len(teachers)
            participates[:, teachers] = distance < n_voters
        return participates

    def weights(self, queries: slice) -> Integers:
        participates = self.participation(queries)
        weight = UNIT * self.n_teachers // participates.sum(axis=1)
        return np.asarray(participates * weight[:, None])

    def payers(self) -> Bools:
        return self.holds

    def sensitivities(self, queries: slice) -> Floats:
        return np.asarray(self.weights(queries).T / UNIT)


COLLECTORS: dict[str, type[Any]] = {
    "gnmax": PlainCollector,
    "upsampling": UpsamplingCollector,
    "vanishing": VanishingCollector,
    "weighting": WeightingCollector,
}


def smallest_budgets(budgets: Mapping[str, float], holds: Bools) -> Floats:
    """The smallest budget among the records of each teacher, of shape (teachers,)."""
    epsilons = np.array(list(budgets.values()))
    return np.asarray(np.where(holds, epsilons[:, None], np.inf).min(axis=0))


def copies_for(budgets: Mapping[str, float], precision: float = PRECISION) -> dict[str, int]:
    """The smallest integers in proportion to the budgets, each within this relative precision.

    Any integers preserve privacy, since sensitivity uses the integers actually chosen.
    """
    if all_infinite(budgets):
        return dict.fromkeys(budgets, 1)
    epsilons = np.array(list(budgets.values()))
    ratios = epsilons / epsilons.min()
    for least in range(1, _MOST_COPIES):
        copies = np.maximum(np.rint(least * ratios), 1)
        relative_errors = np.abs(copies / (least * ratios) - 1)
        if np.all(relative_errors <= precision):
            return dict(zip(budgets, copies.astype(int).tolist(), strict=True))
    raise InputError(
        f"budgets {dict(budgets)} have no whole ratios within {precision:g}; pass a larger"
        " precision"
    )


def all_infinite(budgets: Mapping[str, float]) -> bool:
    """Return whether all budgets are infinite; refuse budgets of which only some are."""
    infinite = [math.isinf(epsilon) for epsilon in budgets.values()]
    if any(infinite) and not all(infinite):
        raise BudgetError(
            f"budgets {dict(budgets)} are infinite for some groups only; pass finite ones, or gnmax"
        )
    return all(infinite)


def teachers_of(counts: Mapping[Group, float], n_teachers: int) -> dict[Group, int]:
    """Teachers per group in proportion to its size, by largest remainder."""
    total = sum(counts.values())
    exact = {group: n_teachers * count / total for group, count in counts.items()}
    teachers = {group: math.floor(value) for group, value in exact.items()}
    by_remainder = sorted(exact, key=lambda group: teachers[group] - exact[group])
    for group in by_remainder[: n_teachers - sum(teachers.values())]:
        teachers[group] += 1
    return teachers


def holds_of(teacher_groups: Sequence[str | Sequence[str]], groups: Sequence[str]) -> Bools:
    """Return which teachers hold records of which group, of shape (groups, teachers), from one
    group name, or several, for each teacher.
    """
    holds = np.zeros((len(groups), len(teacher_groups)), dtype=bool)
    for teacher, names in enumerate(teacher_groups):
        if not isinstance(names, str | Sequence):
            raise InputError(
                f"teacher {teacher} has group {names!r}; pass a name, or a list of names, for each"
            )
        for group in [names] if isinstance(names, str) else names:
            if group not in groups:
                fault = f"teacher {teacher} has group {group!r}, which has no budget"
                raise InputError(f"{fault}; pass budgets={{{group!r}: ...}}")
            holds[list(groups).index(group), teacher] = True

    for group, teachers in zip(groups, holds, strict=True):
        if not teachers.any():
            raise InputError(
                f"group {group!r} has a budget and no teacher; leave it out, or name its teachers"
            )
    for teacher, held_groups in enumerate(holds.T):
        if not held_groups.any():
            raise InputError(f"teacher {teacher} has no group; name at least one for every teacher")
    return holds
