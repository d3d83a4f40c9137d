"""LeastSquares: linear classifiers from noisy second moments and noisy class sums (DP-LS)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.timing import SET_UP, SOLVING, phase
from tacit.errors import InputError
from tacit.learners.base import DEFAULT_BUDGET
from tacit.learners.common.balance import BalancedClassifier
from tacit.learners.common.head import scores_of_empty
from tacit.learners.common.parameters import flag, real
from tacit.learners.common.quadratic import Matrices
from tacit.learners.linear.second_order import divided, spectrum
from tacit.mechanisms import gaussian, outer_products
from tacit.mechanisms.noise import NoiseSource
from tacit.models.released import Released
from tacit.models.rows import Floats, exact_class_sums
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event, compose
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit

# chosen on CIFAR-10
SHARE_OF_MOMENTS = 0.3  # of the budget, where there are no class moments
NOISE_IN_MEAN = 4.0  # factor of the variance of a mean's noise, beside the variance within classes


class LeastSquares(BalancedClassifier):
    """Classify by one linear score per class, solved for from noisy second moments and noisy class sums.

    Rows are divided by their norm, at fit and at predict. Let G be the sum of x x' over all records, b_k the sum of the
    n_k records of class k, and m_k = b_k/n_k. By default this is linear discriminant analysis: G less all
    b_k b_k'/n_k is the scatter within classes, W, and theta_k = (W + ridge I)^-1 (m_k - m), m being the mean of all
    records. No class is favoured for its size. With `alpha` it is the published regression on class indicators,
    theta_k = (A_k + alpha G + ridge I)^-1 b_k, with A_k the sum of x x' over class k.

    Parameters
    ----------
    budget : Budget or str, default="rho=0.5"
        zCDP or approximate; a pure budget is refused. "rho=inf" is the non-private form.
    classes : sequence or int, optional
        The public class list; N stands for 0..N-1. If omitted it is read off y, with a warning.
    public : array of shape (m, d), optional
        Public rows, finite and not zero. The mean of their unit rows is subtracted from every unit row, which is then
        made unit again.
    alpha : float, optional
        Weight of G beside the A_k, as published. G, A and b are then bought at a third of the budget each. If omitted,
        G takes 30 % of the budget, noisy counts 1 %, and b the rest.
    ridge : float, optional
        By default 1 + s sqrt(d), s being the standard deviation of the noise on an entry of the matrix to invert.
    normalise : bool, default=True
        Divide each theta_k by the standard deviation of its score within classes or, with `alpha`, by its norm. If
        False, scores are those of the linear discriminant or, with `alpha`, of the regression.
    counts : int or sequence of int, optional
        Declared number of records per class, one for all or one per class, which are then listed as unprotected. If
        omitted, noisy counts are bought. Not with `alpha`, which needs none.
    intercept : float, default=0.0
        Value of a constant column beside the unit row, which counts in the norm: the row becomes
        (x, intercept)/sqrt(1 + intercept^2). 0 is no such column.
    noise, random_state, unit, ledger
        As in `NoisySumPrototypes`.

    Attributes
    ----------
    coefficients_ : ndarray of shape (C, d), float64
    intercepts_ : ndarray of shape (C,), float64
        Far below all scores for a class without records under an infinite budget, unless `alpha` is given.
    centre_ : ndarray of shape (d,), or None
        Mean of the unit public rows.
    classes_ : ndarray of shape (C,)
    guarantee_, spent_ : Guarantee
        Equal to `promise()`.

    Notes
    -----
    Guarantee: one Gaussian event for G, one per class for b and, with alpha, one per class for A, else one per class
    for the counts, all of sensitivity 1 under add/remove; z^2 of a part is 1/(2 rho) over its share of the budget. All
    else is post-processing: the expected noise of the sums is added back to W, and a mean's noise, of variance v_k in
    each coordinate, is taken for scatter, 4 n v_k beside W. See `tacit.mechanisms.outer_products` and
    `tacit.mechanisms.gaussian`.
    Source: Mehta et al. 2023 (DP-LS) for the moments and the form with alpha; Fisher 1936 for the discriminant, whose
    noise terms are tacit's.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> X = np.repeat([[1.0, 0.0], [0.0, 1.0]], 500, axis=0)
    >>> y = np.repeat([0, 1], 500)
    >>> model = tacit.LeastSquares(budget="rho=0.5", classes=2).fit(X, y)
    >>> model.predict([[2.0, 0.1]]), round(model.guarantee_.rho, 9)
    (array([0]), 0.5)
    """

    balanced = True

    def __init__(
        self,
        budget: Budget | str = DEFAULT_BUDGET,
        *,
        classes: Any = None,
        public: Any = None,
        alpha: float | None = None,
        ridge: float | None = None,
        normalise: bool = True,
        counts: int | Sequence[int] | None = None,
        intercept: float = 0.0,
        noise: str = "secure",
        random_state: Any = None,
        unit: Unit | str = "add-remove",
        ledger: Ledger | None = None,
    ) -> None:
        self.budget = budget
        self.classes = classes
        self.public = public
        self.alpha = alpha
        self.ridge = ridge
        self.normalise = normalise
        self.counts = counts
        self.intercept = intercept
        self.noise = noise
        self.random_state = random_state
        self.unit = unit
        self.ledger = ledger

    def _count_share(self) -> float:
        return super()._count_share() if self.alpha is None else 0.0

    def _multipliers(self) -> tuple[float, float, float | None]:
        """Noise multipliers of G, of b, and of A (None where it is not bought)."""
        z = self._multiplier()
        if self.alpha is None:
            of_sums = 1 - SHARE_OF_MOMENTS - self._count_share()
            return z / math.sqrt(SHARE_OF_MOMENTS), z / math.sqrt(of_sums), None
        real("alpha", self.alpha, 0, 1e9)
        return z * math.sqrt(3), z * math.sqrt(3), z * math.sqrt(3)

    def _event(self) -> Event:
        self._intercept()
        flag("normalise", self.normalise)
        if self.ridge is not None:
            real("ridge", self.ridge, 1e-9, 1e18)
        if self.counts is not None and self.alpha is not None:
            raise InputError(f"counts={self.counts!r} would go unused with alpha={self.alpha!r}; leave one of them out")
        of_all, of_sums, of_classes = self._multipliers()
        parts = [outer_products.event(of_all), gaussian.event(of_sums)]
        if of_classes is not None:
            return compose([*parts, outer_products.class_event(of_classes)])
        return self._composed(parts)

    def _matrices(self) -> Matrices:
        if self.alpha is None:
            return Matrices(held=6, decomposed=1, noised=self._noised(1))
        n_classes = len(self.classes_)
        return Matrices(held=3 * n_classes + 3, decomposed=n_classes, noised=self._noised(n_classes + 1))

    def _fit(self, X: NDArray[Any], labels: NDArray[np.int64], noise: NoiseSource) -> None:
        if self._multiplier() == 0:
            moments, sums, class_moments = self._exact(X, labels)
        else:
            moments, sums, class_moments = self._noisy(X, labels, noise)
        if class_moments is None:
            with phase(SET_UP):
                counts = self._class_counts(self._row_blocks(X, labels, "counts"), noise)
            self._set_head(*self._discriminants(moments, sums, counts))
            if self._multiplier() == 0:
                self.intercepts_ = self.intercepts_ + scores_of_empty(sums)
            return
        theta = _regression(moments, class_moments, self.alpha or 0.0, self._ridge(len(moments)), sums)
        norms = np.linalg.norm(theta, axis=1, keepdims=True)
        self._set_head(theta / np.where(norms > 0, norms, 1.0) if self.normalise else theta)

    @phase(SOLVING)
    def _discriminants(self, moments: Floats, sums: Floats, counts: Floats) -> tuple[Floats, Floats]:
        """One theta per class, and what is added to its scores."""
        counts = np.maximum(counts, self._uncertainty())[:, None]
        total, of_sums = counts.sum(), self._multipliers()[1]
        means, centre = sums / counts, sums.sum(axis=0) / total
        within = moments - means.T @ sums + of_sums**2 * np.sum(1 / counts) * np.eye(len(moments))
        values, axes = spectrum(within)
        variances = (values + self._ridge(len(moments))) / total
        along, at_centre = (means - centre) @ axes, centre @ axes
        theta = along / (variances + NOISE_IN_MEAN * (of_sums / counts) ** 2)
        if not self.normalise:
            return theta @ axes.T, -np.sum(theta * (along / 2 + at_centre), axis=1)
        deviations = np.sqrt(np.sum(theta**2 * variances, axis=1, keepdims=True))
        theta /= np.where(deviations > 0, deviations, 1.0)
        return theta @ axes.T, -theta @ at_centre

    def _ridge(self, width: int) -> float:
        if self.ridge is not None:
            return float(self.ridge)
        of_all, _, of_classes = self._multipliers()
        deviation = of_all if of_classes is None else math.hypot(of_classes, (self.alpha or 0.0) * of_all)
        return 1.0 + deviation * math.sqrt(width)

    @phase(SET_UP)
    def _noisy(
        self, X: NDArray[Any], labels: NDArray[np.int64], noise: NoiseSource
    ) -> tuple[Floats, Floats, Floats | None]:
        of_all, of_sums, of_classes = self._multipliers()
        width, n_classes = self._head_width(X), len(self.classes_)
        moments = outer_products.noisy_second_moments(
            (rows for rows, _ in self._row_blocks(X, labels, "second moments")),
            width=width,
            noise_multiplier=of_all,
            noise=noise,
        )
        sums = gaussian.noisy_class_sums(
            self._row_blocks(X, labels, "class sums"),
            n_classes=n_classes,
            width=width,
            noise_multiplier=of_sums,
            noise=noise,
        )
        if of_classes is None:
            return moments, sums, None
        class_moments = outer_products.noisy_class_second_moments(
            self._row_blocks(X, labels, "class moments"),
            n_classes=n_classes,
            width=width,
            noise_multiplier=of_classes,
            noise=noise,
        )
        return moments, sums, class_moments

    @phase(SET_UP)
    def _exact(self, X: NDArray[Any], labels: NDArray[np.int64]) -> tuple[Floats, Floats, Floats | None]:
        width, n_classes = self._head_width(X), len(self.classes_)
        products = (rows.T @ rows for rows, _ in self._row_blocks(X, labels, "second moments"))
        moments = sum(products, np.zeros((width, width)))
        sums = exact_class_sums(self._row_blocks(X, labels, "class sums"), n_classes=n_classes, width=width)
        if self.alpha is None:
            return moments, sums, None
        class_moments = np.zeros((n_classes, width, width))
        for rows, own in self._row_blocks(X, labels, "class moments"):
            for c in np.unique(own):
                class_moments[c] += rows[own == c].T @ rows[own == c]
        return moments, sums, class_moments

    def _release(self) -> Released:
        of_all, of_sums, of_classes = self._multipliers()
        facts = {
            "row norm": 1.0,
            "noise multiplier of the second moments": of_all,
            "noise multiplier of the class sums": of_sums,
            "noise multiplier of the class moments": "not bought" if of_classes is None else of_classes,
            **self._facts(),
            "ridge": self._ridge(self.coefficients_.shape[1] + int(self.intercept > 0)),
            "sampling": "none; every record is used once in each sum",
        }
        return self._released("one linear score per class, solved for from noisy moments", facts)


@phase(SOLVING)
def _regression(moments: Floats, class_moments: Floats, alpha: float, ridge: float, sums: Floats) -> Floats:
    """One theta per class; noisy matrices are first projected to positive semidefinite ones."""
    each = zip(class_moments, sums, strict=True)
    return np.stack([divided(b[None], *spectrum(own + alpha * moments), ridge)[0] for own, b in each])
