"""Linear discriminants from second moments, class sums and counts, all of them noisy.

All of this is post-processing of a release, so it has no privacy cost. Let G be the sum of x x'
over all records, b_k the sum of the n_k records of class k, and m_k = b_k/n_k. Then G less all
b_k b_k'/n_k is the scatter within classes, W, and theta_k = (W + ridge I)^-1 (m_k - m), m being the
mean of all records [Fisher 1936]. The expected noise of the sums is added back to W, and a mean's
noise, of variance v_k in each coordinate, counts as scatter: `NOISE_IN_MEAN` n v_k is added to W.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.compute.timing import SOLVING, phase
from tacit.models.noisy_sums import column
from tacit.models.rows import Floats
from tacit.models.spectra import spectrum

# Rows of a matrix that are computed at once.
STRIP = 512

# Standard deviations of noise up to which total weights count as equal.
WITHIN_NOISE = 4.0

# Weight of the variance of a mean's noise, added to the variance within classes. Chosen on
# CIFAR-10.
NOISE_IN_MEAN = 4.0


def relative_weight(
    weight_in_sums: float, sums_sd: float, weight_in_moments: float, moments_sd: float
) -> float:
    """Return the first weight over the second, or 1 if noise of these standard deviations explains
    the difference.
    """
    difference = abs(weight_in_sums - weight_in_moments)
    if difference <= WITHIN_NOISE * math.hypot(sums_sd, moments_sd):
        return 1.0
    return max(weight_in_sums, 1.0) / max(weight_in_moments, moments_sd, 1.0)


@phase(SOLVING)
def discriminants(
    moments: Floats,
    sums: Floats,
    counts: Floats,
    ridge: float,
    *,
    least_count: float | Floats,
    sum_noise: float | Floats,
    normalise: bool,
) -> tuple[Floats, Floats]:
    """Return one theta per class, and the intercepts of its scores; `moments` are overwritten.

    Counts are raised to `least_count`, their noise at least, so that no mean is divided by almost
    0. `sum_noise` is the standard deviation of the noise on an entry of the sums. Either is one
    number for all classes, or one for each, (C,).
    """
    counts = np.maximum(counts, least_count)[:, None]  # (C, 1)
    noise = column(sum_noise)
    total = counts.sum()
    means = sums / counts
    centre = sums.sum(axis=0) / total

    # W = G - sum_c n_c m_c m_c', in the memory of G, since matrices may be large
    within = moments
    for start in range(0, len(within), STRIP):
        within[start : start + STRIP] -= means[:, start : start + STRIP].T @ sums
    # noise in the sums raised what was subtracted: on the diagonal by its variance
    np.einsum("ii->i", within)[:] += noise_of_scatter(counts, noise)

    # from here on along the axes of W
    values, axes = spectrum(within)
    variances = (values + ridge) / total
    along_axes = (means - centre) @ axes
    centre_along_axes = centre @ axes
    theta = along_axes / (variances + NOISE_IN_MEAN * (noise / counts) ** 2)

    if not normalise:
        # linear discriminants: the score of a class is largest at its mean
        intercepts = -np.sum(theta * (along_axes / 2 + centre_along_axes), axis=1)
        return theta @ axes.T, intercepts

    # scores of standard deviation 1 within classes
    deviations = np.sqrt(np.sum(theta**2 * variances, axis=1, keepdims=True))
    theta /= np.where(deviations > 0, deviations, 1.0)
    return theta @ axes.T, -theta @ centre_along_axes


def noise_of_scatter(counts: Floats, noise: float | Floats) -> float:
    """Expected noise of an entry on the diagonal of all b_k b_k'/n_k together.

    `counts` are (C, 1), and so is the noise if it differs between classes.
    """
    if isinstance(noise, np.ndarray):
        return float(np.sum(noise**2 / counts))
    return float(noise**2 * np.sum(1 / counts))
