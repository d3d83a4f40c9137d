"""Effects of labels on rows, where a record may have several labels, and rows simulated from them.

Everything here is post-processing of a release and public rows, so it has no privacy cost.

The model. A share p_k of the records has label k. Given the 0/1 vector y of its labels, a row is

    x = g + sum_k (y_k - p_k) e_k + spread,

where g is the mean of all rows and e_k the effect of label k: the mean of the rows with the label
less the mean of those without it. The simulation draws the effects from their posterior and sets of
labels of which every label is in its share. With r = sum_k p_k labels a record on average, each set
has r labels, rounded down or up. The scale of scores, their offsets and thresholds are fitted to
such rows.

Without public rows the prior of an effect is normal about zero, alike for all labels and in all
directions, with the variance that the sums have beyond their noise.

Source: the drawing of sets is systematic sampling, Madow 1949; the rest is tacit's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.models.rows import Floats

# Number of simulated rows: the most, the fewest, and entries of all rows or scores between them.
ROWS = 4096
FEWEST = 512
ENTRIES = 2**21

# least variance of effects, along an axis, relative to that of rows
LEAST_EFFECT = 1e-4

# shares of labels lie between this and one less this
LEAST_SHARE = 1e-6


@dataclass(frozen=True, eq=False)
class NoisyLabels:
    """Released sums of the rows of each label, (K, p), weights of their records, (K,), the mean of
    all rows, (p,), and the number of records.

    `noise`, `count_noise` and `records_noise` are the standard deviations of the noise on sums,
    weights and the number of records. `sizes` are estimates of the weights, from 0.5 to `records`.
    """

    sums: Floats
    noise: float
    counts: Floats
    count_noise: float
    sizes: Floats
    grand: Floats
    records: float
    records_noise: float

    @property
    def shares(self) -> Floats:
        """Share of the records that have each label, (K,), above 0 and below 1."""
        return np.asarray(self.sizes / (self.records + 0.5))

    @property
    def contrasts(self) -> Floats:
        """Sums less what as many records of no label in particular would add up to, (K, p)."""
        return np.asarray(self.sums - self.sizes[:, None] * self.grand)

    @property
    def spread(self) -> float:
        """Variance of unit rows about their mean, over all axes."""
        return max(1 - float(self.grand @ self.grand), 1e-3)

    def effects(self) -> LabelEffects:
        """Return the posterior of the effects without public rows."""
        width = self.sums.shape[1]
        sizes = self.sizes[:, None]
        contrasts = self.contrasts / sizes

        # of noise and of sampling, along each axis, (K,)
        variance = (self.noise / self.sizes) ** 2 + self.spread / width / self.sizes
        squares = (contrasts**2).mean(axis=1)
        weights = variance**-2
        least = LEAST_EFFECT * self.spread / width
        between = max(float(weights @ (squares - variance) / weights.sum()), least)

        gain = (between / (between + variance))[:, None]
        others = 1 - self.shares[:, None]
        return LabelEffects(
            gain * contrasts / others,
            np.broadcast_to(between * (1 - gain) / others**2, contrasts.shape),
            self.shares,
            self.grand,
        )


@dataclass(frozen=True, eq=False)
class LabelEffects:
    """Mean and variance of the effect of each label, (K, p), the shares of the labels, (K,), and
    the mean of all rows, (p,).
    """

    mean: Floats
    variance: Floats
    shares: Floats
    grand: Floats

    def between(self, axes: Floats) -> Floats:
        """Variance of rows that labels explain along each of the axes, (p, p), of shape (p,)."""
        return np.asarray((self.shares * (1 - self.shares)) @ (self.mean @ axes) ** 2)

    @property
    def n_rows(self) -> int:
        """Number of rows to simulate."""
        n_labels, width = self.mean.shape
        return int(min(ROWS, max(FEWEST, ENTRIES // max(n_labels, width))))

    def simulated(
        self, spread: Floats, rng: np.random.Generator
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """Simulate rows (n, p) with this spread, (n, p), and their labels (n, K)."""
        labels = drawn_sets(self.shares, len(spread), rng)
        means = self.grand + (labels - self.shares) @ self.mean
        deviations = np.sqrt(labels @ self.variance)
        return means + deviations * rng.normal(size=spread.shape) + spread, labels


def drawn_sets(shares: Floats, n: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Draw n sets of labels, (n, K), of which each label is in its share, (K,).

    The number of labels of a set is the sum of the shares, rounded down or up.
    """
    n_labels = len(shares)
    # the labels of each set in a random order lie on a line, each as long as its share; the set has
    # those in which a point start + 0, start + 1, ... lies
    order = rng.permuted(np.tile(np.arange(n_labels), (n, 1)), axis=1)
    ends = np.cumsum(shares[order], axis=1) + rng.random((n, 1))
    starts = ends - shares[order]
    chosen = np.floor(ends) > np.floor(starts)

    labels = np.zeros((n, n_labels), dtype=bool)
    np.put_along_axis(labels, order, chosen, axis=1)
    return labels


def normal_spread(
    effects: LabelEffects, variances: Floats, axes: Floats, rng: np.random.Generator
) -> Floats:
    """Normal spread of rows about their means, (n, p), where rows have the variances (p,) along
    these axes, (p, p).
    """
    # labels explain a part of the variance of rows, but never nearly all
    within = np.maximum(variances - effects.between(axes), variances / 10)
    # the symmetric root, so that the signs of the axes, which are arbitrary, do not matter
    root = (axes * np.sqrt(within)) @ axes.T
    return np.asarray(rng.normal(size=(effects.n_rows, len(within))) @ root)


def even_spread(effects: LabelEffects, variance: float, rng: np.random.Generator) -> Floats:
    """Normal spread of rows about their means, (n, p), alike in all directions.

    Rows have this variance, over all p axes.
    """
    width = effects.mean.shape[1]
    explained = float((effects.shares * (1 - effects.shares)) @ (effects.mean**2).sum(axis=1))
    within = max(variance - explained, variance / 10)
    return np.asarray(rng.normal(size=(effects.n_rows, width)) * math.sqrt(within / width))


def public_spread(
    effects: LabelEffects, sample: Floats, factor: float, rng: np.random.Generator
) -> Floats:
    """Spread of rows about their means, (n, p), as that of public rows (m, p), times a factor."""
    rows = sample[rng.integers(len(sample), size=effects.n_rows)]
    return np.asarray(factor * rows)


def root_variance(shares: Floats) -> Floats:
    """Standard deviation of each label's 0 and 1 over the records, (K,)."""
    bounded = np.clip(shares, LEAST_SHARE, 1 - LEAST_SHARE)
    return np.asarray(np.sqrt(bounded * (1 - bounded)))


def softened(variances: Floats, power: float) -> Floats:
    """Variances raised to a power below 1, with the same mean."""
    powers = variances**power
    return np.asarray(powers * math.fsum(variances) / math.fsum(powers))
