"""GlobalAdapt: logistic regression whose gradients are scaled by one adapted threshold (DPSGD-Global-Adapt)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.learners.base import DEFAULT_BUDGET, Released
from tacit.learners.common.head import LinearClassifier
from tacit.learners.common.parameters import real, whole
from tacit.learners.common.rows import Floats
from tacit.learners.common.softmax import Parts, descend, exact_gradient, learning_rate, residuals
from tacit.mechanisms import counts, outer_products
from tacit.mechanisms.noise import NoiseSource
from tacit.mechanisms.outer_products import Rounded
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event, Gaussian, compose
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit

RECORDS_SHARE = 0.01  # of the budget; chosen, as all defaults here, on CIFAR-10
LONGEST = math.sqrt(2)  # gradient of a unit row
SHORTEST = 1e-6


class GlobalAdapt(LinearClassifier):
    """Classify by logistic regression, learned from gradients that are scaled alike wherever that bounds them.

    Clipping turns the mean gradient where it shortens some records' gradients and not others'. Here gradients up to a
    threshold Z are all scaled by clip/Z, and longer ones clipped to norm `clip`. After each step Z shrinks by
    exp(-decay) and grows with the noisy share of gradients above it, so that it settles where that share is `decay`.
    The rows are clipped to norm 1 by dividing each by its norm, at fit and at predict. Every step uses every record.

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
        shorten it as noise does (`tacit.learners.common.softmax.learning_rate`).
    clip : float, default=1.0
        Bound on the norm of a record's scaled gradient.
    records : int, optional
        Declared number n of records, which is then listed as unprotected. It scales the steps and the share of
        gradients above the threshold. If omitted, a noisy count is bought with 1 % of the budget.
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
        As used; a function of the noisy or declared number of records.
    centre_ : ndarray of shape (d,), or None
        Mean of the unit public rows.
    classes_ : ndarray of shape (C,)
    guarantee_, spent_ : Guarantee
        Equal to `promise()`.

    Notes
    -----
    Guarantee: per step one Gaussian event for the sum of scaled gradients, of sensitivity `clip` in Frobenius norm
    under add/remove, and one for the count of gradients above tolerance Z, of sensitivity 1; one more for the number
    of records. rho = steps/(2 sigma^2) + steps/(2 sigma_b^2) + that of the number. A record's scale depends
    on its own gradient and on what is released already, to the last bit; see `tacit.mechanisms.outer_products`
    and `tacit.mechanisms.counts`.
    Source: Esipova et al. 2023, on the full batch, so that no assumption on sampling is needed, with Nesterov's
    momentum. A published code divides the count by the realised number of records, which is a leak.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> X = np.repeat([[1.0, 0.0], [0.0, 1.0]], 500, axis=0)
    >>> y = np.repeat([0, 1], 500)
    >>> model = tacit.GlobalAdapt(budget="rho=0.5", classes=2, records=1000).fit(X, y)
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
        records: int | None = None,
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
        self.records = records
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

    def _steps(self) -> int:
        if self.steps is not None:
            return whole("steps", self.steps, 1, 10**4)
        if self._multiplier() == 0:
            return 200
        return 80 if self.public is None else 60

    def _multipliers(self) -> tuple[float, float, float | None]:
        """Noise multipliers of a step, of a count above the threshold, and of n (None where it is declared)."""
        z = self._multiplier()
        steps, of_counts = self._steps(), real("threshold_share", self.threshold_share, 1e-6, 0.9)
        of_records = RECORDS_SHARE if self.records is None else 0.0
        of_step = z * math.sqrt(steps / (1 - of_counts - of_records))
        return of_step, z * math.sqrt(steps / of_counts), z / math.sqrt(of_records) if of_records else None

    def _event(self) -> Event:
        self._intercept()
        real("clip", self.clip, 1e-6, 10)
        real("threshold", self.threshold, SHORTEST, LONGEST)
        real("decay", self.decay, 0, 1)
        real("tolerance", self.tolerance, 1e-6, 1e6)
        real("ridge", self.ridge, 0, 1e9)
        if self.learning_rate is not None:
            real("learning_rate", self.learning_rate, 1e-9, 1e9)
        if self.records is not None:
            real("records", self.records, 1, 2**53)
        of_step, of_count, of_records = self._multipliers()
        each = [self._steps() * outer_products.event(of_step), self._steps() * Gaussian(of_count)]
        return compose(each if of_records is None else [*each, Gaussian(of_records)])

    def _unprotected(self) -> tuple[str, ...]:
        return () if self.records is None else ("number of records (declared)",)

    def _fit(self, X: NDArray[Any], labels: NDArray[np.int64], noise: NoiseSource) -> None:
        width = self._head_width(X)
        if self._multiplier() == 0:
            self.thresholds_ = np.zeros(0)
            zeros = np.zeros(len(self.classes_))
            exact = list(self._row_blocks(X, labels, "rows"))
            n = self._records(sum(len(own) for _, own in exact), noise)
            self._descend(lambda head: exact_gradient(head, zeros, exact), width, n)
            return
        parts = [(outer_products.rounded(rows), own) for rows, own in self._row_blocks(X, labels, "rows")]
        n = self._records(sum(len(own) for _, own in parts), noise)
        self._descend(self._adapting(parts, n, noise), width, n)

    def _records(self, realised: int, noise: NoiseSource) -> float:
        """Number of records as declared, or with noise; 1 at least."""
        if self.records is not None:
            return float(self.records)
        of_records = self._multipliers()[2]
        assert of_records is not None
        return max(counts.noisy_count(realised, Gaussian(of_records), noise), 1.0)

    def _adapting(self, parts: Parts, n: float, noise: NoiseSource) -> Callable[[Floats], Floats]:
        """The noisy sum of scaled gradients at a head; each call moves the threshold."""
        of_step, of_count, _ = self._multipliers()
        zeros = np.zeros(len(self.classes_))
        thresholds: list[float] = []
        following = float(self.threshold)

        def gradient(head: Floats) -> Floats:
            nonlocal following
            threshold, norms = following, [np.zeros(0)]

            def blocks() -> Iterator[tuple[Floats, Rounded]]:
                for rows, own in parts:
                    left, own_norms = scaled(residuals(rows, own, head, zeros), threshold, self.clip)
                    norms.append(own_norms)
                    yield left, rows

            total = outer_products.noisy_products(blocks(), shape=head.shape, noise_multiplier=of_step, noise=noise)
            above = int(sum(np.count_nonzero(own > self.tolerance * threshold) for own in norms))
            share = min(max(counts.noisy_count(above, Gaussian(of_count), noise) / n, 0.0), 1.0)
            following = min(max(threshold * math.exp(share - self.decay), SHORTEST), LONGEST)
            thresholds.append(threshold)
            self.thresholds_ = np.array(thresholds)
            return total * self.clip

        return gradient

    def _descend(self, gradient: Callable[[Floats], Floats], width: int, n: float) -> None:
        """Nesterov's method from zero, by mean gradients."""
        self.learning_rate_ = self._learning_rate(n)
        theta = descend(
            lambda head: gradient(head) + self.ridge * head,
            np.zeros((len(self.classes_), width)),
            rate=self.learning_rate_ / n,
            steps=self._steps(),
        )
        self._set_head(theta)

    def _learning_rate(self, n: float) -> float:
        if self.learning_rate is not None:
            return float(self.learning_rate)
        longest = len(self.classes_) * (1.0 if self.public is None else 4.0)
        noise = self._multipliers()[0] * self.clip
        return learning_rate(longest, records=n, n_classes=len(self.classes_), noise=noise, steps=self._steps())

    def _release(self) -> Released:
        of_step, of_count, of_records = self._multipliers()
        facts = {
            "clip norm": float(self.clip),
            "noise multiplier of a step": of_step,
            "noise multiplier of a count above the threshold": of_count,
            "noise multiplier of the number of records": "it is declared" if of_records is None else of_records,
            "steps": self._steps(),
            "sampling": "none; every record is used in every step",
        }
        return self._released("one linear score per class, by noisy gradients under an adapted threshold", facts)


def scaled(left: Floats, threshold: float, clip: float) -> tuple[Floats, Floats]:
    """Rows scaled to norm 1 at most, in units of `clip`, and their norms before that; each by its own values alone.

    Rows up to the threshold Z are divided by it, which scales their norm by clip/Z; longer ones are clipped.
    """
    left = np.ascontiguousarray(left)
    norms: Floats = np.sqrt(np.einsum("ij,ij->i", left, left))
    divisors = np.where(norms <= threshold, threshold, np.maximum(norms, clip))
    return left / divisors[:, None], norms
