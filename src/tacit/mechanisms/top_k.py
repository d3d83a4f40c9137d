"""Joint selection of an unordered set of k candidates by the score of its worst member.

Unit: add/remove one record, or one person with all their records. Scores are exact integers; a
record adds to each score of its class a whole number in [0, W], and a person in all classes
together as much, as in `exponential.py`.
Mechanism: P(S) is proportional to exp(epsilon u(S) / W), where u(S) is the smallest score in S.
Sort scores in falling order, ties by position. There are C(y-1, k-1) sets whose worst member has
rank y (from 1), all with u(S) = u_(y). So draw y >= k with weight C(y-1, k-1) exp(epsilon u_(y) /
W), then the other k-1 members uniformly from the ranks above y. The set is returned in the order of
positions, since ranks or the order of draws would reveal the worst member.
Sensitivity: if the scores of a class move by amounts in [l, h], so does u(S), the smallest of some
of them.
Theorem: without rounding the losses lie in an interval of width (h - l) epsilon/W, so that a record
costs epsilon-bounded range, epsilon-DP and epsilon^2/8-zCDP, and a person in all classes together
as much: see `exponential.py`.
Rounding is part of the privacy cost: the rank is the largest of the integers u_(y) + round(s L_y)
with Gumbel noise of scale s, where L_y is the float64 value of ln C(y-1, k-1). The scores u_(y) are
exact. L_y differs from the true logarithm by at most eta, and rounding adds at most 1/(2 s). So the
true weight of S is exp(u(S)/s + r_y) with |r_y| <= r = 1/(2 s) + eta, where y depends on the data.
Between neighbouring data sets the exponent of a class whose scores move changes within [l/s - 2r,
h/s + 2r], an interval of width (h - l)/s + 2/s + 4 eta. The widths of all classes add up to at most
(W + 2B)/s + 4 B eta, if scores of at most B classes move: 1 for a record, and all C classes for a
person, since each class in which a person sits pays for its rounding. s is chosen so that this is
at most epsilon:
s >= (W + 2B)/(epsilon - 4 B eta).
Scores far below the top are raised to a floor, max(u, u_max - 2^61), so that sums stay in 64 bits;
their probability is negligible either way. If u and u_max move by amounts in [l, h], so does this
maximum.
Source: DPPL-Public Top-K (Wahdany et al. 2024), which weighs ranks by C(y, k), halves the exponent
and reuses the key of the rank for the other members. C(y, k) is wrong by a factor y/k, which
depends on the data, so that mechanism is not epsilon-DP (tests/mechanisms/test_top_k.py shows a log
ratio above 1.58 at epsilon 1 for n = 5, k = 1).
"""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BudgetError
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.privacy.events import Exponential, Parallel

# Scores further below the top are raised to this distance.
_FLOOR = 2**61

# Up to so many ranks one pass over all scores for each is faster than sorting positions.
_FEW_RANKS = 64


def select_set(
    scores: Integers,
    k: int,
    *,
    sensitivity: int,
    epsilon: float,
    noise: NoiseSource,
    classes: int = 1,
) -> Integers:
    """Release k positions whose smallest score is large, in increasing order of position, of shape
    (k,).

    `scores` has shape (m,), m >= k; `sensitivity` is W above, and `classes` B: 1 for a unit per
    record, the public number of classes for a unit per person; epsilon is finite and above 0.
    """
    ranked = -np.sort(-scores)
    keys, scale = rank_keys(ranked, k, sensitivity=sensitivity, epsilon=epsilon, classes=classes)

    # The rank of the worst member, from 0; the others are above it.
    worst = k - 1 + noise.noisy_max(keys, scale, "gumbel")
    ranks = np.append(noise.subset(worst, k - 1), worst)
    return positions(scores, ranked, ranks)


def positions(scores: Integers, ranked: Integers, ranks: Integers) -> Integers:
    """Positions, in increasing order, of the candidates that `best_first` puts at these ranks (from
    0).

    Only the scores are sorted, which is much faster than sorting positions with them. Of equal
    scores, those with lower positions rank first.
    """
    if len(ranks) > _FEW_RANKS:
        return np.sort(best_first(scores)[ranks])

    members = []
    for value in np.unique(ranked[ranks]):
        # Candidates of this score, and the rank of the first of them.
        tied = np.flatnonzero(scores == value)
        first_rank = len(ranked) - int(np.searchsorted(ranked[::-1], value, side="right"))
        tied_ranks = ranks[ranked[ranks] == value]
        members.append(tied[tied_ranks - first_rank])
    return np.sort(np.concatenate(members))


def best_first(scores: Integers) -> Integers:
    """Positions by falling score, ties by position."""
    return np.argsort(-scores, kind="stable")


def rank_keys(
    ranked: Integers, k: int, *, sensitivity: int, epsilon: float, classes: int = 1
) -> tuple[Integers, float]:
    """Integer keys of the ranks k to m, of shape (m - k + 1,), and the Gumbel scale of their noisy
    maximum.

    `ranked` are the scores in falling order, of shape (m,).
    """
    scale = rank_scale(len(ranked), k, sensitivity=sensitivity, epsilon=epsilon, classes=classes)
    gaps = np.maximum(ranked[k - 1 :] - ranked[0], -_FLOOR)
    log_counts = np.rint(scale * log_binomials(len(ranked), k)).astype(np.int64)
    return gaps + log_counts, scale


def rank_scale(m: int, k: int, *, sensitivity: int, epsilon: float, classes: int = 1) -> float:
    """The scale s above for m candidates; it depends on public values alone."""
    largest = largest_partial_sum(m, k)

    # k additions and logarithms (each below 32), each with an error of an ulp at most.
    eta = k * 2.0**-52 * (largest + 32)
    if epsilon <= 8 * classes * eta:
        raise BudgetError(
            f"epsilon={epsilon} is too small for the float error of k={k}; pass a smaller k"
        )

    # The smallest float s >= (W + 2B)/(epsilon - 4 B eta).
    remaining = Fraction(epsilon) - 4 * classes * Fraction(eta)
    width = sensitivity + 2 * classes
    scale = width / float(remaining)
    while Fraction(scale) * remaining < width:
        scale = math.nextafter(scale, math.inf)

    if scale * largest >= _FLOOR:
        raise BudgetError(
            f"epsilon={epsilon} is too small for k={k} in 64-bit scores; pass a smaller k"
        )
    return scale


def largest_partial_sum(m: int, k: int) -> float:
    """A bound on every intermediate value of `log_binomials`: ln C(m-1, i) for i < k, and 1 for
    lgamma's error.
    """
    i = min(k - 1, (m - 1) // 2)
    return math.lgamma(m) - math.lgamma(i + 1) - math.lgamma(m - i) + 1


@lru_cache(maxsize=2)
def log_binomials(m: int, k: int) -> NDArray[np.float64]:
    """ln C(y-1, k-1) for y = k..m: the number of sets whose worst member has rank y."""
    # y - 1, the number of candidates above the worst member.
    above = np.arange(k - 1, m, dtype=np.float64)
    logs = np.zeros(len(above))
    for i in range(k - 1):
        logs += np.log(above - i) - math.log(i + 1)

    # The array is cached for the next class.
    logs.setflags(write=False)
    return logs


def event(epsilon: float) -> Parallel:
    """Event of one set per class: one exponential mechanism, as a record is in one class; per
    person its `base()`.
    """
    return Parallel(Exponential(epsilon), over="classes")
