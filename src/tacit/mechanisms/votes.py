"""Votes: counts of them, and the class with the most votes under Laplace noise.

Unit: replace one record, or one person with all their records where whole persons are dealt out to
teachers. It influences votes of total weight s at most (1 in plain PATE).
Sensitivity: a vote of weight s that changes from one class to another changes two counts by s: 2 s
in L1. It is exact in computer arithmetic: votes are counted in integer units of 2^-20, and noise is
drawn in integer units.
Theorem: under Laplace noise of scale 1/gamma a label is 2 gamma s-DP [Papernot et al. 2017]. Secure
noise is continuous noise, rounded to integers, so its event is that of continuous noise, exactly.
Under `noise="opendp"` it is discrete: in units of 2^-20 the curves differ by less than gamma 2^-20.
(On counts in units of 1 they differ much more, so `counts.py` has a pure event.)
Source: PATE 2017 (Laplace). Gaussian noise: `noisy_argmax.py` and `noisy_check.py`.
"""

import math

import numpy as np

from tacit.mechanisms.exponential import noise_scale
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.privacy.events import Laplace

UNIT = 2**20

# What noise of one vote measures in units. The excess is more than the float64 error of sigma / s,
# so that no noise is below that of its event.
NOISE_UNIT = UNIT * (1 + 2.0**-50)
CELLS = 2**20  # votes that are counted at once


def vote_counts(votes: Integers, weights: Integers, n_classes: int) -> Integers:
    """Votes per class, in units of 2^-20, of shape (queries, n_classes); not private.

    `votes` are class indices of shape (queries, teachers), of any integer type. `weights`, of this
    shape or (teachers,), are in the same units, and 0 for a teacher that does not vote.
    """
    weights = np.broadcast_to(weights, votes.shape)
    counts = np.empty((len(votes), n_classes), dtype=np.int64)
    step = max(1, CELLS // votes.shape[1])
    for start in range(0, len(votes), step):
        part = slice(start, min(start + step, len(votes)))
        n = part.stop - start
        cells = votes[part] + n_classes * np.arange(n)[:, None]
        weighed = weights[part].ravel()
        # below 2^53: exact
        totals = np.bincount(cells.ravel(), weights=weighed, minlength=n * n_classes)
        counts[part] = totals.reshape(n, n_classes)
    return counts


def laplace_argmax(counts: Integers, gamma: float, noise: NoiseSource) -> Integers:
    """Class with the largest count + Lap(1/gamma); counts are in units of 2^-20."""
    noisy = counts
    if math.isfinite(gamma):
        noisy = noise.laplace(counts, scale=noise_scale(UNIT, gamma) * (NOISE_UNIT / UNIT))
    return np.asarray(np.argmax(noisy, axis=1))


def laplace_event(gamma: float, sensitivity: float) -> Laplace:
    """Event of a label of `laplace_argmax`: pure epsilon 2 gamma s."""
    return Laplace(1 / (2 * gamma * sensitivity))
