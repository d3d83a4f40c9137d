"""Noisy votes: the class with the most votes under noise, and a noisy check of how many votes that is.

Unit: replace one record, or one person with all their records where whole persons are dealt out to teachers. It
influences votes of total weight s at most (1 in plain PATE).
Sensitivity: a vote of weight s that changes from one class to another changes two counts by s: sqrt(2) s in L2 and 2 s
in L1. It changes the largest count, also after public numbers are subtracted, by s. Both are exact in computer
arithmetic: votes are counted in integer units of 2^-20, and noise is drawn in integer units.
Theorem: a label costs s^2/sigma^2 in zCDP, so s^2 lambda/sigma^2 at Renyi order lambda [Papernot et al. 2018, Prop. 8];
a check costs s^2/(2 sigma_1^2). Both are functions of a discrete Gaussian release [Canonne, Kamath and Steinke 2020,
Thm 14], so they are `Gaussian` events; `gaussian.py` derives why the exact curve holds for discrete noise too. Under
Laplace noise of scale 1/gamma a label is 2 gamma s-DP [Papernot et al. 2017]. That noise is discrete, and its event is
that of continuous noise: in units of 2^-20 their curves differ by less than gamma 2^-20. (On counts in units of 1 they
differ much more, so `counts.py` has a pure event.)
Source: PATE 2017 (Laplace), 2018 (GNMax, Confident, Interactive); sensitivities s: Boenisch et al. 2022.
"""

import math

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.privacy.events import Gaussian, Laplace

Floats = NDArray[np.float64]

UNIT = 2**20


def vote_counts(votes: Integers, weights: Integers, n_classes: int) -> Integers:
    """Votes per class, in units of 2^-20, of shape (queries, n_classes); not private.

    `votes` are class indices of shape (queries, teachers). `weights`, of this shape or (teachers,), are in the same
    units, and 0 for a teacher that does not vote.
    """
    n = len(votes)
    cells = votes + n_classes * np.arange(n)[:, None]
    weighed = np.broadcast_to(weights, votes.shape).ravel()
    totals = np.bincount(cells.ravel(), weights=weighed, minlength=n * n_classes)  # whole numbers below 2^53: exact
    return totals.astype(np.int64).reshape(n, n_classes)


def noisy_argmax(counts: Integers, sigma: float, noise: NoiseSource) -> Integers:
    """Class with the largest count + N(0, sigma^2); counts are in units of 2^-20. Without noise the first wins ties."""
    noisy = noise.gaussian(counts, scale=sigma * UNIT) if sigma > 0 else counts
    return np.asarray(np.argmax(noisy, axis=1))


def laplace_argmax(counts: Integers, gamma: float, noise: NoiseSource) -> Integers:
    """Class with the largest count + Lap(1/gamma); counts are in units of 2^-20."""
    noisy = noise.laplace(counts, scale=UNIT / gamma) if math.isfinite(gamma) else counts
    return np.asarray(np.argmax(noisy, axis=1))


def noisy_exceeds(largest: Integers, threshold: float, sigma: float, noise: NoiseSource) -> NDArray[np.bool_]:
    """Whether largest counts, in units of 2^-20, + N(0, sigma^2) reach the threshold, which is in votes like sigma."""
    noisy = noise.gaussian(largest, scale=sigma * UNIT) if sigma > 0 else largest
    return np.asarray(noisy >= threshold * UNIT)


def label_event(sigma: float, sensitivity: float) -> Gaussian:
    """Event of a label of `noisy_argmax`: rho = s^2/sigma^2."""
    return Gaussian(sigma / (math.sqrt(2) * sensitivity))


def laplace_event(gamma: float, sensitivity: float) -> Laplace:
    """Event of a label of `laplace_argmax`: pure epsilon 2 gamma s."""
    return Laplace(1 / (2 * gamma * sensitivity))


def check_event(sigma: float, sensitivity: float) -> Gaussian:
    """Event of a check of `noisy_exceeds`: rho = s^2/(2 sigma^2)."""
    return Gaussian(sigma / sensitivity)
