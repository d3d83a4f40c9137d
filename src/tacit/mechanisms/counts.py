"""Noise on a count of records, such as how many records a classifier labels correctly.

Unit: add/remove one record, or one person with all their records.
Sensitivity: 1, exactly, since a count is a whole number. Per person, each person counts by the
share of their records that is counted, rounded down to whole units of 2^-32: a number in [0, 1].
One record added to a person with m records moves that share by 1/(m+1) at most, and by 2^-32 more
in rounding, which together is less than 1.
Other relations (`COUNT`): 1 as well. A replaced or relabelled record, or person, adds a number
between 0 and 1 before and after.
Theorem, Gaussian: noise of standard deviation z is 1/(2 z^2)-zCDP and 1/z-GDP; drawn in units of
2^-32, where the exact curve holds for discrete noise too (`tacit.mechanisms.gaussian`).
Theorem, Laplace noise of scale 1/epsilon, rounded: epsilon-DP [Dwork et al. 2006], since rounding
is post-processing. Under `noise="opendp"` it is discrete, and epsilon-DP too [Ghosh, Roughgarden
and Sundararajan 2009]. Between neighbours the losses of discrete noise are epsilon and -epsilon, as
those of binary randomized response, the worst of all epsilon-DP mechanisms. So the event is pure DP
and not continuous Laplace noise. A sum of shares is first rounded down to a whole number, which
moves by 1 at most if the sum does.
Source: Dwork et al. 2006 for noise on a count; its discrete forms are from the papers above and
Canonne, Kamath and Steinke 2020.
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.exponential import noise_scale
from tacit.mechanisms.gaussian import UNIT
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.privacy.budget import Budget
from tacit.privacy.events import Gaussian, PureDP
from tacit.privacy.sensitivity import Sensitivity

COUNT = Sensitivity(replace=1.0, change_label=1.0, replace_person=1.0, change_labels_of_person=1.0)
"""Of one count."""


def counted(marks: NDArray[np.bool_], ends: Integers | None = None) -> int | Fraction:
    """Number of marked records; with the ends of persons, whose records stand together, the sum of
    their shares.
    """
    if ends is None:
        return int(np.count_nonzero(marks))
    starts = np.append(0, ends)[:-1]
    shares = np.add.reduceat(marks.astype(np.int64), starts) * UNIT // (ends - starts)
    return Fraction(int(shares.sum()), UNIT)


def noisy_count(count: int | Fraction, cost: Gaussian | PureDP, noise: NoiseSource) -> float:
    """Release a count below 2^31 with the noise of `cost`, from `event`; without noise if `cost`
    has no bound.

    Under a unit per person it is a sum of shares, from `counted`.
    """
    if not cost.bounded:
        return float(count)
    if isinstance(cost, PureDP):
        return float(
            noise.laplace(np.array([math.floor(count)]), scale=noise_scale(1, cost.epsilon))[0]
        )
    return float(
        noise.gaussian(np.array([int(count * UNIT)]), scale=cost.noise_multiplier * UNIT)[0] / UNIT
    )


def event(budget: Budget) -> Gaussian | PureDP:
    """Event of `noisy_count` that spends a budget: discrete Laplace noise for a pure budget, else
    Gaussian.
    """
    return PureDP(budget.exponential()) if budget.kind == "pure" else Gaussian(budget.gaussian())
