"""GlobalAdapt: logistic regression whose gradients are scaled by one adapted threshold (DPSGD-Global-Adapt)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.learners.base import DEFAULT_BUDGET, Released
from tacit.learners.common.balance import n_records
from tacit.learners.common.parameters import real
from tacit.learners.common.rows import Floats
from tacit.learners.common.softmax import Parts, residuals
from tacit.learners.linear.first_order import FirstOrderClassifier, Gradient
from tacit.mechanisms import outer_products
from tacit.mechanisms.counts import noisy_count
from tacit.mechanisms.noise import NoiseSource
from tacit.mechanisms.outer_products import IntegerRows
from tacit.mechanisms.rounding import row_norms
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event, Gaussian
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit

LONGEST = math.sqrt(2)  # gradient of a unit row
SHORTEST = 1e-6


class GlobalAdapt(FirstOrderClassifier):
    """Classify by logistic regression, learned from gradients that are scaled alike wherever that bounds them.

    Clipping turns the mean gradient where it shortens some records' gradients and not others'. Here gradients up to a
    threshold Z are all scaled by clip/Z, and longer ones clipped to norm `clip`. After each step Z shrinks by
    exp(-decay) and grows with the noisy share of gradients above it, so that it settles where that share is `decay`.
    Rows are divided by their norm, at fit and at predict. Every step uses every record. By default small classes are at
    no disadvantage, as in `GradientDescent`.

    Parameters
    ----------
    budget : Budget or str, default="rho=0.5"
        zCDP or approximate; a pure budget is refused. "rho=inf" is the same descent without noise and clipping, which
        is plain gradient descent.
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
        Bound on the norm of a record's scaled gradient.
    counts : int or sequence of int, optional
        Declared number of records per class, one for all or one per class, which are then listed as unprotected. They
        scale the steps and the share of gradients above the threshold, and balance the classes. If omitted, noisy
        counts are bought with 1 % of the budget.
    balanced : bool, default=True
        Learn for equally frequent classes (logit adjustment). False is plain logistic regression.
    threshold : float, default=sqrt(2)
        Z of the first step; at most sqrt(2), the longest gradient of a unit row. Later ones are kept from 1e-6 to that.
    decay : float, default=0.1
        How fast Z shrinks, eta in the paper.
    tolerance : float, default=1.0
        Gradients longer than tolerance Z make Z grow, tau in the paper.
    threshold_share : float, default=0.01
        Share of the budget for the counts of gradients above the threshold.
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
    thresholds_ : ndarray of shape (steps,)
        Z of each step; empty under an infinite budget.
    learning_rate_ : float
        As used; a function of the noisy or declared counts.
    centre_ : ndarray of shape (d,), or None
        Mean of the unit public rows.
    classes_ : ndarray of shape (C,)
    guarantee_, spent_ : Guarantee
        Equal to `promise()`.

    Notes
    -----
    Guarantee: per step one Gaussian event for the sum of scaled gradients, of sensitivity `clip` in Frobenius norm
    under add/remove, and one for the count of gradients above tolerance Z, of sensitivity 1; one more per class for
    the class counts. rho = steps/(2 sigma^2) + steps/(2 sigma_b^2) + that of the class counts. A record's scale depends
    on its own gradient and on what is released already, to the last bit; see `tacit.mechanisms.outer_products`
    and `tacit.mechanisms.counts`.
    Source: Esipova et al. 2023, on the full batch, so that no assumption on sampling is needed, with Nesterov's
    momentum; Menon et al. 2021 for the logit adjustment. A published code divides the count above the threshold by the
    realised number of records, which is a leak.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> X = np.repeat([[1.0, 0.0], [0.0, 1.0]], 500, axis=0)
    >>> y = np.repeat([0, 1], 500)
    >>> model = tacit.GlobalAdapt(budget="rho=0.5", classes=2, counts=500).fit(X, y)
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
        threshold: float = LONGEST,
        decay: float = 0.1,
        tolerance: float = 1.0,
        threshold_share: float = 0.01,
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
        self.threshold = threshold
        self.decay = decay
        self.tolerance = tolerance
        self.threshold_share = threshold_share
        self.ridge = ridge
        self.intercept = intercept
        self.noise = noise
        self.random_state = random_state
        self.unit = unit
        self.ledger = ledger

    def _of_step(self) -> float:
        return self._multiplier() * math.sqrt(self._steps() / (1 - self._threshold_share() - self._count_share()))

    def _of_threshold(self) -> float:
        """Noise multiplier of a count of gradients above the threshold."""
        return self._multiplier() * math.sqrt(self._steps() / self._threshold_share())

    def _threshold_share(self) -> float:
        return real("threshold_share", self.threshold_share, 1e-6, 0.9)

    def _event(self) -> Event:
        real("threshold", self.threshold, SHORTEST, LONGEST)
        real("decay", self.decay, 0, 1)
        real("tolerance", self.tolerance, 1e-6, 1e6)
        of_gradients = self._steps() * outer_products.event(self._of_step())
        return self._composed([of_gradients, self._steps() * Gaussian(self._of_threshold())])

    def _fit(self, X: NDArray[Any], labels: NDArray[np.int64], noise: NoiseSource) -> None:
        self.thresholds_ = np.zeros(0)
        super()._fit(X, labels, noise)

    def _noisy_gradient(self, parts: Parts, counts: Floats, noise: NoiseSource) -> Gradient:
        """Each call moves the threshold."""
        of_step, of_threshold, offsets = self._of_step(), Gaussian(self._of_threshold()), self._log_shares(counts)
        following = float(self.threshold)

        def gradient(head: Floats) -> Floats:
            nonlocal following
            threshold, norms = following, [np.zeros(0)]

            def blocks() -> Iterator[tuple[Floats, IntegerRows]]:
                for rows, own in parts:
                    left, own_norms = scaled(residuals(rows, own, head, offsets), threshold, self.clip)
                    norms.append(own_norms)
                    yield left, rows

            total = outer_products.noisy_products(blocks(), shape=head.shape, noise_multiplier=of_step, noise=noise)
            above = int(sum(np.count_nonzero(own > self.tolerance * threshold) for own in norms))
            share = min(max(noisy_count(above, of_threshold, noise) / n_records(counts), 0.0), 1.0)
            following = min(max(threshold * math.exp(share - self.decay), SHORTEST), LONGEST)
            self.thresholds_ = np.append(self.thresholds_, threshold)
            return total * self.clip

        return gradient

    def _release(self) -> Released:
        facts = self._facts() | {"noise multiplier of a count above the threshold": self._of_threshold()}
        return self._released("one linear score per class, by noisy gradients under an adapted threshold", facts)


def scaled(left: Floats, threshold: float, clip: float) -> tuple[Floats, Floats]:
    """Rows scaled to norm 1 at most, in units of `clip`, and their norms before that; each by its own values alone.

    Rows up to the threshold Z are divided by it, which scales their norm by clip/Z; longer ones are clipped.
    """
    left = np.ascontiguousarray(left)
    norms = row_norms(left)
    divisors = np.where(norms <= threshold, threshold, np.maximum(norms, clip))
    return left / divisors[:, None], norms
