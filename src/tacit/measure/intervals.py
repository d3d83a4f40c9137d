"""Intervals of accuracies from noisy counts: they cover the sampling of the test records and the
noise.

Of n records of a class or group, k are right, and k is binomial with n and the accuracy p, which
is to be found. Released are R = k + E and W = n - k + F, where E is the sum of the noise of r cells
and F that of w cells (`Noise`); n is hidden too. Under the true p the statistic

    T(p) = (1 - p) R - p W = (k - n p) + (1 - p) E - p F

has mean 0 whatever n is, and n only decides how far its first part spreads. An interval is the
inversion of the exact test of T: p is in it unless P(T >= t) or P(T <= t) is below half the error
for every n of an interval that covers the hidden n. The probabilities are sums over k of the
binomial times the tail of the noise; a tenth of the error is for the interval of n. So coverage is
at least the level. Counts below 0 are taken for 0 where that makes a tail larger, so that the
interval is never empty.

If n may be 0, nothing is known of p: the interval is [0, 1] and no figure is stated.

Persons: each has the weight 1 in all, shared out among their records, and R and W are sums of
weights. A person adds x <= w <= 1 to the right and to all records of a class, and the mean of x is
p times that of w. Since (x - p w)^2 is convex in x, its mean is at most E[w] p (1 - p): the
variance of T is at most that of a binomial with n the sum of weights, the public bound of one unit
per person. The binomial takes the place of the unknown law of x, which spreads less.

Balanced accuracy is the mean of C accuracies, k_c/n_c. With D = w R - r W, whose noise is
independent of that of S = R + W if it is Gaussian, each is r/(r+w) + D/(r+w) times 1/n_c. The
function h(S) = M(S/s)/s, M Mills' ratio of the normal law and s the standard deviation of S, has
the mean 1/n_c exactly [Voinov 1985], so the estimate has no bias from dividing by noise. The
variance of the mean is that of the shares, p_c (1 - p_c)/n_c, added up and divided by C^2. Given
balanced accuracy b, the largest such variance V(b) has accuracies (1 - lambda n_c)/2, cut off at 0
and 1, where lambda is such that their mean is b: p (1 - p)/n is concave in p. If all n_c are equal,
all accuracies are b; else those of small classes are nearer to 1/2, and to take them for b would
understate the variance. The share of right ones of b (1 - b)/V(b) records has this variance; its
binomial, and Gaussian noise of the variance of the mean, are put to the same test.
Where noise hides the size of a class (S below 4 s), any mean of its accuracy with the others is
possible: the interval is then between the means of the lower and of the upper ends of all classes'
intervals, each at the error divided by C.

Beside it stands the mean over the clear classes alone, those with S >= t = 4 s, a choice that is
made of the noisy table. Given that choice S is too large on average, so D/S shrinks to 0: class c
adds a bias of at most 1/2 E[(S - n_c)/t; S >= t] = s/(2t) f((t - n_c)/s), f the normal density. As
sqrt(2) f((t - S)/s) is no less than this f in the mean, the interval is widened at each end by
s sqrt(2)/(2t) times the sum of f((t - S)/s) over all classes, divided by the number of clear ones.
This is nearly 0 where no class is near t.

Source: tacit; the pieces are Clopper and Pearson 1934, Fieller 1954 and Voinov 1985.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, log_ndtr, ndtr, ndtri, xlog1py, xlogy

Floats = NDArray[np.float64]

SIZE_ERROR = 0.1
"""Share of the error of an interval that is for the hidden number of records."""

CLEAR = 4.0
"""Standard deviations of its noise by which the size of a class must exceed 0 to be divided by."""

_MOST_SIZES = 5  # numbers of records at which a tail is computed
_STEPS = 22  # of bisection: 2^-22 is below the digits that are shown
_TOGETHER = 64  # cells whose tails are computed together

# How far from its mean the values of a binomial are summed: in standard deviations, and, where
# these are small, so many values more.
_REACH = 8.5
_REACH_OF_RARE = 12


@dataclass(frozen=True)
class Noise:
    """Independent noise of each cell: `scale` is the standard deviation of Gaussian noise, or the
    scale b of Laplace noise.
    """

    scale: float
    laplace: bool = False

    @property
    def variance(self) -> float:
        """Variance of the noise of one cell."""
        return (2.0 if self.laplace else 1.0) * self.scale**2

    @property
    def is_normal(self) -> bool:
        """True if sums of this noise have a normal law."""
        return not self.laplace or self.scale == 0

    def tails(
        self, a: Floats, cells_a: Floats, b: Floats, cells_b: Floats
    ) -> Callable[[Floats], Floats]:
        """Return the function of x that `tail` is, for rows of x or for single values."""
        return lambda x: self.tail(x, a, cells_a, b, cells_b)

    def tail(self, x: Floats, a: Floats, cells_a: Floats, b: Floats, cells_b: Floats) -> Floats:
        """Probability that `a` times the noise of `cells_a` cells less `b` times that of `cells_b`
        is x or more.
        """
        if self.scale == 0:
            return np.asarray(x <= 0, dtype=np.float64)
        are_single = bool(np.all((cells_a == 1) & (cells_b == 1)))
        if self.laplace and are_single:
            return np.asarray(_tail_of_two_laplace(x / self.scale, a, b))

        deviation = np.sqrt(self.variance * (a * a * cells_a + b * b * cells_b))
        z = x / deviation
        normal = ndtr(-z)
        if not self.laplace:
            return np.asarray(normal)

        # Edgeworth's correction by the kurtosis; below the normal tail it is left out, so that the
        # result is no less than the true tail
        fourth = 3 * (a**4 * cells_a + b**4 * cells_b) / (a * a * cells_a + b * b * cells_b) ** 2
        density = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        several = np.maximum(normal, normal + density * fourth / 24 * (z**3 - 3 * z))
        return np.asarray(several)


def _tail_of_two_laplace(x: Floats, a: Floats, b: Floats) -> Floats:
    """Probability that a L + b L' is x or more, L and L' standard Laplace, a + b above 0."""
    size = np.abs(x)
    larger = np.maximum(a, b)
    smaller = np.minimum(a, b)
    # equal factors are the limit; a difference of 1e-4 is told apart without cancellation
    gap = np.maximum((larger - smaller) / larger, 1e-4)
    smaller = np.maximum(larger * (1 - gap), 1e-300)
    squares = larger**2 - smaller**2
    upper = (larger**2 * np.exp(-size / larger) - smaller**2 * np.exp(-size / smaller)) / (
        2 * squares
    )
    return np.asarray(np.where(x >= 0, upper, 1 - upper))


@dataclass(frozen=True)
class Counts:
    """Noisy numbers of right and wrong records, arrays of one shape, and of how many noisy cells
    each is the sum.
    """

    right: Floats
    wrong: Floats
    right_cells: Floats
    wrong_cells: Floats

    @classmethod
    def of(cls, right: Floats, wrong: Floats, right_cells: float, wrong_cells: float) -> Counts:
        """Counts that are all sums of equally many cells."""
        right = np.atleast_1d(np.asarray(right, dtype=np.float64))
        wrong = np.atleast_1d(np.asarray(wrong, dtype=np.float64))
        return cls(
            right,
            wrong,
            np.full(right.shape, float(right_cells)),
            np.full(right.shape, float(wrong_cells)),
        )

    @property
    def records(self) -> Floats:
        """Noisy numbers of records."""
        return self.right + self.wrong

    def at(self, places: Any) -> Counts:
        """The counts at these places."""
        return Counts(*(values[places] for values in vars(self).values()))

    def total(self) -> Counts:
        """The sum of all counts, of shape (1,)."""
        return Counts(*(values.sum(keepdims=True) for values in vars(self).values()))

    def exchanged(self) -> Counts:
        """The same, right and wrong exchanged."""
        return Counts(self.wrong, self.right, self.wrong_cells, self.right_cells)

    def deviation(self, noise: Noise) -> Floats:
        """Standard deviation of the noise of `records`."""
        return np.sqrt(noise.variance * (self.right_cells + self.wrong_cells))


def sizes(counts: Counts, noise: Noise, error: float) -> tuple[Floats, Floats]:
    """Lower and upper ends of intervals of the hidden numbers of records; the lower one may be
    0.
    """
    one = np.ones_like(counts.right)
    if not noise.is_normal:
        tail = noise.tails(one, counts.right_cells, one, counts.wrong_cells)
        low = np.zeros_like(one)
        high = counts.deviation(noise) * 40
        for _ in range(60):
            middle = (low + high) / 2
            above = tail(middle)
            high = np.where(above < error / 2, middle, high)
            low = np.where(above < error / 2, low, middle)
        reach = high
    else:
        reach = -ndtri(error / 2) * counts.deviation(noise)
    lower = np.maximum(np.ceil(counts.records - reach - 1e-6), 0)
    # weights of persons need not add up to a whole number
    upper = np.ceil(counts.records + reach - 1e-6)
    return lower, np.maximum(upper, lower)


def accuracy_intervals(counts: Counts, noise: Noise, level: float) -> tuple[Floats, Floats]:
    """Lower and upper ends of intervals of the accuracies behind each pair of counts."""
    error = 1 - level
    smallest, largest = sizes(counts, noise, SIZE_ERROR * error)
    # without noise n is known, and the whole error is for p
    share = 1.0 if noise.scale == 0 else 1 - SIZE_ERROR
    tail = share * error / 2

    lower = np.zeros_like(counts.right)
    upper = np.ones_like(counts.right)
    known = np.flatnonzero(smallest > 0)
    # those of similar size together, since they take equally many values of k
    in_order = known[np.argsort(largest[known])]
    for start in range(0, len(in_order), _TOGETHER):
        part = in_order[start : start + _TOGETHER]
        within = (smallest[part], largest[part])
        lower[part] = _lower_ends(counts.at(part), within, noise, tail)
        upper[part] = 1 - _lower_ends(counts.at(part).exchanged(), within, noise, tail)
    return lower, upper


def _lower_ends(
    counts: Counts, within: tuple[Floats, Floats], noise: Noise, error: float
) -> Floats:
    """Smallest accuracies at which T is as large as observed with probability `error` or more, for
    some number of records.
    """
    right = np.maximum(counts.right, 0)
    wrong = np.maximum(counts.wrong, 0)
    likely = np.where(wrong == 0, 1.0, right / np.maximum(right + wrong, 1e-9))
    return _first_accepted(lambda p: largest_tails(counts, within, noise, p) >= error, likely)


def _first_accepted(accepts: Callable[[Floats], NDArray[np.bool_]], likely: Floats) -> Floats:
    """Bisect for the smallest accepted accuracies, below those that are likely; rounded down."""
    low = np.zeros_like(likely)
    high = likely
    for _ in range(_STEPS):
        middle = (low + high) / 2
        accepted = accepts(middle)
        high = np.where(accepted, middle, high)
        low = np.where(accepted, low, middle)
    return low


def largest_tails(counts: Counts, within: tuple[Floats, Floats], noise: Noise, p: Floats) -> Floats:
    """Probability that T(p) is as large as observed, at the number of records where it is
    largest.
    """
    smallest, largest = within
    right = counts.right[:, None]
    # a count below 0 is taken for 0
    wrong = np.maximum(counts.wrong[:, None], 0)
    cells = (counts.right_cells[:, None], counts.wrong_cells[:, None])
    column = p[:, None]

    tail = noise.tails(1 - column, cells[0], column, cells[1])

    # without noise there is one size
    shares = np.linspace(0, 1, _MOST_SIZES) if (largest > smallest).any() else [0.0]
    tails = np.zeros_like(p)
    for share in shares:
        n = np.rint(smallest + share * (largest - smallest))
        k, probability = _binomial(n, p)
        # T is as large as observed if its noise is this or more
        rest = right - k - column * (right + wrong - n[:, None])
        tails = np.maximum(tails, (probability * tail(rest)).sum(axis=1))
    return tails


def _binomial(n: Floats, p: Floats) -> tuple[Floats, Floats]:
    """Values of binomials about their means, and the probability of each; of shape (cells, values).

    What is left out has probability below 1e-15.
    """
    reach = np.ceil(_REACH * np.sqrt(n * p * (1 - p))) + _REACH_OF_RARE
    first = np.maximum(np.floor(n * p) - reach, 0)
    k = first[:, None] + np.arange(int(2 * reach.max()) + 1)
    n = n[:, None]
    p = p[:, None]
    inside = np.minimum(k, n)
    logarithm = gammaln(n + 1) - gammaln(inside + 1) - gammaln(n - inside + 1)
    logarithm += xlogy(inside, p) + xlog1py(n - inside, -p)
    return k, np.where(k <= n, np.exp(logarithm), 0.0)


def accuracy(counts: Counts, noise: Noise) -> Floats:
    """Accuracies, nan where noise hides whether there are records; between 0 and 1."""
    records = counts.records
    # as in an interval at 95 %
    clear = sizes(counts, noise, SIZE_ERROR * 0.05)[0] > 0
    shares = np.full_like(records, math.nan)
    shares[clear] = np.clip(counts.right[clear] / records[clear], 0, 1)
    return shares


def clear(counts: Counts, noise: Noise) -> NDArray[np.bool_]:
    """Tell which numbers of records are far enough above 0 to be divided by."""
    return np.asarray(counts.records > np.maximum(CLEAR * counts.deviation(noise), 0.0))


def _all_clear(counts: Counts, noise: Noise) -> bool:
    return bool(clear(counts, noise).all())


def balanced_accuracy(counts: Counts, noise: Noise) -> float:
    """Mean of the accuracies of classes; nan where noise hides the size of one."""
    if not _all_clear(counts, noise):
        return math.nan
    shares, _ = _unbiased(counts, noise)
    return float(np.clip(shares.mean(), 0, 1))


def balanced_interval(counts: Counts, noise: Noise, level: float) -> tuple[float, float]:
    """Interval of the mean of the accuracies of classes."""
    n_classes = len(counts.right)
    if n_classes == 1 or not _all_clear(counts, noise):
        lowers, uppers = accuracy_intervals(counts, noise, 1 - (1 - level) / n_classes)
        return float(lowers.mean()), float(uppers.mean())

    shares, variances = _unbiased(counts, noise)
    mean = float(np.clip(shares.mean(), 0, 1))
    deviation = math.sqrt(variances.sum()) / n_classes
    error = (1 - level) / 2
    lower = _lower_end_of_mean(mean, counts.records, deviation, error)
    return lower, 1 - _lower_end_of_mean(1 - mean, counts.records, deviation, error)


def clear_interval(counts: Counts, noise: Noise, level: float) -> tuple[float, float]:
    """Interval of the mean of the accuracies of the clear classes; (0, 1) without such classes."""
    chosen = clear(counts, noise)
    if not chosen.any():
        return 0.0, 1.0
    lower, upper = balanced_interval(counts.at(chosen), noise, level)
    if noise.scale == 0:
        return lower, upper

    # the bias of choosing classes by their noisy size
    distance = CLEAR - counts.records / counts.deviation(noise)
    density = np.exp(-distance * distance / 2) / math.sqrt(2 * math.pi)
    bias = float(math.sqrt(2) / (2 * CLEAR) * density.sum() / chosen.sum())
    return max(lower - bias, 0.0), min(upper + bias, 1.0)


def _lower_end_of_mean(mean: float, sizes: Floats, deviation: float, error: float) -> float:
    """Smallest balanced accuracy of classes of these sizes at which one as large as `mean` is
    observed, with Gaussian noise, with probability `error` or more.
    """

    def accepts(p: Floats) -> NDArray[np.bool_]:
        records = np.array([equal_records(float(p[0]), sizes)])
        k, probability = _binomial(records, p)
        # a millionth of a record is rounding
        rest = mean * records[:, None] - 1e-6 - k
        if deviation > 0:
            beyond = ndtr(-rest / (deviation * records[:, None]))
        else:
            beyond = (rest <= 0).astype(np.float64)
        return np.asarray((probability * beyond).sum(axis=1) >= error)

    return float(_first_accepted(accepts, np.array([mean]))[0])


def equal_records(mean: float, sizes: Floats) -> float:
    """Number of records whose share of right ones varies as much as the mean of the accuracies of
    classes of these sizes at most does, if that mean is `mean`; whole.
    """
    # by symmetry of right and wrong
    mean = max(mean, 1 - mean)
    low = 0.0
    high = 1 / float(sizes.min())
    for _ in range(60):
        slope = (low + high) / 2
        if np.minimum((1 + slope * sizes) / 2, 1).mean() < mean:
            low = slope
        else:
            high = slope
    # the smaller slope keeps the variance above 0
    p = np.minimum((1 + low * sizes) / 2, 1)
    variance = float((p * (1 - p) / sizes).mean()) / len(sizes)
    if variance <= 0:
        return 1.0
    return max(math.floor(mean * (1 - mean) / variance + 1e-6), 1.0)


def _unbiased(counts: Counts, noise: Noise) -> tuple[Floats, Floats]:
    """Accuracy of each class without bias by noise, not clipped, and its variance by noise."""
    r = counts.right_cells
    w = counts.wrong_cells
    records = counts.records
    if noise.scale == 0:
        return counts.right / records, np.zeros_like(records)

    deviation = counts.deviation(noise)
    difference = w * counts.right - r * counts.wrong
    x = records / deviation
    inverse = np.exp(log_ndtr(-x) + x * x / 2) * math.sqrt(2 * math.pi) / deviation
    shares = (r + difference * inverse) / (r + w)
    p = np.clip(shares, 0, 1)
    # to the second order of noise over records
    first = noise.variance * ((1 - p) ** 2 * r + p**2 * w) / records**2
    return shares, first * (1 + 3 / x**2)
