"""Selection of one candidate by integer scores: exponential mechanism and permute-and-flip.

Unit: add/remove one record. Scores are exact integers that span less than 2^63 and are monotone: adding a record raises
every score by an amount in [0, sensitivity].
Theorem, exponential mechanism: P(i) is proportional to exp(epsilon score_i / sensitivity). The log ratio between
neighbouring data sets is a difference of two numbers in [0, epsilon], the rise of the score and that of the normaliser,
so losses lie in an interval of width epsilon: epsilon-bounded range, epsilon-DP and epsilon^2/8-zCDP [Durfee and Rogers
2019; Cesar and Rogers 2021]. It is the index of the largest score plus Gumbel noise of scale sensitivity/epsilon;
`levels.py` draws it.
Theorem, permute-and-flip: epsilon-DP, with an expected score never below the exponential mechanism's [McKenna and
Sheldon 2020]. Its range is wider (1.66 epsilon measured), so its event is pure DP. It is the index of the largest score
plus exponential noise of the same scale [Ding et al. 2021]; `coins.py` draws it.
Source: McSherry and Talwar 2007 (exponential mechanism); McKenna and Sheldon 2020 (permute-and-flip).
"""

import math
from fractions import Fraction

from tacit.mechanisms.noise import Integers, NoiseSource, Selection
from tacit.privacy.events import Exponential, Parallel, PureDP

_NOISE: dict[str, Selection] = {"exponential": "gumbel", "permute-and-flip": "exponential"}


def select(scores: Integers, *, sensitivity: int, epsilon: float, noise: NoiseSource, selection: str) -> int:
    """Release the index of a large score among `scores` (m,), by "exponential" or "permute-and-flip" selection.

    `sensitivity` is the largest amount by which a record raises a score; epsilon is finite and above 0.
    """
    return noise.noisy_max(scores, noise_scale(sensitivity, epsilon), _NOISE[selection])


def noise_scale(sensitivity: int, epsilon: float) -> float:
    """sensitivity/epsilon, rounded up so that the epsilon of the drawn noise does not exceed the stated epsilon."""
    scale = sensitivity / epsilon
    while Fraction(scale) * Fraction(epsilon) < sensitivity:
        scale = math.nextafter(scale, math.inf)
    return scale


def event(epsilon: float, selection: str) -> Parallel:
    """Event of one selection per class: one selection, since a record is in one class."""
    one = Exponential(epsilon) if selection == "exponential" else PureDP(epsilon)
    return Parallel(one, over="classes")
