"""Scale of the probabilities of a decision by a posterior of class means, from simulated rows.

All of this is post-processing of a release and public rows, so it has no privacy cost.

The simulation. Rows along the public axes, equally many for each class c, are

    x = m + k t sqrt(h) u,   m ~ N(m_c, v_c),   u a public row,   t^2 ~ 4 / chi^2_6,

where m_c and v_c are the mean and the variance of the class's mean, and h is the within-class
share: at k = 1 the second term has the size of the spread within classes. The factor t gives it
the tails of a Student distribution. The scale minimises the cross-entropy of the simulated rows.

The factor k. At k = 1 the scale would be too large: rows of a class differ most along the
directions in which classes differ, more than public rows of another kind do. How foreign public
rows are shows in the private grand mean g, which is 0 if they are of the private kind; then public
rows also differ by class, and the spread between the class means is taken out of them
(`within_classes`). So k is expected at 1 + `EXCESS` |g|, or at 1 + `EXCESS_OF_LEARNED` |g| for
coefficients that gradient steps fitted to the spread, with a standard deviation of `DEVIATION` in
its logarithm.

Gradient steps tell k better. A noisy gradient G of the loss at coefficients B, released at a step,
also gives <G, B>, the derivative of the loss by the logarithm of the scale, at scale 1. A line
through the last `LAST` of them ends in the derivative at the released coefficients. Its error
counts as `ERRORS` times that of a single derivative: noise of earlier steps has moved all of the
last coefficients alike, and the simulated rows do not contain it. The k that is used is the most
likely under this derivative and the expectation. The loss has a multiple of the log class shares
added to the scores, and its gradients are clipped; so are the simulated ones.

Names. The variance v_c is spread over the axes as that of public rows is. The errors of names are
not: along the directions in which the decision tells alike classes apart, they have several times
that variance. So with names and without gradient steps the deviation of each drawn mean from m_c is
scaled up (`with_doubt_of_names`), the more so the more classes are told apart, and not where public
rows show where classes may lie.

Without gradient steps the posterior itself may be wrong; heavier tails of the error are then fitted
as a share of probability that is spread evenly. Where the constants were chosen is said in
docs/probabilities.md.

`fair_offsets` balances scores by the same rows; docs/auto.md says where its constants were chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize
from scipy.special import log_softmax, softmax

from tacit.models.carried import CarriedPosterior
from tacit.models.posterior import ClassPosterior
from tacit.models.probabilities import Probabilities
from tacit.models.quadratic import posterior_share
from tacit.models.rows import Floats

# The expectation of k, and the standard deviation of its logarithm.
EXCESS = 2.4
EXCESS_OF_LEARNED = 1.0
DEVIATION = 0.15

# Values of k over its expectation that are compared.
WIDTHS = np.exp(np.linspace(-0.6, 0.6, 31))

# Degrees of freedom of the Student distribution.
FREEDOM = 6.0

# Derivatives that the line goes through, and the error that its end counts with.
LAST = 15
ERRORS = 2.0
LEAST_ERROR = 0.03

# |g|^2 over the squared distance of class means from g, at which public rows count half as private.
NEAR = 0.15

# Variance of the errors of names beside that of the posterior, less 1, for very many classes; and
# the number of classes at which it is half of that.
DOUBT_OF_NAMES = 13.0
CLASSES_OF_DOUBT = 40.0

# Number of simulated rows: the most, the fewest, and entries of all rows or scores between them.
ROWS = 4096
FEWEST = 512
ENTRIES = 2**21

# Bounds of the logarithm of the scale, and of the log odds of the even share.
SCALES = (-6.0, 6.0)
EVEN_ODDS = (-7.0, 2.0)

# Weight of the offsets, and the ridge with which they are fitted.
OFFSETS = 1.5
OFFSET_RIDGE = 1e-3

Scores = Callable[[Floats], Floats]
"""Maps rows along the axes (b, p) to scores (b, C)."""


@dataclass
class Slopes:
    """Derivatives of the mean loss by the log scale, from noisy gradients, in the order of the
    steps.

    `noises` are the standard deviations of their noise; gradients were clipped to norm `clip`,
    infinite if they were not; `balance` times the log class shares were added to the scores.
    """

    values: list[float] = field(default_factory=list)
    noises: list[float] = field(default_factory=list)
    clip: float = math.inf
    balance: float = 1.0

    def last(self) -> tuple[float, float]:
        """Return the derivative at the last step, by a line through the last `LAST` steps, and the
        error that it counts with.
        """
        values = np.array(self.values[-LAST:])
        noise = math.sqrt(np.mean(np.square(self.noises[-LAST:])))
        if len(values) < 3:
            # Two points leave no residual of a line.
            return float(values[-1]), max(ERRORS * noise, LEAST_ERROR)

        # Steps are counted from the last one, so the intercept is the value there.
        steps = np.arange(1.0 - len(values), 1.0)
        design = np.stack([np.ones(len(values)), steps], axis=1)
        line = np.linalg.lstsq(design, values, rcond=None)[0]

        squares = float(np.sum((values - design @ line) ** 2))
        residual = math.sqrt(squares / (len(values) - 2))
        return float(line[0]), max(ERRORS * max(noise, residual), LEAST_ERROR)


@dataclass(frozen=True, eq=False)
class Simulated:
    """Simulated rows: `labels` (n,), draws of the mean of the class, and spread about it, both
    (n, p).
    """

    labels: NDArray[np.int64]
    means: Floats
    spread: Floats


def posterior_probabilities(
    posterior: ClassPosterior, rows: Simulated, scores: Scores, slopes: Slopes | None = None
) -> Probabilities:
    """Fit the scale of a decision with these scores.

    `slopes` are those of the gradient steps that fitted the scores, which are then linear.
    """
    if len(posterior.mean) == 1:
        return Probabilities(1.0)

    grand = posterior.sizes @ posterior.mean / posterior.sizes.sum()
    foreign = float(np.linalg.norm(grand))

    if slopes is None:
        k = 1 + EXCESS * foreign
        return _scale_and_even_share(scores(rows.means + k * rows.spread), rows.labels)

    # Linear scores at any k follow from those at 0 and 1.
    mean_scores = scores(rows.means)
    spread_scores = scores(rows.means + rows.spread) - mean_scores

    shares = posterior.sizes / posterior.sizes.sum()
    derivative, error = slopes.last()
    expected_k = 1 + EXCESS_OF_LEARNED * foreign

    def misfit(width: float) -> float:
        """Minus twice the log likelihood of k = width * expected_k, up to a constant."""
        k_scores = mean_scores + expected_k * width * spread_scores
        slope = loss_slope(k_scores, rows.labels, shares, clip=slopes.clip, balance=slopes.balance)
        return ((slope - derivative) / error) ** 2 + (math.log(width) / DEVIATION) ** 2

    k = expected_k * min(map(float, WIDTHS), key=misfit)
    return Probabilities(best_scale(mean_scores + k * spread_scores, rows.labels))


def simulated(model: CarriedPosterior, sample: Floats) -> Simulated:
    """Simulate rows as the docstring of this module says, at k = 1.

    `sample`, of shape (m, p), holds public rows along the axes.
    """
    posterior = model.posterior
    rng = np.random.default_rng(0)
    n_classes, width = posterior.mean.shape
    n_rows = min(ROWS, max(FEWEST, ENTRIES // max(n_classes, width)))

    if n_classes > n_rows:
        # One row each for evenly spaced classes.
        labels = np.arange(n_rows) * n_classes // n_rows
    else:
        labels = np.arange(n_rows) % n_classes

    deviations = np.sqrt(posterior.variance[labels])
    means = posterior.mean[labels] + rng.normal(size=(n_rows, width)) * deviations

    # The factor t, of mean square 1, (n, 1).
    tails = np.sqrt((FREEDOM - 2) / rng.chisquare(FREEDOM, size=(n_rows, 1)))
    within = within_classes(model, sample)
    public_rows = within[rng.integers(len(within), size=n_rows)]
    spread = math.sqrt(posterior.within) * tails * public_rows

    return Simulated(labels, means, spread)


def with_doubt_of_names(rows: Simulated, model: CarriedPosterior, trust: float) -> Simulated:
    """Rows whose class means deviate as far as the errors of names do.

    `trust` is that of the posterior without names: how far public rows show where classes lie. The
    variance of deviations is multiplied by 1 + D (1 - trust) C / (C + H) for C classes, with D =
    `DOUBT_OF_NAMES` and H = `CLASSES_OF_DOUBT`.
    """
    if model.names is None:
        return rows

    n_classes = len(model.posterior.mean)
    doubt = DOUBT_OF_NAMES * (1 - trust) * n_classes / (n_classes + CLASSES_OF_DOUBT)
    centres = model.posterior.mean[rows.labels]
    means = centres + math.sqrt(1 + doubt) * (rows.means - centres)
    return replace(rows, means=means)


def within_classes(model: CarriedPosterior, sample: Floats) -> Floats:
    """Public rows (m, p) without the spread between classes, as far as they are of the private
    kind.

    In a direction in which class means have l times the variance of public rows, the variance is
    divided by 1 + l.
    """
    class_means = model.posterior.mean
    deviations = np.sqrt(model.variances)
    grand = class_means.mean(axis=0)
    between = class_means - grand

    # From 1 (public rows are of the private kind) to 0 (of another kind).
    distance = max(float((between**2).sum(axis=1).mean()), 1e-12)
    ratio = float(grand @ grand) / distance
    private_kind = 1 / (1 + (ratio / NEAR) ** 2)

    # Directions of class means in coordinates in which public rows have variance 1; l = singular^2.
    whitened_means = between / deviations / math.sqrt(len(class_means))
    _, singular, axes = np.linalg.svd(whitened_means, full_matrices=False)
    factors = np.sqrt(1 - private_kind * singular**2 / (1 + singular**2))

    whitened = sample / deviations
    excess = (whitened @ axes.T) * (1 - factors) @ axes
    return np.asarray((whitened - excess) * deviations)


def fair_offsets(
    clarity: Floats, rows: Simulated, scores: Scores, *, sums_alone: bool = False
) -> Floats:
    """Offsets of the classes' scores, (C,), that best tell simulated rows of all classes apart.

    A class that is known poorly, by its name or by few records, scores lower on its own rows than a
    class whose mean is known does on those. The offsets minimise the cross-entropy of the simulated
    rows at k = 1, with a small ridge. They are then multiplied by

    - `OFFSETS`;
    - 1 - 2/C, since the simulation draws means independently, while of two classes one mean follows
      from the other;
    - the weight of the posterior beside names, or the mean clarity if `sums_alone` decide;
    - 1 less the clarity of the class. So offsets are taken about the mean of clear classes.
    """
    n_classes = len(clarity)
    if n_classes <= 2:
        return np.zeros(n_classes)

    offsets = _least_offsets(scores(rows.means + rows.spread), rows.labels)

    posterior_weight = posterior_share(clarity)
    if sums_alone:
        posterior_weight = float(clarity.mean())
    share = OFFSETS * (1 - 2 / n_classes) * posterior_weight

    clear_offset = clarity @ offsets / max(float(clarity.sum()), 1e-12)
    return np.asarray(share * (1 - clarity) * (offsets - clear_offset))


def _least_offsets(scores: Floats, labels: NDArray[np.int64]) -> Floats:
    """Offsets (C,) that, added to scores (n, C), have the least cross-entropy at the best scale."""
    n_rows, n_classes = scores.shape
    one_hot = np.eye(n_classes)[labels]

    def loss(point: Floats) -> tuple[float, Floats]:
        """Mean cross-entropy with ridge, and its gradient, at (log scale, offsets)."""
        scale = math.exp(point[0])
        offsets = point[1:]
        log_shares = log_softmax(scale * scores + offsets, axis=1)
        cross_entropy = float(
            -(log_shares * one_hot).sum() / n_rows + OFFSET_RIDGE * offsets @ offsets
        )

        errors = (np.exp(log_shares) - one_hot) / n_rows
        scale_slope = scale * (errors * scores).sum()
        offset_slopes = errors.sum(axis=0) + 2 * OFFSET_RIDGE * offsets
        return cross_entropy, np.append(scale_slope, offset_slopes)

    start = np.append(math.log(best_scale(scores, labels)), np.zeros(n_classes))
    bounds = [SCALES] + [(None, None)] * n_classes
    optimum = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x

    # Offsets are for scores as they are, not times the scale.
    return np.asarray(optimum[1:] / math.exp(optimum[0]))


def loss_slope(
    scores: Floats, labels: NDArray[np.int64], shares: Floats, *, clip: float, balance: float
) -> float:
    """Derivative of the mean loss by the log scale, at 1, with `balance` times the log shares added
    to the scores.

    Rows weigh as the shares (C,) of their classes.
    """
    errors = softmax(scores + balance * np.log(shares), axis=1)
    errors[np.arange(len(labels)), labels] -= 1

    # A clipped gradient is the row times its errors, at norm `clip` or less; rows have norm 1.
    row_slopes = (errors * scores).sum(axis=1)
    row_slopes *= np.minimum(1.0, clip / np.maximum(np.linalg.norm(errors, axis=1), 1e-12))

    class_sizes = np.maximum(np.bincount(labels, minlength=len(shares)), 1)
    weights = (shares / class_sizes)[labels]
    return float(weights @ row_slopes / weights.sum())


def best_scale(scores: Floats, labels: NDArray[np.int64]) -> float:
    """The scale of least cross-entropy, which is convex in the scale."""
    label_score = scores[np.arange(len(labels)), labels].sum()

    def slope(log_scale: float) -> float:
        """Derivative of the cross-entropy by the scale; its sign is that by the log scale."""
        expected_score = (softmax(math.exp(log_scale) * scores, axis=1) * scores).sum()
        return float(expected_score - label_score)

    low, high = SCALES
    if slope(low) >= 0:
        return math.exp(low)
    if slope(high) <= 0:
        return math.exp(high)
    return math.exp(brentq(slope, low, high, xtol=1e-3))


def _scale_and_even_share(scores: Floats, labels: NDArray[np.int64]) -> Probabilities:
    """Fit scale and even share of least cross-entropy."""
    rows = np.arange(len(labels))
    n_classes = scores.shape[1]

    def loss(point: Floats) -> float:
        scale, even = _within_bounds(point)
        label_shares = np.exp(log_softmax(scale * scores, axis=1)[rows, labels])
        return -float(np.log((1 - even) * label_shares + even / n_classes).mean())

    start = np.array([math.log(best_scale(scores, labels)), -3.0])
    options = {"xatol": 0.02, "fatol": 1e-5, "maxfev": 100}
    optimum = minimize(loss, start, method="Nelder-Mead", options=options).x
    return Probabilities(*_within_bounds(optimum))


def _within_bounds(point: Floats) -> tuple[float, float]:
    """Scale and even share of a point: log scale and log odds of the share, clipped to bounds."""
    lowest, highest = zip(SCALES, EVEN_ODDS, strict=True)
    log_scale, log_odds = np.clip(point, lowest, highest)
    return math.exp(log_scale), 1 / (1 + math.exp(-log_odds))
