"""Newton: one-vs-rest logistic regression by noisy gradients and noisy Hessians (DP-Newton)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from tacit.compute.progress import progress
from tacit.compute.timing import SET_UP, SOLVING, phase
from tacit.learners.common.budget_split import Part
from tacit.learners.common.matrices import Matrices
from tacit.learners.common.parameters import check_optional, flag
from tacit.learners.common.preconditioning import damping_for, divided
from tacit.learners.common.softmax import Blocks, logits
from tacit.learners.common.unit_rows import UnitRows
from tacit.learners.linear.second_order import SecondOrderClassifier
from tacit.mechanisms import outer_products
from tacit.mechanisms.blocks import Block
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.models.released import Released
from tacit.models.rows import Floats
from tacit.models.spectra import spectrum
from tacit.privacy.events import Event
from tacit.privacy.sensitivity import ROOT_TWO
from tacit.privacy.unit import Unit

# The parts of the budget.
GRADIENTS = "gradients"
HESSIANS = "Hessians"

# Largest slope of the sigmoid, which bounds the part of a record of weight 1 in a Hessian.
STEEPEST = 0.25

Derivatives = Callable[[Floats, Floats, Blocks], tuple[Floats, Floats]]
"""From a head of shape (K, d), offsets and rows to the sums of gradients, (K, d), and of Hessians,
(K, d, d).
"""


@dataclass(kw_only=True, eq=False, repr=False)
class Newton(SecondOrderClassifier):
    """Classify by one sigmoid per class against the rest, learned by Newton's method with noise in
    every epoch.

    Rows are divided by their norm, at fit and at predict. A record has weight 1 for its own class
    and, as a negative, weight alpha for every other class. Every epoch moves the head of class k by
    -learning_rate (H_k + damping_k I)^-1 g_k, where g_k and H_k are noised sums over all records.
    By default small classes are at no disadvantage: the log odds of each class's noisy share of the
    weights are added to its logit in training and left out of predictions.

    It is the slowest method: an epoch takes about n K d^2 multiplications, and K d (d + 1)/2 draws
    of noise. For n = 50,000, K = 100, d = 256 these are 20 seconds on one core and less than one
    (28 with the noise of OpenDP). Hessians take at least 16 K d^2 bytes of memory.

    Parameters
    ----------
    budget, classes, public, allow_overlap, noise, random_state, unit, ledger
        As in `NoisySumPrototypes`; "rho=inf" is the same method without noise.
    epochs : int, optional
        Number of steps, each over all records; by default 4, or 8 under an infinite budget.
    learning_rate : float, optional
        By default 1, which is Newton's step.
    alpha : float, optional
        Weight of a negative; public. By default 1/(K - 1), which gives a record as much weight as
        all its negatives.
    pooled : bool, default=True
        Shrink each noisy Hessian towards their mean over classes, by as much as noise makes them
        differ (James-Stein). False uses each Hessian as released.
    damping : float, optional
        By default `ridge` plus s sqrt(d), s being the standard deviation of the noise on an entry
        of a (pooled) Hessian; or more, so that noise in all epochs adds at most 0.5 to a logit, as
        estimated from the noisy Hessian.
    counts, balanced, ridge, intercept
        As in `GradientDescent`. balanced=False needs no counts.

    Attributes
    ----------
    coefficients_, intercepts_, centre_, classes_, guarantee_, spent_
        As in `GradientDescent`.

    Notes
    -----
    Guarantee: two Gaussian events per epoch with multiplier s, so that rho = T/s^2 for T epochs,
    and one per class for the counts. Sensitivity: a record x of class y has weight w_y = 1 and w_k
    = alpha elsewhere. With p_k the sigmoid, it adds w_k (p_k - [k = y]) x to the gradient and w_k
    p_k (1 - p_k) x x' to the Hessian of each class k, and
    |p_k - [k = y]| <= 1, p_k (1 - p_k) <= 1/4, |x| <= 1. The stack of all K gradients therefore
    moves by at most f = sqrt(sum w_k^2) = sqrt(1 + (K - 1) alpha^2) under add/remove, and that of
    all K Hessians by
    f/4, in Frobenius norm. Noise has standard deviation s f and s f/4, fresh for each class and
    epoch, the upper triangle of a Hessian mirrored. Under change-label, and for the labels of a
    person, rows are public: Hessians use the weights that the head itself expects (Fisher scoring),
    which depend on no label, so they are exact and free. A changed label then moves the gradients
    of two classes, each by max(1, alpha) at most: the stack by sqrt(2) max(1, alpha). Logits are
    exact, as in `GradientDescent`. Under a unit per person a person's stack of gradients, and that
    of Hessians, is scaled down to the norm of one record's. See `tacit.mechanisms.outer_products`.
    Source: Mehta et al. 2023 (DP-Newton), whose factor sqrt(K) is for alpha = 1; James and Stein
    1961 for the pooling. The damping and the log odds are tacit's.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> X, y = np.repeat(np.eye(2), 500, axis=0), np.repeat([0, 1], 500)
    >>> model = tacit.Newton(budget="rho=0.5", classes=2, counts=500).fit(X, y)
    >>> model.predict([[2.0, 0.1]]), round(model.guarantee_.rho, 9)
    (array([0]), 0.5)
    """

    summary = "one linear score per class, by noisy Newton steps (DP-Newton)"

    alpha: float | None = None
    pooled: bool = True

    default_epochs = (4, 8)

    def _parts(self) -> dict[str, Part]:
        counts = self._declared_counts()
        epochs = self._epochs()

        # gradients and Hessians get the same share of what counts leave
        share = (1 - counts.share) / 2
        gradients = Part(share, outer_products.PRODUCTS, releases=epochs)
        # where rows are public, weights of Hessians do not depend on labels
        hessians = Part(share, outer_products.MOMENTS, releases=epochs)
        return {GRADIENTS: gradients, HESSIANS: hessians} | counts.parts

    def _gradient_noise(self) -> float:
        """Standard deviation of the noise on an entry of a gradient, in units of `_sensitivity`."""
        unit = Unit(self.unit)
        alpha = self._alpha()

        sensitivity = outer_products.PRODUCTS.under(unit)
        if unit is Unit.CHANGE_LABEL:
            # the gradients of two classes move, each by max(1, alpha) at most
            distance = ROOT_TWO * max(1.0, alpha) / self._sensitivity()
            sensitivity = outer_products.moved_by_left_rows(distance, len(self.classes_))
        return self._split().noise(GRADIENTS, sensitivity)

    def _hessian_noise(self) -> float:
        """Standard deviation of the noise on an entry of a Hessian, in units of a quarter of
        `_sensitivity`.
        """
        return self._split().noise(HESSIANS)

    def _event(self) -> Event:
        self._check_steps()
        check_optional(self, alpha=(1e-9, 1e9))
        flag("pooled", self.pooled)
        return super()._event()

    def _alpha(self) -> float:
        """Weight of a negative."""
        if self.alpha is None:
            return 1 / max(len(self.classes_) - 1, 1)
        return float(self.alpha)

    def _sensitivity(self) -> float:
        return weights_norm(len(self.classes_), self._alpha())

    def _matrices(self) -> Matrices:
        n_classes = len(self.classes_)

        # measured; pooling holds the deviations from the mean and their upper triangles too
        matrices_a_class = 5 if self.pooled else 3
        n_hessians = n_classes * self._epochs()
        return Matrices(
            held=matrices_a_class * n_classes + 2,
            decomposed=n_hessians,
            noised=self._noised(n_hessians, self._hessian_noise()),
        )

    def _fit(self, prepared: UnitRows, noise: NoiseSource) -> Released:
        epochs = self._epochs()
        exact = self._infinite()
        with phase(SET_UP):
            blocks = prepared.block_list(exact=exact)
            offsets = self._offsets(blocks, noise)

        derivatives: Derivatives = partial(exact_derivatives, alpha=self._alpha())
        if not exact:
            derivatives = partial(
                noisy_derivatives,
                alpha=self._alpha(),
                gradient_noise=self._gradient_noise(),
                hessian_noise=self._hessian_noise(),
                rows_are_public=self._public_rows(),
                noise=noise,
            )

        # heads of all classes, (K, d)
        theta = np.zeros((len(self.classes_), prepared.width))
        with phase(SOLVING):
            for _ in progress(range(epochs), "epochs", epochs):
                gradients, hessians = derivatives(theta, offsets, blocks)
                theta = self._step(theta, gradients, hessians)

        facts = {
            "row norm": 1.0,
            "weight of a negative": self._alpha(),
            "noise multiplier of the gradients of an epoch": self._gradient_noise(),
            "noise multiplier of the Hessians of an epoch": self._hessian_noise(),
            "epochs": epochs,
            **self._counts().facts(),
            "sampling": "none; every record is used in every epoch",
        }
        return self._head(
            prepared, "one linear score per class, by noisy Newton steps", theta, facts
        )

    def _offsets(self, blocks: Blocks, noise: NoiseSource) -> Floats:
        """Log odds of the classes, negatives weighted, (K,): added to the logits while learning."""
        if not self.balanced:
            return np.zeros(len(self.classes_))

        # noisy counts, raised by their noise so that none is near 0
        counts = self._counts()
        noisy_counts = counts.draw(blocks, len(self.classes_), noise)
        positives = np.maximum(noisy_counts, 0.0) + counts.uncertainty

        negatives = np.maximum(positives.sum() - positives, positives.min())
        log_odds: Floats = np.log(positives / (self._alpha() * negatives))
        return log_odds

    def _step(self, theta: Floats, gradients: Floats, hessians: Floats) -> Floats:
        """Return the heads after an epoch, of shape (K, d)."""
        rate = 1.0 if self.learning_rate is None else float(self.learning_rate)

        # standard deviations of the noise on an entry
        gradient_sd = self._gradient_noise() * self._sensitivity()
        hessian_sd = self._hessian_noise() * self._sensitivity() * STEEPEST
        if self.pooled and hessian_sd > 0:
            hessians, hessian_sd = pooled(hessians, hessian_sd)

        # about the norm of the noise matrix of a Hessian
        least_damping = self.ridge + hessian_sd * math.sqrt(theta.shape[1])
        noise_of_all_steps = rate * gradient_sd * math.sqrt(self._epochs())

        gradients = gradients + self.ridge * theta
        result = np.empty_like(theta)
        for k, hessian in enumerate(hessians):
            values, vectors = spectrum(hessian)
            damping = self.damping
            if damping is None:
                damping = damping_for(values, noise_of_all_steps, least_damping)
            result[k] = theta[k] - rate * divided(gradients[k], values, vectors, damping)
        return result


def weights_norm(n_classes: int, alpha: float) -> float:
    """Norm of a record's weights in all classes: of its gradients, and four times that of its
    Hessians.
    """
    return math.sqrt(1 + (n_classes - 1) * alpha**2)


def noisy_derivatives(
    head: Floats,
    offsets: Floats,
    blocks: Blocks,
    *,
    alpha: float,
    gradient_noise: float,
    hessian_noise: float,
    rows_are_public: bool,
    noise: NoiseSource,
) -> tuple[Floats, Floats]:
    """Noisy sums of gradients and of Hessians, as `Derivatives` returns them.

    `gradient_noise` is in units of `weights_norm`, `hessian_noise` in units of a quarter of it.
    Where rows are public, Hessians are of expected weights and have no noise.
    """
    bound = weights_norm(len(head), alpha)
    n = sum(len(block.rows) for block in blocks)

    # first and second derivatives of the losses in the logits, (b, K) each, by block
    slopes = []
    for rows, labels, _ in blocks:
        values = logits(rows, head) + offsets
        first, second = weighted(values, labels, alpha)
        if rows_are_public:
            second = expected_second_derivatives(values, alpha)
        slopes.append((first, second))

    # mechanisms take rows and weights of norm 1, so both are divided by their bound
    left_rows = (
        Block(first / bound, rows, ends)
        for (first, _), (rows, _, ends) in zip(slopes, blocks, strict=True)
    )
    gradients = outer_products.noisy_products(
        left_rows, shape=head.shape, noise_multiplier=gradient_noise, noise=noise
    )

    weights = (
        Block(rows, second / (STEEPEST * bound), ends)
        for (_, second), (rows, _, ends) in zip(slopes, blocks, strict=True)
    )
    reported = progress(weights, "Hessians", n, lambda block: len(block[0]))
    shape = {"n_weights": len(head), "width": head.shape[1]}
    if rows_are_public:
        hessians = outer_products.bounded_weighted_second_moments(reported, **shape)
    else:
        hessians = outer_products.noisy_weighted_second_moments(
            reported, **shape, noise_multiplier=hessian_noise, noise=noise
        )

    return gradients * bound, hessians * (STEEPEST * bound)


def exact_derivatives(
    head: Floats, offsets: Floats, blocks: Blocks, *, alpha: float
) -> tuple[Floats, Floats]:
    """Exact sums of gradients and of Hessians, as `Derivatives` returns them."""
    gradients = np.zeros_like(head)
    hessians = np.zeros((*head.shape, head.shape[1]))
    n = sum(len(block.rows) for block in blocks)

    for rows, labels, _ in progress(blocks, "Hessians", n, lambda block: len(block.rows)):
        first, second = weighted(logits(rows, head) + offsets, labels, alpha)
        gradients += first.T @ rows
        for k in range(len(head)):
            scaled = rows * np.sqrt(second[:, k : k + 1])
            hessians[k] += scaled.T @ scaled

    return gradients, hessians


def weighted(logits: Floats, labels: Integers, alpha: float) -> tuple[Floats, Floats]:
    """First and second derivatives of each record's loss in its K logits, of shape (b, K)."""
    from scipy.special import expit

    chances: Floats = expit(logits)
    first = alpha * chances
    second = alpha * (chances * (1 - chances))

    # the record's own class has weight 1
    positive = (np.arange(len(labels)), labels)
    first[positive] = chances[positive] - 1
    second[positive] = chances[positive] * (1 - chances[positive])
    return first, second


def expected_second_derivatives(logits: Floats, alpha: float) -> Floats:
    """Second derivatives of each record's loss with its expected weights, of shape (b, K): Fisher
    scoring.

    A sigmoid p of positives of weight 1 and negatives of weight alpha belongs to the probability q
    = alpha p/(1 - p + alpha p) of a positive, so the expected weight q + (1 - q) alpha is alpha/(1
    - p + alpha p). Labels do not enter.
    """
    from scipy.special import expit

    chances: Floats = expit(logits)
    weights = alpha / (1 - chances + alpha * chances)
    result: Floats = weights * (chances * (1 - chances))
    return result


def pooled(hessians: Floats, deviation: float) -> tuple[Floats, float]:
    """Shrink noisy matrices towards their mean, and return the standard deviation of the noise that
    is left on an entry.

    By James and Stein: the share of the variance between classes that noise does not explain is
    kept.
    """
    mean = hessians.mean(axis=0)
    deviations = hessians - mean

    # the lower triangle mirrors the upper one
    upper = deviations[:, *np.triu_indices(len(mean))]
    variance = float(np.mean(upper**2))
    noise_variance = deviation**2 * (1 - 1 / len(hessians))
    factor = 1.0
    if variance > 0:
        factor = max(0.0, 1 - noise_variance / variance)

    noise_left = deviation * math.sqrt(factor**2 + (1 - factor**2) / len(hessians))
    return mean + factor * deviations, noise_left
