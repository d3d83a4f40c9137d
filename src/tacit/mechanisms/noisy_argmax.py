"""Noisy argmax: the class with the most votes under Gaussian noise, and nothing else.

Unit: replace one record, or one person with all their records where whole persons are dealt out to
teachers. It influences votes of total weight s at most (1 in plain PATE).
Sensitivity: votes of weight s that change from some classes to others change counts by sqrt(2) s in
L2 at most. It is exact in computer arithmetic: votes are counted in integer units of 2^-20, and
noise is drawn in integer units.
Theorem: the noisy counts cost s^2/sigma^2 in zCDP, so s^2 lambda/sigma^2 at Renyi order lambda
[Papernot et al. 2018, Prop. 8], and the class is a function of them: a `Gaussian` event;
`gaussian.py` says why its exact curve holds for rounded and discrete noise too. The class alone
costs c times that at one order, c about .64, whatever the votes, the number of classes and how the
s votes move: `tacit.privacy.prices.three_outcomes` has the theorem, its proof and the certificate,
and a `NoisyArgmax` event states it. It holds if nothing else about the counts is released and the
noise is fresh.
Rounded noise: the probability of noise up to a whole number of units is Phi at that number and a
half unit. Under `noise="opendp"` it is so to a relative error of (1 + x^2)/(24 sigma^2) in units, x
standard deviations away: the midpoint rule. Ties go to the first class, which moves base points by
half a unit for both neighbours. From sigma = 1 vote, 2^20 units, that is far below the errors that
certificates are widened by. Less noise gets the Gaussian price.
Source: Papernot et al. 2018 (GNMax); sensitivities s: Boenisch et al. 2022.
"""

import math

import numpy as np

from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.mechanisms.votes import NOISE_UNIT
from tacit.privacy.events import Event, Gaussian, NoisyArgmax

LEAST_NOISE = 1.0  # votes, from which discrete noise is fine enough for a certified price


def noisy_argmax(counts: Integers, sigma: float, noise: NoiseSource) -> Integers:
    """Class with the largest count + N(0, sigma^2); counts are in units of 2^-20. Without noise the
    first wins ties.
    """
    noisy = noise.gaussian(counts, scale=sigma * NOISE_UNIT) if sigma > 0 else counts
    return np.asarray(np.argmax(noisy, axis=1))


def label_event(sigma: float, sensitivity: float, order: float | None = None) -> Event:
    """Event of a label of `noisy_argmax`: rho = s^2/sigma^2; priced as an argmax at `order` if
    there is one.
    """
    if order is None or sigma < LEAST_NOISE:
        return Gaussian(sigma / (math.sqrt(2) * sensitivity))
    return NoisyArgmax(sigma / sensitivity, order)
