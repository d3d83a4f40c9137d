"""Posterior of class means with class names as a prior, unless the noisy sums contradict them.

Everything here is post-processing of a release, public rows and public names, so it has no privacy
cost. Coordinates are those of `posterior.py`: the principal axes of the public rows.

The model. Let t_c be the row of the name of class c, t the mean of these rows weighted by class
size, and g the mean of all private rows. Names say where the mean m_c of a class lies, up to one
common length b:

    m_c ~ N(g + b (t_c - t), v w),    b ~ N(0.35, 0.25^2),

where w are the variances of the public rows along the axes; v is `ELSEWHERE` in the regression for
b, and `posterior.ABOUT_NAME` in the posterior that follows. b = 0 means that names tell nothing.
The sums S_c = n_c m_c + noise give a linear regression of S_c/n_c on t_c - t, whose posterior has a
closed form.

Where the constants were chosen is said in docs/auto.md.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.models.posterior import ELSEWHERE, ClassPosterior, NoisySums, class_posterior, grand_mean
from tacit.models.public_prior import PublicPrior
from tacit.models.rows import Floats

LENGTH_MEAN = 0.35
LENGTH_SD = 0.25

# Names count as contradicted if their length is surely below this.
LEAST_LENGTH = 0.1

# Wrong names of many classes reach LEAST_LENGTH by chance, since names resemble one another.
# From this many classes on, names must also explain this share of the class means.
MANY_CLASSES = 10
LEAST_SHARE = 0.25


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
    weight = np.sqrt(plain.clarity(release.noise))[:, None]
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
    sizes = plain.sizes[:, None]
    precision = _precision_of_means(prior, release, plain)

    # Weighted least squares with an intercept: subtract the weighted mean from the names.
    centred_names = names - (precision * names).sum(axis=0) / precision.sum()
    information = float((precision * centred_names**2).sum())
    rounding = 1e-12 * float((precision * names**2).sum())
    if information <= rounding:
        # All names are alike.
        return None

    # Posterior of the length b: normal likelihood times normal prior.
    variance = 1 / (information + 1 / LENGTH_SD**2)
    evidence = float((precision * centred_names * release.sums / sizes).sum())
    length = variance * (evidence + LENGTH_MEAN / LENGTH_SD**2)

    # Noise leaves b near its prior mean, so it rarely contradicts any names.
    surely_short = length + 2 * math.sqrt(variance) < LEAST_LENGTH
    explained = _explained_share(release, plain, names, precision, information)
    explains_little = len(names) >= MANY_CLASSES and length < LEAST_SHARE * min(explained, 1.0)
    if surely_short or explains_little:
        return None

    # g weights classes by their sizes; so must the mean of the names.
    mean_name = (sizes * names).sum(axis=0) / sizes.sum()
    return np.asarray(grand_mean(release) + max(length, 0.0) * (names - mean_name))


def _precision_of_means(prior: PublicPrior, release: NoisySums, plain: ClassPosterior) -> Floats:
    """Return the precision of S_c/n_c about its name, (C, 1).

    Three variances add up: of means about names, of rows within classes, and of noise.
    """
    sizes = _certain_sizes(release, plain)
    mean_variance = float(prior.variances.mean())
    about_name = ELSEWHERE * mean_variance
    within_class = plain.within * mean_variance / sizes
    noise = (release.noise / sizes) ** 2
    return np.asarray(1 / (about_name + within_class + noise))


def _certain_sizes(release: NoisySums, plain: ClassPosterior) -> Floats:
    """Return class sizes reduced by the share of noise in their squared total, at least 1; (C, 1).

    Sizes that are mostly noise would otherwise make the sums look precise.
    """
    sizes = plain.sizes[:, None]
    noise_share = len(sizes) * (release.count_noise / float(sizes.sum())) ** 2
    return np.maximum(sizes * math.sqrt(max(1 - noise_share, 0.0)), 1.0)


def _explained_share(
    release: NoisySums, plain: ClassPosterior, names: Floats, precision: Floats, information: float
) -> float:
    """Return |m|/|t|: the length of class means over the length of names.

    The squared length of class means is raised by half a standard deviation of its noise.
    """
    noise_of_square = math.sqrt(names.size / 2) * release.noise**2
    total_square = float((_certain_sizes(release, plain) ** 2).sum())
    squared_means = plain.between + noise_of_square / total_square
    squared_names = information / float(precision.sum())
    return math.sqrt(squared_means / squared_names)
