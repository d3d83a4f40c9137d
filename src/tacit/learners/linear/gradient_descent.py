"""GradientDescent: logistic regression by noisy full-batch gradients (the linear probe)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.learners.base import DEFAULT_BUDGET, Released
from tacit.learners.common.head import LinearClassifier
from tacit.learners.common.parameters import declared_counts, real, whole
from tacit.learners.common.rows import Floats
from tacit.learners.common.softmax import (
    descend,
    exact_counts,
    exact_gradient,
    learning_rate,
    log_shares,
    noisy_counts,
    residuals,
)
from tacit.mechanisms import gaussian, outer_products
from tacit.mechanisms.noise import NoiseSource
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event, compose
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit

COUNT_SHARE = 0.01  # of the budget; chosen, as all defaults here, on CIFAR-10

Gradient = Callable[[Floats], Floats]
"""From a head of shape (C, d) to the sum of its gradients over records."""


class GradientDescent(LinearClassifier):
    """Classify by logistic regression, learned by gradient descent with noise in every step.

    The rows are clipped to norm 1 by dividing each by its norm, at fit and at predict. Every step uses every record:
    softmax cross-entropy, the gradient of each record clipped, their sum noised, and Nesterov's momentum. The steps are
    as long as stability allows, or shorter, so that noise does not drown the logits; none depends on a private loss.
    By default small classes are at no disadvantage: logits are learned beside the log of each class's noisy share of
    the records, which predictions leave out.

    Parameters
    ----------
    budget : Budget or str, default="rho=0.5"
        zCDP or approximate; a pure budget is refused. "rho=inf" is the same descent without noise and clipping.
    classes : sequence or int, optional
        The public class list; N stands for 0..N-1. If omitted it is read off y, with a warning.
    public : array of shape (m, d), optional
        Public rows, finite and not zero. The mean of their unit rows is subtracted from every unit row, which is then
        made unit again. Steps can then be four times as long.
    steps : int, optional
        Number of steps; by default 60 with public rows and 80 without, or 200 under an infinite budget.
    learning_rate : float, optional
        Factor of the mean gradient. By default C, or 4 C with public rows, but at most 1.2 * 3 n/(steps^2 z clip), at
        which noise adds about 1.2 to a logit; z is the noise multiplier of all steps together. Few records per class
        shorten it as noise does (`tacit.learners.common.softmax.learning_rate`).
    clip : float, default=1.0
        Bound on the norm of a record's gradient, which is at most sqrt(2).
    counts : int or sequence of int, optional
        Declared number of records per class, one for all or one per class, which are then listed as unprotected. They
        scale the steps and balance the classes. If omitted, noisy counts are bought with 1 % of the budget.
    balanced : bool, default=True
        Learn for equally frequent classes (logit adjustment). False is plain logistic regression.
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
    learning_rate_ : float
        As used; a function of the noisy or declared counts.
    centre_ : ndarray of shape (d,), or None
        Mean of the unit public rows.
    classes_ : ndarray of shape (C,)
    guarantee_, spent_ : Guarantee
        Equal to `promise()`.

    Notes
    -----
    Guarantee: one Gaussian event per step with multiplier z sqrt(steps), sensitivity `clip` in Frobenius norm under
    add/remove, and one per class for the counts. The gradient of a record is the outer product of its residual and
    its row, so clipping needs their two norms alone. Logits are exact: rows are whole numbers, and so is the head
    after scaling by a power of two, so that one record's gradient does not depend, in its bits, on the others. See
    `tacit.mechanisms.outer_products`.
    Source: Abadi et al. 2016 with the full batch, so that no assumption on sampling is needed; Menon et al. 2021 for
    the logit adjustment.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> X = np.repeat([[1.0, 0.0], [0.0, 1.0]], 500, axis=0)
    >>> y = np.repeat([0, 1], 500)
    >>> model = tacit.GradientDescent(budget="rho=0.5", classes=2, counts=500).fit(X, y)
    >>> model.predict([[2.0, 0.1]]), round(model.guarantee_.rho, 9)
    (array([0]), 0.5)
    """

    def __init__(
        self,
        budget: Budget | str = DEFAULT_BUDGET,
        *,
        classes: Any = None,
        public: Any = None,
        steps: int | None = None,
        learning_rate: float | None = None,
        clip: float = 1.0,
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
        self.steps = steps
        self.learning_rate = learning_rate
        self.clip = clip
        self.counts = counts
        self.balanced = balanced
        self.ridge = ridge
        self.intercept = intercept
        self.noise = noise
        self.random_state = random_state
        self.unit = unit
        self.ledger = ledger

    def _steps(self) -> int:
        if self.steps is not None:
            return whole("steps", self.steps, 1, 10**4)
        if self._multiplier() == 0:
            return 200
        return 80 if self.public is None else 60

    def _multipliers(self) -> tuple[float, float | None]:
        """Noise multipliers of a step and of the counts (None where they are declared)."""
        z = self._multiplier()
        count_share = COUNT_SHARE if self.counts is None else 0.0
        of_step = z * math.sqrt(self._steps() / (1 - count_share))
        return of_step, z / math.sqrt(count_share) if count_share else None

    def _event(self) -> Event:
        self._intercept()
        real("clip", self.clip, 1e-6, 10)
        real("ridge", self.ridge, 0, 1e9)
        if self.learning_rate is not None:
            real("learning_rate", self.learning_rate, 1e-9, 1e9)
        if not isinstance(self.balanced, bool | np.bool_):
            raise InputError(f"balanced={self.balanced!r} must be True or False; leave it out")
        of_step, of_counts = self._multipliers()
        steps = self._steps() * outer_products.event(of_step)
        return compose([steps] if of_counts is None else [steps, gaussian.event(of_counts)])

    def _unprotected(self) -> tuple[str, ...]:
        return () if self.counts is None else ("class counts (declared)",)

    def _check(self, width: int) -> None:
        super()._check(width)
        declared_counts(self.counts, len(self.classes_))

    def _fit(self, X: NDArray[Any], labels: NDArray[np.int64], noise: NoiseSource) -> None:
        of_step, of_counts = self._multipliers()
        counts = declared_counts(self.counts, len(self.classes_))
        if of_step == 0:
            exact = list(self._row_blocks(X, labels, "rows"))
            if counts is None:
                counts = exact_counts(exact, len(self.classes_))
            offsets = self._offsets(counts, 1.0)
            self._descend(lambda head: exact_gradient(head, offsets, exact), self._head_width(X), counts)
            return
        parts = [(outer_products.rounded(rows), own) for rows, own in self._row_blocks(X, labels, "rows")]
        if counts is None:
            assert of_counts is not None
            counts = noisy_counts(parts, len(self.classes_), of_counts, noise)
        offsets = self._offsets(counts, max(of_counts or 0.0, 1.0))

        def gradient(head: Floats) -> Floats:
            blocks = ((residuals(rows, own, head, offsets) / self.clip, rows) for rows, own in parts)
            total = outer_products.noisy_products(blocks, shape=head.shape, noise_multiplier=of_step, noise=noise)
            return total * self.clip

        self._descend(gradient, self._head_width(X), counts)

    def _offsets(self, counts: Floats, uncertainty: float) -> Floats:
        """What is added to the logits while learning."""
        return log_shares(counts, uncertainty) if self.balanced else np.zeros(len(counts))

    def _descend(self, gradient: Gradient, width: int, counts: Floats) -> None:
        """Nesterov's method from zero, by mean gradients."""
        n = max(float(counts.sum()), 1.0)
        self.learning_rate_ = self._learning_rate(len(counts), n)
        theta = descend(
            lambda head: gradient(head) + self.ridge * head,
            np.zeros((len(counts), width)),
            rate=self.learning_rate_ / n,
            steps=self._steps(),
        )
        self._set_head(theta)

    def _learning_rate(self, n_classes: int, n: float) -> float:
        if self.learning_rate is not None:
            return float(self.learning_rate)
        longest = n_classes * (1.0 if self.public is None else 4.0)
        noise = self._multipliers()[0] * self.clip
        return learning_rate(longest, records=n, n_classes=n_classes, noise=noise, steps=self._steps())

    def _release(self) -> Released:
        of_step, of_counts = self._multipliers()
        facts = {
            "clip norm": float(self.clip),
            "noise multiplier of a step": of_step,
            "noise multiplier of the counts": "counts are declared" if of_counts is None else of_counts,
            "steps": self._steps(),
            "sampling": "none; every record is used in every step",
        }
        return self._released("one linear score per class, by noisy gradient descent", facts)
