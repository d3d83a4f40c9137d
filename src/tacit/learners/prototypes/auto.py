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
from tacit.learners.common.names import name_directions
from tacit.learners.common.parameters import public_rows
from tacit.learners.common.softmax import noisy_gradient
from tacit.learners.common.sums import class_sums
from tacit.learners.common.unit_rows import UnitRowClassifier, UnitRows
from tacit.mechanisms import gaussian, outer_products
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.models.carried import CarriedPosterior
from tacit.models.decisions import LinearHead, QuadraticHead
from tacit.models.posterior import (
    LEAST_BETWEEN,
    ROWS,
    ClassPosterior,
    NoisySums,
    PublicPrior,
    named_posterior,
    public_prior,
)
from tacit.models.quadratic import BELIEF, blended
from tacit.models.released import Released
from tacit.models.rows import Floats, centre_array, normalisation
from tacit.models.spectra import MOST_AXES
from tacit.privacy.events import Event, compose

# where each was chosen: docs/auto.md
QUARTER = 0.25
COUNT_SHARE = 0.1
STEPS = 60
SMALL_CLASSES, UNCLEAR, CLEAR = 0.25, 1.5, 4.0
RIDGE, CLIP, LONGEST_STEP = 0.3, 1.0, 4.0
CARRIED = "; and the posterior of class means that follows from them (arrays posterior.*), by which it can be adapted"


@dataclass(frozen=True, eq=False)
class NamedRows(UnitRows):
    """Private records, and directions of the class names, of shape (C, d)."""

    names: Floats | None = None


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

    names: Any = None

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
        rows = super()._prepare(X, labels)
        names = name_directions(self.names, self.classes, X.shape[1], rows.centre)
        return NamedRows(X, labels, rows.centre, names=names)

    def _fit(self, prepared: NamedRows, noise: NoiseSource) -> Released:
        with phase(SET_UP):
            prior = public_prior(public_rows(self.public, prepared.width), prepared.centre)
        names = None if prepared.names is None else prepared.names @ prior.axes
        sums, spent = self._noisy_sums(prepared, self._part(QUARTER), noise), QUARTER
        posterior, used = self._posterior(prior, sums, spent, names)
        if self._signal(posterior) < CLEAR and self._multiplier() > 0:
            again = self._noisy_sums(prepared, self._part(QUARTER), noise)
            sums, spent = (sums + again) / 2, 2 * QUARTER
            posterior, used = self._posterior(prior, sums, spent, names)
        self.refined_ = self._signal(posterior) >= UNCLEAR
        if not self.refined_ and self._multiplier() > 0:
            sums = spent * sums + (1 - spent) * self._noisy_sums(prepared, self._part(1 - spent), noise)
            posterior, used = self._posterior(prior, sums, 1.0, names)
        self.spent_on_sums_ = spent if self.refined_ else 1.0
        self.names_used_ = used
        clarity = posterior.clarity(self._part(self.spent_on_sums_) / math.sqrt(1 - COUNT_SHARE))
        names = names if used else None
        scores = blended(posterior, prior.variances, prior.sample, clarity, names, linear=self.refined_).times(BELIEF)
        carried = CarriedPosterior(posterior, prior.axes, prior.variances, clarity, names)
        self.coefficients_, self.intercepts_ = scores.slopes @ prior.axes.T, scores.offsets
        if self.refined_:
            self.coefficients_ = refine(self.coefficients_, prepared, posterior.sizes, self._part(1 - spent), noise)
        self.prototypes_, self.sizes_ = posterior.mean @ prior.axes.T, posterior.sizes
        self.centre_ = prepared.centre
        arrays = {"coefficients": self.coefficients_, "intercepts": self.intercepts_} | centre_array(self.centre_)
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
            what = f"one linear score per class, from noisy class sums and noisy gradients{CARRIED}"
            return Released(what, arrays, LinearHead(), facts, carried.arrays(arrays))
        self.axes_, self.squares_ = prior.axes, scores.squares
        arrays |= {"axes": self.axes_, "squares": self.squares_}
        what = f"one quadratic score per class, from noisy class sums{CARRIED}"
        return Released(what, arrays, QuadraticHead(), facts, carried.arrays(arrays))

    def _signal(self, posterior: ClassPosterior) -> float:
        """Length of the sums of the small classes over that of noise and sampling, at the whole budget."""
        n = float(np.quantile(posterior.sizes, SMALL_CLASSES))
        noise = posterior.mean.shape[1] * self._multiplier() ** 2 + n * posterior.within
        return n * math.sqrt(max(1 - posterior.within, LEAST_BETWEEN) / noise)

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
    def _posterior(
        self, prior: PublicPrior, sums: Floats, spent: float, names: Floats | None
    ) -> tuple[ClassPosterior, bool]:
        multiplier = self._part(spent)
        noise, count_noise = multiplier / math.sqrt(1 - COUNT_SHARE), multiplier / math.sqrt(COUNT_SHARE)
        return named_posterior(prior, NoisySums(sums[:, :-1] @ prior.axes, noise, sums[:, -1], count_noise), names)


@phase(SOLVING)
def refine(start: Floats, records: UnitRows, sizes: Floats, multiplier: float, noise: NoiseSource) -> Floats:
    """Coefficients (C, d) after gradient descent, in which log class shares are added to the scores."""
    z, n, n_classes = multiplier * math.sqrt(STEPS), float(sizes.sum()), len(sizes)
    blocks, added = records.block_list(exact=z == 0), log_shares(sizes, 0.0)

    def gradient(moved: Floats) -> Floats:
        of_loss = noisy_gradient(start + moved, added, blocks, clip=CLIP, multiplier=z, noise=noise)
        return of_loss + RIDGE * moved

    longest = LONGEST_STEP * n_classes
    rate = learning_rate(longest, records=n, n_classes=n_classes, noise=z * CLIP, steps=STEPS)
    return start + descend(gradient, np.zeros_like(start), rate=rate / n, steps=STEPS)
