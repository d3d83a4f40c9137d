"""AutoPrototypes: class sums, an empirical-Bayes posterior from public rows, and refinement where it pays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.timing import SET_UP, SOLVING, phase
from tacit.errors import InputError
from tacit.learners.base import DEFAULT_BUDGET, Released
from tacit.learners.common.balance import log_shares
from tacit.learners.common.decision import QuadraticHead
from tacit.learners.common.descent import descend, learning_rate
from tacit.learners.common.head import UnitRowClassifier
from tacit.learners.common.parameters import public_rows
from tacit.learners.common.quadratic import Matrices
from tacit.learners.common.rows import Floats, centre_array, exact_class_sums, normalisation
from tacit.learners.common.softmax import Exact, Parts, exact_gradient, logits, noisy_gradient
from tacit.learners.prototypes.posterior import ClassPosterior, PublicPrior, class_posterior, density, public_prior
from tacit.mechanisms import gaussian, outer_products
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event, compose
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit

# where each was chosen: docs/auto.md
QUARTER = 0.25
COUNT_SHARE = 0.1
STEPS = 60
AMPLE, REFINE_FROM = 70.0, 2.2
SMALL_CLASSES = 0.25
BELIEF, BELIEF_HALVED_AT, LEAST_TRUST = 0.3, 20.0, 0.25
NARROW, WIDE = 0.5, 1.5
SAMPLING_IN_SUM = 0.01
RIDGE, CLIP, LONGEST_STEP = 0.3, 1.0, 4.0


class AutoPrototypes(UnitRowClassifier):
    """Classify by what one private release and public rows say about every class; the choice to make without tuning.

    A quarter of the budget buys one noisy sum of unit rows, and a count, per class. From these and the public rows
    follows an empirical-Bayes posterior of every class's mean, at no further cost. Where small classes stand out from
    the noise, the rest buys noisy gradient descent that starts from the posterior. Where they do not, another
    quarter buys the sums again and the question is asked once more; where they drown, all of it goes into the sums.

    Parameters
    ----------
    budget : Budget or str, default="rho=0.5"
        zCDP or approximate; a pure budget is refused, since Gaussian noise has no pure epsilon. "rho=inf" is the
        non-private form.
    public : array of shape (m, d)
        Public rows of the same encoder, finite and not zero. They need no labels and may come from another task.
    classes : sequence or int, optional
        The public class list; N stands for 0..N-1. If omitted it is read off y, with a warning.
    noise, random_state, unit, ledger
        As in `NoisySumPrototypes`. A changed label costs here about what a replaced record does.

    Attributes
    ----------
    prototypes_ : ndarray of shape (C, d), float64
        Posterior class means, as unit rows about the public centre.
    sizes_ : ndarray of shape (C,), float64
        Private estimates of the class sizes.
    refined_ : bool
        Whether the rest of the budget bought gradient steps.
    spent_on_sums_ : float
        Share of the budget that bought sums.
    coefficients_, intercepts_, squares_, axes_ : ndarray
        The decision: see `tacit.learners.common.decision.QuadraticHead`.
    centre_ : ndarray of shape (d,)
        Mean of the unit public rows.
    classes_ : ndarray of shape (C,)
    guarantee_, spent_ : Guarantee
        Equal to `promise()`.

    Notes
    -----
    Guarantee: Gaussian releases whose multipliers z_i satisfy sum 1/z_i^2 = 1/z^2 exactly, z being the multiplier that
    spends the budget at once: the sums, whose rows carry the count as one more column inside the unit ball, then sums
    or gradient steps as above. What is asked, and at which multiplier, depends on earlier answers. Gaussian releases
    compose to mu^2 = sum 1/z_i^2, and to rho = sum 1/(2 z_i^2), under such full adaptivity where the sum is fixed
    beforehand [Smith and Thakurta 2022; Whitehouse et al. 2023], so all that follows the first quarter is one Gaussian
    event. See `tacit.mechanisms.gaussian`, `tacit.mechanisms.outer_products` and, for the posterior,
    `tacit.learners.prototypes.posterior`.
    Source: tacit; see docs/auto.md.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> X = np.repeat([[1.0, 0.1], [0.1, 1.0]], 500, axis=0)
    >>> public = np.random.default_rng(0).normal(1, 1, (100, 2))
    >>> model = tacit.AutoPrototypes("rho=0.5", public=public, classes=2).fit(X, np.repeat([0, 1], 500))
    >>> model.predict([[2.0, 0.1]]), round(model.guarantee_.rho, 9)
    (array([0]), 0.5)
    """

    estimates = "unit means"

    def __init__(
        self,
        budget: Budget | str = DEFAULT_BUDGET,
        *,
        public: Any = None,
        classes: Any = None,
        noise: str = "secure",
        random_state: Any = None,
        unit: Unit | str = "add-remove",
        ledger: Ledger | None = None,
    ) -> None:
        self.budget = budget
        self.public = public
        self.classes = classes
        self.noise = noise
        self.random_state = random_state
        self.unit = unit
        self.ledger = ledger

    def _part(self, share: float) -> float:
        """Noise multiplier of what this share of the budget buys."""
        return self._multiplier() / math.sqrt(share)

    def _event(self) -> Event:
        return compose([gaussian.event(self._part(QUARTER)), outer_products.event(self._part(1 - QUARTER))])

    def _matrices(self) -> Matrices:
        return Matrices(held=5, decomposed=1)

    def _check(self, width: int) -> None:
        if self.public is None:
            raise InputError("public=None must be public rows to learn from; pass public=X_public (--public STORE)")
        super()._check(width)

    def _fit(self, X: NDArray[Any], labels: NDArray[np.int64], noise: NoiseSource) -> None:
        assert self.centre_ is not None
        with phase(SET_UP):
            prior = public_prior(public_rows(self.public, X.shape[1]), self.centre_)
        sums, spent = self._noisy_sums(X, labels, self._part(QUARTER), noise), QUARTER
        posterior = self._posterior(prior, sums, spent)
        signal = self._signal(posterior, spent)
        if signal < AMPLE and self._multiplier() > 0:
            again = self._noisy_sums(X, labels, self._part(QUARTER), noise)
            sums, spent = (sums + again) / 2, 2 * QUARTER
            posterior = self._posterior(prior, sums, spent)
            signal = self._signal(posterior, spent)
        self.refined_ = signal >= REFINE_FROM * math.sqrt(len(self.classes_)) * posterior.trust**2
        if self.refined_:
            belief = BELIEF / (1 + signal / (BELIEF_HALVED_AT * max(posterior.trust, LEAST_TRUST)))
            self._set_decision(prior, posterior, belief, NARROW)
            self._refine(X, labels, posterior.sizes, self._part(1 - spent), noise)
        else:
            sums = spent * sums + (1 - spent) * self._noisy_sums(X, labels, self._part(1 - spent), noise)
            posterior = self._posterior(prior, sums, 1.0)
            self._set_decision(prior, posterior, 1.0, WIDE)
        self.spent_on_sums_ = spent if self.refined_ else 1.0
        self.prototypes_ = posterior.mean @ prior.axes.T
        self.sizes_ = posterior.sizes

    def _signal(self, posterior: ClassPosterior, spent: float) -> float:
        """Size of the small classes, less what is in doubt, over the noise of half the budget and of sampling."""
        doubt = self._part(spent) / math.sqrt(COUNT_SHARE)
        small = max(float(np.quantile(posterior.sizes, SMALL_CLASSES)) - doubt, 1.0)
        return small / math.sqrt(self._part(0.5) ** 2 + SAMPLING_IN_SUM * small)

    @phase(SET_UP)
    def _noisy_sums(self, X: NDArray[Any], labels: Integers, multiplier: float, noise: NoiseSource) -> Floats:
        """Per class the sum of its rows, the last column their number."""
        n_classes, width = len(self.classes_), X.shape[1]
        scale = math.sqrt(1 - COUNT_SHARE), math.sqrt(COUNT_SHARE)
        rows = (
            (np.column_stack([block * scale[0], np.full(len(own), scale[1])]), own)
            for block, own in self._row_blocks(X, labels, "class sums")
        )
        if multiplier == 0:
            sums = exact_class_sums(rows, n_classes=n_classes, width=width + 1)
        else:
            sums = gaussian.noisy_class_sums(
                rows, n_classes=n_classes, width=width + 1, noise_multiplier=multiplier, noise=noise
            )
        return np.asarray(sums / np.append(np.full(width, scale[0]), scale[1]))

    @phase(SOLVING)
    def _posterior(self, prior: PublicPrior, sums: Floats, spent: float) -> ClassPosterior:
        multiplier = self._part(spent)
        noise, count_noise = multiplier / math.sqrt(1 - COUNT_SHARE), multiplier / math.sqrt(COUNT_SHARE)
        return class_posterior(prior, sums[:, :-1] @ prior.axes, noise, sums[:, -1], count_noise)

    def _set_decision(self, prior: PublicPrior, posterior: ClassPosterior, belief: float, widening: float) -> None:
        squares, slopes, offsets = density(prior, posterior, widening)
        self.axes_ = prior.axes
        self.squares_, self.intercepts_ = belief * squares, belief * offsets
        self.coefficients_ = belief * slopes @ prior.axes.T

    @phase(SOLVING)
    def _refine(self, X: NDArray[Any], labels: Integers, sizes: Floats, multiplier: float, noise: NoiseSource) -> None:
        """Gradient descent on the linear part, beside the posterior's squares and the log shares of the classes."""
        start, beside = self.coefficients_, self.intercepts_ + log_shares(sizes, 0.0)
        of_step = multiplier * math.sqrt(STEPS)
        if multiplier == 0:
            exact: Exact = list(self._row_blocks(X, labels, "rows"))
            besides = [(rows @ self.axes_) ** 2 @ self.squares_.T + beside for rows, _ in exact]

            def gradient(head: Floats) -> Floats:
                return exact_gradient(start + head, besides, exact)
        else:
            parts: Parts = [(outer_products.rounded(rows), own) for rows, own in self._row_blocks(X, labels, "rows")]
            besides = [square_scores(rows, self.axes_, self.squares_) + beside for rows, _ in parts]

            def gradient(head: Floats) -> Floats:
                return noisy_gradient(start + head, besides, parts, clip=CLIP, multiplier=of_step, noise=noise)

        records, n_classes = float(sizes.sum()), len(sizes)
        longest = LONGEST_STEP * n_classes
        rate = learning_rate(longest, records=records, n_classes=n_classes, noise=of_step * CLIP, steps=STEPS)
        self.coefficients_ = start + descend(
            lambda head: gradient(head) + RIDGE * head, np.zeros_like(start), rate=rate / records, steps=STEPS
        )

    def _release(self) -> Released:
        facts = {
            "noise multiplier of the sums": self._part(self.spent_on_sums_),
            "releases of the sums": "one" if self.spent_on_sums_ == QUARTER else "several, averaged",
            "share of the count column": COUNT_SHARE,
            "share of the budget for the sums": self.spent_on_sums_,
            "normalisation": normalisation(self.centre_),
        }
        if self.refined_:
            facts |= {
                "gradient steps": STEPS,
                "noise multiplier of a step": self._part(1 - self.spent_on_sums_) * math.sqrt(STEPS),
                "gradient clip norm": CLIP,
                "sampling": "none; every record is used in every step",
            }
        arrays = {
            "coefficients": self.coefficients_,
            "intercepts": self.intercepts_,
            "axes": self.axes_,
            "squares": self.squares_,
        } | centre_array(self.centre_)
        source = "noisy class sums and noisy gradients" if self.refined_ else "noisy class sums"
        return Released(f"one quadratic score per class, from {source}", arrays, QuadraticHead(), facts)


def square_scores(rows: outer_products.IntegerRows, axes: Floats, squares: Floats) -> Floats:
    """Squares of the rows along the axes, times `squares` of shape (C, d): each row by its own values alone.

    Axes become whole numbers of norm 2^15 about, so that products with rows of norm 2^18 are exact.
    """
    along = rows.values.astype(np.float64) @ np.rint(np.ldexp(axes, 15))
    return logits(outer_products.rounded(np.ldexp(along, -33) ** 2), squares)
