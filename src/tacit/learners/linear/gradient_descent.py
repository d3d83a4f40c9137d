"""GradientDescent: logistic regression by noisy full-batch gradients (the linear probe)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tacit.learners.base import DEFAULT_BUDGET
from tacit.learners.common.softmax import Parts, noisy_gradient
from tacit.learners.linear.first_order import FirstOrderClassifier, Gradient
from tacit.mechanisms import outer_products
from tacit.mechanisms.noise import NoiseSource
from tacit.models.released import Released
from tacit.models.rows import Floats
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit


class GradientDescent(FirstOrderClassifier):
    """Classify by logistic regression, learned by gradient descent with noise in every step.

    Rows are divided by their norm, at fit and at predict. Every step uses every record: softmax cross-entropy, the
    gradient of each record clipped, their sum noised, and Nesterov's momentum. The steps are as long as stability
    allows, or shorter, so that noise does not drown the logits; none depends on a private loss. By default small
    classes are at no disadvantage: logits are learned beside the log of each class's noisy share of the records, which
    predictions leave out.

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
        shorten it as noise does (`tacit.learners.common.descent.learning_rate`).
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

    def _of_step(self) -> float:
        return self._multiplier() * math.sqrt(self._steps() / (1 - self._count_share()))

    def _event(self) -> Event:
        return self._composed([self._steps() * outer_products.event(self._of_step())])

    def _noisy_gradient(self, parts: Parts, counts: Floats, noise: NoiseSource) -> Gradient:
        of_step, offsets = self._of_step(), self._log_shares(counts)
        return lambda head: noisy_gradient(head, offsets, parts, clip=self.clip, multiplier=of_step, noise=noise)

    def _release(self) -> Released:
        return self._released("one linear score per class, by noisy gradient descent", self._facts())
