"""How confident a decision by a posterior of class means may be: the scale of its probabilities,
from simulated rows.

All of this is post-processing of a release and public rows. What is simulated are rows along the
public axes

    x = m + k t sqrt(h) u,   m ~ N(m_c, v_c),   u a public row,   t^2 ~ 4 / chi^2_6

of equally many rows for each class c: h is the within-class share, so that the second term has the
size of the spread within classes at k = 1, and t makes its tails those of a Student distribution.
The scale minimises the cross-entropy of the simulated rows. At k = 1 it would be too large: rows of
a class differ most along the directions in which classes differ, more than public rows of another
kind do. How foreign these are shows in the private grand mean g, which is 0 if they are of the
private kind; then public rows also differ by class, and the spread between the class means is taken
out of them (`within_classes`). So k is expected at 1 + `EXCESS` |g| (`EXCESS_OF_LEARNED` for
coefficients that gradient steps fitted to the spread), with a deviation of `DEVIATION` in its
logarithm.

Gradient steps tell k better. A noisy gradient G of the loss at coefficients B, released at step t,
also gives the derivative <G, B> of the loss by the logarithm of the scale, here at 1. The line
through the last `LAST` of them ends in the derivative at the released coefficients. Its error
counts as `ERRORS` times that of a single derivative, because noise of earlier steps has moved all
of the last coefficients alike, and the simulated rows do not contain it. The k that is used is the
most likely under this and the expectation. The loss has a multiple of the log class shares added to
the scores, and its gradients are clipped; so are the simulated ones.

Without gradient steps the posterior itself may be wrong; heavier tails of the error are then fitted
as a share of probability that is spread evenly. Where the constants were chosen is said in
docs/probabilities.md.

`fair_offsets` balances scores by the same rows; docs/auto.md says where its constants were chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize
from scipy.special import log_softmax, softmax

from tacit.models.carried import CarriedPosterior
from tacit.models.posterior import ClassPosterior
from tacit.models.probabilities import Probabilities
from tacit.models.quadratic import posterior_share
from tacit.models.rows import Floats

EXCESS, EXCESS_OF_LEARNED, DEVIATION, FREEDOM = 2.4, 1.0, 0.15, 6.0
LAST, ERRORS, LEAST_ERROR = 15, 2.0, 0.03
# |g|^2 over the squared distance of class means from g, at which public rows count half as private
NEAR = 0.15
ROWS, FEWEST, ENTRIES = 4096, 512, 2**21
WIDTHS = np.exp(np.linspace(-0.6, 0.6, 31))  # of k over its expectation
SCALES = (-6.0, 6.0)  # logarithms
OFFSETS, OFFSET_RIDGE = 1.5, 1e-3

Scores = Callable[[Floats], Floats]
"""From rows along the axes (b, p) to scores (b, C)."""


@dataclass
class Slopes:
    """What noisy gradients say: derivatives of the mean loss by the log scale, in the order of the
    steps.

    `noises` are the standard deviations of their noise; gradients were clipped to norm `clip`,
    infinite if they were not; `balance` times the log class shares were added to the scores.
    """

    values: list[float] = field(default_factory=list)
    noises: list[float] = field(default_factory=list)
    clip: float = math.inf
    balance: float = 1.0

    def last(self) -> tuple[float, float]:
        """The derivative at the last step, by a line through the last `LAST` steps, and the error
        it counts with.
        """
        values, noise = (
            np.array(self.values[-LAST:]),
            math.sqrt(np.mean(np.square(self.noises[-LAST:]))),
        )
        if len(values) < 3:
            return float(values[-1]), max(ERRORS * noise, LEAST_ERROR)
        design = np.stack([np.ones(len(values)), np.arange(1.0 - len(values), 1.0)], axis=1)
        line = np.linalg.lstsq(design, values, rcond=None)[0]
        residual = math.sqrt(float(np.sum((values - design @ line) ** 2)) / (len(values) - 2))
        return float(line[0]), max(ERRORS * max(noise, residual), LEAST_ERROR)


@dataclass(frozen=True, eq=False)
class Simulated:
    """Rows of known classes: `labels` (n,), draws of the mean of the class and spread about it,
    both (n, p).
    """

    labels: NDArray[np.int64]
    means: Floats
    spread: Floats


def posterior_probabilities(
    posterior: ClassPosterior, rows: Simulated, scores: Scores, slopes: Slopes | None = None
) -> Probabilities:
    """The scale of a decision with these scores; `slopes` are those of the gradient steps that
    fitted linear scores.
    """
    if len(posterior.mean) == 1:
        return Probabilities(1.0)
    grand = posterior.sizes @ posterior.mean / posterior.sizes.sum()
    foreign = float(np.linalg.norm(grand))
    if slopes is None:
        return _fitted(scores(rows.means + (1 + EXCESS * foreign) * rows.spread), rows.labels)
    at_means = scores(rows.means)
    along = scores(rows.means + rows.spread) - at_means
    shares = posterior.sizes / posterior.sizes.sum()
    derivative, error = slopes.last()
    expected = 1 + EXCESS_OF_LEARNED * foreign

    def misfit(width: float) -> float:
        slope = loss_slope(
            at_means + expected * width * along,
            rows.labels,
            shares,
            clip=slopes.clip,
            balance=slopes.balance,
        )
        return ((slope - derivative) / error) ** 2 + (math.log(width) / DEVIATION) ** 2

    k = expected * min(map(float, WIDTHS), key=misfit)
    return Probabilities(best_scale(at_means + k * along, rows.labels))


def simulated(known: CarriedPosterior, sample: Floats) -> Simulated:
    """Rows of the model in the module's docstring at k = 1; `sample` (m, p) are public rows along
    the axes.
    """
    posterior, rng = known.posterior, np.random.default_rng(0)
    n_classes, width = posterior.mean.shape
    number = min(ROWS, max(FEWEST, ENTRIES // max(n_classes, width)))
    labels = (
        np.arange(number) * n_classes // number
        if n_classes > number
        else np.arange(number) % n_classes
    )
    deviations = np.sqrt(posterior.variance[labels])
    means = posterior.mean[labels] + rng.normal(size=(number, width)) * deviations
    tails = np.sqrt((FREEDOM - 2) / rng.chisquare(FREEDOM, size=(number, 1)))
    within = within_classes(known, sample)
    spread = math.sqrt(posterior.within) * tails * within[rng.integers(len(within), size=number)]
    return Simulated(labels, means, spread)


def within_classes(known: CarriedPosterior, sample: Floats) -> Floats:
    """Public rows (m, p) without what differs between classes, as far as they are of the private
    kind.

    In a direction in which class means have l times the variance of public rows, the variance is
    divided by 1 + l.
    """
    mean, deviations = known.posterior.mean, np.sqrt(known.variances)
    grand = mean.mean(axis=0)
    between = mean - grand
    ratio = float(grand @ grand) / max(float((between**2).sum(axis=1).mean()), 1e-12)
    private_kind = 1 / (1 + (ratio / NEAR) ** 2)
    _, singular, axes = np.linalg.svd(
        between / deviations / math.sqrt(len(mean)), full_matrices=False
    )
    kept = np.sqrt(1 - private_kind * singular**2 / (1 + singular**2))
    whitened = sample / deviations
    return np.asarray((whitened - (whitened @ axes.T) * (1 - kept) @ axes) * deviations)


def fair_offsets(
    clarity: Floats, rows: Simulated, scores: Scores, *, sums_alone: bool = False
) -> Floats:
    """What each class's score must gain, (C,), so that simulated rows of all classes are told apart
    best.

    A class that is known poorly, by its name or by few records, scores lower on its own rows than a
    class whose mean is known does on those. The offsets minimise the cross-entropy of the simulated
    rows at k = 1, with a small ridge. They count by `OFFSETS`; by 1 - 2/C, since the simulation
    draws means independently, while of two classes one mean follows from the other; by the weight
    of the posterior beside names, or by the mean clarity if `sums_alone` decide; and for each
    class, about the mean of clear classes, as far as its sum is not clear.
    """
    n_classes = len(clarity)
    if n_classes <= 2:
        return np.zeros(n_classes)
    simulated_scores = scores(rows.means + rows.spread)
    truth = np.eye(n_classes)[rows.labels]

    def loss(point: Floats) -> tuple[float, Floats]:
        scale, offsets = math.exp(point[0]), point[1:]
        logs = log_softmax(scale * simulated_scores + offsets, axis=1)
        errors = (np.exp(logs) - truth) / len(logs)
        slope = np.append(
            scale * (errors * simulated_scores).sum(),
            errors.sum(axis=0) + 2 * OFFSET_RIDGE * offsets,
        )
        return float(-(logs * truth).sum() / len(logs) + OFFSET_RIDGE * offsets @ offsets), slope

    start = np.append(math.log(best_scale(simulated_scores, rows.labels)), np.zeros(n_classes))
    found = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=[SCALES] + [(None, None)] * n_classes
    ).x
    offsets = found[1:] / math.exp(found[0])
    share = (
        OFFSETS
        * (1 - 2 / n_classes)
        * (float(clarity.mean()) if sums_alone else posterior_share(clarity))
    )
    return np.asarray(
        share * (1 - clarity) * (offsets - clarity @ offsets / max(float(clarity.sum()), 1e-12))
    )


def loss_slope(
    scores: Floats, labels: NDArray[np.int64], shares: Floats, *, clip: float, balance: float
) -> float:
    """Derivative of the mean loss by the log scale, at 1, with `balance` times the log shares added
    to the scores.

    Rows weigh as the shares (C,) of their classes.
    """
    errors = softmax(scores + balance * np.log(shares), axis=1)
    errors[np.arange(len(labels)), labels] -= 1
    each = (errors * scores).sum(axis=1)
    each *= np.minimum(1.0, clip / np.maximum(np.linalg.norm(errors, axis=1), 1e-12))
    weights = (shares / np.maximum(np.bincount(labels, minlength=len(shares)), 1))[labels]
    return float(weights @ each / weights.sum())


def best_scale(scores: Floats, labels: NDArray[np.int64]) -> float:
    """The scale of least cross-entropy, which has one minimum in the log scale at most."""
    at = np.arange(len(labels)), labels

    def slope(log_scale: float) -> float:
        return float(
            (softmax(math.exp(log_scale) * scores, axis=1) * scores).sum() - scores[at].sum()
        )

    low, high = SCALES
    if slope(low) >= 0:
        return math.exp(low)
    return math.exp(high if slope(high) <= 0 else brentq(slope, low, high, xtol=1e-3))


def _fitted(scores: Floats, labels: NDArray[np.int64]) -> Probabilities:
    """Scale and even share of least cross-entropy."""
    at, n_classes = (np.arange(len(labels)), labels), scores.shape[1]

    def loss(point: Floats) -> float:
        log_scale, log_odds = np.clip(point, (SCALES[0], -7.0), (SCALES[1], 2.0))
        even = 1 / (1 + math.exp(-log_odds))
        of_labels = np.exp(log_softmax(math.exp(log_scale) * scores, axis=1)[at])
        return -float(np.log((1 - even) * of_labels + even / n_classes).mean())

    start = np.array([math.log(best_scale(scores, labels)), -3.0])
    found = minimize(
        loss, start, method="Nelder-Mead", options={"xatol": 0.02, "fatol": 1e-5, "maxfev": 100}
    ).x
    log_scale, log_odds = np.clip(found, (SCALES[0], -7.0), (SCALES[1], 2.0))
    return Probabilities(math.exp(log_scale), 1 / (1 + math.exp(-log_odds)))
