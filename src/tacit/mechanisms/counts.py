"""Noise on a count of records, such as how many records a classifier labels correctly.

Unit: add/remove one record. Sensitivity: 1, exactly, since a count is a whole number.
Theorem, Gaussian: discrete Gaussian noise of standard deviation z is 1/(2 z^2)-zCDP [Canonne, Kamath and Steinke 2020,
Thm 14]; drawn in units of 2^-32, so that the exact curve holds too (`tacit.mechanisms.gaussian`).
Theorem, discrete Laplace noise of scale 1/epsilon: epsilon-DP [Ghosh, Roughgarden and Sundararajan 2009]. Between
neighbours the losses are epsilon and -epsilon, as those of binary randomized response, the worst of all epsilon-DP
mechanisms. So its event is pure DP and not continuous Laplace noise.
Source: Dwork et al. 2006 for noise on a count; its two discrete forms are from the papers above.
"""

import numpy as np

from tacit.mechanisms.exponential import noise_scale
from tacit.mechanisms.gaussian import UNIT
from tacit.mechanisms.noise import NoiseSource
from tacit.privacy.budget import Budget
from tacit.privacy.events import Gaussian, PureDP


def noisy_count(count: int, cost: Gaussian | PureDP, noise: NoiseSource) -> float:
    """Release a count below 2^31 with the noise of `cost`, from `event`; without noise if `cost` has no bound."""
    if not cost.bounded:
        return float(count)
    if isinstance(cost, PureDP):
        return float(noise.laplace(np.array([count]), scale=noise_scale(1, cost.epsilon))[0])
    return float(noise.gaussian(np.array([count * UNIT]), scale=cost.noise_multiplier * UNIT)[0] / UNIT)


def event(budget: Budget) -> Gaussian | PureDP:
    """Event of `noisy_count` that spends a budget: discrete Laplace noise for a pure budget, else Gaussian."""
    return PureDP(budget.exponential()) if budget.kind == "pure" else Gaussian(budget.gaussian())
