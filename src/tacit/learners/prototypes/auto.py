"""AutoPrototypes: class sums, an empirical-Bayes posterior from public rows, and refinement where
it pays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.timing import SET_UP, SOLVING, phase
from tacit.errors import InputError
from tacit.learners.common.budget_split import Part
from tacit.learners.common.matrices import Matrices
from tacit.learners.common.parameters import public_rows
from tacit.learners.common.sums import class_sums
from tacit.learners.common.unit_rows import UnitRowClassifier, UnitRows
from tacit.learners.prototypes import refinement
from tacit.mechanisms import gaussian
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.models.calibration import Slopes, fair_offsets, posterior_probabilities, simulated
from tacit.models.carried import IN_RELEASE, CarriedPosterior
from tacit.models.decisions import LinearHead, QuadraticHead
from tacit.models.named_posterior import named_posterior
from tacit.models.posterior import ClassPosterior, NoisySums, class_posterior
from tacit.models.public_prior import ROWS, PublicPrior, public_prior
from tacit.models.quadratic import blended
from tacit.models.released import Released
from tacit.models.rows import Floats, centre_array, normalisation
from tacit.privacy.budget import Budget
from tacit.privacy.sensitivity import Sensitivity
from tacit.privacy.unit import Unit

SUMS, REST = "sums", "rest"  # the parts of the budget

# where each was chosen: docs/auto.md
QUARTER = 0.25
COUNT_SHARE = 0.05
SMALL_CLASSES, CLEAR = 0.4, 0.7
START, LONGEST_START = 0.5, 2.0
LEFT_OUT = "left out: the sums contradict them, or all are alike"


@dataclass(kw_only=True, eq=False, repr=False)
class AutoPrototypes(UnitRowClassifier):
    """Classify by noisy class sums and public rows; the recommended method, with nothing to tune.

    A quarter of the budget pays for one noisy sum of unit rows, and a count, per class. The sums
    and the public rows give an empirical-Bayes posterior of every class's mean, at no further cost.
    If small classes stand out from the noise, the rest pays for noisy gradient descent that starts
    from the posterior. If they do not, another quarter pays for the sums again and the same test is
    repeated; if noise dominates, the whole budget pays for sums.

    Parameters
    ----------
    budget, classes, noise, random_state, unit, ledger
        As in `NoisySumPrototypes`.
    public : array of shape (m, d)
        Public rows of the same encoder, finite and not zero. They need no labels and may come from
        another task.
    allow_overlap
        As in `NoisySumPrototypes`.
    names : array of shape (C, d), or sequence of C arrays of shape (k, d) or (d,), optional
        Rows of the class names, such as embeddings of texts, in the order of `classes`, which must
        be declared; public. They decide where the sums are noise, and are not used if the sums
        contradict them or all are alike.

    Attributes
    ----------
    prototypes_ : ndarray of shape (C, d), float64
        Posterior class means, in the space of unit rows about the public centre; shorter than 1.
    sizes_ : ndarray of shape (C,), float64
        Private estimates of the class sizes. Under a unit per person they estimate total weights,
        since all records of a person together have at most the weight of one record.
    refined_ : bool
        Whether the rest of the budget paid for gradient steps.
    spent_on_sums_ : float
        Share of the budget that paid for sums.
    names_used_ : bool
        Whether names were passed and not left out.
    coefficients_, intercepts_ : ndarray of shapes (C, d) and (C,), float64
        The decision: see `tacit.models.decisions.LinearHead`.
    squares_, axes_ : ndarray of shapes (C, p) and (d, p), float64
        The rest of the decision if the model is not refined: see
        `tacit.models.decisions.QuadraticHead`.
    centre_, classes_, guarantee_, spent_
        As in `NoisySumPrototypes`.

    Notes
    -----
    Guarantee: Gaussian releases whose multipliers z_i satisfy sum 1/z_i^2 = 1/z^2 exactly, where z
    is the multiplier that spends the budget at once. First come the sums, whose rows carry the
    count as one more column inside the unit ball, then sums again, or second moments of the rows
    and gradient steps. The next release and its multiplier depend on earlier releases. They compose
    to mu^2 = sum 1/z_i^2, and to rho = sum 1/(2 z_i^2), under such full adaptivity if the sum is
    fixed beforehand [Smith and Thakurta 2022; Whitehouse et al. 2023], so everything after the
    first quarter is one Gaussian event. Each multiplier is relative to the sensitivity of its
    release under the unit: under change-label second moments are exact and gradients move by min(2
    clip, sqrt(2)), so either route costs the same. Under a unit per person each release bounds a
    person as it otherwise bounds a record, for all classes together. See
    `tacit.mechanisms.gaussian`, `tacit.mechanisms.outer_products` and, for the posterior,
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
    summary = (
        "one quadratic score per class; the choice where there are public rows, nothing to tune"
    )
    needs_public = True
    public_use = "needed"

    names: Any = None

    def _parts(self) -> dict[str, Part]:
        # what the rest pays for follows from the first sums; `refinement.refine` splits it
        return {
            SUMS: Part(QUARTER, gaussian.CLASS_SUMS, by_class=True),
            REST: Part(1 - QUARTER, Sensitivity()),
        }

    def _noise_multiplier(self, share: float) -> float:
        """Noise multiplier of one release that this share of the budget buys, relative to its
        sensitivity.
        """
        return Budget.parse(self.budget).gaussian(split=True) / math.sqrt(share)

    def _noise_of_sums(self, share: float) -> float:
        """Standard deviation of the noise of sums that this share of the budget buys."""
        return self._noise_multiplier(share) * gaussian.CLASS_SUMS.under(Unit(self.unit))

    def _matrices(self) -> Matrices:
        number = min(len(self.public), ROWS) if hasattr(self.public, "__len__") else 0
        noised = 0 if self._public_rows() else self._noised(1, self._noise_multiplier(1.0))
        return Matrices(held=3.0, decomposed=2, noised=noised, public_rows=number)

    def _prepare(self, X: NDArray[Any], labels: Integers) -> UnitRows:
        if self.public is None:
            raise InputError(
                "public=None must be public rows to learn from; pass public=X_public (--public"
                " STORE)"
            )
        return super()._prepare(X, labels)

    def _fit(self, prepared: UnitRows, noise: NoiseSource) -> Released:
        with phase(SET_UP):
            prior = public_prior(public_rows(self.public, prepared.width), prepared.centre)
        names = None if prepared.names is None else prepared.names @ prior.axes
        release, plain, spent = self._bought_sums(prior, prepared, noise)
        named = None if names is None else named_posterior(prior, release, plain, names)
        self.spent_on_sums_, self.names_used_ = spent, named is not None
        posterior, kept = (plain, None) if named is None else (named, names)
        clarity = plain.clarity(release.noise)
        scores = blended(
            posterior, prior.variances, prior.sample, clarity, kept, linear=self.refined_
        )
        carried = CarriedPosterior(posterior, prior.axes, prior.variances, clarity, kept)
        with phase(SOLVING):
            rows = simulated(carried, prior.sample)
            if not self.refined_:
                scores = scores.moved(
                    fair_offsets(clarity, rows, scores.of, sums_alone=named is None)
                )
            confidence = posterior_probabilities(posterior, rows, scores.of)
        if self.refined_:
            scores = scores.times(min(START * confidence.scale, LONGEST_START))
        self.prototypes_, self.sizes_, self.centre_ = (
            posterior.mean @ prior.axes.T,
            posterior.sizes,
            prepared.centre,
        )
        self.coefficients_ = scores.slopes @ prior.axes.T
        facts = {
            "noise multiplier of the sums": self._noise_of_sums(spent),
            "releases of the sums": "one" if spent == QUARTER else "several, averaged",
            "share of the count column": COUNT_SHARE,
            "share of the budget for the sums": spent,
            "class names": "none" if names is None else "used" if named else LEFT_OUT,
            "normalisation": normalisation(self.centre_),
        }
        if self.refined_:
            rest = refinement.Rest(self._noise_multiplier(1 - spent), Unit(self.unit))
            slopes = Slopes()
            self.coefficients_ = refinement.refine(
                self.coefficients_, prepared, posterior, rest, noise, slopes
            )
            refined = replace(scores, slopes=self.coefficients_ @ prior.axes)
            with phase(SOLVING):
                refined = refined.moved(fair_offsets(clarity, rows, refined.of))
                confidence = posterior_probabilities(posterior, rows, refined.of, slopes)
            self.intercepts_ = refined.offsets
            arrays, facts = self._arrays(), facts | rest.facts(self.sizes_)
            what = (
                "one linear score per class, from noisy class sums, second moments and"
                f" gradients{IN_RELEASE}"
            )
            return Released(what, arrays, LinearHead(), facts, carried.arrays(arrays), confidence)
        self.intercepts_, self.axes_, self.squares_ = scores.offsets, prior.axes, scores.squares
        arrays = self._arrays() | {"axes": self.axes_, "squares": self.squares_}
        what = f"one quadratic score per class, from noisy class sums{IN_RELEASE}"
        return Released(what, arrays, QuadraticHead(), facts, carried.arrays(arrays), confidence)

    def _bought_sums(
        self, prior: PublicPrior, records: UnitRows, noise: NoiseSource
    ) -> tuple[NoisySums, ClassPosterior, float]:
        """Sums, their posterior, and the share of the budget that they took; `refined_` says where
        the rest goes.
        """
        sums, spent = self._noisy_sums(records, self._noise_of_sums(QUARTER), noise), QUARTER
        plain = class_posterior(prior, self._release(prior, sums, spent))
        if self._signal(plain) < CLEAR and not self._infinite():
            again = self._noisy_sums(records, self._noise_of_sums(QUARTER), noise)
            sums, spent = (sums + again) / 2, 2 * QUARTER
            plain = class_posterior(prior, self._release(prior, sums, spent))
        self.refined_ = self._signal(plain) >= CLEAR
        if not self.refined_ and not self._infinite():
            sums = spent * sums + (1 - spent) * self._noisy_sums(
                records, self._noise_of_sums(1 - spent), noise
            )
            spent, plain = 1.0, class_posterior(prior, self._release(prior, sums, 1.0))
        return self._release(prior, sums, spent), plain, spent

    def _arrays(self) -> dict[str, Floats]:
        return {"coefficients": self.coefficients_, "intercepts": self.intercepts_} | centre_array(
            self.centre_
        )

    def _signal(self, posterior: ClassPosterior) -> float:
        """Squared length of a class mean over the noise of its sum at the whole budget.

        Of a small class where public rows can be trusted, since more sums would help it; else of a
        class on average.
        """
        trust = posterior.trust
        n = trust * float(np.quantile(posterior.sizes, SMALL_CLASSES)) + (1 - trust) * float(
            posterior.sizes.mean()
        )
        noise = posterior.mean.shape[1] * self._noise_of_sums(1.0) ** 2 + n * posterior.within
        return n * posterior.between / math.sqrt(noise)

    @phase(SET_UP)
    def _noisy_sums(self, records: UnitRows, multiplier: float, noise: NoiseSource) -> Floats:
        """Per class the sum of its rows, the last column their number."""
        scale = math.sqrt(1 - COUNT_SHARE), math.sqrt(COUNT_SHARE)
        rows = (
            block._replace(
                rows=np.column_stack([block.rows * scale[0], np.full(len(block.rows), scale[1])])
            )
            for block in records.blocks("class sums")
        )
        n_classes, width = len(self.classes_), records.width + 1
        sums = class_sums(
            rows, n_classes=n_classes, width=width, multiplier=multiplier, noise=noise
        )
        return np.asarray(sums / np.append(np.full(records.width, scale[0]), scale[1]))

    def _release(self, prior: PublicPrior, sums: Floats, spent: float) -> NoisySums:
        """Sums and counts that this share of the budget bought, along the axes."""
        multiplier = self._noise_of_sums(spent)
        noise, count_noise = (
            multiplier / math.sqrt(1 - COUNT_SHARE),
            multiplier / math.sqrt(COUNT_SHARE),
        )
        return NoisySums(sums[:, :-1] @ prior.axes, noise, sums[:, -1], count_noise)
