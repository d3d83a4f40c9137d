"""Posterior of class means with class names as a prior, unless the noisy sums contradict them.

Everything here is post-processing of a release, public rows and public names, so it has no privacy
cost. Coordinates are those of `posterior.py`: the principal axes of the public rows.

The model. Let t_c be the row of the name of class c, t the mean of these rows weighted by class
size, and g the mean of all private rows. Names say where the mean m_c of a class lies, up to one
common length b:

    m_c ~ N(g + b (t_c - t), v w),

where w are the variances of the public rows along the axes; v is `ELSEWHERE` in the regression for
b, and `posterior.ABOUT_NAME` in the posterior that follows. The sums S_c = n_c m_c + noise give a
linear regression of S_c/n_c on t_c - t, and so the posterior of the length b, which decides whether
the names fit (`name_length.py`).

Where the constants were chosen is said in docs/auto.md.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.models.name_length import NameLength, regressed_length
from tacit.models.noisy_sums import NoisySums
from tacit.models.posterior import ELSEWHERE, ClassPosterior, class_posterior, grand_mean
from tacit.models.public_prior import PublicPrior
from tacit.models.rows import Floats

# Least total of the records, where noise hides how many there are.
LEAST_TOTAL = 1e-9


def named_posterior(
    prior: PublicPrior, release: NoisySums, plain: ClassPosterior, names: Floats
) -> ClassPosterior | None:
    """Mix the posterior about the names with the posterior without them, class by class.

    A class whose sum is clear relies on its sum, a class whose sum is noise relies on its name.

    Parameters
    ----------
    plain : ClassPosterior
        The posterior without names.
    names : ndarray of shape (C, p)
        Rows of the class names, along the axes.

    Returns
    -------
    ClassPosterior, or None if the sums contradict the names or all names are alike.
    """
    centres = named_centres(prior, release, plain, names)
    if centres is None:
        return None
    named = class_posterior(prior, release, centres)

    # Weight of the plain posterior, (C, 1): the root of the share of each sum that is not noise.
    weight = np.sqrt(named.clarity(release.noise))[:, None]
    mean_weight = float(weight.mean())

    return ClassPosterior(
        mean=weight * plain.mean + (1 - weight) * named.mean,
        variance=weight * plain.variance + (1 - weight) * named.variance,
        sizes=plain.sizes,
        trust=mean_weight * plain.trust + (1 - mean_weight) * named.trust,
        within=plain.within,
    )


def named_centres(
    prior: PublicPrior, release: NoisySums, plain: ClassPosterior, names: Floats
) -> Floats | None:
    """Return the prior means g + b (t_c - t), (C, p), or None if the sums contradict the names."""
    spread = names - names.mean(axis=0)
    if (spread**2).sum() <= 1e-12 * (names**2).sum():
        # All names are alike.
        return None

    length = name_length(prior, release, plain, names)
    if length.contradicted:
        return None

    # g weights classes by their sizes; so must the mean of the names.
    sizes = plain.sizes[:, None]
    mean_name = (sizes * names).sum(axis=0) / sizes.sum()
    return np.asarray(grand_mean(release) + length.temperature * (names - mean_name))


def name_length(
    prior: PublicPrior, release: NoisySums, plain: ClassPosterior, names: Floats
) -> NameLength:
    """Return the posterior of the length of the names, by a regression of S_c/n_c on t_c - t."""
    sizes = _sizes_of_total(release, plain)
    precision = _precision_of_means(prior, release, plain, sizes)

    # Weighted least squares with an intercept: subtract the weighted mean from the names.
    weights = precision / max(float(precision.sum()), 1e-300)
    centred_names = names - (weights * names).sum(axis=0)
    information = float((precision * centred_names**2).sum())
    evidence = float((precision * centred_names * release.sums / sizes).sum())
    return regressed_length(information, evidence)


def _sizes_of_total(release: NoisySums, plain: ClassPosterior) -> Floats:
    """Return class sizes that add up to no more than the counts do, (C, 1).

    The sizes of the posterior are at least 1. With fewer records than classes, a class without
    records would count as one whose mean is zero, and so as evidence against its name.
    """
    total = max(float(release.counts.sum()), LEAST_TOTAL)
    return np.asarray(plain.sizes * min(1.0, total / float(plain.sizes.sum())))[:, None]


def _precision_of_means(
    prior: PublicPrior, release: NoisySums, plain: ClassPosterior, sizes: Floats
) -> Floats:
    """Return the precision of S_c/n_c about its name, (C, 1).

    Three variances add up: of means about names, of rows within classes, and of noise. Sizes that
    are mostly noise would make the sums look precise, so they are reduced by the share of noise in
    their squared total.
    """
    noise_share = len(sizes) * (release.mean_count_noise / float(sizes.sum())) ** 2
    certain_sizes = sizes * math.sqrt(max(1 - noise_share, 0.0))

    mean_variance = float(prior.variances.mean())
    about_name = ELSEWHERE * mean_variance
    within_class = plain.within * mean_variance

    # 1 / (about + within/n + (noise/n)^2), which is 0 for a class of size 0
    variance_of_sum = (
        certain_sizes**2 * about_name + certain_sizes * within_class + release.noise_column**2
    )
    return np.asarray(certain_sizes**2 / np.maximum(variance_of_sum, 1e-300))
