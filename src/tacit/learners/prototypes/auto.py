"""AutoPrototypes: class sums, an empirical-Bayes posterior from public rows, and refinement where it pays."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.timing import SET_UP, SOLVING, phase
from tacit.errors import InputError
from tacit.learners.common.balance import log_shares
from tacit.learners.common.descent import descend, learning_rate
from tacit.learners.common.matrices import Matrices
from tacit.learners.common.parameters import public_rows
from tacit.learners.common.softmax import logits, noisy_gradient
from tacit.learners.common.sums import class_sums
from tacit.learners.common.unit_rows import UnitRowClassifier, UnitRows
from tacit.mechanisms import gaussian, outer_products
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.mechanisms.outer_products import IntegerRows
from tacit.models.decisions import QuadraticHead
from tacit.models.posterior import ROWS, ClassPosterior, PublicPrior, class_posterior, density, public_prior
from tacit.models.released import Released
from tacit.models.rows import Floats, centre_array, normalisation
from tacit.models.spectra import MOST_AXES
from tacit.privacy.events import Event, compose

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
STRIP = 512  # axes that rows are multiplied with at once


@dataclass(kw_only=True, eq=False, repr=False)
class AutoPrototypes(UnitRowClassifier):
    """Classify by what one private release and public rows say about every class; the choice to make without tuning.

    A quarter of the budget buys one noisy sum of unit rows, and a count, per class. From these and the public rows
    follows an empirical-Bayes posterior of every class's mean, at no further cost. Where small classes stand out from
    the noise, the rest buys noisy gradient descent that starts from the posterior. Where they do not, another
    quarter buys the sums again and the same test decides once more; where noise dominates, all of it buys sums.

    Parameters
    ----------
    budget, classes, noise, random_state, unit, ledger
        As in `NoisySumPrototypes`. A changed label costs here about what a replaced record does.
    public : array of shape (m, d)
        Public rows of the same encoder, finite and not zero. They need no labels and may come from another task.

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
        The decision: see `tacit.models.decisions.QuadraticHead`.
    centre_, classes_, guarantee_, spent_
        As in `NoisySumPrototypes`.

    Notes
    -----
    Guarantee: Gaussian releases whose multipliers z_i satisfy sum 1/z_i^2 = 1/z^2 exactly, z being the multiplier that
    spends the budget at once: the sums, whose rows carry the count as one more column inside the unit ball, then sums
    or gradient steps as above. What is released next, and at which multiplier, depends on earlier releases; they
    compose to mu^2 = sum 1/z_i^2, and to rho = sum 1/(2 z_i^2), under such full adaptivity where the sum is fixed
    beforehand [Smith and Thakurta 2022; Whitehouse et al. 2023], so all that follows the first quarter is one Gaussian
    event. See `tacit.mechanisms.gaussian`, `tacit.mechanisms.outer_products` and, for the posterior,
    `tacit.models.posterior`.
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
    summary = "one quadratic score per class; the choice where there are public rows, nothing to tune"
    needs_public = True
    public_use = "needed"

    def _part(self, share: float) -> float:
        """Noise multiplier of what this share of the budget buys."""
        return self._multiplier() / math.sqrt(share)

    def _event(self) -> Event:
        return compose([gaussian.event(self._part(QUARTER)), outer_products.event(self._part(1 - QUARTER))])

    def _matrices(self) -> Matrices:
        public_rows = min(len(self.public), ROWS) if hasattr(self.public, "__len__") else 0
        return Matrices(held=2.5, decomposed=1, most=MOST_AXES, public_rows=public_rows)

    def _prepare(self, X: NDArray[Any], labels: Integers) -> UnitRows:
        if self.public is None:
            raise InputError("public=None must be public rows to learn from; pass public=X_public (--public STORE)")
        return super()._prepare(X, labels)

    def _fit(self, prepared: UnitRows, noise: NoiseSource) -> Released:
        with phase(SET_UP):
            prior = public_prior(public_rows(self.public, prepared.width), prepared.centre)
        sums, spent = self._noisy_sums(prepared, self._part(QUARTER), noise), QUARTER
        posterior = self._posterior(prior, sums, spent)
        signal = self._signal(posterior, spent)
        if signal < AMPLE and self._multiplier() > 0:
            again = self._noisy_sums(prepared, self._part(QUARTER), noise)
            sums, spent = (sums + again) / 2, 2 * QUARTER
            posterior = self._posterior(prior, sums, spent)
            signal = self._signal(posterior, spent)
        self.refined_ = signal >= REFINE_FROM * math.sqrt(len(self.classes_)) * posterior.trust**2
        if self.refined_:
            belief = BELIEF / (1 + signal / (BELIEF_HALVED_AT * max(posterior.trust, LEAST_TRUST)))
            arrays = _scores(prior, posterior, belief, NARROW)
            arrays["coefficients"] = refine(arrays, prepared, posterior.sizes, self._part(1 - spent), noise)
        else:
            sums = spent * sums + (1 - spent) * self._noisy_sums(prepared, self._part(1 - spent), noise)
            posterior = self._posterior(prior, sums, 1.0)
            arrays = _scores(prior, posterior, 1.0, WIDE)
        self.spent_on_sums_ = spent if self.refined_ else 1.0
        self.prototypes_, self.sizes_ = posterior.mean @ prior.axes.T, posterior.sizes
        self.coefficients_, self.intercepts_ = arrays["coefficients"], arrays["intercepts"]
        self.axes_, self.squares_, self.centre_ = arrays["axes"], arrays["squares"], prepared.centre
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
                "noise multiplier of a step": self._part(1 - spent) * math.sqrt(STEPS),
                "gradient clip norm": CLIP,
                "sampling": "none; every record is used in every step",
            }
        source = "noisy class sums and noisy gradients" if self.refined_ else "noisy class sums"
        what = f"one quadratic score per class, from {source}"
        return Released(what, arrays | centre_array(self.centre_), QuadraticHead(), facts)

    def _signal(self, posterior: ClassPosterior, spent: float) -> float:
        """Size of the small classes, less its uncertainty, over the noise of half the budget and of sampling."""
        uncertainty = self._part(spent) / math.sqrt(COUNT_SHARE)
        small = max(float(np.quantile(posterior.sizes, SMALL_CLASSES)) - uncertainty, 1.0)
        return small / math.sqrt(self._part(0.5) ** 2 + SAMPLING_IN_SUM * small)

    @phase(SET_UP)
    def _noisy_sums(self, records: UnitRows, multiplier: float, noise: NoiseSource) -> Floats:
        """Per class the sum of its rows, the last column their number."""
        scale = math.sqrt(1 - COUNT_SHARE), math.sqrt(COUNT_SHARE)
        rows = (
            (np.column_stack([block * scale[0], np.full(len(labels), scale[1])]), labels)
            for block, labels in records.blocks("class sums")
        )
        n_classes, width = len(self.classes_), records.width + 1
        sums = class_sums(rows, n_classes=n_classes, width=width, multiplier=multiplier, noise=noise)
        return np.asarray(sums / np.append(np.full(records.width, scale[0]), scale[1]))

    @phase(SOLVING)
    def _posterior(self, prior: PublicPrior, sums: Floats, spent: float) -> ClassPosterior:
        multiplier = self._part(spent)
        noise, count_noise = multiplier / math.sqrt(1 - COUNT_SHARE), multiplier / math.sqrt(COUNT_SHARE)
        return class_posterior(prior, sums[:, :-1] @ prior.axes, noise, sums[:, -1], count_noise)


def _scores(prior: PublicPrior, posterior: ClassPosterior, belief: float, widening: float) -> dict[str, Floats]:
    """Arrays of a `QuadraticHead`: log densities of the classes, times `belief`."""
    squares, slopes, offsets = density(prior, posterior, widening)
    return {
        "coefficients": belief * slopes @ prior.axes.T,
        "intercepts": belief * offsets,
        "axes": prior.axes,
        "squares": belief * squares,
    }


@phase(SOLVING)
def refine(
    scores: dict[str, Floats], records: UnitRows, sizes: Floats, multiplier: float, noise: NoiseSource
) -> Floats:
    """Coefficients after gradient descent, in which log class shares are added to the scores."""
    z, n, n_classes = multiplier * math.sqrt(STEPS), float(sizes.sum()), len(sizes)
    start, added = scores["coefficients"], scores["intercepts"] + log_shares(sizes, 0.0)
    blocks = records.block_list(exact=z == 0)
    offsets = [square_scores(rows, scores["axes"], scores["squares"]) + added for rows, _ in blocks]

    def gradient(moved: Floats) -> Floats:
        of_loss = noisy_gradient(start + moved, offsets, blocks, clip=CLIP, multiplier=z, noise=noise)
        return of_loss + RIDGE * moved

    longest = LONGEST_STEP * n_classes
    rate = learning_rate(longest, records=n, n_classes=n_classes, noise=z * CLIP, steps=STEPS)
    return start + descend(gradient, np.zeros_like(start), rate=rate / n, steps=STEPS)


def square_scores(rows: IntegerRows | Floats, axes: Floats, squares: Floats) -> Floats:
    """Squares of the rows along the axes, times `squares` of shape (C, d).

    If rows are `IntegerRows`, each score depends on its own row alone: axes become whole numbers of norm 2^15 about, so
    that products with rows of norm 2^18 are exact.
    """
    if not isinstance(rows, IntegerRows):
        return np.asarray((rows @ axes) ** 2 @ squares.T)
    whole, along = rows.values.astype(np.float64), np.empty((len(rows), axes.shape[1]))
    for start in range(0, axes.shape[1], STRIP):  # lest wide axes be copied as a whole
        strip = slice(start, start + STRIP)
        along[:, strip] = whole @ np.rint(np.ldexp(axes[:, strip], 15))
    return logits(outer_products.rounded(np.ldexp(along, -33) ** 2), squares)
