"""ProjectedPrototypes: noisy class sums or public rows, and a linear layer before them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.progress import progress
from tacit.compute.timing import SELECTION, SET_UP, SOLVING, phase
from tacit.errors import InputError, quoted
from tacit.learners.common.balance import ClassCounts, count_share, n_records
from tacit.learners.common.descent import descend
from tacit.learners.common.parameters import check_optional, real, whole
from tacit.learners.common.softmax import Blocks, logits, noisy_gradient, residuals
from tacit.learners.common.sums import class_sums
from tacit.learners.common.unit_rows import UnitRowClassifier, UnitRows, scores_of_empty
from tacit.learners.prototypes.scores.arithmetic import Scoring, scoring
from tacit.learners.prototypes.scores.window import PUBLIC, window, window_needs_public
from tacit.learners.prototypes.selection import candidates, class_scores, select_one
from tacit.learners.prototypes.split import Split, calibrated
from tacit.mechanisms import outer_products
from tacit.mechanisms.blocks import Block
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.mechanisms.outer_products import rounded
from tacit.models.probabilities import Probabilities
from tacit.models.released import Released
from tacit.models.rows import Floats, unit_rows_about
from tacit.privacy.budget import Budget
from tacit.privacy.decimals import rounded_up
from tacit.privacy.events import Event
from tacit.privacy.guarantee import guarantee_under
from tacit.privacy.unit import Unit

# norm that noise may add to a row of the layer; chosen, as all defaults here, on CIFAR-10
NOISE_IN_LAYER = 1.0
SUMS = "sums"


@dataclass(frozen=True, eq=False, kw_only=True)
class ScoredRows(UnitRows):
    """Private records that select prototypes among public rows.

    `window` is the window of 1 + cosine, and `scoring` the rule of the scores.
    """

    window: tuple[float, float]
    scoring: Scoring


@dataclass(kw_only=True, eq=False, repr=False)
class ProjectedPrototypes(UnitRowClassifier):
    """Classify by the nearest prototype after a linear layer that is learned privately.

    The prototype S_c of a class is the sum of its records' unit vectors plus Gaussian noise, or a
    public row that is chosen privately. A layer W of shape (p, d) then learns, by gradient descent
    with noise in every step, to bring records close to W S_c of their class and far from those of
    other classes. It starts as the principal axes of the unit S_c. With all of these axes, the
    initial layer classifies like `NoisySumPrototypes`, or like `PublicPrototypes` with k = 1. The
    score of class c is <W x, W S_c/|W S_c|>. By default small classes are at no disadvantage: see
    `balanced`.

    Parameters
    ----------
    budget, classes, public, allow_overlap, noise, random_state, unit, ledger
        As in `NoisySumPrototypes`; "rho=inf" is the same descent without noise and clipping. With
        public rows, scores differ more between classes, which gives the layer more to learn from.
    prototypes : {"sums", "public"}, default="sums"
        What represents a class before the layer: a noisy sum, or one of the public rows, centred on
        their mean and normalised again, chosen by the exponential mechanism as in
        `PublicPrototypes` with k = 1.
    d_min, d_max : float or "public", default="public"
        Window of similarities for prototypes="public", as in `PublicPrototypes`.
    share : float, default=0.7
        Share of the budget for the prototypes, from 0.1 to 0.9; the layer gets the rest.
    dimension : int, optional
        p, by default the smaller of C and d; larger values make no difference.
    steps : int, default=60
        Number of steps.
    scale : float, default=20.0
        Factor of the scores in the softmax.
    learning_rate : float, optional
        Factor of the mean gradient. By default 40, or 10 with public rows, or min(10, C/3) with
        prototypes="public", but at most 3 n/(steps^2 z clip sqrt(d)), at which noise adds a vector
        of norm about 1 to each row of W; z is the multiplier of all steps together.
    clip : float, default=1.0
        Bound on the norm of a record's part of a step: its gradient of the cross-entropy divided by
        `scale`, by the layer with q_c held, or by the linear scores with prototypes="public".
    counts, balanced
        As in `GradientDescent`.

    Attributes
    ----------
    coefficients_ : ndarray of shape (C, d), float64
        W' W S_c/|W S_c|.
    intercepts_ : ndarray of shape (C,), float64
        Zero; far below all scores for a class without records under an infinite budget.
    projection_ : ndarray of shape (p, d), float64
        W.
    prototypes_ : ndarray of shape (C, p), float64
        W S_c.
    learning_rate_ : float
        As used; a function of the noisy or declared counts.
    indices_ : ndarray of shape (C,)
        Positions of the chosen rows in `public`, with prototypes="public".
    window_ : tuple of float
        The window used, with prototypes="public".
    centre_, classes_, guarantee_, spent_
        As in `NoisySumPrototypes`.

    Notes
    -----
    Guarantee: one Gaussian event per class for the sums and one for the counts, and one per step,
    of sensitivity `clip` in Frobenius norm under add/remove. With prototypes="public" one
    exponential mechanism per class replaces the sums: of the whole rho it costs rho_1 = share rho,
    at epsilon = sqrt(8 rho_1), and T steps of noise multiplier sigma cost T/(2 sigma^2). An
    approximate budget is calibrated for all events together.

    The unit prototypes q_c = W S_c/|W S_c| and the vectors theta_c = W' q_c that score the classes
    follow from W and S, which are released or follow from earlier steps. With r the softmax of
    scale <theta_c, x> less the one-hot label, a step before sums holds the q_c constant: the
    gradient of a record by the layer is then the outer product of sum_c r_c q_c and x, so clipping
    needs only their two norms. Both rows come from exact products of whole numbers, so that no bit
    of them depends on the other records.

    With prototypes="public", a step releases M, of shape (C, d): the sum of the outer products of r
    and x, which are the records' gradients by theta, each clipped to norm `clip`, with Gaussian
    noise, as in `GradientDescent`. The gradient by the layer is a linear function of M that depends
    on W and S alone, so it is post-processing: Q' M + sum_c (I - q_c q_c') W M_c S_c'/|W S_c|,
    where the rows of Q are the q_c, and M_c are those of M less their mean over the classes, which
    is zero without noise. The second term is what W changes in the q_c.

    Under a unit per person the sum of a person's clipped products is scaled down to norm `clip`,
    and the choice and each sum are one event for all classes together. See
    `tacit.mechanisms.gaussian`, `tacit.mechanisms.exponential` and
    `tacit.mechanisms.outer_products`.
    Source: the projection ablation of Wahdany et al. 2024. Their layer learns through prototypes
    that are means of the current records, so no record has a gradient of its own to clip.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> X, y = np.repeat(np.eye(2), 500, axis=0), np.repeat([0, 1], 500)
    >>> model = tacit.ProjectedPrototypes(budget="rho=0.5", classes=2, counts=500).fit(X, y)
    >>> model.predict([[2.0, 0.1]]), round(model.guarantee_.rho, 9)
    (array([0]), 0.5)
    """

    takes_sparse = False
    summary = "noisy class sums, or public rows, seen through a privately learned layer"
    public_use = 'optional, for centring; needed with `prototypes="public"`'

    prototypes: str = SUMS
    d_min: float | str = PUBLIC
    d_max: float | str = PUBLIC
    share: float = 0.7
    dimension: int | None = None
    steps: int = 60
    scale: float = 20.0
    learning_rate: float | None = None
    clip: float = 1.0
    counts: int | Sequence[int] | None = None
    balanced: bool = True

    def _from_public(self) -> bool:
        """Tell whether prototypes are public rows, and check the parameters that only these use."""
        if not isinstance(self.prototypes, str) or self.prototypes not in (SUMS, PUBLIC):
            raise InputError(
                f"prototypes={quoted(self.prototypes)} must be {SUMS!r} or {PUBLIC!r}; leave it out"
            )
        window_needs_public(self.d_min, self.d_max)

        from_public = bool(self.prototypes == PUBLIC)
        default_window = (self.d_min, self.d_max) == (PUBLIC, PUBLIC)
        if not from_public and not default_window:
            window_passed = f"d_min={self.d_min!r}, d_max={self.d_max!r}"
            raise InputError(
                f"{window_passed} are for prototypes={PUBLIC!r}; leave them out, or pass that"
            )
        return from_public

    def _releases_public(self) -> bool:
        return self._from_public()

    def _shares(self) -> Split:
        share = real("share", self.share, 0.1, 0.9)
        steps = whole("steps", self.steps, 1, 10**4)
        return Split(share, count_share(self.counts), steps, self._from_public())

    def _multiplier(self) -> float:
        """Return the noise multiplier of a Gaussian sum that would spend the whole budget.

        All parts follow from it.
        """
        budget = Budget.parse(self.budget)
        unit = Unit(self.unit)
        shares = self._shares()
        z = budget.gaussian(unit, split=True)
        if z == 0:
            return z

        # The closed form of z holds for Gaussian sums that a neighbour moves equally far.
        # Selections are no such sums, and a changed label moves some sums further than others.
        if shares.selects_rows or unit is Unit.CHANGE_LABEL:
            return calibrated(budget, unit, shares)
        return z

    def _declared_counts(self) -> ClassCounts:
        return ClassCounts(self.counts, balanced=self.balanced)

    def _counts(self) -> ClassCounts:
        counts = self._declared_counts()
        return replace(counts, noise=self._shares().counts(self._multiplier()))

    def _event(self) -> Event:
        if self.dimension is not None:
            whole("dimension", self.dimension, 1, 2**20)
        real("scale", self.scale, 1e-3, 1e4)
        real("clip", self.clip, 1e-6, 10)
        check_optional(self, learning_rate=(1e-9, 1e9))

        event = self._shares().event(self._multiplier())
        return guarantee_under(event, Unit(self.unit)).event

    def _prepare(self, X: NDArray[Any], labels: Integers) -> UnitRows:
        records = super()._prepare(X, labels)
        if not self._from_public():
            return records

        public = candidates(self.public, X.shape[1])
        centre = records.centre
        bounds = window(self.d_min, self.d_max, public, centre)

        # A person with records of many classes shares one record's weight among them.
        classes = None
        if Unit(self.unit).per_person and self._multiplier() > 0:
            classes = len(self.classes_)
        rule = scoring(public, *bounds, centre=centre, classes=classes)
        return ScoredRows(X, labels, centre, window=bounds, scoring=rule)

    def _fit(self, prepared: UnitRows, noise: NoiseSource) -> Released:
        z = self._multiplier()
        if isinstance(prepared, ScoredRows):
            title = "one public record per class"
            sums, facts = self._selected_rows(prepared, z, noise)
        else:
            title = "one noisy sum of unit rows per class"
            sums, facts = self._sums(prepared, z, noise)

        with phase(SET_UP):
            blocks = prepared.block_list(exact=z == 0)
            counts = self._counts().draw(blocks, len(self.classes_), noise)
        layer = self._descend(sums, counts, blocks, noise)
        self.projection_ = layer
        self.prototypes_ = sums @ layer.T

        facts |= {
            "gradient clip norm": float(self.clip),
            "noise multiplier of a step": self._shares().step(z),
            "steps": self.steps,
            **self._counts().facts(),
            "sampling": "none; every record is used in every step",
        }
        title += ", through a privately learned layer"
        theta = _unit(self.prototypes_) @ layer
        intercepts = np.minimum(scores_of_empty(sums), self._scores_of_empty(counts))
        released = self._head(prepared, title, theta, facts, intercepts)
        # the softmax that the layer was trained with
        return replace(released, probabilities=Probabilities(float(self.scale)))

    @phase(SET_UP)
    def _sums(
        self, records: UnitRows, z: float, noise: NoiseSource
    ) -> tuple[Floats, dict[str, Any]]:
        """Return the noisy sum of each class, of shape (C, d), and what the card says of them."""
        blocks = records.blocks("class sums")
        n_classes = len(self.classes_)
        multiplier = self._shares().sums(z)
        sums = class_sums(
            blocks, n_classes=n_classes, width=records.width, multiplier=multiplier, noise=noise
        )
        return sums, {"noise multiplier of the class sums": multiplier}

    def _selected_rows(
        self, records: ScoredRows, z: float, noise: NoiseSource
    ) -> tuple[Floats, dict[str, Any]]:
        """Select a public row for each class; return them (C, d), and what the card says of it."""
        rule = records.scoring
        n_classes = len(self.classes_)
        epsilon = self._shares().epsilon(z)

        with class_scores(rule, self.public, records, n_classes) as scores_by_class:
            rows = progress(scores_by_class, "selection", n_classes)
            with phase(SELECTION):
                indices = [
                    select_one(row, sensitivity=rule.sensitivity, epsilon=epsilon, noise=noise)
                    for row in rows
                ]
        self.window_ = records.window
        self.indices_ = np.array(indices)

        selected = unit_rows_about(np.asarray(self.public[self.indices_]), records.centre)
        facts = {
            "selection": f"exponential, epsilon {rounded_up(epsilon)} per class",
            "clip window of 1 + cosine": list(records.window),
        }
        return selected, facts

    @phase(SOLVING)
    def _descend(self, sums: Floats, counts: Floats, blocks: Blocks, noise: NoiseSource) -> Floats:
        """Learn the layer by Nesterov's method, from the principal axes of the unit sums."""
        z = self._shares().step(self._multiplier())
        n = n_records(counts)
        offsets = self._counts().log_shares(counts) + self._scores_of_empty(counts)

        def by_head(layer: Floats) -> Floats:
            head = self.scale * (_unit(sums @ layer.T) @ layer)
            return noisy_gradient(head, offsets, blocks, clip=self.clip, multiplier=z, noise=noise)

        def whole_gradient(layer: Floats) -> Floats:
            return gradient_by_layer(by_head(layer), layer, sums)

        def gradient_with_prototypes_held(layer: Floats) -> Floats:
            if z == 0:
                return _unit(sums @ layer.T).T @ by_head(layer)
            left_and_right = gradient_rows(
                layer, sums, offsets, blocks, scale=self.scale, clip=self.clip
            )
            total = outer_products.noisy_products(
                left_and_right, shape=layer.shape, noise_multiplier=z, noise=noise
            )
            return total * self.clip

        # The part of the gradient through the prototypes adds noise along them. Where these are
        # sums it gains nothing, and costs up to 1.7 points on CIFAR-100. Where they are public rows
        # and noise is small, accuracy is up to 12 points lower without it.
        gradient = gradient_with_prototypes_held
        if self._from_public():
            gradient = whole_gradient

        _, _, axes = np.linalg.svd(_unit(sums), full_matrices=False)
        start: Floats = axes[: self.dimension]
        self.learning_rate_ = self._learning_rate(n, sums.shape[1])
        return descend(gradient, start, rate=self.learning_rate_ / n, steps=self.steps)

    def _scores_of_empty(self, counts: Floats) -> Floats:
        """Return `scores_of_empty` where counts are exact.

        It is zero where they are not, since a count of 0 may be noise.
        """
        counts_are_exact = self._multiplier() == 0
        if counts_are_exact:
            return scores_of_empty(counts[:, None])
        return np.zeros(len(counts))

    def _learning_rate(self, n: float, width: int) -> float:
        """Return the factor of the mean gradient of n records."""
        if self.learning_rate is not None:
            return float(self.learning_rate)

        longest = longest_rate(
            len(self.classes_), centred=self.public is not None, selected=self._from_public()
        )
        z = self._shares().step(self._multiplier())
        # as in `descent.learning_rate`, for a row of the layer, of `width` entries
        noise: float = z * self.clip * self.steps**1.5 * math.sqrt(width)
        if noise == 0:
            return longest
        return min(longest, NOISE_IN_LAYER * 3 * n / noise)


def longest_rate(n_classes: int, *, centred: bool, selected: bool) -> float:
    """Return the longest learning rate, for prototypes that are selected rows or sums.

    For selected rows it is the longest at which the loss falls in every step without noise, of 1,
    3, 10 and 40, for 2 to 100 classes of Tiny ImageNet, which is public.
    """
    if selected:
        return min(10.0, n_classes / 3)
    return 10.0 if centred else 40.0


def gradient_rows(
    layer: Floats, sums: Floats, offsets: Floats, blocks: Blocks, *, scale: float, clip: float
) -> Iterator[Block]:
    """Yield the left and the right row of each record's gradient by the layer, in units of `clip`.

    The gradient of a record is the outer product of the two rows, with unit prototypes held.
    """
    prototypes = _unit(sums @ layer.T)
    head = scale * (prototypes @ layer)
    for rows, labels, ends in blocks:
        left = pulls(residuals(rows, labels, head, offsets), prototypes) / clip
        yield Block(left, rows, ends)


def pulls(residuals: Floats, prototypes: Floats) -> Floats:
    """Multiply residuals of shape (b, C) by prototypes of shape (C, p).

    Each row of the product depends on its own residuals alone: residuals have norm sqrt(2) at most,
    and as whole numbers their products with whole numbers are exact.
    """
    return math.sqrt(2) * logits(rounded(residuals / math.sqrt(2)), prototypes.T)


def gradient_by_layer(by_head: Floats, layer: Floats, sums: Floats) -> Floats:
    """Return the gradient by the layer W, of shape (p, d), from that by the head.

    Parameters
    ----------
    by_head : ndarray of shape (C, d)
        Gradient M by the head, whose row c is theta_c = W' q_c, with noise or without.
    layer : ndarray of shape (p, d)
        W.
    sums : ndarray of shape (C, d)
        S, whose rows are the prototypes before the layer.
    """
    # Residuals of a record sum to zero over the classes, so the mean of M over the classes is noise
    # and rounding.
    by_head = by_head - by_head.mean(axis=0)

    projected = sums @ layer.T  # W S_c, of shape (C, p)
    lengths = _lengths(projected)
    unit = projected / lengths

    # d theta_c = dW' q_c + W' dq_c, where dq_c = (I - q_c q_c') dW S_c/|W S_c|
    by_prototype = by_head @ layer.T
    along = (by_prototype * unit).sum(axis=1, keepdims=True)
    across = by_prototype - along * unit
    by_layer: Floats = unit.T @ by_head + across.T @ (sums / lengths)
    return by_layer


def _unit(rows: Floats) -> Floats:
    """Return rows of norm 1, and rows of zeros unchanged."""
    return rows / _lengths(rows)


def _lengths(rows: Floats) -> Floats:
    """Return the norms of rows, of shape (rows, 1), and 1 for rows of zeros."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.where(lengths > 0, lengths, 1.0)
