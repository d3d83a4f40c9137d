"""Aggregators: from votes per class to a label, or none, and what that costs.

A new aggregator is a frozen dataclass with these methods and its line in AGGREGATORS. Counts are
whole numbers of 2^-20 votes.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.learners.common.parameters import real
from tacit.mechanisms import vote_bounds, votes
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.mechanisms.noisy_argmax import label_event, noisy_argmax
from tacit.mechanisms.noisy_check import check_event, noisy_exceeds
from tacit.mechanisms.vote_bounds import LogQ
from tacit.privacy.events import Event

Floats = NDArray[np.float64]

# The label of a query without an answer.
UNANSWERED = -1

# Fields that grow with the number of teachers.
IN_VOTES = ("sigma", "sigma1", "threshold")


Decisions = tuple[Integers, NDArray[np.bool_]]
"""Labels as class indices, -1 where there is none, and which of them were bought; both of shape
(queries,).
"""

Costs = tuple[Floats, Floats]
"""Renyi costs of each check and of each label if it is bought, of shape (queries, orders)."""


@dataclass(frozen=True)
class Aggregator(ABC):
    """Base of the aggregators; their fields are in votes, and sensitivities weigh one record's
    votes.
    """

    def __post_init__(self) -> None:
        for field in fields(self):
            real(field.name, getattr(self, field.name), 1e-9, 1e12)

    @abstractmethod
    def decide(
        self, counts: Integers, noise: NoiseSource, scores: Floats | None, total: Floats
    ) -> Decisions:
        """Labels for counts of shape (queries, classes); `total` is the number of votes of each
        query, public.
        """

    @abstractmethod
    def label(self, sensitivity: float, order: float | None = None) -> Event:
        """Event of a bought label; if costs are counted at one Renyi order, at the price of labels
        alone.
        """

    def check(self, sensitivity: float, order: float | None = None) -> Event | None:
        """Event of the check whether there will be a label, which every query pays; None without a
        check.
        """
        return None

    @abstractmethod
    def renyi(
        self, counts: Floats, sensitivity: Floats | float, orders: Floats, log_q: LogQ
    ) -> Costs:
        """Data-dependent Renyi costs for counts in votes; the sensitivity may differ by query, of
        shape (queries,).
        """

    def scaled(self, factor: float) -> Self:
        """The same aggregator for `factor` times as many votes."""
        changes = {
            field.name: getattr(self, field.name) * factor
            for field in fields(self)
            if field.name in IN_VOTES
        }
        return replace(self, **changes)


@dataclass(frozen=True)
class GNMax(Aggregator):
    """The class with the largest count + N(0, sigma^2) [Papernot et al. 2018].

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise on each count, in votes.
    """

    sigma: float

    def decide(
        self, counts: Integers, noise: NoiseSource, scores: Floats | None, total: Floats
    ) -> Decisions:
        labels = noisy_argmax(counts, self.sigma, noise)
        return labels, np.ones(len(counts), dtype=bool)

    def label(self, sensitivity: float, order: float | None = None) -> Event:
        return label_event(self.sigma, sensitivity, order)

    def renyi(
        self, counts: Floats, sensitivity: Floats | float, orders: Floats, log_q: LogQ
    ) -> Costs:
        noise_multiplier = self.sigma / sensitivity
        label = vote_bounds.gaussian_renyi(log_q(counts, self.sigma), noise_multiplier, orders)
        return np.zeros((len(label), 1)), label


@dataclass(frozen=True)
class Confident(GNMax):
    """GNMax if the largest count + N(0, sigma1^2) reaches a threshold; otherwise no label [Papernot
    et al. 2018].

    Parameters
    ----------
    sigma : float
        As in `GNMax`.
    sigma1 : float
        Standard deviation of the noise of the check, in votes.
    threshold : float
        Votes that the noisy largest count must reach.
    """

    sigma1: float
    threshold: float

    def decide(
        self, counts: Integers, noise: NoiseSource, scores: Floats | None, total: Floats
    ) -> Decisions:
        paid = noisy_exceeds(counts.max(axis=1), self.threshold, self.sigma1, noise)
        return self._labels_where(paid, counts, noise), paid

    def _labels_where(
        self, paid: NDArray[np.bool_], counts: Integers, noise: NoiseSource
    ) -> Integers:
        labels = np.full(len(counts), UNANSWERED, dtype=np.int64)
        if paid.any():
            labels[paid] = noisy_argmax(counts[paid], self.sigma, noise)
        return labels

    def check(self, sensitivity: float, order: float | None = None) -> Event | None:
        return check_event(self.sigma1, sensitivity, order)

    def renyi(
        self, counts: Floats, sensitivity: Floats | float, orders: Floats, log_q: LogQ
    ) -> Costs:
        # the bound is for a label, where a record moves two counts; in a check it moves one
        noise_multiplier = math.sqrt(2) * self.sigma1 / sensitivity
        log_q_check = vote_bounds.log_q_check(counts.max(axis=1), self.threshold, self.sigma1)
        check = vote_bounds.gaussian_renyi(log_q_check, noise_multiplier, orders)
        _, label = super().renyi(counts, sensitivity, orders, log_q)
        return check, label


@dataclass(frozen=True)
class Interactive(Confident):
    """GNMax if teachers and student disagree by a threshold; otherwise the student's label if it is
    confident.

    With p the student's scores and M votes, a label is bought if max_j (n_j - M p_j) + N(0,
    sigma1^2) reaches the threshold. Otherwise argmax p is the label, at no further cost, if max p
    exceeds `confidence`; if it does not, there is no label [Papernot et al. 2018]. A check has no
    data-dependent bound: its cost does not depend on the votes.

    Parameters
    ----------
    sigma, sigma1 : float
        As in `Confident`.
    threshold : float
        Votes by which teachers and student must disagree, after noise is added.
    confidence : float
        If they agree, the student's label counts if its probability exceeds this.
    bootstrap : float, default=0.5
        Share of the queries that `PATE` answers by confident voting first, to fit a first student.
    """

    confidence: float
    bootstrap: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        real("confidence", self.confidence, 0, 1)
        real("bootstrap", self.bootstrap, 0.01, 0.99)

    def decide(
        self, counts: Integers, noise: NoiseSource, scores: Floats | None, total: Floats
    ) -> Decisions:
        if scores is None:
            raise InputError(
                "interactive voting needs the scores of a student; pass student_scores"
            )
        # max_j (n_j - M p_j): how far the votes exceed those that the student expects
        expected = np.rint(total[:, None] * scores * votes.UNIT).astype(np.int64)
        disagreement = (counts - expected).max(axis=1)
        paid = noisy_exceeds(disagreement, self.threshold, self.sigma1, noise)
        labels = self._labels_where(paid, counts, noise)

        # the student's own labels are free
        from_student = ~paid & (scores.max(axis=1) > self.confidence)
        labels[from_student] = np.argmax(scores[from_student], axis=1)
        return labels, paid

    def renyi(
        self, counts: Floats, sensitivity: Floats | float, orders: Floats, log_q: LogQ
    ) -> Costs:
        # one noisy number costs rho = sensitivity^2 / (2 sigma1^2), whatever the votes
        rho = np.broadcast_to(np.asarray(sensitivity) ** 2 / (2 * self.sigma1**2), len(counts))
        _, label = GNMax.renyi(self, counts, sensitivity, orders, log_q)
        return rho[:, None] * orders, label

    def without_student(self) -> Confident:
        """The voting that answers the first queries."""
        return Confident(self.sigma, self.sigma1, self.threshold)


@dataclass(frozen=True)
class LaplaceMax(Aggregator):
    """The class with the largest count + Lap(1/gamma): the historical baseline [Papernot et al.
    2017].

    Parameters
    ----------
    gamma : float
        One divided by the scale of the noise, in votes.
    """

    gamma: float

    def decide(
        self, counts: Integers, noise: NoiseSource, scores: Floats | None, total: Floats
    ) -> Decisions:
        labels = votes.laplace_argmax(counts, self.gamma, noise)
        return labels, np.ones(len(counts), dtype=bool)

    def label(self, sensitivity: float, order: float | None = None) -> Event:
        return votes.laplace_event(self.gamma, sensitivity)

    def renyi(
        self, counts: Floats, sensitivity: Floats | float, orders: Floats, log_q: LogQ
    ) -> Costs:
        log_bound = vote_bounds.log_q_laplace(counts, self.gamma)
        label = vote_bounds.laplace_renyi(log_bound, self.gamma * np.asarray(sensitivity), orders)
        return np.zeros((len(label), 1)), label

    def scaled(self, factor: float) -> Self:
        return replace(self, gamma=self.gamma / factor)


@dataclass(frozen=True)
class Plurality(Aggregator):
    """The class with the most votes, the first of those that tie: for infinite budgets."""

    def decide(
        self, counts: Integers, noise: NoiseSource, scores: Floats | None, total: Floats
    ) -> Decisions:
        labels = np.asarray(np.argmax(counts, axis=1))
        return labels, np.ones(len(counts), dtype=bool)

    def label(self, sensitivity: float, order: float | None = None) -> Event:
        return label_event(0.0, sensitivity)

    def renyi(
        self, counts: Floats, sensitivity: Floats | float, orders: Floats, log_q: LogQ
    ) -> Costs:
        return np.zeros((len(counts), 1)), np.full((len(counts), len(orders)), math.inf)


AGGREGATORS: dict[str, type[Aggregator]] = {
    "gnmax": GNMax,
    "confident": Confident,
    "interactive": Interactive,
    "laplace": LaplaceMax,
}


CALIBRATED = ("confident", "gnmax")
"""Aggregators whose noise may be left out: it is then calibrated on simulated votes."""


def aggregator_of(name: Any, **arguments: Any) -> Aggregator:
    """The aggregator of this name; an argument that it needs and lacks, or does not have, is an
    error.
    """
    kind = _kind(name)
    arguments = {argument: value for argument, value in arguments.items() if value is not None}
    defaults = {field.name: field.default for field in fields(kind)}
    needed = [field for field, default in defaults.items() if default is MISSING]
    missing = [field for field in needed if field not in arguments]
    if missing:
        raise InputError(
            f"aggregator {name!r} needs {', '.join(missing)}; pass {missing[0]}=..., in votes"
        )
    for argument, value in arguments.items():
        if argument not in defaults:
            raise InputError(
                f"{argument}={value!r} is not a parameter of aggregator {name!r}; leave it out"
            )
    return kind(**arguments)


def voting_of(voting: Any) -> tuple[str, Aggregator | None]:
    """The name of an aggregator, and the aggregator; None where its noise is to be calibrated.

    `voting` is an aggregator, the name of one that can be calibrated, or a dict of its `kind`, a
    name, and its fields.
    """
    if isinstance(voting, Aggregator):
        return _name_of(voting), voting

    settings = {"kind": voting} if isinstance(voting, str) else voting
    if not isinstance(settings, Mapping) or "kind" not in settings:
        remedy = "pass 'confident', or tacit.pate.Confident(sigma=40, sigma1=150, threshold=200)"
        raise InputError(
            f"voting={voting!r:.60} must be an aggregator, a name or a dict with its kind; {remedy}"
        )
    name = settings["kind"]
    _kind(name)
    noise = {field: value for field, value in settings.items() if field != "kind"}
    has_noise = any(value is not None for value in noise.values())
    if name in CALIBRATED and not has_noise:
        return name, None
    return name, aggregator_of(name, **noise)


def _name_of(aggregator: Aggregator) -> str:
    """Return the name of an aggregator; plurality has none."""
    for name, kind in AGGREGATORS.items():
        if type(aggregator) is kind:
            return name
    raise InputError(
        f"voting={aggregator!r:.60} must be one of {', '.join(AGGREGATORS)}; leave it out"
    )


def _kind(name: Any) -> type[Aggregator]:
    """Return the class of aggregators of this name."""
    if not isinstance(name, str) or name not in AGGREGATORS:
        names = ", ".join(AGGREGATORS)
        raise InputError(
            f"aggregator={name!r:.60} must be one of {names}; pass aggregator='confident'"
        )
    return AGGREGATORS[name]
