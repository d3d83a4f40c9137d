"""LeastSquares: linear classifiers from noisy second moments and noisy class sums (DP-LS)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tacit.compute.timing import SET_UP, SOLVING, phase
from tacit.errors import InputError
from tacit.learners.common.balance import COUNTS, ClassCounts
from tacit.learners.common.budget_split import SHARE_OF_MOMENTS, Part
from tacit.learners.common.exact_sums import (
    ClassSecondMoments,
    ClassSums,
    Query,
    SecondMoments,
    SumsClassifier,
    blocks_of,
    ones_of,
)
from tacit.learners.common.label_calibration import calibrated
from tacit.learners.common.label_sums import LABEL_SUMS, LabelSums, declared_most, facts_of
from tacit.learners.common.matrices import Matrices
from tacit.learners.common.parameters import check_optional, declared_counts, flag, real
from tacit.learners.common.preconditioning import divided
from tacit.learners.common.unit_rows import UnitRowClassifier, UnitRows, scores_of_empty
from tacit.mechanisms import gaussian, outer_products
from tacit.mechanisms.noise import NoiseSource
from tacit.models.discriminants import discriminants, relative_weight
from tacit.models.label_effects import NoisyLabels, normal_spread, root_variance
from tacit.models.label_sets import LabelSets
from tacit.models.released import Released
from tacit.models.rows import Floats
from tacit.models.spectra import spectrum
from tacit.privacy.events import Event
from tacit.privacy.unit import Unit

# The parts of the budget.
MOMENTS = "moments"
SUMS = "sums"
CLASS_MOMENTS = "class moments"

# Share of the budget for moments where a record may have several labels. Chosen on GoEmotions.
SHARE_OF_MOMENTS_OF_SETS = 0.15


class Noises(NamedTuple):
    """Standard deviations of the noise on an entry of G, of b and of A; A may not be bought."""

    moments: float
    sums: float
    class_moments: float | None


class MomentQueries(NamedTuple):
    """What is summed for G, b and, where they are bought, the counts and A."""

    moments: SecondMoments
    sums: ClassSums
    counts: ClassSums | None
    class_moments: ClassSecondMoments | None


@dataclass(kw_only=True, eq=False, repr=False)
class LeastSquares(SumsClassifier, UnitRowClassifier):
    """Classify by one linear score per class, computed from noisy second moments and noisy class
    sums.

    Rows are divided by their norm, at fit and at predict. Let G be the sum of x x' over all
    records, b_k the sum of the n_k records of class k, and m_k = b_k/n_k. By default this is linear
    discriminant analysis: G less all b_k b_k'/n_k is the scatter within classes, W, and theta_k =
    (W + ridge I)^-1 (m_k - m), m being the mean of all records. Large classes are not favoured.
    With `alpha` it is the published regression on class indicators, theta_k = (A_k + alpha G +
    ridge I)^-1 b_k, where A_k is the sum of x x' over class k.

    Parameters
    ----------
    budget, classes, public, allow_overlap, noise, random_state, unit, ledger
        As in `NoisySumPrototypes`.
    most_labels : int, optional
        As in `NoisySumPrototypes`. Each label then has the score of the regression of its indicator
        on the rows, (W + ridge I)^-1 (b_k - n_k m) over the standard deviation of the indicator,
        where W is the scatter of all rows about their mean, and a probability of its own. G gets
        15 % of the budget. Neither `alpha`, `counts` nor `normalise=False` apply.
    alpha : float, optional
        Weight of G in the sum with A_k, as published. G, A and b then get a third of the budget
        each. If omitted, G gets 30 % of the budget, noisy counts 1 %, and b the rest.
    ridge : float, optional
        By default 1 + s sqrt(d), s being the standard deviation of the noise on an entry of the
        matrix to invert, or of the sums b where that matrix is exact.
    normalise : bool, default=True
        Divide each theta_k by the standard deviation of its score within classes or, with `alpha`,
        by its norm. If False, scores are those of the linear discriminant or, with `alpha`, of the
        regression.
    counts : int or sequence of int, optional
        As in `GradientDescent`, but not with `alpha`, which needs none.
    intercept : float, default=0.0
        As in `GradientDescent`.

    Attributes
    ----------
    coefficients_ : ndarray of shape (C, d), float64
    intercepts_ : ndarray of shape (C,), float64
        For a class without records under an infinite budget, far below all scores, unless `alpha`
        is passed.
    centre_, classes_, guarantee_, spent_
        As in `NoisySumPrototypes`.

    Notes
    -----
    Guarantee: one Gaussian event for G, one per class for b and, with alpha, one per class for A,
    otherwise one per class for the counts, all of sensitivity 1 under add/remove; z^2 of a part is
    1/(2 rho) over its share of the budget. Under change-label, and for the labels of a person, G
    does not depend on what is protected: it is exact and free, and the other parts share the
    budget. Everything else is post-processing: the expected noise of the sums is added back to W,
    and a mean's noise, of variance v_k in each coordinate, counts as scatter: 4 n v_k is added to
    W. With `most_labels` the sums and counts of all labels are one Gaussian event, whose
    sensitivity is 1 however many labels a record has: see `tacit.learners.common.label_sums`. See
    `tacit.mechanisms.outer_products` and `tacit.mechanisms.gaussian`.
    Source: Mehta et al. 2023 (DP-LS) for the moments and the form with alpha; Fisher 1936 for the
    discriminant, whose noise terms are tacit's.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> X, y = np.repeat(np.eye(2), 500, axis=0), np.repeat([0, 1], 500)
    >>> model = tacit.LeastSquares(budget="rho=0.5", classes=2).fit(X, y)
    >>> model.predict([[2.0, 0.1]]), round(model.guarantee_.rho, 9)
    (array([0]), 0.5)
    """

    takes_several_labels = True
    summary = "one linear score per class, solved for from noisy moments (DP-LS)"

    alpha: float | None = None
    ridge: float | None = None
    normalise: bool = True
    counts: int | Sequence[int] | None = None
    intercept: float = 0.0
    most_labels: int | None = None

    def _declared_counts(self) -> ClassCounts:
        if self.most_labels is not None:
            # the sums of labels hold the counts
            return ClassCounts(self.counts, unused="most_labels")
        unused = "" if self.alpha is None else f"alpha={self.alpha!r}"
        return ClassCounts(self.counts, unused=unused)

    def _parts(self) -> dict[str, Part]:
        if self.most_labels is not None:
            return {
                MOMENTS: Part(SHARE_OF_MOMENTS_OF_SETS, outer_products.MOMENTS),
                LABEL_SUMS: Part(1 - SHARE_OF_MOMENTS_OF_SETS, outer_products.LABEL_PRODUCTS),
            }
        if self.alpha is not None:
            real("alpha", self.alpha, 0, 1e9)
            return {
                MOMENTS: Part(1 / 3, outer_products.MOMENTS),
                SUMS: Part(1 / 3, gaussian.CLASS_SUMS, by_class=True),
                CLASS_MOMENTS: Part(1 / 3, outer_products.CLASS_MOMENTS, by_class=True),
            }

        counts = self._declared_counts()
        parts = {
            MOMENTS: Part(SHARE_OF_MOMENTS, outer_products.MOMENTS),
            SUMS: Part(1 - SHARE_OF_MOMENTS - counts.share, gaussian.CLASS_SUMS, by_class=True),
        }
        if Unit(self.unit).per_person and counts.share:
            # a person's sums and counts are scaled as one vector, which moves as sums do
            return parts | {COUNTS: Part(counts.share, gaussian.CLASS_SUMS, by_class=True)}
        return parts | counts.parts

    def _noises(self) -> Noises:
        split = self._split()
        if self.most_labels is not None:
            return Noises(split.noise(MOMENTS), split.noise(LABEL_SUMS), None)
        class_noise = None if self.alpha is None else split.noise(CLASS_MOMENTS)
        return Noises(split.noise(MOMENTS), split.noise(SUMS), class_noise)

    def _event(self) -> Event:
        self._intercept()
        flag("normalise", self.normalise)
        check_optional(self, ridge=(1e-9, 1e18))
        if self.most_labels is not None:
            self._check_for_label_sets()
        return super()._event()

    def _check_for_label_sets(self) -> None:
        """Refuse parameters that have no meaning where a record may have several labels."""
        declared_most(self.most_labels)
        self._declared_counts()
        if self.alpha is not None:
            raise InputError(
                f"alpha={self.alpha!r} would be unused with most_labels; leave one of them out"
            )
        if not self.normalise:
            raise InputError(
                "normalise=False would be unused with most_labels; leave one of them out"
            )

    def _matrices(self) -> Matrices:
        moments_noise, _, class_noise = self._noises()
        if class_noise is None:
            return Matrices(held=2.5, decomposed=1, noised=self._noised(1, moments_noise))

        n_classes = len(self.classes_)
        noised = self._noised(1, moments_noise) + self._noised(n_classes, class_noise)
        return Matrices(held=n_classes + 5, decomposed=n_classes, noised=noised)

    def _queries(self, prepared: UnitRows) -> tuple[Query, ...]:
        if self.most_labels is not None:
            return self._label_queries(prepared)
        queries = moment_queries(prepared, self._noises(), self._counts(), len(self.classes_))
        return tuple(query for query in queries if query is not None)

    def _label_queries(self, prepared: UnitRows) -> tuple[SecondMoments, LabelSums]:
        """Return what is summed where a record may have several labels."""
        most_labels = declared_most(self.most_labels)
        return (
            SecondMoments("second moments", prepared.width, blocks_of),
            LabelSums("label sums", len(self.classes_), prepared.width, most_labels),
        )

    def _fit(self, prepared: UnitRows, noise: NoiseSource) -> Released:
        if self.most_labels is not None:
            return self._fit_label_sets(prepared, noise)
        noises = self._noises()
        moments, sums, counts, class_moments = noisy_moments(
            prepared,
            noises,
            self._counts(),
            n_classes=len(self.classes_),
            rows_are_public=self._public_rows(),
            noise=noise,
        )

        # under a unit per person, G and the sums may give a person different weights
        weight = 1.0
        if class_moments is None and prepared.persons is not None:
            weight = self._relative_weight(moments, counts)
            moments *= weight

        # scores: rows times theta, (C, width), plus intercepts, (C,)
        ridge = self._ridge(prepared.width, weight)
        if class_moments is None:
            theta, intercepts = discriminants(
                moments,
                sums,
                counts,
                ridge,
                least_count=self._counts().uncertainty,
                sum_noise=noises.sums,
                normalise=self.normalise,
            )
            if self._infinite():
                intercepts = intercepts + scores_of_empty(sums)
        else:
            theta = ridge_regression(moments, class_moments, self.alpha or 0.0, ridge, sums)
            intercepts = np.zeros(len(sums))
            if self.normalise:
                norms = np.linalg.norm(theta, axis=1, keepdims=True)
                theta = theta / np.where(norms > 0, norms, 1.0)

        facts = {
            "row norm": 1.0,
            "noise multiplier of the second moments": noises.moments,
            "noise multiplier of the class sums": noises.sums,
            "noise multiplier of the class moments": (
                "not bought" if noises.class_moments is None else noises.class_moments
            ),
            **self._counts().facts(),
            "ridge": ridge,
            "sampling": "none; every record is used once in each sum",
        }
        summary = "one linear score per class, solved for from noisy moments"
        return self._head(prepared, summary, theta, facts, intercepts)

    def _fit_label_sets(self, prepared: UnitRows, noise: NoiseSource) -> Released:
        """Regress the indicator of each label on the rows."""
        noises = self._noises()
        moments_query, sums_query = self._label_queries(prepared)
        with phase(SET_UP):
            moments = moments_query.released(
                prepared,
                multiplier=noises.moments,
                noise=noise,
                rows_are_public=self._public_rows(),
            )
            sums = sums_query.released(prepared, multiplier=noises.sums, noise=noise)

        # under a unit per person, G and the sums may give a person different weights
        weight = 1.0
        if prepared.persons is not None:
            trace = float(np.trace(moments))
            trace_sd = noises.moments * math.sqrt(len(moments))
            weight = relative_weight(sums.records, sums.records_noise, trace, trace_sd)

        ridge = self._ridge(prepared.width, weight)
        theta, offsets, label_sets = regressions(weight * moments, sums, ridge)
        facts = {
            "row norm": 1.0,
            "noise multiplier of the second moments": noises.moments,
            **facts_of(self.most_labels, noises.sums),
            "ridge": ridge,
            "sampling": "none; every record is used once in each sum",
        }
        summary = "one linear score per label, solved for from noisy moments"
        released = self._head(prepared, summary, theta, facts, offsets)
        return replace(released, label_sets=label_sets)

    def _relative_weight(self, moments: Floats, counts: Floats) -> float:
        """Return the total weight of persons in counts and sums over that in G.

        The weight in G is its trace, since rows are unit.
        """
        noise_of_moments, _, _ = self._noises()
        counts_sd = self._counts().noise * math.sqrt(len(counts))
        trace_sd = noise_of_moments * math.sqrt(len(moments))
        return relative_weight(float(counts.sum()), counts_sd, float(np.trace(moments)), trace_sd)

    def _ridge(self, width: int, weight: float) -> float:
        """Return the ridge, by default 1 + s sqrt(d).

        s is the noise of the matrix to invert, in which G has this weight.
        """
        if self.ridge is not None:
            return float(self.ridge)

        z_moments, z_sums, z_classes = self._noises()
        if z_classes is not None:
            deviation = math.hypot(z_classes, (self.alpha or 0.0) * z_moments)
        elif self._public_rows():
            # the matrix is exact, and the sums that it is applied to are not
            deviation = z_sums
        else:
            deviation = weight * z_moments
        return 1.0 + deviation * math.sqrt(width)


def moment_queries(
    records: UnitRows, noises: Noises, counts: ClassCounts, n_classes: int
) -> MomentQueries:
    """Return what is summed for G, b, the counts and A, under a unit per record."""
    width = records.width

    count_query = None
    if counts.share:
        count_query = ClassSums("counts", n_classes, 1, ones_of)
    class_moments = None
    if noises.class_moments is not None:
        class_moments = ClassSecondMoments("class moments", n_classes, width, blocks_of)

    return MomentQueries(
        SecondMoments("second moments", width, blocks_of),
        ClassSums("class sums", n_classes, width, blocks_of),
        count_query,
        class_moments,
    )


@phase(SET_UP)
def noisy_moments(
    records: UnitRows,
    noises: Noises,
    counts: ClassCounts,
    *,
    n_classes: int,
    rows_are_public: bool,
    noise: NoiseSource,
) -> tuple[Floats, Floats, Floats, Floats | None]:
    """Noisy G, b and counts or, where it is bought, A; exact ones under an infinite budget."""
    z_moments, z_sums, z_classes = noises
    queries = moment_queries(records, noises, counts, n_classes)

    moments = queries.moments.released(
        records, multiplier=z_moments, noise=noise, rows_are_public=rows_are_public
    )

    if records.persons is not None and counts.noise > 0:
        # a person's sums and counts are scaled as one vector
        sums, noisy_counts = gaussian.noisy_sums_and_counts(
            records.blocks("class sums"),
            n_classes=n_classes,
            width=records.width,
            noise_multipliers=(z_sums, counts.noise),
            noise=noise,
        )
        return moments, sums, noisy_counts, None

    sums = queries.sums.released(records, multiplier=z_sums, noise=noise)
    if queries.class_moments is not None:
        class_moments = queries.class_moments.released(
            records, multiplier=z_classes or 0.0, noise=noise
        )
        # regression needs no counts
        return moments, sums, np.zeros(n_classes), class_moments

    if queries.counts is not None:
        noisy_counts = queries.counts.released(records, multiplier=counts.noise, noise=noise)
        return moments, sums, noisy_counts[:, 0], None
    declared = declared_counts(counts.declared, n_classes)
    if declared is None:
        raise ValueError("counts are neither bought nor declared")
    return moments, sums, declared, None


@phase(SOLVING)
def regressions(
    moments: Floats, sums: NoisyLabels, ridge: float
) -> tuple[Floats, Floats, LabelSets]:
    """Return one theta per label and the offsets of its scores, and the rule of sets; `moments` are
    overwritten.

    Indicators are divided by their standard deviation. Offsets and the rule follow from rows that
    are simulated with the variances of W + ridge.
    """
    # W = G - n m m'
    moments -= sums.records * np.outer(sums.grand, sums.grand)
    values, axes = spectrum(moments)
    deviations = root_variance(sums.shares)[:, None]
    theta = divided(sums.contrasts / deviations, values, axes, ridge)

    # rows have these variances along the axes of W
    effects = sums.effects()
    variances = (values + ridge) * sums.spread / float((values + ridge).sum())
    # one seed, so that the simulation adds no randomness
    rng = np.random.default_rng(0)
    spread = normal_spread(effects, variances, axes, rng)
    rows, labels = effects.simulated(spread, rng)
    calibration = calibrated(rows @ theta.T, labels, sums.shares)
    return theta, calibration.offsets, calibration.label_sets


@phase(SOLVING)
def ridge_regression(
    moments: Floats, class_moments: Floats, alpha: float, ridge: float, sums: Floats
) -> Floats:
    """Solve for one theta per class; noisy matrices are first projected to positive semidefinite
    ones.
    """
    theta = []
    for class_moment, class_sum in zip(class_moments, sums, strict=True):
        values, vectors = spectrum(class_moment + alpha * moments)
        theta.append(divided(class_sum[None], values, vectors, ridge)[0])
    return np.stack(theta)
