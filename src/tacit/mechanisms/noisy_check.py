"""Noisy check: whether the largest count reaches a public threshold under Gaussian noise, and
nothing else.

Unit: as in `noisy_argmax.py`.
Sensitivity: votes of weight s that change from some classes to others change the largest count by s
at most, also after public numbers are subtracted. It is exact in computer arithmetic, as in
`noisy_argmax.py`.
Theorem: the noisy number costs s^2/(2 sigma_1^2) in zCDP [Papernot et al. 2018, Prop. 8], and the
bit is a function of it: a `Gaussian` event. The bit alone costs c times that at one Renyi order, c
about .64, whatever the votes: `tacit.privacy.prices.two_outcomes` has the theorem and the
certificate, and a `NoisyCheck` event states it. It holds if neither the number nor its distance
from the threshold is released and the noise is fresh. Rounded noise: as in `noisy_argmax.py`.
Source: Papernot et al. 2018 (Confident, Interactive); sensitivities s: Boenisch et al. 2022.
"""

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.mechanisms.noisy_argmax import LEAST_NOISE
from tacit.mechanisms.votes import NOISE_UNIT, UNIT
from tacit.privacy.events import Event, Gaussian, NoisyCheck


def noisy_exceeds(
    largest: Integers, threshold: float, sigma: float, noise: NoiseSource
) -> NDArray[np.bool_]:
    """Tell whether largest counts, in units of 2^-20, + N(0, sigma^2) reach the threshold, which is
    in votes like sigma.
    """
    noisy = noise.gaussian(largest, scale=sigma * NOISE_UNIT) if sigma > 0 else largest
    return np.asarray(noisy >= threshold * UNIT)


def check_event(sigma: float, sensitivity: float, order: float | None = None) -> Event:
    """Event of a check of `noisy_exceeds`: rho = s^2/(2 sigma^2); priced as one bit at `order` if
    there is one.
    """
    if order is None or sigma < LEAST_NOISE:
        return Gaussian(sigma / sensitivity)
    return NoisyCheck(sigma / sensitivity, order)
