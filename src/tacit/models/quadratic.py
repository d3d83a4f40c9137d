"""Scores of classes from a posterior of their means: density, cosine and names, blended by what the
sums could tell.

Rows u and all arrays are along the public principal axes, with variances w; h is the within-class
share.

"density"   log N(u; E m, V + Var m/2), V being h w softened to the power 0.6. A class known poorly
            is wide, not noisy, so it keeps a share of the space. Right where means are spread
            evenly about the grand mean.
"cosine"    the inner product of u and E m/|E m|, both divided by (h w)^(a/2), a being 0.6 sqrt(1 -
            h), at most 0.3. No length of a mean enters, so that no class takes the rows of others;
            right where the centres that public rows or names give a class differ between classes.
            The squared length of E m is raised by Var m times twice the trust over C^2, which
            discounts a poorly known class among few.
"names"     the inner product of u and the name's direction, where there are names.

Density and cosine have the weights 1 - trust and trust. This blend and the names have the weights f
: 0.05, f being the mean clarity of the classes. Each score is first divided by its standard
deviation within rows, so that weights mean the same for all. To h w a floor of 0.003 max w is
added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.models.posterior import ClassPosterior
from tacit.models.rows import Floats

FLOOR, SOFTNESS, WIDENING = 0.003, 0.6, 0.5
ROOT, STEEP = 0.3, 0.6
NAMES = 0.05  # clarity at which names and the posterior have equal weight


@dataclass(frozen=True)
class QuadraticScores:
    """Scores u^2 . squares + u . slopes + offsets, with squares and slopes of shape (C, p) and
    offsets (C,).
    """

    squares: Floats
    slopes: Floats
    offsets: Floats

    def of(self, rows: Floats) -> Floats:
        """Scores of rows (b, p) along the axes, of shape (b, C)."""
        return np.asarray(rows**2 @ self.squares.T + rows @ self.slopes.T + self.offsets)

    def standardised(self, rows: Floats) -> QuadraticScores:
        """Divided by the standard deviation of scores about their mean of each row, unless that is
        rounding error.
        """
        scores = self.of(rows)
        deviation = float((scores - scores.mean(axis=1, keepdims=True)).std())
        return self.times(1 / deviation if deviation > 1e-12 * float(np.abs(scores).max()) else 1.0)

    def times(self, factor: float) -> QuadraticScores:
        """All scores times a factor."""
        return QuadraticScores(factor * self.squares, factor * self.slopes, factor * self.offsets)

    def plus(self, other: QuadraticScores) -> QuadraticScores:
        """The sum of both scores."""
        return QuadraticScores(
            self.squares + other.squares, self.slopes + other.slopes, self.offsets + other.offsets
        )

    def moved(self, offsets: Floats) -> QuadraticScores:
        """With this, of shape (C,), added to each class's scores."""
        return QuadraticScores(self.squares, self.slopes, self.offsets + offsets)


def density(posterior: ClassPosterior, variances: Floats) -> QuadraticScores:
    """Log density of a row in each class, its mean integrated out."""
    within = _within(posterior, variances)
    softened = within**SOFTNESS
    return log_densities(
        posterior.mean, softened * np.mean(within / softened) + WIDENING * posterior.variance
    )


def log_densities(means: Floats, variances: Floats) -> QuadraticScores:
    """log N(u; m_c, v_c) of each class, with means and variances (C, p), without the constant p
    log(2 pi)/2.
    """
    precision = 1.0 / variances
    offsets = -0.5 * (means**2 * precision - np.log(precision)).sum(axis=1)
    return QuadraticScores(-0.5 * precision, means * precision, offsets)


def cosine(
    means: Floats, weights: Floats | float = 1.0, variance: Floats | float = 0.0
) -> QuadraticScores:
    """Inner products with `means`, (C, p), divided by their lengths, in which axes have these
    weights; 0 for zeros.

    They are not divided by the length of a row, which is the same for all classes. `variance`, (C,
    p), is that of the means; it adds to their squared length.
    """
    slopes = weights * means
    lengths = np.sqrt((slopes * means + weights * variance).sum(axis=1, keepdims=True))
    slopes = slopes / np.where(lengths > 0, lengths, 1.0)
    return QuadraticScores(np.zeros_like(slopes), slopes, np.zeros(len(slopes)))


def blended(
    posterior: ClassPosterior,
    variances: Floats,
    rows: Floats,
    clarity: Floats,
    names: Floats | None,
    *,
    linear: bool = False,
) -> QuadraticScores:
    """The scores of the module's docstring, standardised on public rows (b, p); `linear` leaves the
    density out.
    """
    trust, n_classes = posterior.trust, len(posterior.mean)
    weights = _within(posterior, variances) ** -min(ROOT, STEEP * math.sqrt(posterior.between))
    scores = cosine(
        posterior.mean, weights, 2 * trust / n_classes**2 * posterior.variance
    ).standardised(rows)
    if not linear:
        by_density = density(posterior, variances).standardised(rows)
        scores = scores.times(trust).plus(by_density.times(1 - trust)).standardised(rows)
    if names is not None:
        share = posterior_share(clarity)
        both = scores.times(share).plus(cosine(names).standardised(rows).times(1 - share))
        scores = both.standardised(rows)
    return scores


def posterior_share(clarity: Floats) -> float:
    """The weight of the posterior in scores that names have the rest of."""
    return float(clarity.mean() / (clarity.mean() + NAMES))


def _within(posterior: ClassPosterior, variances: Floats) -> Floats:
    return np.asarray(posterior.within * variances + FLOOR * variances.max())
