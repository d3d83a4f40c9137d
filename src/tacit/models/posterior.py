"""What noisy class sums say about class means, given public knowledge: empirical Bayes in closed
form.

All of this is post-processing of a release and public rows. Coordinates are those of the public
principal axes, with variances w; rows x are unit rows about the public centre.

Model. A class has n records about its mean m, with covariance h w; h is the within-class share,
which follows from the sums (`within_share`). Its released sum is S ~ N(n m, n h w + s^2 I), its
released count N(n, t^2). The prior of m is a mixture of three families, whose weights the classes
share:

    "as public"   about the mean of a neighbourhood of public rows, variance 0.3 w
    "shifted"     the same neighbourhoods, moved to the private grand mean g
    "elsewhere"   about g alone, variance 0.5 w; or about g and the class's name, variance 0.25 w
                  (`named_posterior.py`)

The first two include the selection of public records: a class whose sum is dominated by noise gets
the average of the neighbourhoods that explain it. The third is a shrunk mean, for tasks that the
public rows do not resemble. EM on all classes at once estimates the family weights and the
distribution of n, with `PICKED` of the neighbourhoods. The size n is its posterior estimate, scaled
so that sizes add up to no more than the counts, or the count where that is precise (`KNOWN`). Given
n, every posterior is a mixture of Gaussians, of which the mean and the variance are used.

Under imbalance g may be almost the mean of the largest class. So g is multiplied, except about
names, by how clearly public rows are of another kind (`distinctness`). The trust is the weight of
the first two families, which EM estimates poorly with few classes: three more are counted as
trusted, fewer if public rows are of another kind. With two classes EM cannot tell which family
holds, and the trust is 1 minus the distinctness.

Where the constants were chosen is said in docs/auto.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.compute.timing import SOLVING, phase
from tacit.models.public_prior import PublicPrior, distinctness
from tacit.models.rows import Floats
from tacit.models.spectra import spaced

ABOUT_NEIGHBOURHOOD, ELSEWHERE, ABOUT_NAME = 0.3, 0.5, 0.25
LEAST_WITHIN, LEAST_BETWEEN = 0.4, 0.02
SIZES, PICKED, ROUNDS = 40, 512, 20
PRIOR_CLASSES = 3.0
# noise of a count over the lower quartile of counts, below which counts are taken as they are
KNOWN = 0.1


@dataclass(frozen=True)
class NoisySums:
    """Released sums (C, p) along the axes and sizes (C,) of classes, with the standard deviations
    of their noise.
    """

    sums: Floats
    noise: float
    counts: Floats
    count_noise: float


@dataclass(frozen=True)
class ClassPosterior:
    """What is believed of each class: mean and variance of its mean, each (C, p), along the axes;
    and its size, (C,).

    `trust`, from 0 to 1, is that in the families whose centres differ between classes
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

    def clarity(self, noise: float) -> Floats:
        """Share of each class's sum, in squared length, that is not noise of this standard
        deviation; (C,).
        """
        signal = self.sizes**2 * self.between
        return np.asarray(signal / (signal + self.mean.shape[1] * noise**2))


def within_share(release: NoisySums) -> float:
    """Share of the variance of unit rows that lies within classes, at least 0.4: 1 less the squared
    length of means.

    E |S|^2 = n^2 |m|^2 + n (1 - |m|^2) + p s^2 for unit rows, so that each class's |m|^2 follows
    without bias.

    >>> S, n = np.array([[60.0, 0.0], [0.0, 60.0]]), np.array([100.0, 100.0])
    >>> round(within_share(NoisySums(S, 0.0, n, 0.0)), 3)  # means of length 0.6
    0.646
    """
    n = release.counts
    pairs = float((n * (n - 1) - release.count_noise**2).sum())
    energy = float((release.sums**2).sum()) - release.sums.size * release.noise**2 - float(n.sum())
    return min(max(1 - energy / pairs, LEAST_WITHIN), 1.0) if pairs > 0 else 1.0


@phase(SOLVING)
def class_posterior(
    prior: PublicPrior, release: NoisySums, centres: Floats | None = None
) -> ClassPosterior:
    """Posterior of every class's mean and size; `centres`, (C, p), are those of the third family if
    names give some.
    """
    sums, noise, counts, count_noise = (
        release.sums,
        release.noise,
        release.counts,
        release.count_noise,
    )
    within, grand = within_share(release), grand_mean(release)
    apart = distinctness(grand, prior.variances)
    grand = apart * grand
    sizes = np.geomspace(1.0, max(10.0, 2.0 * float(counts.max()), 3.0 * count_noise), SIZES)
    few = _families(prior, spaced(prior.neighbourhoods, PICKED), grand, centres, within)
    evidence = np.stack(
        [np.stack([family.evidence(sums, n, noise) for n in sizes], 1) for family in few], 2
    )
    doubt = np.hypot(count_noise, 0.05 * sizes)
    evidence += (-0.5 * ((counts[:, None] - sizes) / doubt) ** 2 - np.log(doubt))[:, :, None]
    of_sizes, of_families = expectation_maximisation(evidence)
    if count_noise < KNOWN * np.quantile(counts, 0.25):
        records = np.maximum(counts, 1.0)
    else:
        records = np.exp(of_sizes @ np.log(sizes))
        records = np.maximum(records * min(1.0, _total(release) / records.sum()), 1.0)
    families = _families(prior, prior.neighbourhoods, grand, centres, within)
    each = [family.posterior(sums, records, noise) for family in families]
    weights = normalised(np.stack([part[0] for part in each], 1) + np.log(of_families), axis=1)
    mean = sum(weights[:, [i]] * part[1] for i, part in enumerate(each))
    square = sum(weights[:, [i]] * (part[2] + part[1] ** 2) for i, part in enumerate(each))
    trust = class_trust(float(1 - of_families[-1]), apart, len(counts)) if centres is None else 1.0
    return ClassPosterior(
        np.asarray(mean), np.maximum(square - mean**2, 1e-12), records, trust, within
    )


def class_trust(weight: float, apart: float, n_classes: int) -> float:
    """Trust in the families whose centres differ between classes: their weight by EM, corrected for
    few classes.
    """
    if n_classes == 2:
        return 1 - apart
    more = PRIOR_CLASSES * (1 - apart)
    return (weight * n_classes + more) / (n_classes + more)


def _total(release: NoisySums) -> float:
    """Total number of records, at least its noise and one per class."""
    n_classes = len(release.counts)
    return max(
        float(release.counts.sum()), release.count_noise * math.sqrt(n_classes), float(n_classes)
    )


def grand_mean(release: NoisySums) -> Floats:
    """Mean of all private rows, shrunk by the share of its energy that is noise."""
    n_classes, width = release.sums.shape
    total = _total(release)
    mean = release.sums.sum(axis=0) / total
    energy = float(mean @ mean)
    signal = max(energy - n_classes * width * (release.noise / total) ** 2, 0.0)
    return np.asarray(mean * (signal / energy if energy > 0 else 0.0))


class Family:
    """A prior of class means: equally likely points (J, p) with a variance about them, or one point
    for each class.
    """

    def __init__(
        self, prior: PublicPrior, means: Floats, spread: float, within: float, own: bool = False
    ) -> None:
        self.means, self.squares, self.own = means, means**2, own
        self.about = spread * prior.variances
        self.within = within * prior.variances

    def _log_likelihood(self, sums: Floats, sizes: Floats, noise: float) -> tuple[Floats, Floats]:
        n = sizes[:, None]
        precision = 1.0 / (n**2 * self.about + n * self.within + noise**2)
        common = 0.5 * (np.log(precision) - sums**2 * precision).sum(axis=1)
        if self.own:
            each = (precision * (n * sums * self.means - 0.5 * n**2 * self.squares)).sum(
                axis=1, keepdims=True
            )
            return each, common
        each = (n * sums * precision) @ self.means.T - 0.5 * (n**2 * precision) @ self.squares.T
        return each, common - np.log(len(self.means))

    def evidence(self, sums: Floats, size: float, noise: float) -> Floats:
        each, common = self._log_likelihood(sums, np.full(len(sums), size), noise)
        return np.asarray(log_sum(each) + common)

    def posterior(self, sums: Floats, sizes: Floats, noise: float) -> tuple[Floats, Floats, Floats]:
        """Log evidence (C,), mean and variance (C, p) of each class's mean."""
        each, common = self._log_likelihood(sums, sizes, noise)
        shares = normalised(each, axis=1)
        n = sizes[:, None]
        gain = self.about / (self.about + self.within / n + (noise / n) ** 2)
        centre = self.means if self.own else shares @ self.means
        scatter = 0.0 if self.own else np.maximum(shares @ self.squares - centre**2, 0.0)
        mean = centre + gain * (sums / n - centre)
        return log_sum(each) + common, mean, (1 - gain) ** 2 * scatter + self.about * (1 - gain)


def _families(
    prior: PublicPrior, means: Floats, grand: Floats, centres: Floats | None, within: float
) -> list[Family]:
    shifted = means - prior.neighbourhoods.mean(axis=0) + grand
    public = [Family(prior, points, ABOUT_NEIGHBOURHOOD, within) for points in (means, shifted)]
    if centres is None:
        return [*public, Family(prior, grand[None], ELSEWHERE, within)]
    return [*public, Family(prior, centres, ABOUT_NAME, within, own=True)]


def expectation_maximisation(evidence: Floats) -> tuple[Floats, Floats]:
    """Posterior over sizes (C, SIZES), and family weights, from log evidence of shape (C, SIZES,
    families).
    """
    n_classes, n_sizes, n_families = evidence.shape
    of_sizes, of_families = np.full(n_sizes, 1 / n_sizes), np.full(n_families, 1 / n_families)
    for _ in range(ROUNDS):
        joint = evidence + np.log(of_sizes)[None, :, None] + np.log(of_families)
        shares = normalised(joint, axis=(1, 2))
        smooth = np.convolve(
            np.pad(shares.sum(axis=(0, 2)), 2, mode="edge"), [0.1, 0.2, 0.4, 0.2, 0.1], "valid"
        )
        of_sizes = 0.95 * smooth / smooth.sum() + 0.05 / n_sizes
        of_families = 0.98 * shares.sum(axis=(0, 1)) / n_classes + 0.02 / n_families
    return np.asarray(shares.sum(axis=2)), of_families


def log_sum(logs: Floats) -> Floats:
    """Log of the sum of exponentials of each row; a tenth of scipy's time on few rows."""
    largest = logs.max(axis=1)
    return np.asarray(largest + np.log(np.exp(logs - largest[:, None]).sum(axis=1)))


def normalised(logs: Floats, axis: int | tuple[int, ...]) -> Floats:
    """Exponentials that add up to 1 along the axis."""
    shares = np.exp(logs - logs.max(axis=axis, keepdims=True))
    return np.asarray(shares / shares.sum(axis=axis, keepdims=True))
