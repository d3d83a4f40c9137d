"""What learners share that know how many records each class has: declared or noisy counts, and balance by them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.learners.common.head import LinearClassifier
from tacit.learners.common.parameters import declared_counts, flag
from tacit.mechanisms import gaussian
from tacit.mechanisms.noise import NoiseSource
from tacit.models.rows import Floats
from tacit.privacy.events import Event, compose

COUNT_SHARE = 0.01  # of the budget; chosen on CIFAR-10
Pieces = Iterable[tuple[Any, NDArray[np.int64]]]  # rows, which are not looked at, and their labels


class BalancedClassifier(LinearClassifier):
    """A learner of a linear head, with noisy or declared class counts; small classes are at no disadvantage."""

    counts: int | Sequence[int] | None
    balanced: bool

    def _count_share(self) -> float:
        """Share of the budget that buys the counts."""
        return COUNT_SHARE if self.counts is None else 0.0

    def _of_counts(self) -> float | None:
        """Noise multiplier of the counts; None where they are not bought."""
        share = self._count_share()
        return self._multiplier() / math.sqrt(share) if share else None

    def _composed(self, parts: list[Event]) -> Event:
        """These events and that of the counts, where they are bought, once the parameters are checked."""
        flag("balanced", self.balanced)
        of_counts = self._of_counts()
        return compose(parts if of_counts is None else [*parts, gaussian.event(of_counts)])

    def _unprotected(self) -> tuple[str, ...]:
        return () if self.counts is None else ("class counts (declared)",)

    def _check(self, width: int) -> None:
        super()._check(width)
        declared_counts(self.counts, len(self.classes_))

    def _class_counts(self, parts: Pieces, noise: NoiseSource) -> Floats:
        """Declared or noisy counts; exact ones under an infinite budget."""
        counts = declared_counts(self.counts, len(self.classes_))
        if counts is not None:
            return counts
        of_counts = self._of_counts()
        assert of_counts is not None
        n_classes = len(self.classes_)
        return noisy_counts(parts, n_classes, of_counts, noise) if of_counts else exact_counts(parts, n_classes)

    def _uncertainty(self) -> float:
        """What is added to each count, so that none is taken for smaller than its noise."""
        return max(self._of_counts() or 0.0, 1.0)

    def _log_shares(self, counts: Floats) -> Floats:
        """What is added to the logits while learning."""
        return log_shares(counts, self._uncertainty()) if self.balanced else np.zeros(len(counts))

    def _facts(self) -> dict[str, float | str]:
        of_counts = self._of_counts()
        bought = "counts are declared" if self.counts is not None else "not bought"
        return {"noise multiplier of the counts": bought if of_counts is None else of_counts}


def exact_counts(parts: Pieces, n_classes: int) -> Floats:
    """Number of records per class; not private."""
    found = [np.bincount(own, minlength=n_classes) for _, own in parts]
    result: Floats = np.sum(found, axis=0, initial=0.0) + np.zeros(n_classes)
    return result


def noisy_counts(parts: Pieces, n_classes: int, multiplier: float, noise: NoiseSource) -> Floats:
    """Number of records per class with Gaussian noise: `gaussian.event(multiplier)`."""
    ones = ((np.ones((len(own), 1)), own) for _, own in parts)
    return gaussian.noisy_class_sums(ones, n_classes=n_classes, width=1, noise_multiplier=multiplier, noise=noise)[:, 0]


def log_shares(counts: Floats, uncertainty: float) -> Floats:
    """Log shares of the classes, none taken for smaller than noise: beside the logits they balance the classes."""
    shares = np.maximum(counts, 0.0) + uncertainty
    result: Floats = np.log(shares / shares.mean())
    return result


def n_records(counts: Floats) -> float:
    """Number of records, as declared or noisy counts add up to; 1 at least."""
    return max(float(counts.sum()), 1.0)
