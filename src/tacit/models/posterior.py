"""What noisy class sums say about class means, given a public prior: empirical Bayes in closed form.

All of this is post-processing of a release and public rows. Coordinates are those of the public principal axes, with
variances w; rows x are unit rows about the public centre.

Model. A class has n records about its mean m, with covariance W = 0.7 w. Its released sum is S ~ N(n m, n W + s^2 I),
its released count N(n, t^2). The prior of m is a mixture of three families, whose weights the classes share:

    "as public"   about the mean of a neighbourhood of public rows, variance 0.3 w
    "shifted"     the same neighbourhoods, moved to the private grand mean
    "elsewhere"   about the private grand mean alone, variance 0.5 w

The first two include the selection of public records: a class whose sum is dominated by noise gets the average of the
neighbourhoods that explain it. The third is a shrunk mean, for tasks that the public rows do not resemble. The family
weights and the distribution of n over classes are estimated by EM on all classes at once, with `PICKED` of the
neighbourhoods, and n by its posterior, or by its count where that is known well (`KNOWN`).
Given n, every posterior is a mixture of Gaussians, of which the mean and the variance are used.

Decision. The density of a row in a class, m integrated out: N(x; E m, V + Var m), with V the within-class covariance
softened to the power 0.6, and Var m multiplied as `density` is told. A class known poorly is wide, not noisy, so it
keeps a share of the space.

Where the constants were chosen is said in docs/auto.md.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.models.rows import Floats, unit_rows_about
from tacit.models.spectra import MOST_ENTRIES, principal_axes, spaced

ROWS, ANCHORS, NEIGHBOURS = 16_384, 2_048, 0.01
WITHIN, ABOUT_NEIGHBOURHOOD, ELSEWHERE = 0.7, 0.3, 0.5
ISOTROPIC, SOFTNESS, FLOOR = 0.1, 0.6, 0.003
SIZES, PICKED, ROUNDS = 40, 512, 20
KNOWN = 0.1  # noise of a count over the lower quartile of counts, below which counts are taken as they are


@dataclass(frozen=True)
class PublicPrior:
    """What public rows say about classes."""

    axes: Floats
    """Public principal axes, the columns of a (d, p) array; p is d, or less if rows are wide: `principal_axes`."""
    variances: Floats
    """Second moments along the axes, (p,); a tenth of them is spread evenly."""
    neighbourhoods: Floats
    """Means of neighbourhoods of public rows, along the axes, (J, p)."""

    @property
    def within(self) -> Floats:
        """Variances within a class, softened for decisions and scaled so that within/softened averages 1."""
        within = WITHIN * self.variances + FLOOR * self.variances.max()
        softened = within**SOFTNESS
        return np.asarray(softened * np.mean(within / softened))


@dataclass(frozen=True)
class ClassPosterior:
    """What is believed of each class: mean and variance of its mean, each (C, d), along the axes; and its size, (C,).

    `trust` is the weight of the two families of public neighbourhoods, from 0 to 1.
    """

    mean: Floats
    variance: Floats
    sizes: Floats
    trust: float


def public_prior(public: NDArray[np.generic], centre: Floats | None) -> PublicPrior:
    """Learn the prior from public rows of shape (m, d): at most 16,384 of them, evenly spaced, and 2^26 entries."""
    rows = unit_rows_about(spaced(public, min(ROWS, MOST_ENTRIES // public.shape[1])), centre)
    variances, axes = principal_axes(rows)
    if variances.max() <= 0:
        variances = np.ones_like(variances) / len(variances)
    variances = (1 - ISOTROPIC) * variances + ISOTROPIC * variances.mean()
    return PublicPrior(axes, variances, _neighbourhoods(rows) @ axes)


def _neighbourhoods(rows: Floats) -> Floats:
    """For evenly spaced rows, the mean of the nearest 1 % of all rows."""
    nearest = max(1, round(NEIGHBOURS * len(rows)))
    narrow = rows.astype(np.float32)
    anchors = np.asarray(spaced(narrow, ANCHORS))
    means = np.empty(anchors.shape)
    for start in range(0, len(anchors), 256):
        similarity = anchors[start : start + 256] @ narrow.T
        chosen = np.argpartition(-similarity, nearest - 1, axis=1)[:, :nearest]
        means[start : start + 256] = [rows[nearby].mean(axis=0) for nearby in chosen]
    return means


def class_posterior(
    prior: PublicPrior, sums: Floats, noise: float, counts: Floats, count_noise: float
) -> ClassPosterior:
    """Posterior of every class's mean and size.

    `sums`, of shape (C, d), are noisy class sums along the axes, and `counts`, of shape (C,), noisy class sizes. The
    noise in their entries has standard deviations `noise` and `count_noise`.
    """
    grand = _grand_mean(sums, noise, counts, count_noise)
    sizes = np.geomspace(1.0, max(10.0, 2.0 * float(counts.max()), 3.0 * count_noise), SIZES)
    picked = spaced(prior.neighbourhoods, PICKED)
    few = _families(prior, np.asarray(picked), grand)
    evidence = np.stack([np.stack([family.evidence(sums, n, noise) for n in sizes], 1) for family in few], 2)
    doubt = np.hypot(count_noise, 0.05 * sizes)
    evidence += (-0.5 * ((counts[:, None] - sizes) / doubt) ** 2 - np.log(doubt))[:, :, None]
    of_sizes, of_families = _expectation_maximisation(evidence)
    known = count_noise < KNOWN * np.quantile(counts, 0.25)
    records = np.maximum(counts, 1.0) if known else np.exp(of_sizes @ np.log(sizes))

    each = [family.posterior(sums, records, noise) for family in _families(prior, prior.neighbourhoods, grand)]
    weights = _normalised(np.stack([part[0] for part in each], 1) + np.log(of_families), axis=1)
    mean = sum(weights[:, [i]] * part[1] for i, part in enumerate(each))
    square = sum(weights[:, [i]] * (part[2] + part[1] ** 2) for i, part in enumerate(each))
    return ClassPosterior(np.asarray(mean), np.maximum(square - mean**2, 1e-12), records, float(1 - of_families[-1]))


def density(prior: PublicPrior, posterior: ClassPosterior, widening: float) -> tuple[Floats, Floats, Floats]:
    """Log density of a row u along the axes, as squares, slopes and offsets: u^2 . squares + u . slopes + offsets.

    `widening` multiplies the variance of the class means.
    """
    precision = 1.0 / (prior.within + widening * posterior.variance)
    offsets = -0.5 * (posterior.mean**2 * precision - np.log(precision)).sum(axis=1)
    return -0.5 * precision, posterior.mean * precision, offsets


def _grand_mean(sums: Floats, noise: float, counts: Floats, count_noise: float) -> Floats:
    """Mean of all private rows, shrunk by the share of its energy that is noise."""
    n_classes, width = sums.shape
    total = max(float(counts.sum()), count_noise * n_classes**0.5, float(n_classes))
    mean = sums.sum(axis=0) / total
    energy = float(mean @ mean)
    signal = max(energy - n_classes * width * (noise / total) ** 2, 0.0)
    return np.asarray(mean * (signal / energy if energy > 0 else 0.0))


class _Family:
    """A prior of class means: equally likely points with a variance about them."""

    def __init__(self, prior: PublicPrior, means: Floats, spread: float) -> None:
        self.means, self.squares = means, means**2
        self.about = spread * prior.variances
        self.within = WITHIN * prior.variances

    def _log_likelihood(self, sums: Floats, sizes: Floats, noise: float) -> tuple[Floats, Floats]:
        n = sizes[:, None]
        precision = 1.0 / (n**2 * self.about + n * self.within + noise**2)
        each = (n * sums * precision) @ self.means.T - 0.5 * (n**2 * precision) @ self.squares.T
        common = 0.5 * (np.log(precision) - sums**2 * precision).sum(axis=1) - np.log(len(self.means))
        return each, common

    def evidence(self, sums: Floats, size: float, noise: float) -> Floats:
        each, common = self._log_likelihood(sums, np.full(len(sums), size), noise)
        return np.asarray(_log_sum(each) + common)

    def posterior(self, sums: Floats, sizes: Floats, noise: float) -> tuple[Floats, Floats, Floats]:
        """Log evidence (C,), mean and variance (C, d) of each class's mean."""
        each, common = self._log_likelihood(sums, sizes, noise)
        shares = _normalised(each, axis=1)
        n = sizes[:, None]
        gain = self.about / (self.about + self.within / n + (noise / n) ** 2)
        centre = shares @ self.means
        scatter = np.maximum(shares @ self.squares - centre**2, 0.0)
        mean = centre + gain * (sums / n - centre)
        evidence = _log_sum(each) + common
        return evidence, mean, (1 - gain) ** 2 * scatter + self.about * (1 - gain)


def _families(prior: PublicPrior, means: Floats, grand: Floats) -> list[_Family]:
    shifted = means - prior.neighbourhoods.mean(axis=0) + grand
    points = ((means, ABOUT_NEIGHBOURHOOD), (shifted, ABOUT_NEIGHBOURHOOD), (grand[None], ELSEWHERE))
    return [_Family(prior, means, spread) for means, spread in points]


def _expectation_maximisation(evidence: Floats) -> tuple[Floats, Floats]:
    """Posterior over sizes (C, SIZES), and family weights, from log evidence of shape (C, SIZES, families)."""
    n_classes, n_sizes, n_families = evidence.shape
    of_sizes, of_families = np.full(n_sizes, 1 / n_sizes), np.full(n_families, 1 / n_families)
    for _ in range(ROUNDS):
        joint = evidence + np.log(of_sizes)[None, :, None] + np.log(of_families)
        shares = _normalised(joint, axis=(1, 2))
        smooth = np.convolve(np.pad(shares.sum(axis=(0, 2)), 2, mode="edge"), [0.1, 0.2, 0.4, 0.2, 0.1], "valid")
        of_sizes = 0.95 * smooth / smooth.sum() + 0.05 / n_sizes
        of_families = 0.98 * shares.sum(axis=(0, 1)) / n_classes + 0.02 / n_families
    return np.asarray(shares.sum(axis=2)), of_families


def _log_sum(logs: Floats) -> Floats:
    """Log of the sum of exponentials of each row; a tenth of scipy's time on few rows."""
    largest = logs.max(axis=1)
    return np.asarray(largest + np.log(np.exp(logs - largest[:, None]).sum(axis=1)))


def _normalised(logs: Floats, axis: int | tuple[int, ...]) -> Floats:
    shares = np.exp(logs - logs.max(axis=axis, keepdims=True))
    return np.asarray(shares / shares.sum(axis=axis, keepdims=True))
