"""Gaussian noise on sums, per class, of rows bounded in L2 norm.

Unit: add/remove one record, which is one row in one class, or one person with all their rows, in
any classes.

Sensitivity: 1 in L2, exactly, in computer arithmetic: rows become integers of norm at most 2^32
(`kernels.add_rows`, by the bound of `rounding.py`; a row whose squares overflow keeps its
direction), so sums have no rounding error and do not depend on the order of rows. (A record can
move a sum in float16 by more than 1: docs/faults.md.)

Per person: the sum of a person's integer rows, as one vector over all classes and columns, is
scaled down to norm 2^32 (`kernels.add_persons`, by the bound of `rounding.py`), and noise to a
sensitivity that holds for one record of a person too. Nothing is parallel then, since a person may
be in several classes: all classes together are one Gaussian event. Each person is scaled as a
whole, so a column of ones adds up to a total weight and to no number of records.

Other relations (`CLASS_SUMS`): a replaced record takes out one vector of norm 1 and puts in
another, which differ by 2. A changed label moves the same row from one class to another: by
sqrt(2), since the classes are different columns of the table. The labels of a person can turn their
joint vector into its negative, so they move it by 2, as another person does. Numbers of records, or
weights, of classes (`CLASS_COUNTS`) are vectors without negative entries, in integers too. The
inner product of two such vectors is not negative, so |a - b|^2 <= |a|^2 + |b|^2 <= 2 under every
relation.

Theorem: secure noise is exactly continuous Gaussian noise of standard deviation z 2^32, rounded to
integers (`deviates.py`). Rounding is post-processing, so the release is 1/z-GDP and 1/(2 z^2)-zCDP
[Bun and Steinke 2016, Prop. 1.6; Dong, Roth and Su 2019, Thm 2.7]: the exact curve of the Gaussian
mechanism, without any correction.

Theorem for `noise="opendp"`: discrete Gaussian noise of standard deviation z 2^32 on integers is
1/(2 z^2)-zCDP [Canonne, Kamath and Steinke 2020, Thm 14]. The exact curve of the continuous
Gaussian holds too, up to rounding: the density of one coordinate at x differs from that of the
rounded continuous Gaussian by a factor 1 + (x^2/s^2 - 1)/(24 s^2) with s = z 2^32. All d C
coordinates together differ by a factor exp(+-eta) with eta = (d C + 200)/(8 z^2 2^64), outside an
event of probability below 1e-90. That adds 2 eta to epsilon: less than 1e-8 for d C <= 2^26 and rho
<= 2^10.

Source: NoisySum is tacit's own; CoinPress is Biswas et al. 2020.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.threads import in_threads
from tacit.compute.wide import Totals
from tacit.mechanisms.blocks import Block, Picked, by_person, short_blocks
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.mechanisms.rounding import SLACK, check_width, product_up, sensitivity
from tacit.mechanisms.wide import sums_of_runs, with_gaussian_noise
from tacit.privacy.events import Gaussian, Parallel
from tacit.privacy.sensitivity import ROOT_TWO, Sensitivity

Floats = NDArray[np.float64]

UNIT = 2**32

# Sums over so many records, or persons, and noise below 2^62 fit int64; sums over more are `wide`.
_MOST_ROWS = 2**30

# Sums of so many rows are exact in float64.
_EXACT_ROWS = 2**20

CLASS_SUMS = Sensitivity(change_label=ROOT_TWO)
"""Of the sums of all classes together."""

CLASS_COUNTS = Sensitivity(
    replace=ROOT_TWO,
    change_label=ROOT_TWO,
    replace_person=ROOT_TWO,
    change_labels_of_person=ROOT_TWO,
)
"""Of the numbers of records of all classes together, which are sums of rows of ones."""


def noisy_class_sums(
    blocks: Iterable[tuple[Any, ...]],
    *,
    n_classes: int,
    width: int,
    noise_multiplier: float,
    noise: NoiseSource,
    unit_rows: bool = False,
    balls: tuple[Floats, Floats] | None = None,
) -> Floats:
    """Release the sum of each class's rows, of shape (n_classes, width); longer rows are first
    scaled down to norm 1.

    Parameters
    ----------
    blocks : iterable of (rows, labels) or (rows, labels, ends)
        Rows of shape (b, width), floats of any type, and their classes of shape (b,), integers
        below `n_classes`; with `ends` the rows of persons (`Block`), whose sums over all classes
        are scaled down to norm 1.
    n_classes, width : int
    noise_multiplier : float
        Standard deviation of the noise divided by the sensitivity, which is 1; above 0. (Per person
        it is larger than 1 by less than 1e-6, so that one record moves sums by no more.)
    noise : NoiseSource
    unit_rows : bool, default=False
        Whether shorter rows are scaled up to norm 1; rows of zeros stay zeros.
    balls : pair of arrays of shapes (n_classes, width) and (n_classes,), optional
        A centre and a radius above 0 for each class, public or already released. The centre is
        first subtracted from each row of the class, and the difference is divided by the radius.
    """
    per_person, blocks = by_person(blocks)
    totals = class_sums(blocks, n_classes=n_classes, width=width, unit_rows=unit_rows, balls=balls)
    return with_noise(totals, noise_multiplier=noise_multiplier, noise=noise, per_person=per_person)


def with_noise(
    totals: Totals, *, noise_multiplier: float, noise: NoiseSource, per_person: bool = False
) -> Floats:
    """Release exact sums, of shape (n_classes, width), as `noisy_class_sums` does.

    Parameters
    ----------
    totals : array of int64, or Wide
        Sums by `class_sums` of the rows of disjoint sets of records, added up.
    noise_multiplier, noise
        As in `noisy_class_sums`.
    per_person : bool, default=False
        Whether the rows of persons were scaled as one vector; no person may be in two of the sets.
    """
    integers = noisy_integers(
        totals, noise_multiplier=noise_multiplier, noise=noise, per_person=per_person
    )
    return integers / UNIT


def noisy_integers(
    totals: Totals, *, noise_multiplier: float, noise: NoiseSource, per_person: bool = False
) -> Totals:
    """Release what `with_noise` releases, in whole units of 2^-32, which add up exactly."""
    scale = product_up(noise_multiplier, sensitivity(UNIT, totals.size, per_person=per_person))
    return with_gaussian_noise(totals, scale=scale, noise=noise)


def noisy_sums_and_counts(
    blocks: Iterable[tuple[Any, ...]],
    *,
    n_classes: int,
    width: int,
    noise_multipliers: tuple[float, float],
    noise: NoiseSource,
) -> tuple[Floats, Floats]:
    """Release the sum of each class's rows, of shape (n_classes, width), and the number of them,
    (n_classes,).

    It costs `event` of both noise multipliers: that of a single sum of rows sqrt(a) (x, 0) + sqrt(1
    - a) (0, 1) with a and 1 - a proportional to 1/z^2 of each. Per person this vector is scaled as
    a whole, so that sums and counts have the same weights. See `noisy_class_sums` for the rest.
    """
    # The noise multiplier of the joint sum, and the factors of a row and of the 1 that counts it.
    shares = np.array(noise_multipliers) ** -2.0
    # 2^-50 is more than the float64 error of the other operations.
    joint_multiplier = float(1 / math.sqrt(shares.sum()) * (1 + 2.0**-50))
    row_factor, count_factor = np.sqrt(shares / shares.sum())

    def with_count(block: Block) -> Block:
        """The same block, with a column that counts its rows."""
        rows = row_factor * np.asarray(block.rows)
        ones = np.full(len(block.rows), count_factor)
        return block._replace(rows=np.column_stack([rows, ones]))

    per_person, blocks = by_person(blocks)
    totals = class_sums(map(with_count, blocks), n_classes=n_classes, width=width + 1)

    scale = product_up(joint_multiplier, sensitivity(UNIT, totals.size, per_person=per_person))
    sums = with_gaussian_noise(totals[:, :-1], scale=scale, noise=noise)
    counts = with_gaussian_noise(totals[:, -1], scale=scale, noise=noise)
    return sums / (UNIT * row_factor), counts / (UNIT * count_factor)


def class_sums(
    blocks: Iterable[tuple[Any, ...]],
    *,
    n_classes: int,
    width: int,
    unit_rows: bool = False,
    balls: tuple[Floats, Floats] | None = None,
) -> Totals:
    """Exact sum of each class's integer rows, in units of 2^-32; not private."""
    from tacit.mechanisms.kernels import add_persons, add_rows, readable, row_buffer

    check_width(width)
    scale = UNIT * SLACK

    # Rows shorter than this are divided by it, and not by their norm.
    floor = 1.0
    if unit_rows:
        floor = 0.0

    centres = None
    radii = None
    if balls is not None:
        centres, radii = balls

    def sums_of(block: Block) -> Floats:
        """Sums of the rows of a block, in float64."""
        if isinstance(block.rows, Picked):
            rows = readable(block.rows.source)
            at = block.rows.at
        else:
            rows = readable(block.rows)
            at = np.arange(len(rows))

        labels = np.asarray(block.beside, dtype=np.int64)
        _check_fit(rows, labels, n_classes, width)
        totals = np.zeros((n_classes, width))
        buffer = row_buffer(rows, wide=balls is not None)

        if block.ends is None:
            add_rows(rows, labels, scale, floor, totals, buffer, centres, radii)
            return totals

        # A person is in as many classes as they have rows, at most.
        most_rows = int(np.diff(block.ends, prepend=0).max(initial=1))
        person_sums = np.empty((min(most_rows, n_classes), width))
        add_persons(
            rows,
            at,
            labels,
            block.ends,
            scale,
            floor,
            totals,
            buffer,
            person_sums,
            centres,
            radii,
        )
        return totals

    def sums_of_run(run: Iterator[Block]) -> Integers:
        """Sums of at most `_MOST_ROWS` records, in int64."""
        sums = np.zeros((n_classes, width), dtype=np.int64)
        for totals in in_threads(sums_of, run):
            sums += totals.astype(np.int64)
        return sums

    _, checked_blocks = by_person(blocks)
    return sums_of_runs(short_blocks(checked_blocks, _EXACT_ROWS), _MOST_ROWS, sums_of_run)


def _check_fit(rows: NDArray[Any], labels: Integers, n_classes: int, width: int) -> None:
    """Refuse rows of another width and labels that are no classes: compiled loops check neither."""
    has_width = rows.shape[1] == width
    has_classes = not len(labels) or 0 <= labels.min() <= labels.max() < n_classes
    if not (has_width and has_classes):
        raise ValueError(
            f"rows of shape {rows.shape} and labels do not fit {n_classes} classes of width {width}"
        )


def event(noise_multiplier: float) -> Parallel:
    """Event of `noisy_class_sums`: one Gaussian, since a record is in one class; per person its
    `base()`.
    """
    return Parallel(Gaussian(noise_multiplier), over="classes")
