"""A data-dependent cost of noisy votes, made releasable: its smooth sensitivity, and noise that follows it.

Unit: replace one record, which is behind one vote of weight 1.
What is released: sum over queries of the data-dependent Renyi cost at one order, for labels that were answered and, if
there were any, checks (`vote_bounds.py`, union bound only); plus Gaussian noise of s times a bound S on how much one
vote a query can change the sum, S itself e^b-smooth.
Sensitivity: let beta(q) be the cost of a label as a function of the bound q on the probability of another label. One
vote changes q to at most B_U and at least B_L, B_U/L(q) = (m-1)/2 erfc(erfc^-1(2 q/(m-1)) -/+ 1/sigma), for m classes
[Papernot et al. 2018, Prop. 18 and appendix]. Let q0 be where beta leaves the cost that no votes change, q1 = B_L(q0).
LS(q) = max(beta(B_U) - beta(q), beta(q) - beta(B_L)), taken at q1 on [q1, q0]. At distance d a query has moved d votes
between its two top classes, towards [q1, q0]. A check changes by at most one vote in its largest count, so its own
sensitivity at distance d is the largest one-vote change within d votes. S = max over d of e^{-b d} sum of LS at
distance d. The proof needs LS to rise up to q1 and to fall from q0 on; `conditions_hold` checks that by numbers, and
nothing is released where it fails.
Theorem: the price is exact: `tacit.privacy.events.SmoothGaussian`.
Source: Papernot et al. 2018, section 5 and appendix; their price of the noise is too low (see the event).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.mechanisms.noise import NoiseSource
from tacit.mechanisms.vote_bounds import gaussian_renyi, log_q_check, log_q_union
from tacit.privacy.events import SmoothGaussian

Floats = NDArray[np.float64]

UNIT = 2.0**-40  # of a Renyi cost, on which noise is drawn
_GRID = 4000
_TOLERANCE = 1e-12


@dataclass(frozen=True)
class LabelCost:
    """Cost of one label at one order, and how much one vote can change it, as functions of ln q.

    Parameters
    ----------
    sigma : float
        Noise on each count.
    order : float
        Renyi order, above 1.
    n_classes : int
        m, 2 or more.
    """

    sigma: float
    order: float
    n_classes: int

    def cost(self, log_q: Floats) -> Floats:
        """beta(q)."""
        return np.asarray(gaussian_renyi(np.minimum(log_q, -1e-300), self.sigma, np.array([self.order]))[:, 0])

    def moved(self, log_q: Floats, votes: float) -> Floats:
        """ln q after this many votes went from the top class to the second (below 0: the other way), at most 0."""
        from scipy.special import log_ndtr, ndtri_exp

        others = math.log(self.n_classes - 1)
        place = ndtri_exp(np.minimum(log_q - others, -1e-300)) + math.sqrt(2) * votes / self.sigma
        return np.asarray(np.minimum(log_ndtr(place) + others, 0.0))

    @cached_property
    def log_q0(self) -> float:
        """Where the data-dependent bound stops being the smaller one: the largest such ln q."""
        from scipy.optimize import brentq

        independent = self.order / self.sigma**2
        grid = -np.geomspace(1e-4, 700, _GRID)
        below = self.cost(grid) < independent * (1 - 1e-12)
        if not below.any():
            raise InputError(
                f"at order {self.order:g} and sigma {self.sigma:g} no votes cost less than the guarantee; "
                "choose a smaller order, or more noise"
            )
        first = int(np.argmax(below))
        if first == 0:
            return float(grid[0])

        def excess(log_q: float) -> float:
            return float(self.cost(np.array([log_q]))[0]) - independent * (1 - 1e-12)

        return float(brentq(excess, grid[first], grid[first - 1], xtol=1e-13))

    def sensitivity(self, log_q: Floats) -> Floats:
        """LS(q), with [q1, q0] taken at q1."""
        log_q0 = self.log_q0
        log_q1 = float(self.moved(np.array([log_q0]), -1)[0])
        at = np.where((log_q >= log_q1) & (log_q <= log_q0), log_q1, log_q)
        own = self.cost(at)
        up, down = self.cost(self.moved(at, 1)) - own, own - self.cost(self.moved(at, -1))
        return np.maximum(np.maximum(up, down), 0.0)

    def sensitivities(self, log_q: Floats, most: int) -> Floats:
        """LS at distances 0..most of each query, of shape (queries, most + 1)."""
        log_q0 = self.log_q0
        log_q1 = float(self.moved(np.array([log_q0]), -1)[0])
        steps = range(most + 1)
        nearer = np.stack([np.minimum(self.moved(log_q, d), log_q1) for d in steps], axis=1)
        farther = np.stack([np.maximum(self.moved(log_q, -d), log_q0) for d in steps], axis=1)
        at = np.where((log_q < log_q1)[:, None], nearer, np.where((log_q > log_q0)[:, None], farther, log_q1))
        return self.sensitivity(at.ravel()).reshape(at.shape)

    @lru_cache(maxsize=64)  # noqa: B019  # frozen, and small
    def conditions_hold(self) -> bool:
        """Whether LS rises up to q1 and falls from q0 on, on a fine grid."""
        log_q0 = self.log_q0
        log_q1 = float(self.moved(np.array([log_q0]), -1)[0])
        rising = self.sensitivity(np.linspace(-700, log_q1, _GRID))
        falling = self.sensitivity(np.linspace(log_q0 + 1e-9, 0.0, _GRID)[:-1])
        top = max(rising.max(), falling.max())
        return bool(np.all(np.diff(rising) >= -_TOLERANCE * top) and np.all(np.diff(falling) <= _TOLERANCE * top))


def check_costs(largest: Floats, threshold: float, sigma1: float, order: float) -> Floats:
    """Cost of the check of each query, for its largest count."""
    log_q = log_q_check(largest, threshold, sigma1)
    return np.asarray(gaussian_renyi(log_q, math.sqrt(2) * sigma1, np.array([order]))[:, 0])


def check_sensitivities(largest: Floats, threshold: float, sigma1: float, order: float, n_votes: int) -> Floats:
    """Largest change of each check's cost by one vote, within 0..n_votes votes; of shape (queries, n_votes + 1)."""
    counts = np.arange(-1.0, n_votes + 2)
    costs = check_costs(counts, threshold, sigma1, order)
    change = np.abs(np.diff(costs))
    own = np.maximum(change[:-1], change[1:])  # of counts 0..n_votes
    result = np.empty((len(largest), n_votes + 1))
    place = np.rint(largest).astype(int)
    reach = own
    for d in range(n_votes + 1):
        result[:, d] = reach[place]
        beside = np.pad(reach, 1)
        reach = np.maximum(reach, np.maximum(beside[:-2], beside[2:]))
    return result


def smooth_sensitivity(local: Floats, smoothness: float) -> float:
    """max over d of e^{-b d} times the sum over queries of the sensitivity at distance d.

    `local` has shape (queries, distances) and its last distance must hold for all beyond.
    """
    weights = np.exp(-smoothness * np.arange(local.shape[1]))
    return float((weights * local.sum(axis=0)).max())


def noisy_cost(
    counts: Floats,
    answered: NDArray[np.bool_],
    *,
    sigma: float,
    order: float,
    event: SmoothGaussian,
    noise: NoiseSource,
    sigma1: float | None = None,
    threshold: float | None = None,
) -> float:
    """Release the data-dependent Renyi cost of a voting at one order: an estimate, whose price is `event`.

    Parameters
    ----------
    counts : ndarray of shape (queries, classes)
        Votes per class of the queries that were asked; whole numbers.
    answered : ndarray of shape (queries,), bool
        Which of them were answered.
    sigma, sigma1, threshold : float
        Of the aggregator; the last two for Confident.
    order : float
        Renyi order, chosen beforehand on public or simulated votes.
    event : SmoothGaussian
    noise : NoiseSource

    Returns
    -------
    float
        Noise has mean zero: half the time this is below the true figure.

    Raises
    ------
    InputError
        If the conditions of the theorem do not hold for these parameters.
    """
    label = LabelCost(sigma, order, counts.shape[1])
    if not label.conditions_hold():
        raise InputError(
            f"at sigma {sigma:g} and order {order:g} the sensitivity is not monotone; choose another order"
        )
    log_q = log_q_union(counts[answered], sigma)
    n_votes = int(counts.sum(axis=1).max())
    total = float(label.cost(log_q).sum())
    parts = [label.sensitivities(log_q, n_votes)]
    if sigma1 is not None and threshold is not None:
        largest = counts.max(axis=1)
        total += float(check_costs(largest, threshold, sigma1, order).sum())
        parts.append(check_sensitivities(largest, threshold, sigma1, order, n_votes))
    bound = smooth_sensitivity(np.concatenate(parts), event.smoothness) * (1 + 1e-9) + UNIT  # rounding, of both
    value = np.array([round(total / UNIT)], dtype=np.int64)
    return float(noise.gaussian(value, scale=event.scale * bound / UNIT)[0] * UNIT)
