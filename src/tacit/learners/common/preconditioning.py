"""Noisy gradients divided by a noisy matrix: its spectrum, and the damping that its noise and
theirs ask for.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.models.rows import Floats
from tacit.models.spectra import eigenvectors

NOISE_IN_LOGIT = 0.5  # standard deviation to which noise may add up in a logit; chosen on CIFAR-10


def spectrum(matrix: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues and eigenvectors of the nearest positive semidefinite matrix; `matrix` is
    overwritten.
    """
    values, vectors = eigenvectors(matrix)
    return np.maximum(values, 0.0), vectors


def damping_for(
    values: Floats, deviation: float, least: float, most: float = NOISE_IN_LOGIT
) -> float:
    """Smallest damping, `least` or more, with which noise in a logit has standard deviation `most`
    or less.

    Noise of standard deviation `deviation` per coordinate is divided by eigenvalues plus damping; a
    row is assumed to have its energy distributed over eigenvectors as the eigenvalues are. It is
    post-processing of a noisy matrix.
    """
    total = values.sum()
    shares = values / total if total > 0 else np.full(len(values), 1 / len(values))

    def noise(damping: float) -> float:
        return deviation * math.sqrt(float(np.sum(shares / (values + damping) ** 2)))

    low, high = least, max(least, deviation / most)
    if noise(low) <= most:
        return low
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if noise(middle) > most else (low, middle)
    return high


def divided(rows: Floats, values: Floats, vectors: Floats, damping: float) -> Floats:
    """Rows times the inverse of (matrix + damping I), the matrix by its spectrum."""
    result: Floats = (rows @ vectors / (values + damping)) @ vectors.T
    return result
