"""The posterior of class means about the directions of class names, where noisy sums do not
contradict them.

All of this is post-processing of a release, public rows and public names. Coordinates are those of
`posterior.py`. Where the constants were chosen is said in docs/auto.md.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.models.posterior import ELSEWHERE, ClassPosterior, NoisySums, class_posterior, grand_mean
from tacit.models.public_prior import PublicPrior
from tacit.models.rows import Floats

SCALE, SCALE_DEVIATION = 0.35, 0.25  # prior of the length of names
# the least length that helps; of many classes, times |m|/|t|
USEFUL, MANY, USEFUL_OF_MANY = 0.1, 10, 0.25


def named_posterior(
    prior: PublicPrior, release: NoisySums, plain: ClassPosterior, names: Floats
) -> ClassPosterior | None:
    """The posterior about names, (C, p) along the axes, mixed with `plain`; None where the sums
    contradict the names.

    Where its sum is clear a class relies on the plain posterior, where it is noise on that about
    its name: the weight of the former is the root of `clarity`.
    """
    centres = named_centres(prior, release, plain, names)
    if centres is None:
        return None
    named = class_posterior(prior, release, centres)
    f = np.sqrt(plain.clarity(release.noise))[:, None]
    mean, variance = (
        f * plain.mean + (1 - f) * named.mean,
        f * plain.variance + (1 - f) * named.variance,
    )
    trust = float(f.mean() * plain.trust + (1 - f.mean()) * named.trust)
    return ClassPosterior(mean, variance, plain.sizes, trust, plain.within)


def named_centres(
    prior: PublicPrior, release: NoisySums, plain: ClassPosterior, names: Floats
) -> Floats | None:
    """Prior means g + b (t_c - mean t) of class means from names t; None where the sums contradict
    the names.

    The mean of the names weights classes by their sizes, as the mean g of all rows does.

    The common length b is the posterior mean under N(0.35, 0.25^2), from the regression of S_c/n_c
    on t_c; wrong names have b = 0. Names count as contradicted if b, raised by two standard
    deviations of its posterior, is below 0.1; so noise, which leaves b near its prior, rarely
    contradicts any. Of ten classes or more, wrong names may have some 0.1, since names resemble one
    another, but explain little of the class means: b must also be a quarter of |m|/|t|, or of 1 if
    that is less. |m| is the length of class means, its square raised by half a deviation of its
    noise, and |t| that of the names.
    For the precision the squared sizes are reduced by the share of noise in their squared total:
    sizes that are mostly noise would otherwise make the sums look precise.
    """
    n, w = plain.sizes[:, None], float(prior.variances.mean())
    doubt = len(n) * (release.count_noise / float(n.sum())) ** 2
    sure = np.maximum(n * math.sqrt(max(1 - doubt, 0.0)), 1.0)
    precision = 1 / (ELSEWHERE * w + plain.within * w / sure + (release.noise / sure) ** 2)
    spread = names - (precision * names).sum(axis=0) / precision.sum()
    information = float((precision * spread**2).sum())
    # names that are all alike, but for rounding
    if information <= 1e-12 * float((precision * names**2).sum()):
        return None
    variance = 1 / (information + 1 / SCALE_DEVIATION**2)
    b = variance * (
        float((precision * spread * release.sums / n).sum()) + SCALE / SCALE_DEVIATION**2
    )
    doubtful = math.sqrt(names.size / 2) * release.noise**2 / float((sure**2).sum())
    ratio = math.sqrt((plain.between + doubtful) * float(precision.sum()) / information)  # |m|/|t|
    of_many = len(names) >= MANY and b < USEFUL_OF_MANY * min(ratio, 1.0)
    if of_many or b + 2 * math.sqrt(variance) < USEFUL:
        return None
    return np.asarray(
        grand_mean(release) + max(b, 0.0) * (names - (n * names).sum(axis=0) / n.sum())
    )
