"""What learners share that divide noisy gradients by a noisy matrix: epochs and damping."""

from __future__ import annotations

import math

import numpy as np

from tacit.errors import InputError
from tacit.learners.common.balance import BalancedClassifier
from tacit.learners.common.parameters import real, whole
from tacit.models.rows import Floats
from tacit.privacy.events import Event

NOISE_IN_LOGIT = 0.5  # standard deviation to which noise may add up in a logit; chosen on CIFAR-10


class SecondOrderClassifier(BalancedClassifier):
    """A learner by noisy gradients over a noisy matrix; counts are for balance alone."""

    epochs: int | None
    learning_rate: float | None
    damping: float | None
    ridge: float

    def _epochs(self, finite: int, infinite: int) -> int:
        if self.epochs is not None:
            return whole("epochs", self.epochs, 1, 10**4)
        return infinite if self._multiplier() == 0 else finite

    def _count_share(self) -> float:
        return super()._count_share() if self.balanced else 0.0

    def _composed(self, parts: list[Event]) -> Event:
        self._intercept()
        real("ridge", self.ridge, 1e-9, 1e9)
        for name in ("learning_rate", "damping"):
            if getattr(self, name) is not None:
                real(name, getattr(self, name), 1e-9, 1e18)
        event = super()._composed(parts)
        if self.counts is not None and not self.balanced:
            raise InputError(f"counts={self.counts!r} would go unused with balanced=False; leave one of them out")
        return event

    def _facts(self) -> dict[str, float | str]:
        return super()._facts() | {"sampling": "none; every record is used in every epoch"}


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
