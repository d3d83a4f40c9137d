"""Gaussian noise on sums of outer products: gradients of linear heads, second moments of rows.

Unit: add/remove one record, which is one pair of rows, or one row; or one person with all their
records.

Sensitivity: 1 in Frobenius norm, exactly, in computer arithmetic. Left and right rows become
integers of norm at most N = 2^18 (`rounding.py`), so an outer product has norm at most N^2 = 2^36.
Its entries, and their sums over 8192 records, are below 2^53: float64 holds every partial sum of
the matrix product exactly, in any order, block shape or number of threads. Blocks are added in
int64.

Weighted second moments, with weights w_k >= 0: let x be the integer row of a record. The record
adds the outer product of r_k = trunc(sqrt(w_k) x) with itself to the k-th of K sums. The joint norm
of these K products is sqrt(sum |r_k|^4), at most N^2 sqrt(sum w_k^2), since truncation shortens; a
factor 1 - 2^-32 covers the float64 error of sqrt(w_k) x. If sum w_k^2 exceeds 1, the w_k are scaled
down.

Per person: the products of a person's integer rows are added up, exactly, and that matrix, or all K
of them as one vector, is scaled down to norm 2^36 and rounded toward zero, by the bound of
`rounding.py`; rounding rows that were scaled before would lengthen sums whose terms cancel. Noise
is scaled to a sensitivity that holds for one record of a person too. Persons with one record are
summed as records are. Nothing is parallel then.

Symmetric matrices: the upper triangle, diagonal included, determines the matrix and has no larger
norm. Only the triangle gets noise; the released matrix mirrors it.

Other relations, products of a left and a right row (`PRODUCTS`): they move by 2 at most. If a
changed label moves a record's left row by t and leaves its right row, the sum moves by t |r|:
`moved_by_left_rows` adds what rounding moves. A left row is scaled down to norm 1, which lengthens
no difference, with a float64 error below 2^-32, and each of its a entries is rounded toward zero,
by less than one unit of 2^-18; both rows together add 2^-31 + sqrt(a) 2^-18.

Other relations, products whose left rows have no negative entries and are what labels decide
(`LABEL_PRODUCTS`): a changed set of labels takes l r' out and puts k r' in. The inner product of
these matrices is (l'k) |r|^2, which is not negative, also of integer rows, since rounding toward
zero changes no sign. So they differ by sqrt(2) N^2 at most, exactly. A replaced record may turn r
around, and the products of a person may have both signs: these move the sum by 2.

Other relations, second moments: they do not depend on labels, of records or of persons (`MOMENTS`
is 0 there), as long as no row is left out, weighted or put into a part by its label. Otherwise
second moments, by class, weighted or not, are sums of positive semidefinite matrices. For two such
matrices A and B with upper triangles A_u and B_u, twice the inner product of the triangles is
<A, B> + sum A_ii B_ii, which is not negative. So |A_u - B_u|^2 <= |A_u|^2 + |B_u|^2 <= 2 N^4: a
replaced record moves them by sqrt(2), exactly, since products of integer rows are positive
semidefinite. A person's matrices are scaled and rounded, which lengthens a difference by sqrt(D) at
most, D entries in all. The noise of persons is scaled to N^2 (1 + 2^-31) + sqrt(D), so sqrt(2)
times that covers sqrt(2) N^2 (1 + 2^-31) + sqrt(D).

Theorem: secure noise is continuous Gaussian noise of standard deviation z 2^36, rounded to
integers, which is post-processing: 1/z-GDP and 1/(2 z^2)-zCDP, exactly, as in `gaussian.py`. Under
`noise="opendp"` discrete Gaussian noise of that standard deviation is 1/(2 z^2)-zCDP [Canonne,
Kamath and Steinke 2020, Thm 14], and the exact curve holds up to rounding, as derived in
`gaussian.py` for a coarser unit: epsilon grows by less than 1e-8 for up to 2^26 released numbers
and rho <= 2^10.

Source: sums of clipped gradients are Abadi et al. 2016; gradients of a linear layer as outer
products, whose norm is the product of two rows' norms, Goodfellow 2015; private second moments
Dwork et al. 2014 ("Analyze Gauss"), and in least squares and, weighted, in Newton's method Mehta et
al. 2023.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from tacit.compute.threads import in_threads
from tacit.compute.wide import Totals, Wide
from tacit.mechanisms.blocks import Block, by_person, short_blocks
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.mechanisms.rounding import SLACK, product_up, row_norms, sensitivity, whole_rows
from tacit.mechanisms.wide import sums_of_runs, with_gaussian_noise
from tacit.privacy.events import Gaussian, Parallel
from tacit.privacy.sensitivity import ROOT_TWO, Sensitivity

Floats = NDArray[np.float64]

NORM = 2**18
UNIT = NORM**2

PRODUCTS = Sensitivity()
"""Of sums of products of a left and a right row."""

LABEL_PRODUCTS = Sensitivity(change_label=ROOT_TWO)
"""Of sums of products whose left rows follow from labels and have no negative entries."""

MOMENTS = Sensitivity(
    replace=ROOT_TWO, change_label=0.0, replace_person=ROOT_TWO, change_labels_of_person=0.0
)
"""Of the second moments of all rows."""

CLASS_MOMENTS = Sensitivity(
    replace=ROOT_TWO,
    change_label=ROOT_TWO,
    replace_person=ROOT_TWO,
    change_labels_of_person=ROOT_TWO,
)
"""Of the second moments of each class, or with weights that depend on labels, all together."""

# Sums of so many products are exact in float64.
_EXACT_ROWS = 2**13

# Sums over so many records, or persons, and noise below 2^62 fit int64; sums over more are `wide`.
_MOST_ROWS = 2**26

# So many rows and their products stay in the caches.
_CACHED_ROWS = 2**10

# So many rows of a matrix stay in the caches while persons are added to them.
_CACHED_STRIP = 64

# The products of a person with at most so many rows are faster row by row than by BLAS.
_FEW_ROWS = 5

# Entries of large matrices that are added, or get noise, at once.
_STRIP = 2**22


@dataclass(frozen=True)
class IntegerRows:
    """Rows of integers with norm at most `NORM`, computed once by `rounded` for rows that enter
    many sums.
    """

    # float32 holds every integer up to 2^24
    values: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, part: slice) -> IntegerRows:
        return IntegerRows(self.values[part])


def rounded(rows: Floats) -> IntegerRows:
    """Round rows of shape (b, d), scaled into the unit ball, to integers of norm at most `NORM`."""
    return IntegerRows(whole_rows(rows, NORM).astype(np.float32))


class LeftRows(Protocol):
    """Left rows that threads compute, a few at a time, from the right rows of the same records."""

    def __len__(self) -> int:
        """Return the number of records."""

    def __getitem__(self, part: slice) -> Self:
        """Select records."""

    def of(self, right: Floats) -> Floats:
        """Left rows (b, a), as a new contiguous array; right rows (b, d) are integers of norm at
        most `NORM`.
        """


def noisy_products(
    blocks: Iterable[tuple[Any, ...]],
    *,
    shape: tuple[int, int],
    noise_multiplier: float,
    noise: NoiseSource,
) -> Floats:
    """Release the sum over records of the outer product of a left and a right row, of this shape.

    Blocks are left rows (b, shape[0]), floats or `LeftRows`, right rows (b, shape[1]), floats or
    `IntegerRows`, and under a unit per person the ends of persons (`Block`). Rows longer than 1 are
    scaled down to norm 1. Each row must be a function of its record and of public or already
    released values alone: another record may not change even its last bit. The noise multiplier is
    the standard deviation of the noise divided by the sensitivity, which is 1.
    """
    per_person, blocks = by_person(blocks)
    totals = product_sums(blocks, shape=shape)
    return products_with_noise(
        totals, noise_multiplier=noise_multiplier, noise=noise, per_person=per_person
    )


def products_with_noise(
    totals: Totals, *, noise_multiplier: float, noise: NoiseSource, per_person: bool = False
) -> Floats:
    """Release exact sums by `product_sums`, of any shape, as `noisy_products` does.

    See `gaussian.with_noise` for what the totals may be.
    """
    scale = product_up(noise_multiplier, sensitivity(UNIT, totals.size, per_person=per_person))
    return with_gaussian_noise(totals, scale=scale, noise=noise) / UNIT


def noisy_second_moments(
    blocks: Iterable[Floats | IntegerRows | Block],
    *,
    width: int,
    noise_multiplier: float,
    noise: NoiseSource,
) -> Floats:
    """Release the sum over records of the outer product of a row with itself: symmetric, of shape
    (width, width).

    Blocks are rows, floats or `IntegerRows`, or `Block`s of them with the ends of persons. Mirrored
    entries have the same noise; see `noisy_products` for the rest.
    """
    per_person, blocks = by_person(_pairs(blocks))
    totals = triangle_sums(blocks, width=width)
    return with_noise(totals, noise_multiplier=noise_multiplier, noise=noise, per_person=per_person)


def with_noise(
    totals: Totals, *, noise_multiplier: float, noise: NoiseSource, per_person: bool = False
) -> Floats:
    """Release exact second moments: `noisy_second_moments` of `triangle_sums`, of shape (width,
    width), or `noisy_class_second_moments` of `class_product_sums`.

    The totals may be overwritten; see `gaussian.with_noise` for what they may be.
    """
    if len(totals.shape) == 2:
        (moments,) = _noisy_symmetric(totals[None], noise_multiplier, noise, per_person)
        return np.asarray(moments)
    return _noisy_symmetric(totals, noise_multiplier, noise, per_person)


def noisy_triangle(
    totals: Totals, *, noise_multiplier: float, noise: NoiseSource, per_person: bool = False
) -> Totals:
    """Release exact second moments by `triangle_sums`, (width, width), as integers that add up.

    They are the upper triangle, row by row, in units of 2^-36, of shape (width (width + 1) / 2,).
    Without noise, at a multiplier of 0, rows must be public. See `noisy_second_moments` for the
    rest.
    """
    triangle = totals[np.triu_indices(totals.shape[0])]
    if noise_multiplier == 0:
        return triangle
    scale = product_up(noise_multiplier, sensitivity(UNIT, totals.size, per_person=per_person))
    return with_gaussian_noise(triangle, scale=scale, noise=noise)


def bounded_second_moments(blocks: Iterable[Floats | IntegerRows | Block], *, width: int) -> Floats:
    """Sum what `noisy_second_moments` sums, without noise: for neighbouring relations under which
    rows are public.
    """
    return without_noise(triangle_sums(blocks, width=width))


def without_noise(totals: Totals) -> Floats:
    """Symmetric matrices from exact upper triangles, (width, width) or (K, width, width)."""
    upper = np.triu(totals / UNIT)
    mirrored = np.swapaxes(np.triu(upper, 1), -1, -2)
    return np.asarray(upper + mirrored)


def noisy_class_second_moments(
    blocks: Iterable[tuple[Any, ...]],
    *,
    n_classes: int,
    width: int,
    noise_multiplier: float,
    noise: NoiseSource,
) -> Floats:
    """Release the second moments of each class's rows, of shape (n_classes, width, width), with
    independent noise.
    """
    per_person, blocks = by_person(blocks)
    totals = class_product_sums(blocks, n_classes=n_classes, width=width)
    return _noisy_symmetric(totals, noise_multiplier, noise, per_person)


def noisy_weighted_second_moments(
    blocks: Iterable[tuple[Any, ...]],
    *,
    n_weights: int,
    width: int,
    noise_multiplier: float,
    noise: NoiseSource,
) -> Floats:
    """Release K sums over records of a weight times the outer product of a row with itself: (K,
    width, width).

    Blocks are rows and their weights of shape (b, K), none negative. If the norm of a record's
    weights exceeds 1, they are scaled down to norm 1; see `noisy_products` for what they may depend
    on.
    """
    per_person, blocks = by_person(blocks)
    totals = weighted_product_sums(blocks, n_weights=n_weights, width=width)
    return _noisy_symmetric(totals, noise_multiplier, noise, per_person)


def bounded_weighted_second_moments(
    blocks: Iterable[tuple[Any, ...]], *, n_weights: int, width: int
) -> Floats:
    """Sum what `noisy_weighted_second_moments` sums, without noise: where neither rows nor weights
    are protected.
    """
    return without_noise(weighted_product_sums(blocks, n_weights=n_weights, width=width))


def product_sums(blocks: Iterable[tuple[Any, ...]], *, shape: tuple[int, int]) -> Totals:
    """Exact sum of the outer products of integer rows, in units of 2^-36; not private."""
    n_left, n_right = shape

    def sums_of(block: Block) -> Floats:
        """Sum of the products of a block, transposed: this way round OpenBLAS is faster."""
        left, right, ends = block
        sums = np.zeros((n_right, n_left))

        if ends is not None:
            right_rows, left_rows = _integer_pair(left, right)
            _add_persons(right_rows, left_rows, ends, sums)
            return sums

        for start in range(0, len(left), _CACHED_ROWS):
            part = slice(start, start + _CACHED_ROWS)
            right_rows, left_rows = _integer_pair(left[part], right[part])
            sums += right_rows.T @ left_rows
        return sums

    def sums_of_run(run: Iterator[Block]) -> Integers:
        totals = np.zeros(shape, dtype=np.int64)
        for sums in in_threads(sums_of, run):
            totals += sums.T.astype(np.int64)
        return totals

    return sums_of_runs(_exact_blocks(blocks), _MOST_ROWS, sums_of_run)


def triangle_sums(blocks: Iterable[Floats | IntegerRows | Block], *, width: int) -> Totals:
    """The upper triangle of the exact sum of x x' over integer rows x, in units of 2^-36; not
    private.

    The array has shape (width, width); what lies below the diagonal has no meaning.
    """

    def sums_of_run(run: Iterator[Block]) -> Integers:
        totals = np.zeros((width, width), dtype=np.int64)
        for rows, _, ends in run:
            integers = _integers(rows)
            if ends is None:
                _add_triangle(integers, totals)
                continue

            persons = _PersonRows.of(ends)
            norms = np.sqrt(_squared_norms(integers, persons.several))
            _add_triangles_of_persons(integers, persons, norms, totals)
        return totals

    return sums_of_runs(_exact_blocks(_pairs(blocks)), _MOST_ROWS, sums_of_run)


def class_product_sums(blocks: Iterable[tuple[Any, ...]], *, n_classes: int, width: int) -> Totals:
    """Exact sum of the outer products of integer rows with themselves, per class, in units of
    2^-36; not private.
    """

    def sums_of_run(run: Iterator[Block]) -> Integers:
        totals = np.zeros((n_classes, width, width), dtype=np.int64)
        for rows, labels, ends in run:
            integers = _integers(rows)
            if ends is not None:
                # The products of a person in all classes are scaled as one vector.
                one_hot = np.eye(n_classes)[labels]
                _add_weighted(integers, one_hot, _PersonRows.of(ends), totals)
                continue

            for c in np.unique(labels):
                class_rows = integers[labels == c]
                totals[c] += _exact_products(class_rows, class_rows)
        return totals

    return sums_of_runs(_exact_blocks(blocks), _MOST_ROWS, sums_of_run)


def weighted_product_sums(
    blocks: Iterable[tuple[Any, ...]], *, n_weights: int, width: int
) -> Totals:
    """Exact sum of outer products of integer rows, for each weight, in units of 2^-36; not
    private.
    """

    def sums_of_run(run: Iterator[Block]) -> Integers:
        totals = np.zeros((n_weights, width, width), dtype=np.int64)
        for rows, weights, ends in run:
            integers = _integers(rows)
            factors = _factors(weights)
            if ends is not None:
                _add_weighted(integers, factors, _PersonRows.of(ends), totals)
                continue

            for k in range(n_weights):
                weighted_rows = _weighted(integers, factors, k)
                totals[k] += _exact_products(weighted_rows, weighted_rows)
        return totals

    return sums_of_runs(_exact_blocks(blocks), _MOST_ROWS, sums_of_run)


def _exact_blocks(blocks: Iterable[tuple[Any, ...]]) -> Iterator[Block]:
    """Blocks whose sums of products float64 holds exactly, or blocks of persons."""
    _, checked_blocks = by_person(blocks)
    return short_blocks(checked_blocks, _EXACT_ROWS)


def _pairs(blocks: Iterable[Any]) -> Iterator[Block]:
    """Blocks with each row beside itself, as a pair of left and right row."""
    for block in blocks:
        if isinstance(block, Block):
            yield block
        else:
            yield Block(block, block)


def _integer_pair(left: Any, right: Any) -> tuple[Floats, Floats]:
    """Right and left rows as integers; `LeftRows` are computed from the integers of right rows."""
    right_rows = _integers(right)
    if not isinstance(left, np.ndarray):
        left = left.of(right_rows)
    return right_rows, _integers(left)


class _PersonRows(NamedTuple):
    """Rows of persons in a block.

    `alone` has the positions of the rows of persons with one record, of shape (persons,); `several`
    has where the rows of each other person begin and end, of shape (persons, 2).
    """

    alone: Integers
    several: Integers

    @classmethod
    def of(cls, ends: Integers) -> Self:
        starts = np.append(0, ends)[:-1]
        has_one = ends - starts == 1
        spans = np.column_stack([starts, ends]).astype(np.int64)
        return cls(alone=starts[has_one], several=spans[~has_one])


def _add_persons(left: Floats, right: Floats, ends: Integers, sums: Floats) -> None:
    """Add each person's sum of outer products of integer rows (b, a) and (b, d), scaled, to sums
    (a, d).
    """
    from tacit.mechanisms.kernels import add_products

    alone, several = _PersonRows.of(ends)
    for start in range(0, len(alone), _CACHED_ROWS):
        rows = alone[start : start + _CACHED_ROWS]
        sums += left[rows].T @ right[rows]

    product = np.empty_like(sums)
    add_products(left, right, several, _EXACT_ROWS, UNIT * SLACK, sums, product)


def _add_triangle(integers: Floats, totals: Integers) -> None:
    """Add the upper triangle of the sum of x x' over integer rows x (b, d), each record by
    itself.
    """
    for strip in _strips(len(totals)):
        # Columns left of the strip lie below the diagonal.
        columns = slice(strip.start, None)
        totals[strip, columns] += _exact_products(integers[:, strip], integers[:, columns])


def _add_triangles_of_persons(
    integers: Floats, persons: _PersonRows, norms: Floats, totals: Integers
) -> None:
    """Add the upper triangle of each person's sum of x x' over integer rows x (b, d), scaled down
    by the person's norm.

    `norms` has one norm for each person with several rows.
    """
    from tacit.mechanisms.kernels import add_few_products, add_products

    _add_triangle(integers[persons.alone], totals)

    several = persons.several
    if not len(several):
        return
    has_few = several[:, 1] - several[:, 0] <= _FEW_ROWS
    scale = UNIT * SLACK

    def sums_of(strip: slice) -> Floats:
        """Sums of a strip of the triangle, which stays in the caches for all persons."""
        left = np.ascontiguousarray(integers[:, strip])
        right = np.ascontiguousarray(integers[:, strip.start :])
        sums = np.zeros((left.shape[1], right.shape[1]))
        product = np.empty_like(sums)
        add_few_products(left, right, several[has_few], scale, norms[has_few], sums, product[0])
        add_products(
            left, right, several[~has_few], _EXACT_ROWS, scale, sums, product, norms[~has_few]
        )
        return sums

    starts = range(0, len(totals), _CACHED_STRIP)
    strips = [slice(start, start + _CACHED_STRIP) for start in starts]
    for strip, sums in zip(strips, in_threads(sums_of, strips), strict=True):
        totals[strip, strip.start :] += sums.astype(np.int64)


def _add_weighted(
    integers: Floats, factors: Floats, persons: _PersonRows, totals: Integers
) -> None:
    """Add each person's K sums of x x', for rows x of (b, d) times each of K factors (b, K), scaled
    as one vector.
    """
    # Weighted rows are computed twice, since those of all K factors may not fit into memory.
    squares = np.zeros(len(persons.several))
    for k in range(len(totals)):
        squares += _squared_norms(_weighted(integers, factors, k), persons.several)
    norms = np.sqrt(squares)

    for k in range(len(totals)):
        weighted_rows = _weighted(integers, factors, k)
        _add_triangles_of_persons(weighted_rows, persons, norms, totals[k])


def _squared_norms(integers: Floats, several: Integers) -> Floats:
    """Squared norm of each person's sum of x x' over integer rows x, of shape (persons,)."""
    from tacit.mechanisms.kernels import squared_norms

    squares = np.empty(len(several))
    squared_norms(integers, several, _EXACT_ROWS, squares)
    return squares


def moved_by_left_rows(distance: float, entries: int) -> float:
    """Return by how much a sum of products moves if one record's left row moves and its right row
    stays.

    Parameters
    ----------
    distance : float
        L2 distance between the two left rows of `entries` columns, before they are scaled down to
        norm 1.
    entries : int
    """
    return min(2.0, distance * (1 + 2.0**-50) + 2.0**-31 + math.sqrt(entries) / NORM)


def event(noise_multiplier: float) -> Gaussian:
    """Event of `noisy_products`, `noisy_second_moments` and `noisy_weighted_second_moments`."""
    return Gaussian(noise_multiplier)


def class_event(noise_multiplier: float) -> Parallel:
    """Event of `noisy_class_second_moments`: one Gaussian, since a record is in one class."""
    return Parallel(Gaussian(noise_multiplier), over="classes")


def _noisy_symmetric(
    totals: Totals, noise_multiplier: float, noise: NoiseSource, per_person: bool
) -> Floats:
    """Symmetric matrices from noisy upper triangles, in the memory of the totals (K, d, d) if they
    are int64, which are overwritten.
    """
    n_matrices, width, _ = totals.shape
    scale = product_up(noise_multiplier, sensitivity(UNIT, totals.size, per_person=per_person))
    if isinstance(totals, Wide):
        result = np.empty(totals.shape)
    else:
        result = totals.view(np.float64)

    for strip in _strips(width, n_matrices):
        # A strip of the triangle, and its mirror image. Later strips read neither.
        strip_totals = totals[:, strip, strip.start :]
        upper = result[:, strip, strip.start :]
        lower = result[:, strip.start :, strip]

        rows, columns = np.triu_indices(strip_totals.shape[1], m=strip_totals.shape[2])
        noisy = with_gaussian_noise(strip_totals[:, rows, columns], scale=scale, noise=noise)
        released = noisy / UNIT
        upper[:, rows, columns] = released
        lower[:, columns, rows] = released

    return result


def _strips(width: int, n_matrices: int = 1) -> list[slice]:
    """Strips of rows of square matrices of this width, with `_STRIP` entries in all matrices
    together.
    """
    rows = max(1, _STRIP // (n_matrices * width))
    return [slice(start, min(start + rows, width)) for start in range(0, width, rows)]


def _factors(weights: Floats) -> Floats:
    """Square roots of each record's weights, clipped at 0 and scaled to norm at most 1; zeros if it
    is infinite.
    """
    weights = np.ascontiguousarray(weights)
    with np.errstate(over="ignore", invalid="ignore"):
        norms = row_norms(weights)
        clipped = np.maximum(weights, 0.0) / np.maximum(norms, 1.0)[:, None]
    clipped[~np.isfinite(norms)] = 0.0

    # The factor covers the float64 error of factor times row.
    return np.asarray(np.sqrt(clipped) * (1 - 2.0**-32))


def _weighted(integers: Floats, factors: Floats, k: int) -> Floats:
    """Integer rows (b, d) times the k-th of their factors (b, K), integers again."""
    return np.trunc(integers * factors[:, k : k + 1])


def _integers(rows: Floats | IntegerRows) -> Floats:
    """Integer rows in float64."""
    if isinstance(rows, IntegerRows):
        return rows.values.astype(np.float64)
    return whole_rows(rows, NORM)


def _exact_products(left: Floats, right: Floats) -> Integers:
    """Sum of the outer products of at most `_EXACT_ROWS` integer rows."""
    return np.asarray((left.T @ right).astype(np.int64))
