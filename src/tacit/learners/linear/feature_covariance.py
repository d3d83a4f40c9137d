"""FeatureCovariance: logistic regression by noisy gradients over noisy second moments of the rows (DP-FC)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.progress import progress
from tacit.compute.timing import SET_UP, SOLVING, phase
from tacit.learners.base import DEFAULT_BUDGET
from tacit.learners.common.parameters import real
from tacit.learners.common.quadratic import Matrices
from tacit.learners.common.softmax import Blocks, exact_gradient, noisy_gradient
from tacit.learners.linear.second_order import SecondOrderClassifier, damping_for, divided, spectrum
from tacit.mechanisms import outer_products
from tacit.mechanisms.noise import NoiseSource
from tacit.models.released import Released
from tacit.models.rows import Floats
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit

LONGEST = 10.0  # learning rate; the best on CIFAR-10. Without a bound, 100 classes diverged on CIFAR-100


class FeatureCovariance(SecondOrderClassifier):
    """Classify by logistic regression, learned by noisy gradients that are divided by noisy second moments.

    Rows are divided by their norm, at fit and at predict. G, the sum of x x' over all records, is noised once. Then
    every epoch moves the head by -learning_rate (G + damping I)^-1 g, where g is the noised sum of all records'
    gradients of softmax cross-entropy, each clipped. Directions in which rows vary little are learned as fast as the
    others, so that few epochs do.

    Parameters
    ----------
    budget : Budget or str, default="rho=0.5"
        zCDP or approximate; a pure budget is refused. "rho=inf" is the same descent without noise and clipping.
    classes : sequence or int, optional
        The public class list; N stands for 0..N-1. If omitted it is read off y, with a warning.
    public : array of shape (m, d), optional
        Public rows, finite and not zero. The mean of their unit rows is subtracted from every unit row, which is then
        made unit again.
    epochs : int, optional
        Number of steps, each over all records; by default 20, or 40 under an infinite budget.
    learning_rate : float, optional
        By default the number of classes, with which the first step is Newton's, but at most 10.
    clip : float, default=1.0
        Bound on the norm of a record's gradient, which is at most sqrt(2).
    damping : float, optional
        By default ridge C + s sqrt(d), s being the standard deviation of the noise on an entry of G, or more, so that
        noise in all epochs adds at most 0.5 to a logit as far as the noisy G tells.
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
    coefficients_ : ndarray of shape (C, d), float64
    intercepts_ : ndarray of shape (C,), float64
    damping_ : float
        As used; a function of the noisy G.
    centre_ : ndarray of shape (d,), or None
        Mean of the unit public rows.
    classes_ : ndarray of shape (C,)
    guarantee_, spent_ : Guarantee
        Equal to `promise()`.

    Notes
    -----
    Guarantee: 1 + epochs Gaussian events with one multiplier s, so that rho = (1 + epochs)/(2 s^2): one for G, of
    sensitivity 1, and one per epoch, of sensitivity `clip`, both in Frobenius norm under add/remove. One more per
    class for the counts. Logits are exact, as in `GradientDescent`. See `tacit.mechanisms.outer_products`.
    Source: Mehta et al. 2023 (DP-FC), with the full batch in every step; Menon et al. 2021 for the logit
    adjustment. The damping is tacit's.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> X = np.repeat([[1.0, 0.0], [0.0, 1.0]], 500, axis=0)
    >>> y = np.repeat([0, 1], 500)
    >>> model = tacit.FeatureCovariance(budget="rho=0.5", classes=2, counts=500).fit(X, y)
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
        clip: float = 1.0,
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
        self.clip = clip
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
        return self._epochs(20, 40)

    def _of_sum(self) -> float:
        """Noise multiplier of G and of each epoch."""
        return self._multiplier() * math.sqrt((1 + self._steps()) / (1 - self._count_share()))

    def _event(self) -> Event:
        real("clip", self.clip, 1e-6, 10)
        return self._composed([(1 + self._steps()) * outer_products.event(self._of_sum())])

    def _matrices(self) -> Matrices:
        return Matrices(held=6, decomposed=1, noised=self._noised(1))

    def _fit(self, X: NDArray[Any], labels: NDArray[np.int64], noise: NoiseSource) -> None:
        of_sum, width = self._of_sum(), self._head_width(X)
        if of_sum == 0:
            with phase(SET_UP):
                exact = list(self._row_blocks(X, labels, "rows"))
                offsets = self._offsets(exact, noise)
                moments = sum((rows.T @ rows for rows, _ in exact), np.zeros((width, width)))
            self._descend(lambda head: exact_gradient(head, offsets, exact), moments)
            return
        with phase(SET_UP):
            parts = [(outer_products.rounded(rows), own) for rows, own in self._row_blocks(X, labels, "rows")]
            offsets = self._offsets(parts, noise)
            moments = outer_products.noisy_second_moments(
                (rows for rows, _ in parts), width=width, noise_multiplier=of_sum, noise=noise
            )
        self._descend(
            lambda head: noisy_gradient(head, offsets, parts, clip=self.clip, multiplier=of_sum, noise=noise), moments
        )

    def _offsets(self, parts: Blocks, noise: NoiseSource) -> Floats:
        """What is added to the logits while learning; counts are for balance alone."""
        return self._log_shares(self._class_counts(parts, noise)) if self.balanced else np.zeros(len(self.classes_))

    @phase(SOLVING)
    def _descend(self, gradient: Callable[[Floats], Floats], moments: Floats) -> None:
        values, vectors = spectrum(moments)
        rate = self._learning_rate()
        self.damping_ = self._damping(values, rate)
        theta = np.zeros((len(self.classes_), len(values)))
        for _ in progress(range(self._steps()), "epochs", self._steps()):
            theta = theta - rate * divided(gradient(theta) + self.ridge * theta, values, vectors, self.damping_)
        self._set_head(theta)

    def _learning_rate(self) -> float:
        return min(float(len(self.classes_)), LONGEST) if self.learning_rate is None else float(self.learning_rate)

    def _damping(self, values: Floats, rate: float) -> float:
        if self.damping is not None:
            return float(self.damping)
        least = self.ridge * len(self.classes_) + self._of_sum() * math.sqrt(len(values))
        return damping_for(values, rate * self.clip * self._of_sum() * math.sqrt(self._steps()), least)

    def _release(self) -> Released:
        facts = {
            "gradient clip norm": float(self.clip),
            "noise multiplier of the second moments": self._of_sum(),
            "noise multiplier of an epoch": self._of_sum(),
            "epochs": self._steps(),
            "damping": self.damping_,
        }
        what = "one linear score per class, by noisy gradients over noisy second moments"
        return self._released(what, facts | self._facts())
