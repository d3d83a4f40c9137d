"""Aggregators: from votes per class to a label, or none, and what that costs.

A new one is a frozen dataclass with these methods and its line in AGGREGATORS. Counts are whole numbers of 2^-20 votes.
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
from tacit.mechanisms.vote_bounds import LogQ
from tacit.privacy.events import Event

Floats = NDArray[np.float64]

UNANSWERED = -1


@dataclass(frozen=True)
class Decided:
    """Labels as class indices, -1 where there is none, and which of them were bought; both of shape (queries,)."""

    labels: Integers
    paid: NDArray[np.bool_]


@dataclass(frozen=True)
class Costs:
    """Renyi costs of each check and of each label if it is bought, of shape (queries, orders); without checks one 0."""

    check: Floats
    label: Floats


@dataclass(frozen=True)
class Aggregator(ABC):
    """Base of the aggregators; their fields are in votes, and sensitivities weigh one record's votes."""

    @abstractmethod
    def decide(self, counts: Integers, noise: NoiseSource, scores: Floats | None, total: Floats) -> Decided:
        """Labels for counts of shape (queries, classes); `total` is the number of votes of each query, public."""

    @abstractmethod
    def label(self, sensitivity: float) -> Event:
        """What a bought label costs."""

    def check(self, sensitivity: float) -> Event | None:
        """What looking whether there will be a label costs, which is always paid; None where nobody looks."""
        return None

    @abstractmethod
    def renyi(self, counts: Floats, sensitivity: Floats | float, orders: Floats, log_q: LogQ) -> Costs:
        """Data-dependent Renyi costs for counts in votes; the sensitivity may differ by query, of shape (queries,)."""

    @abstractmethod
    def scaled(self, factor: float) -> Self:
        """The same for `factor` times as many votes."""

    def _checked(self) -> None:
        for field in fields(self):
            real(field.name, getattr(self, field.name), 1e-9, 1e12)


def _gaussian_label_renyi(
    counts: Floats, sigma: float, sensitivity: Floats | float, orders: Floats, log_q: LogQ
) -> Floats:
    return vote_bounds.gaussian_renyi(log_q(counts, sigma), sigma / sensitivity, orders)


def _check_renyi(
    largest: Floats, threshold: float, sigma1: float, sensitivity: Floats | float, orders: Floats
) -> Floats:
    log_q = vote_bounds.log_q_check(largest, threshold, sigma1)
    return vote_bounds.gaussian_renyi(log_q, math.sqrt(2) * sigma1 / sensitivity, orders)


@dataclass(frozen=True)
class GNMax(Aggregator):
    """The class with the largest count + N(0, sigma^2) [Papernot et al. 2018]."""

    sigma: float

    def __post_init__(self) -> None:
        self._checked()

    def decide(self, counts: Integers, noise: NoiseSource, scores: Floats | None, total: Floats) -> Decided:
        return Decided(votes.noisy_argmax(counts, self.sigma, noise), np.ones(len(counts), dtype=bool))

    def label(self, sensitivity: float) -> Event:
        return votes.label_event(self.sigma, sensitivity)

    def renyi(self, counts: Floats, sensitivity: Floats | float, orders: Floats, log_q: LogQ) -> Costs:
        label = _gaussian_label_renyi(counts, self.sigma, sensitivity, orders, log_q)
        return Costs(np.zeros((len(label), 1)), label)

    def scaled(self, factor: float) -> Self:
        return replace(self, sigma=self.sigma * factor)


@dataclass(frozen=True)
class Confident(Aggregator):
    """GNMax where the largest count + N(0, sigma1^2) reaches a threshold, else no label [Papernot et al. 2018]."""

    sigma: float
    sigma1: float
    threshold: float

    def __post_init__(self) -> None:
        self._checked()

    def decide(self, counts: Integers, noise: NoiseSource, scores: Floats | None, total: Floats) -> Decided:
        paid = votes.noisy_exceeds(counts.max(axis=1), self.threshold, self.sigma1, noise)
        return Decided(_labels_where(paid, counts, self.sigma, noise), paid)

    def label(self, sensitivity: float) -> Event:
        return votes.label_event(self.sigma, sensitivity)

    def check(self, sensitivity: float) -> Event | None:
        return votes.check_event(self.sigma1, sensitivity)

    def renyi(self, counts: Floats, sensitivity: Floats | float, orders: Floats, log_q: LogQ) -> Costs:
        check = _check_renyi(counts.max(axis=1), self.threshold, self.sigma1, sensitivity, orders)
        return Costs(check, _gaussian_label_renyi(counts, self.sigma, sensitivity, orders, log_q))

    def scaled(self, factor: float) -> Self:
        return replace(self, sigma=self.sigma * factor, sigma1=self.sigma1 * factor, threshold=self.threshold * factor)


@dataclass(frozen=True)
class Interactive(Aggregator):
    """GNMax where teachers and student disagree by a threshold; else the student's own label where it is confident.

    With p the student's scores and M votes, a label is bought where max_j (n_j - M p_j) + N(0, sigma1^2) reaches the
    threshold. Elsewhere argmax p is the label, at no further cost, if max p exceeds `confidence`; else there is none
    [Papernot et al. 2018]. Its data-dependent bound of a check is not offered: the cost that no votes change is taken.
    `PATE` answers the share `bootstrap` of the queries by confident voting first, to fit a first student.
    """

    sigma: float
    sigma1: float
    threshold: float
    confidence: float
    bootstrap: float = 0.5

    def __post_init__(self) -> None:
        self._checked()
        real("confidence", self.confidence, 0, 1)
        real("bootstrap", self.bootstrap, 0.01, 0.99)

    def decide(self, counts: Integers, noise: NoiseSource, scores: Floats | None, total: Floats) -> Decided:
        assert scores is not None
        expected = np.rint(total[:, None] * scores * votes.UNIT).astype(np.int64)
        paid = votes.noisy_exceeds((counts - expected).max(axis=1), self.threshold, self.sigma1, noise)
        labels = _labels_where(paid, counts, self.sigma, noise)
        free = ~paid & (scores.max(axis=1) > self.confidence)
        labels[free] = np.argmax(scores[free], axis=1)
        return Decided(labels, paid)

    def label(self, sensitivity: float) -> Event:
        return votes.label_event(self.sigma, sensitivity)

    def check(self, sensitivity: float) -> Event | None:
        return votes.check_event(self.sigma1, sensitivity)

    def renyi(self, counts: Floats, sensitivity: Floats | float, orders: Floats, log_q: LogQ) -> Costs:
        label = _gaussian_label_renyi(counts, self.sigma, sensitivity, orders, log_q)
        each = np.broadcast_to(np.asarray(sensitivity) ** 2 / (2 * self.sigma1**2), len(counts))
        return Costs(each[:, None] * orders, label)

    def scaled(self, factor: float) -> Self:
        return replace(self, sigma=self.sigma * factor, sigma1=self.sigma1 * factor, threshold=self.threshold * factor)

    def without_student(self) -> Confident:
        """The voting that answers the first queries."""
        return Confident(self.sigma, self.sigma1, self.threshold)


@dataclass(frozen=True)
class LaplaceMax(Aggregator):
    """The class with the largest count + Lap(1/gamma): the historical baseline [Papernot et al. 2017]."""

    gamma: float

    def __post_init__(self) -> None:
        self._checked()

    def decide(self, counts: Integers, noise: NoiseSource, scores: Floats | None, total: Floats) -> Decided:
        return Decided(votes.laplace_argmax(counts, self.gamma, noise), np.ones(len(counts), dtype=bool))

    def label(self, sensitivity: float) -> Event:
        return votes.laplace_event(self.gamma, sensitivity)

    def renyi(self, counts: Floats, sensitivity: Floats | float, orders: Floats, log_q: LogQ) -> Costs:
        log_bound = vote_bounds.log_q_laplace(counts, self.gamma)
        label = vote_bounds.laplace_renyi(log_bound, self.gamma * np.asarray(sensitivity), orders)
        return Costs(np.zeros((len(label), 1)), label)

    def scaled(self, factor: float) -> Self:
        return replace(self, gamma=self.gamma / factor)


@dataclass(frozen=True)
class Plurality(Aggregator):
    """The class with the most votes, the first of those that tie: what an infinite budget buys."""

    def decide(self, counts: Integers, noise: NoiseSource, scores: Floats | None, total: Floats) -> Decided:
        return Decided(np.asarray(np.argmax(counts, axis=1)), np.ones(len(counts), dtype=bool))

    def label(self, sensitivity: float) -> Event:
        return votes.label_event(0.0, sensitivity)

    def renyi(self, counts: Floats, sensitivity: Floats | float, orders: Floats, log_q: LogQ) -> Costs:
        return Costs(np.zeros((len(counts), len(orders))), np.full((len(counts), len(orders)), math.inf))

    def scaled(self, factor: float) -> Self:
        return self


AGGREGATORS: dict[str, type[Aggregator]] = {
    "gnmax": GNMax,
    "confident": Confident,
    "interactive": Interactive,
    "laplace": LaplaceMax,
}


CALIBRATED = ("confident", "gnmax")
"""Aggregators whose noise may be left out: it is then calibrated on simulated votes."""


def aggregator_of(name: Any, **given: Any) -> Aggregator:
    """The aggregator of this name with those of the parameters that it has; one that it needs and lacks is an error."""
    kind = _kind(name)
    wanted = {field.name: field.default for field in fields(kind)}
    missing = [field for field, default in wanted.items() if default is MISSING and given.get(field) is None]
    if missing:
        raise InputError(f"aggregator {name!r} needs {', '.join(missing)}; pass {missing[0]}=..., in votes")
    unused = [field for field, value in given.items() if value is not None and field not in wanted]
    if unused:
        raise InputError(f"{unused[0]}={given[unused[0]]!r} is no parameter of aggregator {name!r}; leave it out")
    return kind(**{field: given[field] for field in wanted if given.get(field) is not None})


def voting_of(voting: Any) -> tuple[str, Aggregator | None]:
    """The name of an aggregator, and the aggregator itself; None where its noise is to be calibrated.

    Parameters
    ----------
    voting : Aggregator, str or dict
        An aggregator; the name of one that can be calibrated; or a dict of its `kind`, a name, and its parameters.
    """
    if isinstance(voting, Aggregator):
        names = [name for name, kind in AGGREGATORS.items() if type(voting) is kind]
        if not names:
            raise InputError(f"voting={voting!r:.60} must be one of {', '.join(AGGREGATORS)}; leave it out")
        return names[0], voting
    settings = {"kind": voting} if isinstance(voting, str) else voting
    if not isinstance(settings, Mapping) or "kind" not in settings:
        raise InputError(
            f"voting={voting!r:.60} must be an aggregator, a name or a dict with its kind; pass 'confident', or "
            "tacit.pate.Confident(sigma=40, sigma1=150, threshold=200)"
        )
    noise = {name: value for name, value in settings.items() if name != "kind"}
    name = settings["kind"]
    _kind(name)
    if name in CALIBRATED and all(value is None for value in noise.values()):
        return name, None
    return name, aggregator_of(name, **noise)


def _kind(name: Any) -> type[Aggregator]:
    if not isinstance(name, str) or name not in AGGREGATORS:
        raise InputError(
            f"aggregator={name!r:.60} must be one of {', '.join(AGGREGATORS)}; pass aggregator='confident'"
        )
    return AGGREGATORS[name]


def _labels_where(paid: NDArray[np.bool_], counts: Integers, sigma: float, noise: NoiseSource) -> Integers:
    labels = np.full(len(counts), UNANSWERED, dtype=np.int64)
    if paid.any():
        labels[paid] = votes.noisy_argmax(counts[paid], sigma, noise)
    return labels
