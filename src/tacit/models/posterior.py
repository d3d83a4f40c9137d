"""Posterior of class means and class sizes, given their noisy sums and public rows.

Empirical Bayes in closed form. Everything here is post-processing of a release and public rows, so
it has no privacy cost. Coordinates are those of the principal axes of the public rows, along which
these rows have variances w; private rows x are unit rows about the public centre.

The model. Class c has n_c rows, drawn about its mean m_c with covariance h w, where h is the
within-class share (`within_share`). A noisy sum and a noisy count of the class are released:

    S_c ~ N(n_c m_c, n_c h w + s^2),    count_c ~ N(n_c, t^2).

The noise, s and t, may differ between classes, as where owners who list other classes add their
sums.

The prior of m_c is a mixture of three families, whose weights all classes share; g is the mean of
all private rows (`grand_mean`):

    "as public"   about the mean of a neighbourhood of public rows, variance 0.3 w
    "shifted"     about the same neighbourhoods, moved so that their mean is g, variance 0.3 w
    "elsewhere"   about g, variance 0.5 w; or about the name of the class, variance 0.25 w
                  (`named_posterior.py`)

The first two families select public records: a class whose sum is dominated by noise gets the
average of the neighbourhoods that explain it. The third family shrinks means towards g, for tasks
that the public rows do not resemble. A class that has a name and less than one record is decided by
its name alone: another family would explain the noise in its sum better.

The estimate has three steps.

1. EM on all classes at once estimates the family weights and the distribution of sizes, with at
   most `PICKED` neighbourhoods.
2. The size n_c is its posterior estimate, scaled so that sizes add up to no more than the counts;
   where counts are precise, it is the count.
3. Given n_c, the posterior of m_c is a mixture of Gaussians. Its mean and variance are returned.

Two corrections. Under imbalance g may be almost the mean of the largest class, so g is multiplied
by how clearly public rows are of another kind than private rows (`distinctness`); centres about
names are not. The trust is the weight of the first two families, which EM estimates poorly from few
classes (`class_trust`).

Where the constants were chosen is said in docs/auto.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.compute.timing import SOLVING, phase
from tacit.models.noisy_sums import NoisySums, column
from tacit.models.public_prior import PublicPrior, distinctness
from tacit.models.rows import Floats
from tacit.models.spectra import spaced

# Variance of class means about the points of a family, as a multiple of w.
ABOUT_NEIGHBOURHOOD = 0.3
ELSEWHERE = 0.5
ABOUT_NAME = 0.25

# The least share of the variance of rows within classes (h), and between them.
LEAST_WITHIN = 0.4
LEAST_BETWEEN = 0.02

# The least size of a class that has a name; without names it is 1.
LEAST_NAMED_SIZE = 0.1

# EM: sizes on its grid, most neighbourhoods, and rounds.
SIZES = 40
PICKED = 512
ROUNDS = 20

# Classes that count as trusted beside those of the task, if public rows are of its kind.
PRIOR_CLASSES = 3.0

# Counts replace the posterior of sizes if their noise is below this share of their lower quartile.
PRECISE_COUNT = 0.1


@dataclass(frozen=True)
class ClassPosterior:
    """Mean and variance of each class's mean, both (C, p) and along the axes, and each class's
    size, (C,).

    `trust`, from 0 to 1, is the weight of the families whose centres differ between classes
    (`class_trust`); `within` is the share of the variance of rows that lies within classes.
    """

    mean: Floats
    variance: Floats
    sizes: Floats
    trust: float
    within: float

    @property
    def between(self) -> float:
        """Mean squared length of the class means, at least 0.02."""
        return max(1 - self.within, LEAST_BETWEEN)

    def clarity(self, noise: float | Floats) -> Floats:
        """Share of each class's sum, in squared length, that is not noise of this standard
        deviation, one for all classes or one for each; (C,).
        """
        signal = self.sizes**2 * self.between
        return np.asarray(signal / (signal + self.mean.shape[1] * noise**2))


def within_share(release: NoisySums) -> float:
    """Share of the variance of unit rows that lies within classes, at least 0.4.

    It is 1 less the squared length of class means. For unit rows E |S|^2 = n^2 |m|^2 + n (1 -
    |m|^2) + p s^2, so |S|^2 - n - p s^2 estimates n (n - 1) |m|^2 without bias.

    >>> S, n = np.array([[60.0, 0.0], [0.0, 60.0]]), np.array([100.0, 100.0])
    >>> round(within_share(NoisySums(S, 0.0, n, 0.0)), 3)  # means of length 0.6
    0.646
    """
    n = release.counts

    # The noise of a count adds its variance to the square of the count.
    pairs = float((n * (n - 1) - release.count_noise**2).sum())
    if pairs <= 0:
        # Noise hides the counts: nothing is known of the means.
        return 1.0

    if isinstance(release.noise, np.ndarray):
        return share_by_weights(release, pairs / len(n))

    energy = float((release.sums**2).sum()) - release.sums.size * release.noise**2 - float(n.sum())
    return min(max(1 - energy / pairs, LEAST_WITHIN), 1.0)


def share_by_weights(release: NoisySums, mean_pairs: float) -> float:
    """Return the same share where noise differs between classes, so that a class of much noise does
    not hide the others.

    The estimate of a class weighs 1 over (mean n (n - 1) + p s^2)^2: the squared length of its sum
    has about that variance.
    """
    n = release.counts
    noise_energy = release.sums.shape[1] * np.square(release.noise)
    energy = (release.sums**2).sum(axis=1) - noise_energy - n
    pairs = n * (n - 1) - np.square(release.count_noise)

    weights = (mean_pairs / (mean_pairs + noise_energy)) ** 2
    weighted_pairs = float(weights @ pairs)
    if weighted_pairs <= 0:
        return 1.0
    return min(max(1 - float(weights @ energy) / weighted_pairs, LEAST_WITHIN), 1.0)


@phase(SOLVING)
def class_posterior(
    prior: PublicPrior, release: NoisySums, centres: Floats | None = None
) -> ClassPosterior:
    """Posterior of every class's mean and size.

    Parameters
    ----------
    centres : ndarray of shape (C, p), optional
        Centres of the third family, one for each class, if names give them.
    """
    # Without names, a class without records needs a record to have a mean at all. A name is such a
    # mean, and a sum of no records is no evidence against it.
    least_size = 1.0
    if centres is not None:
        least_size = LEAST_NAMED_SIZE

    n_classes = len(release.counts)
    within = within_share(release)
    grand = grand_mean(release)
    foreign = distinctness(grand, prior.variances)
    shrunk_grand = foreign * grand

    # EM. A subset of the neighbourhoods is enough for shares of sizes and of families.
    subset = spaced(prior.neighbourhoods, PICKED)
    families = _families(prior, subset, shrunk_grand, centres, within)
    size_grid = _size_grid(release, least_size)
    evidence = _log_evidence(release, families, size_grid)
    size_shares, family_weights = expectation_maximisation(evidence)
    sizes = _class_sizes(release, size_grid, size_shares, least_size)

    # The means, with all neighbourhoods.
    families = _families(prior, prior.neighbourhoods, shrunk_grand, centres, within)
    by_name_alone = np.zeros(n_classes, dtype=bool)
    if centres is not None:
        by_name_alone = sizes < 1
    mean, variance = _mixture(families, family_weights, release, sizes, by_name_alone)

    # Centres of names differ between classes, so they are trusted.
    trust = 1.0
    if centres is None:
        public_weight = float(1 - family_weights[-1])
        trust = class_trust(public_weight, foreign, n_classes)

    return ClassPosterior(mean, variance, sizes, trust, within)


def _size_grid(release: NoisySums, least_size: float) -> Floats:
    """Candidate sizes of a class, (SIZES,), with evenly spaced logarithms."""
    # Beyond the largest count, and beyond what the noise of a count may hide.
    largest = max(10.0, 2.0 * float(release.counts.max()), 3.0 * float(np.max(release.count_noise)))
    return np.geomspace(least_size, largest, SIZES)


def _log_evidence(release: NoisySums, families: list[Family], size_grid: Floats) -> Floats:
    """Log likelihood of each class's sum and count, (C, SIZES, families), up to a constant."""
    noise = release.noise_column
    evidence_by_family = []
    for family in families:
        evidence_by_size = [family.evidence(release.sums, n, noise) for n in size_grid]
        evidence_by_family.append(np.stack(evidence_by_size, axis=1))
    evidence = np.stack(evidence_by_family, axis=2)

    # Sizes between two points of the grid must not seem impossible, however precise the counts are.
    count_sd = np.hypot(column(release.count_noise), 0.05 * size_grid)
    deviations = (release.counts[:, None] - size_grid) / count_sd
    evidence += (-0.5 * deviations**2 - np.log(count_sd))[:, :, None]
    return evidence


def _class_sizes(
    release: NoisySums, size_grid: Floats, size_shares: Floats, least_size: float
) -> Floats:
    """Sizes of the classes, (C,), from their posterior shares on the grid."""
    if np.max(release.count_noise) < PRECISE_COUNT * np.quantile(release.counts, 0.25):
        return np.asarray(np.maximum(release.counts, least_size))

    # Geometric means: the grid is one of logarithms.
    sizes = np.exp(size_shares @ np.log(size_grid))

    # The total is known better than each size.
    return np.asarray(np.maximum(sizes * min(1.0, _total(release) / sizes.sum()), least_size))


def _mixture(
    families: list[Family],
    family_weights: Floats,
    release: NoisySums,
    sizes: Floats,
    by_last_alone: NDArray[np.bool_],
) -> tuple[Floats, Floats]:
    """Mean and variance of each class's mean, (C, p), over all families; over the last one alone in
    the classes (C,) that `by_last_alone` says.
    """
    noise = release.noise_column
    posteriors = [family.posterior(release.sums, sizes, noise) for family in families]
    log_evidence = np.stack([evidence for evidence, _, _ in posteriors], axis=1)

    # Posterior weights of the families in each class, (C, families).
    weights = softmax(log_evidence + np.log(family_weights), axis=1)
    weights[by_last_alone] = np.eye(len(families))[-1]

    shape = release.sums.shape
    mean = np.zeros(shape)
    square = np.zeros(shape)
    for i, (_, family_mean, family_variance) in enumerate(posteriors):
        weight = weights[:, [i]]
        mean += weight * family_mean
        square += weight * (family_variance + family_mean**2)

    return mean, np.maximum(square - mean**2, 1e-12)


def class_trust(public_weight: float, foreign: float, n_classes: int) -> float:
    """Trust in the families whose centres differ between classes: their weight by EM, corrected for
    few classes.

    `foreign` is the distinctness of the public rows.
    """
    if n_classes == 2:
        # Of two classes EM cannot tell which family holds.
        return 1 - foreign

    # Classes that are trusted beforehand; fewer if public rows are of another kind.
    prior_classes = PRIOR_CLASSES * (1 - foreign)
    return (public_weight * n_classes + prior_classes) / (n_classes + prior_classes)


def _total(release: NoisySums) -> float:
    """Total number of rows, at least its noise and one row per class."""
    n_classes = len(release.counts)
    total = float(release.counts.sum())
    total_noise = release.mean_count_noise * math.sqrt(n_classes)
    return max(total, total_noise, float(n_classes))


def grand_mean(release: NoisySums) -> Floats:
    """Mean of all private rows, (p,), shrunk by the share of its energy that is noise."""
    n_classes, width = release.sums.shape
    total = _total(release)
    mean = release.sums.sum(axis=0) / total

    energy = float(mean @ mean)
    signal = max(energy - n_classes * width * (release.mean_noise / total) ** 2, 0.0)
    signal_share = 0.0
    if energy > 0:
        signal_share = signal / energy

    return np.asarray(mean * signal_share)


class Family:
    """A prior of class means: equally likely points (J, p), or one point for each class, with a
    variance about them.

    Noise is one number, or (C, 1) if it differs between classes.
    """

    def __init__(
        self,
        prior: PublicPrior,
        points: Floats,
        spread: float,
        within: float,
        per_class: bool = False,
    ) -> None:
        self.points = points
        self.squares = points**2
        self.per_class = per_class

        # Variances along the axes, (p,): of class means about a point, of rows about their mean.
        self.about = spread * prior.variances
        self.within = within * prior.variances

    def _log_likelihood(
        self, sums: Floats, sizes: Floats, noise: float | Floats
    ) -> tuple[Floats, Floats]:
        """Log likelihood of sums, in a part by point, (C, J) or (C, 1), and a part of the class,
        (C,).

        Given the point m, S ~ N(n m, v) with v = n^2 about + n within + s^2 along each axis, so

            log p(S | m) = [n S m - n^2 m^2 / 2] / v - [S^2 / v + log v] / 2,

        up to a constant, and only the first bracket depends on m.
        """
        n = sizes[:, None]
        precision = 1.0 / (n**2 * self.about + n * self.within + noise**2)
        by_class = 0.5 * (np.log(precision) - sums**2 * precision).sum(axis=1)

        if self.per_class:
            products = n * sums * self.points - 0.5 * n**2 * self.squares
            by_point = (precision * products).sum(axis=1, keepdims=True)
            return by_point, by_class

        by_point = (n * sums * precision) @ self.points.T
        by_point = by_point - 0.5 * (n**2 * precision) @ self.squares.T
        # All points are equally likely.
        return by_point, by_class - np.log(len(self.points))

    def evidence(self, sums: Floats, size: float, noise: float | Floats) -> Floats:
        """Log evidence of each class's sum, (C,), if all classes had this size."""
        by_point, by_class = self._log_likelihood(sums, np.full(len(sums), size), noise)
        return np.asarray(log_sum(by_point) + by_class)

    def posterior(
        self, sums: Floats, sizes: Floats, noise: float | Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Log evidence (C,), mean and variance (C, p) of each class's mean."""
        by_point, by_class = self._log_likelihood(sums, sizes, noise)
        evidence = log_sum(by_point) + by_class

        # Mean and variance of the point.
        if self.per_class:
            centre = self.points
            scatter = np.zeros(self.points.shape)
        else:
            shares = softmax(by_point, axis=1)
            centre = shares @ self.points
            scatter = np.maximum(shares @ self.squares - centre**2, 0.0)

        # Given the point, the mean moves from it towards S/n by the gain.
        n = sizes[:, None]
        gain = self.about / (self.about + self.within / n + (noise / n) ** 2)
        mean = centre + gain * (sums / n - centre)
        variance = (1 - gain) ** 2 * scatter + self.about * (1 - gain)
        return evidence, mean, variance


def _families(
    prior: PublicPrior,
    neighbourhoods: Floats,
    grand: Floats,
    centres: Floats | None,
    within: float,
) -> list[Family]:
    """The families "as public", "shifted" and "elsewhere" (about `centres` if there are some)."""
    shifted = neighbourhoods - prior.neighbourhoods.mean(axis=0) + grand
    as_public_family = Family(prior, neighbourhoods, ABOUT_NEIGHBOURHOOD, within)
    shifted_family = Family(prior, shifted, ABOUT_NEIGHBOURHOOD, within)

    if centres is None:
        elsewhere_family = Family(prior, grand[None], ELSEWHERE, within)
    else:
        elsewhere_family = Family(prior, centres, ABOUT_NAME, within, per_class=True)

    return [as_public_family, shifted_family, elsewhere_family]


def expectation_maximisation(evidence: Floats) -> tuple[Floats, Floats]:
    """Posterior shares of sizes (C, SIZES), and family weights, from log evidence of shape (C,
    SIZES, families).
    """
    n_classes, n_sizes, n_families = evidence.shape
    size_weights = np.full(n_sizes, 1 / n_sizes)
    family_weights = np.full(n_families, 1 / n_families)

    for _ in range(ROUNDS):
        # E-step: the share of each size and family in each class.
        joint = evidence + np.log(size_weights)[None, :, None] + np.log(family_weights)
        shares = softmax(joint, axis=(1, 2))

        # M-step. Sizes are smoothed over the grid; nothing gets a weight of zero.
        padded = np.pad(shares.sum(axis=(0, 2)), 2, mode="edge")
        smooth = np.convolve(padded, [0.1, 0.2, 0.4, 0.2, 0.1], "valid")
        size_weights = 0.95 * smooth / smooth.sum() + 0.05 / n_sizes
        family_weights = 0.98 * shares.sum(axis=(0, 1)) / n_classes + 0.02 / n_families

    return np.asarray(shares.sum(axis=2)), family_weights


def log_sum(logs: Floats) -> Floats:
    """Log of the sum of exponentials of each row; a tenth of scipy's time on few rows."""
    largest = logs.max(axis=1)
    return np.asarray(largest + np.log(np.exp(logs - largest[:, None]).sum(axis=1)))


def softmax(logs: Floats, axis: int | tuple[int, ...]) -> Floats:
    """Exponentials, scaled so that they add up to 1 along the axis."""
    shares = np.exp(logs - logs.max(axis=axis, keepdims=True))
    return np.asarray(shares / shares.sum(axis=axis, keepdims=True))
