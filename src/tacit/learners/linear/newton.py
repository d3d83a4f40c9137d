"""Newton: one-vs-rest logistic regression by noisy gradients and noisy Hessians (DP-Newton)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.progress import progress
from tacit.compute.timing import SET_UP, SOLVING, phase
from tacit.learners.base import DEFAULT_BUDGET
from tacit.learners.common.parameters import flag, real
from tacit.learners.common.quadratic import Matrices
from tacit.learners.common.softmax import Blocks, Exact, Parts, logits
from tacit.learners.linear.second_order import SecondOrderClassifier, damping_for, divided, spectrum
from tacit.mechanisms import outer_products
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.models.released import Released
from tacit.models.rows import Floats
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit

STEEPEST = 0.25  # largest slope of the sigmoid, which bounds what a record of weight 1 adds to a Hessian

Derivatives = Callable[[Floats], tuple[Floats, Floats]]
"""From a head of shape (K, d) to the sums of its gradients, (K, d), and of its Hessians, (K, d, d)."""


class Newton(SecondOrderClassifier):
    """Classify by one sigmoid per class against the rest, learned by Newton's method with noise in every epoch.

    Rows are divided by their norm, at fit and at predict. A record counts with weight 1 for its own class and with
    weight alpha, as a negative, for every other. Every epoch moves the head of class k by
    -learning_rate (H_k + damping_k I)^-1 g_k, where g_k and H_k are noised sums over all records. By default small
    classes are at no disadvantage: logits are learned beside the log odds of each class's noisy share of the weights,
    which predictions leave out.

    It is the slowest method: an epoch takes about n K d^2 multiplications (20 seconds on one core for n = 50,000,
    K = 100, d = 256), and K d (d + 1)/2 draws of noise, which the secure source makes in 8.5 microseconds each (28
    seconds). Progress is shown. Hessians take 16 K d^2 bytes of memory and more.

    Parameters
    ----------
    budget : Budget or str, default="rho=0.5"
        zCDP or approximate; a pure budget is refused. "rho=inf" is the same method without noise.
    classes : sequence or int, optional
        The public class list; N stands for 0..N-1. If omitted it is read off y, with a warning.
    public : array of shape (m, d), optional
        Public rows, finite and not zero. The mean of their unit rows is subtracted from every unit row, which is then
        made unit again.
    epochs : int, optional
        Number of steps, each over all records; by default 4, or 8 under an infinite budget.
    learning_rate : float, optional
        By default 1, which is Newton's step.
    alpha : float, optional
        Weight of a negative; public. By default 1/(K - 1), with which a record weighs as much as all its negatives.
    pooled : bool, default=True
        Shrink each noisy Hessian towards their mean over classes, by as much as noise makes them differ (James-Stein).
        False takes each as it was released.
    damping : float, optional
        By default `ridge` plus s sqrt(d), s being the standard deviation of the noise on an entry of a (pooled)
        Hessian, or more, so that noise in all epochs adds at most 0.5 to a logit as far as the noisy Hessian tells.
    counts : int or sequence of int, optional
        Declared number of records per class, one for all or one per class, which are then listed as unprotected. They
        balance the classes. If omitted, noisy counts are bought with 1 % of the budget.
    balanced : bool, default=True
        Learn for equally frequent classes (logit adjustment). False is plain logistic regression, without counts.
    ridge : float, default=0.3
        Penalty ridge/2 |theta|^2 beside the summed loss, as 1/C in scikit-learn's LogisticRegression.
    intercept : float, default=0.0
        Value of a constant column beside the unit row, which counts in the norm: the row becomes
        (x, intercept)/sqrt(1 + intercept^2). 0 is no such column.
    noise, random_state, unit, ledger
        As in `NoisySumPrototypes`.

    Attributes
    ----------
    coefficients_ : ndarray of shape (K, d), float64
    intercepts_ : ndarray of shape (K,), float64
    centre_ : ndarray of shape (d,), or None
        Mean of the unit public rows.
    classes_ : ndarray of shape (K,)
    guarantee_, spent_ : Guarantee
        Equal to `promise()`.

    Notes
    -----
    Guarantee: two Gaussian events per epoch with multiplier s, so that rho = T/s^2 for T epochs, and one per class for
    the counts. Sensitivity: a record x of class y has weight w_y = 1 and w_k = alpha elsewhere. With p_k the sigmoid,
    it adds w_k (p_k - [k = y]) x to the gradient and w_k p_k (1 - p_k) x x' to the Hessian of each class k, and
    |p_k - [k = y]| <= 1, p_k (1 - p_k) <= 1/4, |x| <= 1. So the stack of all K gradients moves by at most
    f = sqrt(sum w_k^2) = sqrt(1 + (K - 1) alpha^2) under add/remove, and that of all K Hessians by f/4, in Frobenius
    norm. Noise has standard deviation s f and s f/4, fresh for each class and epoch, the upper triangle of a Hessian
    mirrored. Logits are exact, as in `GradientDescent`. See `tacit.mechanisms.outer_products`.
    Source: Mehta et al. 2023 (DP-Newton), whose factor sqrt(K) is for alpha = 1; James and Stein 1961 for the
    pooling. The damping and the log odds are tacit's.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> X = np.repeat([[1.0, 0.0], [0.0, 1.0]], 500, axis=0)
    >>> y = np.repeat([0, 1], 500)
    >>> model = tacit.Newton(budget="rho=0.5", classes=2, counts=500).fit(X, y)
    >>> model.predict([[2.0, 0.1]]), round(model.guarantee_.rho, 9)
    (array([0]), 0.5)
    """

    def __init__(
        self,
        budget: Budget | str = DEFAULT_BUDGET,
        *,
        classes: Any = None,
        public: Any = None,
        epochs: int | None = None,
        learning_rate: float | None = None,
        alpha: float | None = None,
        pooled: bool = True,
        damping: float | None = None,
        counts: int | Sequence[int] | None = None,
        balanced: bool = True,
        ridge: float = 0.3,
        intercept: float = 0.0,
        noise: str = "secure",
        random_state: Any = None,
        unit: Unit | str = "add-remove",
        ledger: Ledger | None = None,
    ) -> None:
        self.budget = budget
        self.classes = classes
        self.public = public
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.alpha = alpha
        self.pooled = pooled
        self.damping = damping
        self.counts = counts
        self.balanced = balanced
        self.ridge = ridge
        self.intercept = intercept
        self.noise = noise
        self.random_state = random_state
        self.unit = unit
        self.ledger = ledger

    def _steps(self) -> int:
        return self._epochs(4, 8)

    def _of_sum(self) -> float:
        """Noise multiplier of the gradients and of the Hessians of each epoch."""
        return self._multiplier() * math.sqrt(2 * self._steps() / (1 - self._count_share()))

    def _event(self) -> Event:
        if self.alpha is not None:
            real("alpha", self.alpha, 1e-9, 1e9)
        flag("pooled", self.pooled)
        return self._composed([2 * self._steps() * outer_products.event(self._of_sum())])

    def _alpha(self) -> float:
        return 1 / max(len(self.classes_) - 1, 1) if self.alpha is None else float(self.alpha)

    def _sensitivity(self) -> float:
        """Norm of a record's weights in all classes: of its gradients, and four times that of its Hessians."""
        return math.sqrt(1 + (len(self.classes_) - 1) * self._alpha() ** 2)

    def _matrices(self) -> Matrices:
        of_all = len(self.classes_) * self._steps()
        held = (5 if self.pooled else 3) * len(self.classes_) + 2
        return Matrices(held, decomposed=of_all, noised=self._noised(of_all))

    def _fit(self, X: NDArray[Any], labels: NDArray[np.int64], noise: NoiseSource) -> None:
        width = self._head_width(X)
        if self._of_sum() == 0:
            with phase(SET_UP):
                exact = list(self._row_blocks(X, labels, "rows"))
                offsets = self._offsets(exact, noise)
            self._iterate(lambda head: self._exact(head, offsets, exact), width)
            return
        with phase(SET_UP):
            parts = [(outer_products.rounded(rows), own) for rows, own in self._row_blocks(X, labels, "rows")]
            offsets = self._offsets(parts, noise)
        self._iterate(lambda head: self._noisy(head, offsets, parts, noise), width)

    def _offsets(self, parts: Blocks, noise: NoiseSource) -> Floats:
        """What is added to the logits while learning: log odds of the classes, negatives weighted."""
        if not self.balanced:
            return np.zeros(len(self.classes_))
        masses = np.maximum(self._class_counts(parts, noise), 0.0) + self._uncertainty()
        result: Floats = np.log(masses / (self._alpha() * np.maximum(masses.sum() - masses, masses.min())))
        return result

    def _noisy(self, head: Floats, offsets: Floats, parts: Parts, noise: NoiseSource) -> tuple[Floats, Floats]:
        bound, of_sum, n = self._sensitivity(), self._of_sum(), sum(len(own) for _, own in parts)
        slopes = [weighted(logits(rows, head) + offsets, own, self._alpha()) for rows, own in parts]
        gradients = outer_products.noisy_products(
            ((first / bound, rows) for (first, _), (rows, _) in zip(slopes, parts, strict=True)),
            shape=head.shape,
            noise_multiplier=of_sum,
            noise=noise,
        )
        blocks = ((rows, second / (STEEPEST * bound)) for (_, second), (rows, _) in zip(slopes, parts, strict=True))
        hessians = outer_products.noisy_weighted_second_moments(
            progress(blocks, "Hessians", n, lambda block: len(block[1])),
            n_weights=len(head),
            width=head.shape[1],
            noise_multiplier=of_sum,
            noise=noise,
        )
        return gradients * bound, hessians * (STEEPEST * bound)

    def _exact(self, head: Floats, offsets: Floats, parts: Exact) -> tuple[Floats, Floats]:
        gradients, hessians = np.zeros_like(head), np.zeros((*head.shape, head.shape[1]))
        n = sum(len(own) for _, own in parts)
        for rows, own in progress(parts, "Hessians", n, lambda block: len(block[1])):
            first, second = weighted(rows @ head.T + offsets, own, self._alpha())
            gradients += first.T @ rows
            for k in range(len(head)):
                scaled = rows * np.sqrt(second[:, k : k + 1])
                hessians[k] += scaled.T @ scaled
        return gradients, hessians

    @phase(SOLVING)
    def _iterate(self, derivatives: Derivatives, width: int) -> None:
        theta = np.zeros((len(self.classes_), width))
        rate = 1.0 if self.learning_rate is None else float(self.learning_rate)
        deviation = self._of_sum() * self._sensitivity()
        for _ in progress(range(self._steps()), "epochs", self._steps()):
            gradients, hessians = derivatives(theta)
            gradients += self.ridge * theta
            uncertainty = deviation * STEEPEST
            if self.pooled and uncertainty > 0:
                hessians, uncertainty = pooled(hessians, uncertainty)
            least = self.ridge + uncertainty * math.sqrt(width)
            for k, hessian in enumerate(hessians):
                values, vectors = spectrum(hessian)
                damping = self.damping
                if damping is None:
                    damping = damping_for(values, rate * deviation * math.sqrt(self._steps()), least)
                theta[k] -= rate * divided(gradients[k], values, vectors, damping)
        self._set_head(theta)

    def _release(self) -> Released:
        facts = {
            "row norm": 1.0,
            "weight of a negative": self._alpha(),
            "noise multiplier of the gradients of an epoch": self._of_sum(),
            "noise multiplier of the Hessians of an epoch": self._of_sum(),
            "epochs": self._steps(),
        }
        return self._released("one linear score per class, by noisy Newton steps", facts | self._facts())


def weighted(logits: Floats, labels: Integers, alpha: float) -> tuple[Floats, Floats]:
    """First and second derivatives of each record's loss in its K logits, of shape (b, K)."""
    from scipy.special import expit

    own = (np.arange(len(labels)), labels)
    chances: Floats = expit(logits)
    first, second = alpha * chances, alpha * (chances * (1 - chances))
    first[own] = chances[own] - 1
    second[own] = chances[own] * (1 - chances[own])
    return first, second


def pooled(hessians: Floats, deviation: float) -> tuple[Floats, float]:
    """Shrink noisy matrices towards their mean; also the standard deviation of the noise that is left on an entry."""
    mean = hessians.mean(axis=0)
    apart = hessians - mean
    upper = apart[:, *np.triu_indices(len(mean))]
    spread, of_noise = float(np.mean(upper**2)), deviation**2 * (1 - 1 / len(hessians))
    kept = max(0.0, 1 - of_noise / spread) if spread > 0 else 1.0
    return mean + kept * apart, deviation * math.sqrt(kept**2 + (1 - kept**2) / len(hessians))
