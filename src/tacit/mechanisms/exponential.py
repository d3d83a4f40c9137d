"""Selection of one candidate by integer scores: exponential mechanism and permute-and-flip.

Unit: add/remove one record, or one person with all their records. Scores are exact integers that
span less than 2^63.
Sensitivity: a record adds to every score of its class a whole number in [0, W], W the sensitivity.
Theorem, exponential mechanism: P(i) is proportional to exp(epsilon score_i / W). If the scores of a
class move by amounts in [l, h], the log ratio is a difference of two numbers in [l, h] epsilon/W,
the rise of the score and that of the normaliser. The second is the same for all i, so losses lie in
an interval of width (h - l) epsilon/W that holds 0. For a record l = 0 and h = W: epsilon-bounded
range, epsilon-DP and epsilon^2/8-zCDP [Durfee and Rogers 2019; Cesar and Rogers 2021]. It is the
index of the largest score plus Gumbel noise of scale W/epsilon; `levels.py` draws it.
Theorem, permute-and-flip: epsilon-DP, with an expected score never below the exponential
mechanism's [McKenna and Sheldon 2020]. Its range is wider (1.66 epsilon measured), so its event is
pure DP. It is the index of the largest score plus exponential noise of the same scale [Ding et al.
2021]; `coins.py` draws it. An amount added to all scores changes nothing, so scores that move by
amounts in [l, h] cost (h - l) epsilon/W.

Per person: a record that would add s adds floor(s/m), where m is the number of records of its
person, over all classes. A person may be in several classes. Each class costs (h_c - l_c)
epsilon/W, and these costs add up: epsilon in all if the sum of h_c - l_c is at most W. So all
classes together are one event of epsilon, and nothing is parallel.

- A person added: l_c = 0, and the h_c add up to at most m floor(W/m) <= W. A person removed:
  likewise.
- One record added to a person with m records, or removed again, for the conversion to units per
  record: the new record adds at most floor(W/(m+1)), and each of the others loses at most g = max
  over s <= W of floor(s/m) - floor(s/(m+1)). So the h_c - l_c add up to at most m g +
  floor(W/(m+1)), which is at most W. Proof: write s = q m + r with 0 <= r < m. Then floor(s/(m+1))
  = q - ceil((q - r)/(m+1)). With W = Q m + R, hence g = ceil(Q/(m+1)), and W - m g - floor(W/(m+1))
  = (m - 1) Q - m g + R + ceil((Q - R)/(m+1)). The last two terms do not fall as R grows, and are g
  at R = 0. So the difference is at least (m - 1)(Q - g) >= 0.
- Other labels for a person: a removal and an addition.

Source: McSherry and Talwar 2007 (exponential mechanism); McKenna and Sheldon 2020
(permute-and-flip); tacit (per person).
"""

import math
from fractions import Fraction

from tacit.mechanisms.noise import Integers, NoiseSource, Selection
from tacit.privacy.events import Exponential, Parallel, PureDP

_NOISE: dict[str, Selection] = {"exponential": "gumbel", "permute-and-flip": "exponential"}


def select(
    scores: Integers, *, sensitivity: int, epsilon: float, noise: NoiseSource, selection: str
) -> int:
    """Release the index of a large score among `scores` (m,), by "exponential" or
    "permute-and-flip" selection.

    `sensitivity` is W above; epsilon is finite and above 0.
    """
    return noise.noisy_max(scores, noise_scale(sensitivity, epsilon), _NOISE[selection])


def noise_scale(sensitivity: int, epsilon: float) -> float:
    """sensitivity/epsilon, rounded up so that the epsilon of the drawn noise does not exceed the
    stated epsilon.
    """
    scale = sensitivity / epsilon
    while Fraction(scale) * Fraction(epsilon) < sensitivity:
        scale = math.nextafter(scale, math.inf)
    return scale


def event(epsilon: float, selection: str) -> Parallel:
    """Event of one selection per class: one selection, since a record is in one class; per person
    its `base()`.
    """
    one = Exponential(epsilon) if selection == "exponential" else PureDP(epsilon)
    return Parallel(one, over="classes")
