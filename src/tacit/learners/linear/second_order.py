"""What learners share that divide noisy gradients by a noisy matrix: epochs, class counts, damping."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tacit.errors import InputError
from tacit.learners.common.head import LinearClassifier
from tacit.learners.common.parameters import declared_counts, real, whole
from tacit.learners.common.rows import Floats
from tacit.learners.common.softmax import Blocks, exact_counts, noisy_counts
from tacit.mechanisms import gaussian
from tacit.mechanisms.noise import NoiseSource
from tacit.privacy.events import Event, compose

COUNT_SHARE = 0.01  # of the budget; chosen, as all defaults here, on CIFAR-10
NOISE_IN_LOGIT = 0.5  # standard deviation to which noise may add up in a logit


class SecondOrderClassifier(LinearClassifier):
    """A learner by noisy gradients over a noisy matrix, with noisy or declared counts where classes are balanced."""

    epochs: int | None
    learning_rate: float | None
    damping: float | None
    counts: int | Sequence[int] | None
    balanced: bool
    ridge: float

    def _epochs(self, finite: int, infinite: int) -> int:
        if self.epochs is not None:
            return whole("epochs", self.epochs, 1, 10**4)
        return infinite if self._multiplier() == 0 else finite

    def _count_share(self) -> float:
        return COUNT_SHARE if self.balanced and self.counts is None else 0.0

    def _of_counts(self) -> float | None:
        share = self._count_share()
        return self._multiplier() / math.sqrt(share) if share else None

    def _composed(self, parts: list[Event]) -> Event:
        """These events and that of the counts, where they are bought, once the parameters are checked."""
        self._intercept()
        real("ridge", self.ridge, 1e-9, 1e9)
        for name in ("learning_rate", "damping"):
            if getattr(self, name) is not None:
                real(name, getattr(self, name), 1e-9, 1e18)
        if not isinstance(self.balanced, bool | np.bool_):
            raise InputError(f"balanced={self.balanced!r} must be True or False; leave it out")
        of_counts = self._of_counts()
        return compose(parts if of_counts is None else [*parts, gaussian.event(of_counts)])

    def _unprotected(self) -> tuple[str, ...]:
        return () if self.counts is None else ("class counts (declared)",)

    def _check(self, width: int) -> None:
        super()._check(width)
        declared_counts(self.counts, len(self.classes_))

    def _class_masses(self, parts: Blocks, noise: NoiseSource) -> Floats | None:
        """Declared or noisy counts, none taken for smaller than their noise; None where classes are not balanced."""
        if not self.balanced:
            return None
        n_classes, of_counts = len(self.classes_), self._of_counts()
        counts = declared_counts(self.counts, n_classes)
        if counts is None:
            counts = noisy_counts(parts, n_classes, of_counts, noise) if of_counts else exact_counts(parts, n_classes)
        result: Floats = np.maximum(counts, 0.0) + max(of_counts or 0.0, 1.0)
        return result

    def _facts(self) -> dict[str, float | str]:
        of_counts = self._of_counts()
        bought = "counts are declared" if self.counts is not None else "not bought"
        return {
            "noise multiplier of the counts": bought if of_counts is None else of_counts,
            "sampling": "none; every record is used in every epoch",
        }


def spectrum(matrix: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues and vectors of the nearest positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return np.maximum(values, 0.0), vectors


def damping_for(values: Floats, deviation: float, least: float) -> float:
    """The smallest damping from `least` on that keeps noise in a logit within `NOISE_IN_LOGIT`.

    Noise of this standard deviation per coordinate is divided by eigenvalues plus damping; a row has its share of
    energy along each eigenvector. A function of what was released and of public numbers.
    """
    total = values.sum()
    shares = values / total if total > 0 else np.full(len(values), 1 / len(values))

    def noise(damping: float) -> float:
        return deviation * math.sqrt(float(np.sum(shares / (values + damping) ** 2)))

    low, high = least, max(least, deviation / NOISE_IN_LOGIT)
    if noise(low) <= NOISE_IN_LOGIT:
        return low
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if noise(middle) > NOISE_IN_LOGIT else (low, middle)
    return high


def divided(rows: Floats, values: Floats, vectors: Floats, damping: float) -> Floats:
    """Rows times the inverse of (matrix + damping I), the matrix by its spectrum."""
    result: Floats = (rows @ vectors / (values + damping)) @ vectors.T
    return result
