"""AutoPrototypes: class sums, an empirical-Bayes posterior from public rows, and refinement where
it pays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tacit.compute.timing import SET_UP, SOLVING, phase
from tacit.errors import InputError
from tacit.learners.common.budget_split import Part
from tacit.learners.common.exact_sums import Query, SumsClassifier
from tacit.learners.common.label_sums import (
    LABEL_SUMS,
    LabelSums,
    declared_most,
    facts_of,
    sums_alone,
)
from tacit.learners.common.matrices import Matrices
from tacit.learners.common.nodes import sums_of_leaves
from tacit.learners.common.parameters import flag
from tacit.learners.common.unit_rows import UnitRowClassifier, UnitRows
from tacit.learners.prototypes import class_table, label_posterior, refinement
from tacit.mechanisms import gaussian
from tacit.mechanisms.noise import SAMPLERS, Integers, NoiseSource
from tacit.models import deciding
from tacit.models.by_summary import by_public_rows
from tacit.models.calibration import Slopes, fair_offsets, posterior_probabilities, simulated
from tacit.models.carried import IN_RELEASE, CarriedPosterior
from tacit.models.decisions import LinearHead
from tacit.models.noisy_sums import NoisySums
from tacit.models.posterior import ClassPosterior, class_posterior
from tacit.models.public_prior import ROWS, PublicPrior, public_prior
from tacit.models.public_rows import public_rows
from tacit.models.released import Released
from tacit.models.rows import Floats, centre_array, normalisation
from tacit.models.summarised import COUNT_SCALE, COUNT_SHARE, ROW_SCALE, without_scales
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.sensitivity import Sensitivity
from tacit.privacy.unit import Unit

# parts of the budget
SUMS = "sums"
REST = "rest"

# docs/auto.md says where each of these constants was chosen.

# share of the budget for the first sums, and for the second
QUARTER = 0.25

# quantile of the class sizes that stands for a small class
SMALL_CLASSES = 0.4

# signal from which on small classes stand out from the noise
CLEAR = 0.7

# scale of the scores from which gradient descent starts, as a share of the calibrated scale, and
# its bound
START = 0.5
LONGEST_START = 2.0


@dataclass(kw_only=True, eq=False, repr=False)
class AutoPrototypes(SumsClassifier, UnitRowClassifier):
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
    most_labels : int, optional
        As in `NoisySumPrototypes`. The whole budget then pays for one sum, and the release carries
        no posterior, so that `tacit adapt` does not take it.
    names : array of shape (C, d), or sequence of C arrays of shape (k, d) or (d,), optional
        Rows of the class names, such as embeddings of texts, in the order of `classes`, which must
        be declared; public. They decide where the sums are noise, and are not used if the sums
        contradict them or all are alike.
    tree
        As in `NoisySumPrototypes`; in gradient steps, the loss of a record that is labelled with an
        inner node is that of being in any class below.
    refine : bool, default=True
        Whether gradient steps may follow. If False, the whole budget pays for one sum, which is all
        that `fit_sums` needs.

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
    person as it otherwise bounds a record, for all classes together. With `most_labels` the sums of
    all labels are one Gaussian event for the whole budget, whose sensitivity is 1 however many
    labels a record has: see `tacit.learners.common.label_sums`. See
    `tacit.mechanisms.gaussian`, `tacit.mechanisms.outer_products` and, for the posterior,
    `tacit.models.posterior`.
    Source: tacit; see docs/auto.md.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> X = np.repeat([[1.0, 0.1], [0.1, 1.0]], 500, axis=0)
    >>> public = np.random.default_rng(0).normal(1, 1, (100, 2))
    >>> y = np.repeat([0, 1], 500)
    >>> model = tacit.AutoPrototypes("rho=0.5", public=public, classes=2).fit(X, y)
    >>> model.predict([[2.0, 0.1]]), round(model.guarantee_.rho, 9)
    (array([0]), 0.5)
    """

    estimates = "unit means"
    tests_names = True
    takes_several_labels = True
    summary = (
        "one quadratic score per class; the choice where there are public rows, nothing to tune"
    )
    needs_public = True
    public_use = "needed"

    names: Any = None
    tree: Any = None
    refine: bool = True
    most_labels: int | None = None

    # fits have a release; what `from_summary` returns has none
    no_release = (
        "follows from a summary, whose parts a release must state; make it by"
        " tacit.combine([summary], public=X_public)"
    )

    @classmethod
    def from_summary(
        cls, summary: Any, *, public: Any, names: Any = None, refine: bool = False
    ) -> Self:
        """Make a fitted learner of a summary, which costs nothing more.

        It predicts what the release of `tacit.combine([summary], public=public, names=names)` does;
        that release is what may be handed out.

        Parameters
        ----------
        summary : tacit.Summary
            Of one part of the records, or of several: `a + b`. It is verified.
        public : array of shape (m, d)
            Public rows whose mean is the centre of the summary.
        names : array of shape (C, d), or sequence of C arrays of shape (k, d) or (d,), optional
            Rows of the class names, in the order of `summary.classes`.
        refine : bool, default=False
            Refused if True: gradient steps read the records, which are elsewhere.

        Returns
        -------
        AutoPrototypes
            Its `promise()` and `guarantee_` are the guarantee of the summary, until it is fitted to
            records.

        Raises
        ------
        InputError
            If it is no summary, public rows or names do not fit, or `refine` is True.
        ReleaseError
            If a statement of the summary does not agree.

        Examples
        --------
        >>> import numpy as np, tacit
        >>> X, y = np.repeat(np.eye(2), 500, axis=0), np.repeat([0, 1], 500)
        >>> public = np.random.default_rng(0).normal(1, 1, (100, 2))
        >>> fit = tacit.ClassSummary("rho=0.5", classes=2, part="clinic A", public=public).fit(X, y)
        >>> model = tacit.AutoPrototypes.from_summary(tacit.Summary.of(fit), public=public)
        >>> model.predict([[2.0, 0.1]]), round(model.promise().rho, 9)
        (array([0]), 0.5)
        """
        _check_summary(summary, public, refine)
        summary.verify()
        learner = cls(
            classes=list(summary.classes),
            unit=str(summary.guarantee.unit),
            public=public,
            names=names,
            refine=False,
        )
        learner._learn_from_summary(summary, by_public_rows(summary, public, names))
        return learner

    def _learn_from_summary(self, summary: Any, decided: deciding.Decided) -> None:
        """Set the learned attributes of a decision by a summary."""
        self.summary_guarantee_ = summary.guarantee
        self.guarantee_ = summary.guarantee
        self.spent_ = summary.guarantee
        self.noise_ = summary.document.noise
        self.samplers_ = SAMPLERS[self.noise_]
        self.classes_ = np.asarray(summary.classes)
        self.n_features_in_ = summary.recipe.width
        self.centre_ = summary.centre

        self.refined_ = False
        self.spent_on_sums_ = 1.0
        self._take_decision(decided.released)
        self.names_used_ = decided.names_used
        self.prototypes_ = decided.posterior.mean @ self.axes_.T
        self.sizes_ = decided.posterior.sizes

        # a release must state the parts, so it is made of the summary
        self.released_ = None
        self.predictor_ = decided.released.copy()

    def promise(self) -> Guarantee:
        """Return the guarantee of `fit`, from public facts alone, or that of the summary which the
        learner was made of.
        """
        of_summary: Guarantee | None = getattr(self, "summary_guarantee_", None)
        if of_summary is not None:
            return of_summary
        return super().promise()

    def _event(self) -> Event:
        flag("refine", self.refine)
        if self.most_labels is not None:
            declared_most(self.most_labels)
            return sums_alone(self.budget, self.unit).event()
        return super()._event()

    def _check_for_sums(self) -> None:
        if self.refine and self.most_labels is None:
            raise InputError(
                "refine=True may pay for gradient steps, which read the records again; pass"
                " refine=False"
            )
        super()._check_for_sums()

    def _queries(self, prepared: UnitRows) -> tuple[Query]:
        if self.most_labels is not None:
            return (self._label_sums(prepared),)
        return (class_table.query(prepared, len(self._labels_of_records())),)

    def _parts(self) -> dict[str, Part]:
        # what the rest pays for follows from the first sums; `refinement.refine` splits it
        return {
            SUMS: Part(QUARTER, gaussian.CLASS_SUMS, by_class=True),
            REST: Part(1 - QUARTER, Sensitivity()),
        }

    def _noise_multiplier(self, share: float) -> float:
        """Return the noise multiplier, relative to its sensitivity, of one release that costs this
        share of the budget.
        """
        return Budget.parse(self.budget).gaussian(split=True) / math.sqrt(share)

    def _noise_of_sums(self, share: float) -> float:
        """Return the standard deviation of the noise of sums that cost this share of the budget."""
        return self._noise_multiplier(share) * gaussian.CLASS_SUMS.under(Unit(self.unit))

    def _matrices(self) -> Matrices:
        n_public = 0
        if hasattr(self.public, "__len__"):
            n_public = min(len(self.public), ROWS)

        # second moments are exact where the rows are public
        n_noised = 0
        if not self._public_rows():
            n_noised = self._noised(1, self._noise_multiplier(1.0))
        return Matrices(held=3.0, decomposed=2, noised=n_noised, public_rows=n_public)

    def _prepare(self, X: NDArray[Any], labels: Integers) -> UnitRows:
        if self.public is None:
            raise InputError(
                "public=None must be public rows to learn from; pass public=X_public (--public"
                " STORE)"
            )
        return super()._prepare(X, labels)

    def _label_sums(self, prepared: UnitRows) -> LabelSums:
        """Return what is summed where a record may have several labels."""
        most_labels = declared_most(self.most_labels)
        return LabelSums("label sums", len(self.classes_), prepared.width, most_labels)

    def _fit(self, prepared: UnitRows, noise: NoiseSource) -> Released:
        if self.most_labels is not None:
            return self._fit_label_sets(prepared, noise)
        with phase(SET_UP):
            prior = public_prior(public_rows(self.public, prepared.width), prepared.centre)
        release, plain, sums_share = self._release_sums(prior, prepared, noise)
        names = deciding.along_axes(prepared.names, prior)
        carried = deciding.carried_posterior(prior, release, plain, names)
        self.spent_on_sums_ = sums_share
        self.names_used_ = carried.names is not None
        self.prototypes_ = carried.posterior.mean @ prior.axes.T
        self.sizes_ = carried.posterior.sizes
        self.centre_ = prepared.centre

        one_release = sums_share == QUARTER or not self.refine
        facts = {
            "noise multiplier of the sums": self._noise_of_sums(sums_share),
            "releases of the sums": "one" if one_release else "several, averaged",
            "share of the count column": COUNT_SHARE,
            "share of the budget for the sums": sums_share,
        } | deciding.facts_of_decision(carried, names, self.centre_)

        if self.refined_:
            return self._refined(prior, carried, facts, prepared, noise)

        released = deciding.decision(prior, carried, plain.trust, self.centre_, facts)
        self._take_decision(released)
        return released

    def _take_decision(self, released: Released) -> None:
        """Set the learned attributes of quadratic scores."""
        self.coefficients_ = released.arrays["coefficients"]
        self.intercepts_ = released.arrays["intercepts"]
        self.axes_ = released.arrays["axes"]
        self.squares_ = released.arrays["squares"]

    def _fit_label_sets(self, prepared: UnitRows, noise: NoiseSource) -> Released:
        """Release linear scores of the posterior where a record may have several labels."""
        z = sums_alone(self.budget, self.unit).noise(LABEL_SUMS)
        with phase(SET_UP):
            prior = public_prior(public_rows(self.public, prepared.width), prepared.centre)
            sums = self._label_sums(prepared).released(prepared, multiplier=z, noise=noise)
        names = deciding.along_axes(prepared.names, prior)
        with phase(SOLVING):
            scores = label_posterior.label_scores(prior, sums, names)

        self.refined_ = False
        self.spent_on_sums_ = 1.0
        self.names_used_ = scores.names_used
        self.prototypes_ = scores.posterior.mean @ prior.axes.T
        self.sizes_ = scores.posterior.sizes
        self.centre_ = prepared.centre
        self.coefficients_ = scores.slopes @ prior.axes.T
        self.intercepts_ = scores.offsets

        name_use = "none"
        if names is not None:
            name_use = "used" if self.names_used_ else deciding.LEFT_OUT
        facts = facts_of(self.most_labels, z) | {
            "class names": name_use,
            "normalisation": normalisation(self.centre_),
        }
        what = "one linear score per label, from noisy sums of the rows of each label"
        return Released(what, self._arrays(), LinearHead(), facts, label_sets=scores.label_sets)

    def _refined(
        self,
        prior: PublicPrior,
        carried: CarriedPosterior,
        facts: dict[str, Any],
        records: UnitRows,
        noise: NoiseSource,
    ) -> Released:
        """Linear scores of the posterior after noisy gradient descent, with fair offsets."""
        posterior = carried.posterior
        scores = deciding.scores_of(prior, carried, linear=True)

        # scores are standardised; descent starts from a scale that suits the softmax
        with phase(SOLVING):
            rows = simulated(carried, prior.sample)
            confidence = posterior_probabilities(posterior, rows, scores.of)
        start = scores.times(min(START * confidence.scale, LONGEST_START))

        rest = refinement.Rest(self._noise_multiplier(1 - self.spent_on_sums_), Unit(self.unit))
        slopes = Slopes()
        self.coefficients_ = refinement.refine(
            start.slopes @ carried.axes.T, records, posterior, rest, noise, slopes
        )

        refined = replace(start, slopes=self.coefficients_ @ carried.axes)
        with phase(SOLVING):
            refined = refined.moved(fair_offsets(carried.clarity, rows, refined.of))
            confidence = posterior_probabilities(posterior, rows, refined.of, slopes)
        self.intercepts_ = refined.offsets

        arrays = self._arrays()
        what = (
            "one linear score per class, from noisy class sums, second moments and"
            f" gradients{IN_RELEASE}"
        )
        facts = facts | rest.facts(self.sizes_)
        return Released(what, arrays, LinearHead(), facts, carried.arrays(arrays), confidence)

    def _release_sums(
        self, prior: PublicPrior, records: UnitRows, noise: NoiseSource
    ) -> tuple[NoisySums, ClassPosterior, float]:
        """Noisy sums, their posterior, and the share of the budget that they cost.

        `refined_` is set: it says whether the remainder of the budget pays for gradient steps.
        Independent noisy sums are averaged with their shares as weights, since the precision of a
        sum is proportional to its share.
        """
        if not self.refine:
            self.refined_ = False
            sums = self._noisy_sums(records, 1.0, noise)
            release = self._release(prior, sums, 1.0)
            return release, class_posterior(prior, release), 1.0

        share = QUARTER
        sums = self._noisy_sums(records, QUARTER, noise)
        plain = class_posterior(prior, self._release(prior, sums, share))

        if signal(plain, self._noise_of_sums(1.0)) < CLEAR and not self._infinite():
            second_sums = self._noisy_sums(records, QUARTER, noise)
            sums = (sums + second_sums) / 2
            share = 2 * QUARTER
            plain = class_posterior(prior, self._release(prior, sums, share))

        self.refined_ = signal(plain, self._noise_of_sums(1.0)) >= CLEAR
        if not self.refined_ and not self._infinite():
            last_sums = self._noisy_sums(records, 1 - share, noise)
            sums = share * sums + (1 - share) * last_sums
            share = 1.0
            plain = class_posterior(prior, self._release(prior, sums, share))

        return self._release(prior, sums, share), plain, share

    def _arrays(self) -> dict[str, Floats]:
        arrays = {"coefficients": self.coefficients_, "intercepts": self.intercepts_}
        return arrays | centre_array(self.centre_)

    def _noisy_sums(self, records: UnitRows, share: float, noise: NoiseSource) -> Floats:
        """Noisy sums and counts that cost this share of the budget."""
        return sums_with_counts(
            records,
            n_classes=len(self._labels_of_records()),
            multiplier=self._noise_of_sums(share),
            noise=noise,
        )

    def _release(self, prior: PublicPrior, sums: Floats, share: float) -> NoisySums:
        """Sums and counts along the axes, with the noise of this share of the budget."""
        multiplier = self._noise_of_sums(share)
        return NoisySums(
            sums[:, :-1] @ prior.axes,
            multiplier / ROW_SCALE,
            sums[:, -1],
            multiplier / COUNT_SCALE,
        )


def _check_summary(summary: Any, public: Any, refine: bool) -> None:
    """Refuse what is no summary, and what a summary cannot give."""
    if flag("refine", refine):
        raise InputError(
            "refine=True pays for gradient steps, which read the records, and a summary holds sums"
            " alone; leave refine out"
        )
    if not hasattr(summary, "noisy_sums"):
        raise InputError(f"summary={type(summary).__name__} is no summary; pass a tacit.Summary")
    if public is None:
        raise InputError(
            "public=None must be public rows to learn from; pass public=X_public, or combine the"
            " summary without them (tacit.combine)"
        )


def signal(posterior: ClassPosterior, noise: float) -> float:
    """Return the squared length of a class mean over the noise of its sum.

    The class is a small one where public rows can be trusted, since more sums would help it;
    otherwise it is a class of mean size. The trust mixes the two sizes. `noise` is the standard
    deviation on a coordinate of a sum, at the whole budget.
    """
    trust = posterior.trust
    small_size = float(np.quantile(posterior.sizes, SMALL_CLASSES))
    mean_size = float(posterior.sizes.mean())
    n = trust * small_size + (1 - trust) * mean_size

    # noise of all coordinates, and the sampling of records within the class
    width = posterior.mean.shape[1]
    variance = width * noise**2 + n * posterior.within
    return n * posterior.between / math.sqrt(variance)


@phase(SET_UP)
def sums_with_counts(
    records: UnitRows, *, n_classes: int, multiplier: float, noise: NoiseSource
) -> Floats:
    """Noisy sum of the rows of each class, (C, d + 1); the last column is their number.

    They are the sums of a summary: `tacit.learners.prototypes.class_table`. `n_classes` counts
    inner nodes of a tree too, whose sums are divided among the classes below.
    """
    sums_of_labels = class_table.sums(records, n_classes, multiplier=multiplier, noise=noise)
    return without_scales(sums_of_leaves(sums_of_labels, records.nodes, multiplier))
