"""Steps that divide noisy gradients by a noisy matrix: its spectrum, and the damping that its noise asks for."""

from __future__ import annotations

import math

import numpy as np

from tacit.learners.common.parameters import real
from tacit.models.rows import Floats

NOISE_IN_LOGIT = 0.5  # standard deviation to which noise may add up in a logit; chosen on CIFAR-10


def check_steps(*, ridge: float, learning_rate: float | None, damping: float | None) -> None:
    """Check the parameters of damped steps; None stands for a default."""
    real("ridge", ridge, 1e-9, 1e9)
    for name, value in (("learning_rate", learning_rate), ("damping", damping)):
        if value is not None:
            real(name, value, 1e-9, 1e18)


def spectrum(matrix: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues and eigenvectors of the nearest positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(matrix)
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
