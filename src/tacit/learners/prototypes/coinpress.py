"""CoinPressPrototypes: class means by iterated clipping (DPPL-Mean)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.timing import SET_UP, SOLVING, phase
from tacit.errors import InputError, quoted
from tacit.learners.common.balance import COUNTS
from tacit.learners.common.base import Prepared, PrivateClassifier
from tacit.learners.common.budget_split import BudgetSplit, Part
from tacit.learners.common.parameters import check_optional, declared_counts, real, whole
from tacit.learners.common.sums import blocks, class_counts, class_sums, pieces
from tacit.mechanisms import gaussian
from tacit.mechanisms.blocks import Block
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.models.decisions import NearestPrototype, pooled
from tacit.models.public_rows import public_rows
from tacit.models.released import Released
from tacit.models.rows import Floats
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event
from tacit.privacy.unit import Unit

# shares of the budget of the three steps of the prototype paper
PAPER_STEPS = (5 / 64, 7 / 64, 52 / 64)

# share of the budget for class counts; under a unit per person, of the squared norm of a row
COUNT_SHARE = 0.05

# a public constant: with little budget the radius grows at every step, and must stay finite
MOST_RADIUS = 1e50

# probability with which the paper lets a row, or the noise, be longer than is assumed
FAILURE = 0.01


@dataclass(frozen=True)
class Step:
    """One step of CoinPress; each field has shape (C,).

    Parameters
    ----------
    radius : ndarray
        Radius of the ball in which the mean was assumed.
    clip : ndarray
        Distance from the centre at which rows were clipped.
    noise : ndarray
        Standard deviation of the noise on each coordinate of the mean.
    norm : ndarray
        Euclidean norm of the new centre.
    """

    radius: Floats
    clip: Floats
    noise: Floats
    norm: Floats


@dataclass(frozen=True, eq=False)
class ScaledRecords(Prepared):
    """Private records, with what was decided from public facts.

    `scale` is the public factor that brings rows to unit variance; `counts` are declared ones.
    """

    scale: float
    counts: Floats | None
    decision: NearestPrototype


@dataclass(kw_only=True, eq=False, repr=False)
class CoinPressPrototypes(PrivateClassifier):
    """Classify by the nearest of one private mean per class (DPPL-Mean).

    Each step clips rows about the last estimate and adds noise to their mean; the next clip radius
    follows from the noise. By default there is one step, about the origin. The paper has three:
    pass `steps=PAPER_STEPS` from `tacit.learners.prototypes.coinpress`. The method assumes a
    variance of about 1 per coordinate. Means of much shorter rows, such as unit rows, are dominated
    by noise: pass `public` then, from which a scale is computed. Longer rows are clipped, and more
    accurate without it. The paper does not rescale. `NoisySumPrototypes` is nearly always better.

    Parameters
    ----------
    budget, classes, noise, random_state, unit, ledger
        As in `NoisySumPrototypes`; "rho=inf" is the class mean. With unit="replace" the noise is
        the paper's, (2 clip/N)/sqrt(2 rho_i), N declared.
    counts : int or sequence of int, optional
        Declared number of records per class, one for all or one per class, instead of the actual
        numbers; they are then listed as unprotected. If omitted, noisy counts are released for 5 %
        of the budget. Not accepted under a unit per person, where each step's rows carry a column
        for the total weight of their class.
    steps : sequence of float, default=(1,)
        Shares of the (remaining) budget per step; they sum to 1. PAPER_STEPS, which is (5/64, 7/64,
        52/64), has the paper's three steps.
    radius : float, optional
        Radius of the first ball, by default sqrt(d).
    pooling : int, default=1
        Average over this many consecutive columns first; a remainder is dropped.
    public : array of shape (m, d), optional
        Public rows; private rows are multiplied by sqrt(d) over their median norm.
    allow_overlap
        As in `NoisySumPrototypes`.
    metric : {"cosine", "euclidean"}, default="cosine"
        How predictions measure nearness.

    Attributes
    ----------
    prototypes_ : ndarray of shape (C, d // pooling), float64
        The private means, on the scale of the rows passed.
    steps_ : tuple of Step
        Radius, clip, noise and norm per step and class, on the rescaled rows; functions of the
        release.
    classes_, guarantee_, spent_
        As in `NoisySumPrototypes`.

    Notes
    -----
    Guarantee: per step one Gaussian event per class. The mean uses the declared or noisy count N,
    never the actual count, so that its sensitivity is clip/N under add/remove; the noise is
    (clip/N)/sqrt(2 rho_i). See `tacit.mechanisms.gaussian`. The paper's 2 clip/n is calibrated to a
    count that changes with the record it hides: under add/remove it is not rho-zCDP for any rho.
    Under a unit per person, each step is one
    Gaussian event for all classes: rows carry a constant column, whose noisy sum gives N, the total
    weight of a class.
    Source: Biswas et al. 2020; Wahdany et al. 2024, section 4.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(3, 1, (200, 4)), rng.normal(-3, 1, (200, 4))])
    >>> y = np.repeat([0, 1], 200)
    >>> model = tacit.CoinPressPrototypes("rho=8", classes=2, counts=200).fit(X, y)
    >>> model.predict([[3.0, 3.0, 3.0, 3.0]]), len(model.steps_)
    (array([0]), 1)
    """

    estimates = "means"
    takes_sparse = True
    summary = "one noisy mean per class (DPPL-Mean)"
    public_use = "optional, for the scale"
    event_under_unit = True

    counts: int | Sequence[int] | None = None
    steps: Sequence[float] = (1.0,)
    radius: float | None = None
    pooling: int = 1
    public: Any = None
    allow_overlap: bool = False
    metric: str = "cosine"

    def _buys_counts(self) -> bool:
        return self.counts is None and not Unit(self.unit).per_person

    def _step_shares(self) -> list[float]:
        """Return the shares of the steps, which add up to 1."""
        steps = np.atleast_1d(np.asarray(self.steps, dtype=object))
        shares = [real("steps", share, 0, 1) for share in steps]
        all_positive = shares and min(shares) > 0
        if not all_positive or abs(sum(shares) - 1) > 1e-9:
            raise InputError(
                f"steps={self.steps!r} must be positive and sum to 1; pass for example (0.25, 0.75)"
            )
        return shares

    def _split(self) -> BudgetSplit:
        """Split the budget over the steps, by their numbers, and the counts."""
        count_share = 0.0
        if self._buys_counts():
            count_share = COUNT_SHARE
        parts = {
            f"step {number}": Part((1 - count_share) * share, gaussian.CLASS_SUMS, by_class=True)
            for number, share in enumerate(self._step_shares(), 1)
        }
        if count_share:
            parts[COUNTS] = Part(count_share, gaussian.CLASS_COUNTS, by_class=True)
        return BudgetSplit(Budget.parse(self.budget), Unit(self.unit), parts)

    def _noises(self) -> tuple[list[float], float]:
        """Return the standard deviations of the noise of the steps, and that of the counts.

        The noise of counts is 0 where none are bought.
        """
        split = self._split()
        step_noises = [split.noise(name) for name in split.parts if name != COUNTS]
        if not self._buys_counts():
            return step_noises, 0.0
        return step_noises, split.noise(COUNTS)

    def _event(self) -> Event:
        """Return the privacy cost of one fit under `self.unit`, from the parameters alone."""
        check_optional(self, radius=(MOST_RADIUS**-1, MOST_RADIUS))
        whole("pooling", self.pooling, 1, 2**20)
        return self._split().event()

    def _unprotected(self) -> tuple[str, ...]:
        return () if self.counts is None else ("class counts (declared)",)

    def _prepare(self, X: NDArray[Any], labels: Integers) -> ScaledRecords:
        width = X.shape[1]
        whole("pooling", self.pooling, 1, width)
        if self.counts is not None and Unit(self.unit).per_person:
            rule = (
                f"are numbers of records, and unit={self.unit} needs weights, which each step"
                " releases"
            )
            raise InputError(f"counts={quoted(self.counts)} {rule}; leave them out")

        decision = NearestPrototype(self.metric, int(self.pooling))  # type: ignore[arg-type]  # checked there
        counts = declared_counts(self.counts, len(self.classes_))
        return ScaledRecords(X, labels, self._scale(width), counts, decision)

    def _fit(self, prepared: ScaledRecords, noise: NoiseSource) -> Released:
        step_noises, count_noise = self._noises()
        exact = 0.0 in step_noises
        if exact:
            self.steps_: tuple[Step, ...] = ()
            self.prototypes_ = self._exact_means(prepared, noise)
        else:
            counts = prepared.counts
            if prepared.persons is None and counts is None:
                parts = pieces(prepared, "counts")
                noisy = class_counts(
                    parts, n_classes=len(self.classes_), multiplier=count_noise, noise=noise
                )
                counts = np.maximum(noisy, 1.0)
            self._iterate(prepared, noise, counts, step_noises)

        facts = self._facts(prepared, step_noises, count_noise)
        arrays = {"prototypes": self.prototypes_}
        return Released("one noisy mean per class", arrays, prepared.decision, facts)

    def _facts(
        self, prepared: ScaledRecords, step_noises: list[float], count_noise: float
    ) -> dict[str, Any]:
        """Return what the card says of the mechanism."""
        multiplier_of_counts: float | str = "counts are declared"
        if self._buys_counts():
            multiplier_of_counts = count_noise
        elif prepared.persons is not None:
            multiplier_of_counts = "none; each step releases the weights of classes"

        clips = "; ".join(_range(step.clip) for step in self.steps_)
        deviations = "; ".join(_range(step.noise) for step in self.steps_)
        return {
            "clip norm": f"per class and step: {clips}",
            "noise standard deviation": f"per class and step: {deviations}",
            "noise multipliers": step_noises,
            "noise multiplier of the counts": multiplier_of_counts,
            "steps": len(self.steps_),
            "sampling": "none; every record is used in every step",
            "normalisation": (
                f"rows are averaged over {self.pooling} columns and scaled by a public factor"
            ),
        }

    @phase(SET_UP)
    def _exact_means(self, records: ScaledRecords, noise: NoiseSource) -> Floats:
        """Return the mean of each class, of pooled rows, (C, d // pooling)."""
        n_classes = len(self.classes_)
        parts = blocks(records, "class means")
        rows = (block._replace(rows=pooled(block.rows, self.pooling)) for block in parts)
        width = records.X.shape[1] // self.pooling
        sums = class_sums(rows, n_classes=n_classes, width=width, multiplier=0.0, noise=noise)
        class_sizes = np.bincount(records.labels, minlength=n_classes)
        return sums / np.maximum(class_sizes, 1)[:, None]

    @phase(SOLVING)
    def _iterate(
        self,
        records: ScaledRecords,
        noise: NoiseSource,
        counts: Floats | None,
        multipliers: Sequence[float],
    ) -> None:
        """Clip rows about the last centres and add noise to their means, step by step.

        Under a unit per person `counts` is None, and each step releases the weights of classes.
        """
        width = records.X.shape[1] // self.pooling
        scale = records.scale
        n_classes = len(self.classes_)

        gamma = _length_bound(width)

        # in units of the scaled rows: centres (C, d), radii (C,)
        centre = np.zeros((n_classes, width))
        first_radius = math.sqrt(width) if self.radius is None else float(self.radius)
        radius = np.full(n_classes, first_radius)
        steps = []
        for number, z in enumerate(multipliers, 1):
            # Both bound how far a row lies from the centre. In the first, the mean is in the ball,
            # and a row deviates from it by 3 at most in the direction of the centre.
            clip = np.minimum(np.sqrt(radius**2 + 6 * radius + gamma**2), radius + gamma)

            balls = (centre / scale, clip / scale)
            rows = self._pooled_rows(records, f"step {number}")
            sums, weights, share = self._noisy_sums(rows, balls, z, counts, noise)

            # sums are of rows less their centre, in units of the clip radius
            centre = centre + sums * (clip / weights)[:, None]
            deviation = z / math.sqrt(share) * clip / weights
            steps.append(Step(radius, clip, deviation, np.linalg.norm(centre, axis=1)))

            # the error of the new centre, by sampling and by noise
            radius = np.minimum(np.sqrt(1 / weights + deviation**2) * gamma, MOST_RADIUS)

        self.steps_ = tuple(steps)
        self.prototypes_ = centre / scale

    def _noisy_sums(
        self,
        rows: Iterable[Block],
        balls: tuple[Floats, Floats],
        z: float,
        counts: Floats | None,
        noise: NoiseSource,
    ) -> tuple[Floats, Floats, float]:
        """Return what `_weighted_sums` returns; where counts are known, they are the weights."""
        if counts is None:
            return _weighted_sums(rows, balls, z, noise)

        centres, _ = balls
        n_classes, width = centres.shape
        sums = gaussian.noisy_class_sums(
            rows,
            n_classes=n_classes,
            width=width,
            noise_multiplier=z,
            noise=noise,
            balls=balls,
        )
        return sums, counts, 1.0

    def _pooled_rows(self, records: ScaledRecords, label: str) -> Iterator[Block]:
        """Yield blocks of rows with averaged columns; progress is reported under `label`."""
        # Averages are of float64; rows that are not averaged are read in their type.
        read_blocks = pieces if self.pooling == 1 else blocks
        for block in read_blocks(records, label):
            yield block._replace(rows=pooled(block.rows, self.pooling))

    def _scale(self, width: int) -> float:
        """Return the factor that brings the median norm of public rows to sqrt(width)."""
        if self.public is None:
            return 1.0

        rows = pooled(np.asarray(public_rows(self.public, width), dtype=np.float64), self.pooling)
        median_norm = float(np.median(np.linalg.norm(rows, axis=1)))
        if not 0 < median_norm < math.inf:
            raise InputError(
                f"public rows have a median norm of {median_norm}; pass finite public rows that"
                " are not zero"
            )
        return math.sqrt(width // self.pooling) / median_norm


def _length_bound(width: int) -> float:
    """Return gamma: rows of unit variance are within it of their mean.

    The probability that a row is not is at most `FAILURE` (Laurent and Massart 2000, lemma 1).
    """
    log_failure = math.log(1 / FAILURE)
    return math.sqrt(width + 2 * math.sqrt(width * log_failure) + 2 * log_failure)


def _weighted_sums(
    blocks: Iterable[Block], balls: tuple[Floats, Floats], multiplier: float, noise: NoiseSource
) -> tuple[Floats, Floats, float]:
    """Release sums of rows about the centres of their balls, and the total weights of classes.

    Under a unit per person the weight of a record depends on all records of its person, so that no
    count fits the sum. So each row gets a constant column, which is scaled with it, and whose sum
    is the weight.

    Returns
    -------
    The sums (C, width) in units of the radii, the weights (C,), and the share of the squared norm
    of a row that is not the constant column's.
    """
    centres, radii = balls
    share = 1 - COUNT_SHARE

    # In units of wider balls, rows have norm sqrt(share) at most, and with the column norm 1.
    wider_radii = radii / math.sqrt(share)
    column = math.sqrt(COUNT_SHARE) * wider_radii
    zeros = np.zeros(len(centres))
    sums = gaussian.noisy_class_sums(
        (
            block._replace(rows=np.column_stack([block.rows, column[block.beside]]))
            for block in blocks
        ),
        n_classes=len(centres),
        width=centres.shape[1] + 1,
        noise_multiplier=multiplier,
        noise=noise,
        balls=(np.column_stack([centres, zeros]), wider_radii),
    )

    weights = np.maximum(sums[:, -1] / math.sqrt(COUNT_SHARE), 1.0)
    return sums[:, :-1] / math.sqrt(share), weights, share


def _range(values: Floats) -> str:
    """Return the smallest and the largest value, as text."""
    return f"{values.min():.4g} to {values.max():.4g}"
