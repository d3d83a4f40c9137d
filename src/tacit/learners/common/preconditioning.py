"""Division of noisy gradients by a noisy matrix, by its spectrum, and the damping for the noise."""

from __future__ import annotations

import math

import numpy as np

from tacit.models.rows import Floats

# standard deviation to which noise may add up in a logit; chosen on CIFAR-10
NOISE_IN_LOGIT = 0.5

# bisections of the damping: the interval shrinks to 2^-60 of its length, in logarithms
BISECTIONS = 60


def damping_for(
    values: Floats, deviation: float, least: float, most: float = NOISE_IN_LOGIT
) -> float:
    """Return the smallest damping with which noise in a logit has standard deviation `most`.

    It is `least` if noise has that standard deviation or a smaller one there.

    Noise of standard deviation `deviation` per coordinate is divided by eigenvalues plus damping; a
    row is assumed to have its energy distributed over eigenvectors as the eigenvalues are. It is
    post-processing of a noisy matrix.
    """
    total = values.sum()
    if total > 0:
        shares = values / total
    else:
        shares = np.full(len(values), 1 / len(values))

    def noise(damping: float) -> float:
        return deviation * math.sqrt(float(np.sum(shares / (values + damping) ** 2)))

    if noise(least) <= most:
        return least

    # At damping deviation / most, noise is small enough even where all eigenvalues are zero.
    low = least
    high = max(least, deviation / most)
    for _ in range(BISECTIONS):
        middle = math.sqrt(low * high)
        if noise(middle) > most:
            low = middle
        else:
            high = middle
    return high


def divided(rows: Floats, values: Floats, vectors: Floats, damping: float) -> Floats:
    """Return rows times the inverse of (matrix + damping I), the matrix by its spectrum."""
    coordinates = rows @ vectors
    result: Floats = (coordinates / (values + damping)) @ vectors.T
    return result
