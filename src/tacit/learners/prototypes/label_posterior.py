"""Linear scores from a posterior of the mean of each label's rows, where a record may have several.

Everything here is post-processing of a release and public rows, so it has no privacy cost.
Coordinates are the principal axes of the public rows, with variances w. The means have the
posterior of class means (`tacit.models.posterior`), and names are used and left out as there. The
score of a label is that of the linear discriminant between rows with the label and rows without it,

    u . (e_k / v) sqrt(p_k (1 - p_k)),   e_k = (m_k - g) / (1 - p_k),

where m_k is the mean of the label, g that of all rows, p_k the share of the records that have it,
and v = h w, softened to the power `SOFTNESS`; h is the within-class share. Offsets, the scale of
probabilities and thresholds follow from simulated rows (`tacit.models.label_effects`), which have
the posterior variance of the means and the spread of public rows in them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tacit.learners.common.label_calibration import calibrated
from tacit.models.calibration import EXCESS
from tacit.models.label_effects import (
    LabelEffects,
    NoisyLabels,
    public_spread,
    root_variance,
    softened,
)
from tacit.models.label_sets import LabelSets
from tacit.models.named_posterior import named_posterior
from tacit.models.noisy_sums import NoisySums
from tacit.models.posterior import ClassPosterior, class_posterior
from tacit.models.public_prior import PublicPrior
from tacit.models.rows import Floats

# power of the variances by which scores are divided; chosen on GoEmotions
SOFTNESS = 0.6


@dataclass(frozen=True, eq=False)
class LabelScores:
    """Linear scores along the axes, slopes (K, p) and offsets (K,), with the rule of sets."""

    posterior: ClassPosterior
    names_used: bool
    slopes: Floats
    offsets: Floats
    label_sets: LabelSets


def label_scores(prior: PublicPrior, sums: NoisyLabels, names: Floats | None) -> LabelScores:
    """Return the scores of labels from released sums.

    Parameters
    ----------
    sums : NoisyLabels
        In the space of rows; they are turned to the axes here.
    names : ndarray of shape (K, p), optional
        Rows of the names of the labels, along the axes.
    """
    along_axes = replace(sums, sums=sums.sums @ prior.axes, grand=sums.grand @ prior.axes)
    release = NoisySums(along_axes.sums, sums.noise, sums.counts, sums.count_noise)
    posterior = class_posterior(prior, release)
    named = None
    if names is not None:
        named = named_posterior(prior, release, posterior, names)
    if named is not None:
        posterior = named

    effects = _effects(posterior, along_axes)
    variances = softened(posterior.within * prior.variances, SOFTNESS)
    slopes = effects.mean / variances * root_variance(effects.shares)[:, None]

    # rows of a class differ more where classes differ, as `calibration.py` says
    foreign = float(np.linalg.norm(along_axes.grand))
    factor = (1 + EXCESS * foreign) * math.sqrt(posterior.within)

    # one seed, so that the simulation adds no randomness
    rng = np.random.default_rng(0)
    spread = public_spread(effects, prior.sample, factor, rng)
    rows, labels = effects.simulated(spread, rng)
    calibration = calibrated(rows @ slopes.T, labels, effects.shares)
    return LabelScores(
        posterior, named is not None, slopes, calibration.offsets, calibration.label_sets
    )


def _effects(posterior: ClassPosterior, sums: NoisyLabels) -> LabelEffects:
    """Effects of the labels from the posterior of their means."""
    shares = np.minimum(posterior.sizes, sums.records) / (sums.records + 0.5)
    others = 1 - shares[:, None]
    return LabelEffects(
        (posterior.mean - sums.grand) / others,
        posterior.variance / others**2,
        shares,
        sums.grand,
    )
