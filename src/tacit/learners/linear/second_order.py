"""What the learners share whose epochs divide noisy gradients by a noisy matrix: parameters, spectrum and damping."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.learners.common.balance import ClassCounts
from tacit.learners.common.parameters import check_optional, real, whole
from tacit.learners.common.unit_rows import UnitRowClassifier
from tacit.models.rows import Floats
from tacit.models.spectra import eigenvectors

NOISE_IN_LOGIT = 0.5  # standard deviation to which noise may add up in a logit; chosen on CIFAR-10


@dataclass(kw_only=True, eq=False, repr=False)
class SecondOrderClassifier(UnitRowClassifier):
    """Base of these learners; `default_epochs` are those at a finite and at an infinite budget."""

    epochs: int | None = None
    learning_rate: float | None = None
    damping: float | None = None
    counts: int | Sequence[int] | None = None
    balanced: bool = True
    ridge: float = 0.3
    intercept: float = 0.0

    default_epochs = (0, 0)

    def _counts(self) -> ClassCounts:
        unused = "" if self.balanced else "balanced=False"
        return ClassCounts(self.counts, self._multiplier(), balanced=self.balanced, unused=unused)

    def _epochs(self) -> int:
        if self.epochs is not None:
            return whole("epochs", self.epochs, 1, 10**4)
        return self.default_epochs[self._multiplier() == 0]

    def _check_steps(self) -> None:
        self._intercept()
        real("ridge", self.ridge, 1e-9, 1e9)
        check_optional(self, learning_rate=(1e-9, 1e18), damping=(1e-9, 1e18))


def spectrum(matrix: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues and eigenvectors of the nearest positive semidefinite matrix; `matrix` is overwritten."""
    values, vectors = eigenvectors(matrix)
    return np.maximum(values, 0.0), vectors


def damping_for(values: Floats, deviation: float, least: float) -> float:
    """Smallest damping, `least` or more, with which noise in a logit has standard deviation `NOISE_IN_LOGIT` or less.

    Noise of standard deviation `deviation` per coordinate is divided by eigenvalues plus damping; a row is assumed to
    have its energy distributed over eigenvectors as the eigenvalues are. It is post-processing of a noisy matrix.
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
