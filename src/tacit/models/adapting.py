"""Adaptation of a posterior of class means to unlabelled rows, and the test whether it helps.

All of this is post-processing of a release. Rows u are unit rows about the public centre, along the
public principal axes; m_c and v_c are mean and variance of the mean of class c, and V = h w is the
covariance within classes.

EM. In each of `ROUNDS` rounds a row belongs to class c with weight

    z_ic ~ N(u_i; m_c, V + v_c)^TEMPER exp(STEEPNESS s_ic)

where s_ic are the scores of the decision in force, divided by the standard deviation of the
released scores within rows. Powers below 1 temper densities, which know nothing of the dependence
between axes within a class. Then

    m_c <- (m_c0 / v_c + DISCOUNT sum_i z_ic u_i / V) / (1 / v_c + DISCOUNT sum_i z_ic / V)

with the released means m_c0: a class whose sum was clear stays, one that noise dominates follows
the rows. To the released scores is added the difference that the new means make to the scores of
`tacit.models.quadratic`, so that what gradient steps taught a refined release is kept. Of this
difference n / (n + `FEW` C) is taken, for n rows: few rows teach less than EM believes.

Gate. The posterior is adapted to a half of the rows, drawn at random, and rows suit the release
only if all of this holds:

"gain"      the mixture of classes gives the other rows a higher likelihood than before;
"spread"    the rows spread over the classes: (e^H - 1) / (C - 1) is at least `SPREAD`, H being the
            entropy of the shares of the classes. Rows of another task gather in the few classes
            that resemble them.
"distance"  the means x_c of the rows of the classes lie where the posterior expects them: (x_c -
            m_c0)^2 over its expectation v_c + V / n_c is at most `FARTHEST`, on average over axes
            and rows. Rows of another kind lie farther;
"width"     the rows of a class are no wider than expected: (u - x_c)^2 over V is at most
            `FARTHEST`, on average over axes and in the median over classes.

The first alone does not tell: rows of any kind raise the likelihood.

Where the constants were chosen is said in docs/auto.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tacit.models.carried import CarriedPosterior
from tacit.models.posterior import ClassPosterior, log_sum, softmax
from tacit.models.quadratic import QuadraticScores, blended, log_densities
from tacit.models.rows import Floats

Integers = NDArray[np.int64]

ROUNDS, DISCOUNT, TEMPER, STEEPNESS = 8, 0.1, 0.1, 2.0
FEW = 15.0
SPREAD, FARTHEST = 0.65, 1.5


@dataclass(frozen=True)
class Suitability:
    """Figures on whether rows suit a release: the rise of the held-out log likelihood of a row, in
    nats, and the other figures.
    """

    gain: float
    spread: float
    distance: float
    width: float

    @property
    def fault(self) -> str | None:
        """Reason why the rows do not suit the release (a NaN counts as unsuitable); None if they
        do.
        """
        if not self.gain > 0:
            return (
                f"the log likelihood of a held-out row changes by {self.gain:.3g} nats and must"
                " rise"
            )
        if not self.spread >= SPREAD:
            return (
                f"they gather in few of the classes: their spread is {self.spread:.2f} and must be"
                f" {SPREAD} or more"
            )
        for name, value in (("means", self.distance), ("rows", self.width)):
            if not value <= FARTHEST:
                far = (
                    f"{value:.2f} times the squared distance that the posterior expects, at most"
                    f" {FARTHEST}"
                )
                return f"the {name} of their classes lie at {far}"
        return None


@dataclass(frozen=True, eq=False)
class Task:
    """A release and the rows that it is adapted to.

    `rows` (n, p) lie along the axes, `scores` (n, C) are those of the released decision for these
    rows. `linear` says that the decision is: then the density has no part in it.
    """

    known: CarriedPosterior
    rows: Floats
    scores: Floats
    linear: bool

    @property
    def within(self) -> Floats:
        """Variances within classes along the axes, (p,)."""
        return self.known.posterior.within * self.known.variances

    def part(self, chosen: Integers) -> Task:
        """The same with the rows at these positions."""
        return replace(self, rows=self.rows[chosen], scores=self.scores[chosen])

    def change(self, posterior: ClassPosterior) -> QuadraticScores:
        """Return what another posterior adds to the scores of the released decision."""
        known = self.known
        new, old = (
            blended(
                each, known.variances, self.rows, known.clarity, known.names, linear=self.linear
            )
            for each in (posterior, known.posterior)
        )
        return new.plus(old.times(-1.0))

    def adapted(self) -> tuple[ClassPosterior, Floats]:
        """The posterior after EM, and the weights (n, C) of the last round."""
        released, posterior = self.known.posterior, self.known.posterior
        deviation = float((self.scores - self.scores.mean(axis=1, keepdims=True)).std()) or 1.0
        added = np.zeros_like(self.scores)
        for _ in range(ROUNDS):
            densities = log_densities(posterior.mean, self.within + posterior.variance).of(
                self.rows
            )
            shares = softmax(
                TEMPER * densities + STEEPNESS * (self.scores + added) / deviation, axis=1
            )
            posterior = replace(
                released, mean=moved_means(released, self.within, self.rows, shares)
            )
            added = self.change(posterior).of(self.rows)
        return posterior, shares

    def addition(self) -> QuadraticScores:
        """Return what to add to the scores of the released decision."""
        n, n_classes = self.scores.shape
        return self.change(self.adapted()[0]).times(n / (n + FEW * n_classes))

    def suitability(self) -> Suitability:
        """Adapt to half of the rows: the other half gives the gain, the first spread, distance and
        width.
        """
        # rows may come in the order of their classes
        order = np.random.default_rng(0).permutation(len(self.rows))
        adapting, held_out = self.part(order[::2]), self.rows[order[1::2]]
        posterior, shares = adapting.adapted()
        released = self.known.posterior
        variances = self.within + released.variance
        before, after = (
            log_sum(log_densities(mean, variances).of(held_out)).mean()
            for mean in (released.mean, posterior.mean)
        )
        counts = np.maximum(shares.sum(axis=0), 1e-12)[:, None]
        means = shares.T @ adapting.rows / counts
        distances = (
            (means - released.mean) ** 2 / (released.variance + self.within / counts)
        ).mean(axis=1)
        widths = ((shares.T @ adapting.rows**2 / counts - means**2) / self.within).mean(axis=1)
        return Suitability(
            gain=float(after - before),
            spread=spread(shares.mean(axis=0)),
            distance=float(distances @ shares.mean(axis=0)),
            width=float(np.median(widths)),
        )


def moved_means(released: ClassPosterior, within: Floats, rows: Floats, shares: Floats) -> Floats:
    """Means (C, p) after rows (n, p) with weights (n, C) are added to a posterior, discounted."""
    weight = DISCOUNT * shares.sum(axis=0)[:, None] / within
    seen = DISCOUNT * (shares.T @ rows) / within
    return np.asarray((released.mean / released.variance + seen) / (1 / released.variance + weight))


def spread(shares: Floats) -> float:
    """Evenness of the spread of rows over classes with these shares (C,): 0 if all are of one of
    several classes, 1 if equal.

    >>> round(spread(np.array([0.5, 0.5, 0.0])), 9), spread(np.array([1.0]))
    (0.5, 1.0)
    """
    if len(shares) == 1:
        return 1.0
    entropy = -float((shares * np.log(np.maximum(shares, 1e-300))).sum())
    return (math.exp(entropy) - 1) / (len(shares) - 1)
