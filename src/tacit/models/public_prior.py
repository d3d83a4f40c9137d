"""Facts of public rows about classes: their principal axes, the means of neighbourhoods, where
classes may lie, and whether private rows are of their kind.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.compute.shared import cached
from tacit.models.rows import Floats, unit_rows_about
from tacit.models.spectra import MOST_ENTRIES, principal_axes, spaced

ROWS, ANCHORS, SAMPLE, NEIGHBOURS = 16_384, 2_048, 1_024, 0.01
ISOTROPIC = 0.1
DISTINCT = 2.5  # R at which `distinctness` is one half


@dataclass(frozen=True)
class PublicPrior:
    """Facts of public rows about classes."""

    axes: Floats
    """Public principal axes, the columns of a (d, p) array; p is d, or less if rows are wide:
    `principal_axes`.
    """
    variances: Floats
    """Second moments along the axes, (p,); a tenth of them is spread evenly."""
    neighbourhoods: Floats
    """Means of neighbourhoods of public rows, along the axes, (J, p)."""
    sample: Floats
    """Some of the public rows, along the axes."""


def public_prior(public: NDArray[np.generic], centre: Floats | None) -> PublicPrior:
    """Learn the prior from public rows of shape (m, d): at most 16,384 of them, evenly spaced, and
    2^26 entries.
    """
    return cached(_learned, public, centre)


def _learned(public: NDArray[np.generic], centre: Floats | None) -> PublicPrior:
    rows = unit_rows_about(spaced(public, min(ROWS, MOST_ENTRIES // public.shape[1])), centre)
    variances, axes = principal_axes(rows)
    if variances.max() <= 0:
        variances = np.ones_like(variances) / len(variances)
    variances = (1 - ISOTROPIC) * variances + ISOTROPIC * variances.mean()
    return PublicPrior(axes, variances, _neighbourhoods(rows) @ axes, spaced(rows, SAMPLE) @ axes)


def distinctness(grand: Floats, variances: Floats) -> float:
    """From 0 (public rows are of the private kind) to 1 (of another kind), judged by the private
    mean, (p,).

    R is its squared distance from the public mean over the variance of public rows in its
    direction, 1 or less if the public rows are of two private classes alike in number. The result
    is 1/(1 + (2.5/R)^4).

    >>> round(distinctness(np.array([1.0, 0.0]), np.array([1.0, 0.1])), 3)
    0.025
    >>> distinctness(np.zeros(2), np.ones(2))
    0.0
    """
    distance = float(np.linalg.norm(grand))
    if distance == 0:
        return 0.0
    deviation = math.sqrt(DISTINCT * float((grand / distance) ** 2 @ variances))
    return 1 / (1 + min(deviation / distance, 1e9) ** 8)


def _neighbourhoods(rows: Floats) -> Floats:
    """For evenly spaced rows, the mean of the nearest 1 % of all rows."""
    nearest = max(1, round(NEIGHBOURS * len(rows)))
    narrow = rows.astype(np.float32)
    anchors = np.asarray(spaced(narrow, ANCHORS))
    means = np.empty(anchors.shape)
    for start in range(0, len(anchors), 256):
        similarity = anchors[start : start + 256] @ narrow.T
        chosen = np.argpartition(-similarity, nearest - 1, axis=1)[:, :nearest]
        means[start : start + 256] = [rows[nearby].mean(axis=0) for nearby in chosen]
    return means
