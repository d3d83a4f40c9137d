"""Gaussian noise on sums of outer products: gradients of linear heads, second moments of rows.

Unit: add/remove one record, which is one pair of rows, or one row; or one person with all their
records.
Sensitivity: 1 in Frobenius norm, exactly, in computer arithmetic: left and right rows become
integers of norm at most N = 2^18 (`rounding.py`), so an outer product has norm at most N^2 = 2^36.
Its entries, and their sums over 8192 records, are below 2^53: float64 holds every partial sum of
the matrix product exactly, in any order, block shape or number of threads. Blocks are added in
int64. For second moments with weights w_k >= 0, let x be the integer row of a record. The record
adds the outer product of r_k = trunc(sqrt(w_k) x) with itself to the k-th of K sums. The joint norm
of these K products is sqrt(sum |r_k|^4), at most N^2 sqrt(sum w_k^2), since truncation shortens; a
factor 1 - 2^-32 covers the float64 error of sqrt(w_k) x. If sum w_k^2 exceeds 1, the w_k are scaled
down.
Per person: the products of a person's integer rows are added up, exactly, and that matrix, or all K
of them as one vector, is scaled down to norm 2^36 and rounded toward zero, by the bound of
`rounding.py`; rounding rows that were scaled before would lengthen sums whose terms cancel. Noise
is scaled to a sensitivity that holds for one record of a person too. Persons with one record are
summed as records are. Nothing is parallel then.
The upper triangle of a symmetric matrix, diagonal included, determines the matrix and has no larger
norm. Only the triangle gets noise; the released matrix mirrors it.
Other relations. Products of a left and a right row (`PRODUCTS`) move by 2 at most. If a changed
label moves a record's left row by t and leaves its right row, the sum moves by t |r|:
`moved_by_left_rows` adds what rounding moves. A left row is scaled down to norm 1, which lengthens
no difference, with a float64 error below 2^-32, and each of its a entries is rounded toward zero,
by less than one unit of 2^-18; both rows together add 2^-31 + sqrt(a) 2^-18.
Second moments do not depend on labels, of records or of persons: `MOMENTS` is 0 there, as long as
no row is left out, weighted or put into a part by its label. Otherwise second moments, by class,
weighted or not, are sums of positive semidefinite matrices. For two such matrices A and B with
upper triangles A_u and B_u, twice the inner product of the triangles is <A, B> + sum A_ii B_ii,
which is not negative. So |A_u - B_u|^2 <= |A_u|^2 + |B_u|^2 <= 2 N^4: a replaced record moves them
by sqrt(2), exactly, since products of integer rows are positive semidefinite. A person's matrices
are scaled and rounded, which lengthens a difference by sqrt(D) at most, D entries in all. The noise
of persons is scaled to N^2 (1 + 2^-31) + sqrt(D), so sqrt(2) times that covers sqrt(2) N^2 (1 +
2^-31) + sqrt(D).
Theorem: discrete Gaussian noise of standard deviation z 2^36 on integers is 1/(2 z^2)-zCDP
[Canonne, Kamath and Steinke 2020, Thm 14]. The exact curve of the continuous Gaussian holds too, up
to rounding, as derived in `gaussian.py` for a coarser unit: epsilon grows by less than 1e-8 for up
to 2^26 released numbers and rho <= 2^10.
Source: sums of clipped gradients are Abadi et al. 2016; gradients of a linear layer as outer
products, whose norm is the product of two rows' norms, Goodfellow 2015; private second moments
Dwork et al. 2014 ("Analyze Gauss"), and in least squares and, weighted, in Newton's method Mehta et
al. 2023.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from tacit.compute.threads import in_threads
from tacit.mechanisms.blocks import Block, by_person, short_blocks
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.mechanisms.rounding import SLACK, row_norms, sensitivity, whole_rows
from tacit.privacy.events import Gaussian, Parallel
from tacit.privacy.sensitivity import ROOT_TWO, Sensitivity

Floats = NDArray[np.float64]

NORM = 2**18
UNIT = NORM**2

PRODUCTS = Sensitivity()
"""Of sums of products of a left and a right row."""
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

_EXACT_ROWS = 2**13  # sums of so many products are exact in float64
_MOST_ROWS = 2**26
_CACHED_ROWS = 2**10  # so many rows and their products stay in the caches
_FEW_ROWS = 5  # of a person, whose products are faster row by row than as a matrix product
_CACHED_STRIP = 64  # so many rows of a matrix stay in the caches
_STRIP = 2**22  # entries of a large matrix that are added or noised at once


@dataclass(frozen=True)
class IntegerRows:
    """Rows of integers with norm at most `NORM`, computed once by `rounded` for rows that enter
    many sums.
    """

    values: NDArray[np.float32]  # float32 holds every integer up to 2^24

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
    of_persons, checked = by_person(blocks)
    totals = product_sums(checked, shape=shape)
    return (
        noise.gaussian(
            totals, scale=noise_multiplier * sensitivity(UNIT, totals.size, of_persons=of_persons)
        )
        / UNIT
    )


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
    of_persons, checked = by_person(_pairs(blocks))
    totals = triangle_sums(checked, width=width)
    return np.asarray(_noisy_symmetric(totals[None], noise_multiplier, noise, of_persons)[0])


def bounded_second_moments(blocks: Iterable[Floats | IntegerRows | Block], *, width: int) -> Floats:
    """Sum what `noisy_second_moments` sums, without noise: for neighbouring relations under which
    rows are public.
    """
    upper = np.triu(triangle_sums(blocks, width=width)) / UNIT
    return np.asarray(upper + np.triu(upper, 1).T)


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
    of_persons, checked = by_person(blocks)
    totals = class_product_sums(checked, n_classes=n_classes, width=width)
    return _noisy_symmetric(totals, noise_multiplier, noise, of_persons)


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
    of_persons, checked = by_person(blocks)
    totals = weighted_product_sums(checked, n_weights=n_weights, width=width)
    return _noisy_symmetric(totals, noise_multiplier, noise, of_persons)


def bounded_weighted_second_moments(
    blocks: Iterable[tuple[Any, ...]], *, n_weights: int, width: int
) -> Floats:
    """Sum what `noisy_weighted_second_moments` sums, without noise: where neither rows nor weights
    are protected.
    """
    _, checked = by_person(blocks)
    upper = np.triu(weighted_product_sums(checked, n_weights=n_weights, width=width)) / UNIT
    return np.asarray(upper + np.swapaxes(np.triu(upper, 1), 1, 2))


def product_sums(blocks: Iterable[tuple[Any, ...]], *, shape: tuple[int, int]) -> Integers:
    """Exact sum of the outer products of integer rows, in units of 2^-36; not private."""

    def sums_of(block: Block) -> Floats:
        left, right, ends = block
        sums = np.zeros(shape[::-1])

        def whole_pair(part: slice) -> tuple[Floats, Floats]:
            whole = _whole(right[part])
            return whole, _whole(
                left[part] if isinstance(left, np.ndarray) else left[part].of(whole)
            )

        if ends is not None:
            _add_persons(*whole_pair(slice(None)), ends, sums)
            return sums.T
        for start in range(0, len(left), _CACHED_ROWS):
            whole, rows = whole_pair(slice(start, start + _CACHED_ROWS))
            sums += whole.T @ rows  # this way round OpenBLAS is faster
        return sums.T

    totals = np.zeros(shape, dtype=np.int64)
    for sums in in_threads(sums_of, short_blocks(by_person(blocks)[1], _EXACT_ROWS, _MOST_ROWS)):
        totals += sums.astype(np.int64)
    return totals


def triangle_sums(blocks: Iterable[Floats | IntegerRows | Block], *, width: int) -> Integers:
    """The upper triangle of the exact sum of x x' over integer rows x, in units of 2^-36; not
    private.

    The array has shape (width, width); what lies below the diagonal has no meaning.
    """
    totals = np.zeros((width, width), dtype=np.int64)
    for rows, _, ends in short_blocks(by_person(_pairs(blocks))[1], _EXACT_ROWS, _MOST_ROWS):
        whole = _whole(rows)
        if ends is not None:
            persons = _PersonRows.of(ends)
            _add_triangles_of_persons(
                whole, persons, np.sqrt(_squared_norms(whole, persons.several)), totals
            )
        else:
            _add_triangle(whole, totals)
    return totals


def _pairs(blocks: Iterable[Any]) -> Iterator[Block]:
    return (block if isinstance(block, Block) else Block(block, block) for block in blocks)


def class_product_sums(
    blocks: Iterable[tuple[Any, ...]], *, n_classes: int, width: int
) -> Integers:
    """Exact sum of the outer products of integer rows with themselves, per class, in units of
    2^-36; not private.
    """
    totals = np.zeros((n_classes, width, width), dtype=np.int64)
    for rows, labels, ends in short_blocks(by_person(blocks)[1], _EXACT_ROWS, _MOST_ROWS):
        whole = _whole(rows)
        if ends is not None:
            _add_weighted(whole, np.eye(n_classes)[labels], _PersonRows.of(ends), totals)
            continue
        for c in np.unique(labels):
            of_class = whole[labels == c]
            totals[c] += _exact(of_class, of_class)
    return totals


def weighted_product_sums(
    blocks: Iterable[tuple[Any, ...]], *, n_weights: int, width: int
) -> Integers:
    """Exact sum of outer products of integer rows, for each weight, in units of 2^-36; not
    private.
    """
    totals = np.zeros((n_weights, width, width), dtype=np.int64)
    for rows, weights, ends in short_blocks(by_person(blocks)[1], _EXACT_ROWS, _MOST_ROWS):
        whole, factors = _whole(rows), _factors(weights)
        if ends is not None:
            _add_weighted(whole, factors, _PersonRows.of(ends), totals)
            continue
        for k in range(n_weights):
            weighted = _weighted(whole, factors, k)
            totals[k] += _exact(weighted, weighted)
    return totals


class _PersonRows(NamedTuple):
    """Positions of the rows of persons with one record, and where the rows of each person with
    several begin and end, of shape (persons, 2).
    """

    alone: Integers
    several: Integers

    @classmethod
    def of(cls, ends: Integers) -> Self:
        starts = np.append(0, ends)[:-1]
        has_one = ends - starts == 1
        spans = np.column_stack([starts, ends]).astype(np.int64)
        return cls(starts[has_one], spans[~has_one])


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


def _add_triangle(whole: Floats, totals: Integers) -> None:
    """Add the upper triangle of the sum of x x' over integer rows x (b, d), each record by
    itself.
    """
    for strip in _strips(len(totals)):
        totals[strip, strip.start :] += _exact(whole[:, strip], whole[:, strip.start :])


def _add_triangles_of_persons(
    whole: Floats, persons: _PersonRows, norms: Floats, totals: Integers
) -> None:
    """Add the upper triangle of each person's sum of x x' over integer rows x (b, d), scaled down
    by the person's norm.

    Strips of the triangle stay in the caches while all persons are added.
    """
    from tacit.mechanisms.kernels import add_few_products, add_products

    _add_triangle(whole[persons.alone], totals)
    several = persons.several
    has_few = several[:, 1] - several[:, 0] <= _FEW_ROWS
    scale = UNIT * SLACK

    def sums_of(strip: slice) -> Floats:
        left = np.ascontiguousarray(whole[:, strip])
        right = np.ascontiguousarray(whole[:, strip.start :])
        sums = np.zeros((left.shape[1], right.shape[1]))
        product = np.empty_like(sums)
        add_few_products(left, right, several[has_few], scale, norms[has_few], sums, product[0])
        add_products(
            left, right, several[~has_few], _EXACT_ROWS, scale, sums, product, norms[~has_few]
        )
        return sums

    width = len(totals) if len(several) else 0
    strips = [slice(start, start + _CACHED_STRIP) for start in range(0, width, _CACHED_STRIP)]
    for strip, sums in zip(strips, in_threads(sums_of, strips), strict=True):
        totals[strip, strip.start :] += sums.astype(np.int64)


def _add_weighted(whole: Floats, factors: Floats, persons: _PersonRows, totals: Integers) -> None:
    """Add each person's K sums of x x', for rows x of (b, d) times each of K factors (b, K), scaled
    as one vector.
    """
    # computed twice, since all of them may not fit into memory
    weighted = partial(_weighted, whole, factors)
    norms = np.sqrt(sum(_squared_norms(weighted(k), persons.several) for k in range(len(totals))))
    for k, total in enumerate(totals):
        _add_triangles_of_persons(weighted(k), persons, norms, total)


def _squared_norms(whole: Floats, several: Integers) -> Floats:
    """Squared norm of each person's sum of x x' over integer rows x: the sum of squares of all
    products of two rows.

    Of a person with more rows than columns that of the sum itself, which is smaller than the table
    of products.
    """
    from tacit.mechanisms.kernels import squared_norms

    squares = np.empty(len(several))
    squared_norms(whole, several, _EXACT_ROWS, squares)
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
    totals: Integers, noise_multiplier: float, noise: NoiseSource, of_persons: bool
) -> Floats:
    """Symmetric matrices from noisy upper triangles, in the memory of the totals (K, d, d), which
    are overwritten.
    """
    result, scale = (
        totals.view(np.float64),
        noise_multiplier * sensitivity(UNIT, totals.size, of_persons=of_persons),
    )
    for strip in _strips(totals.shape[-1], len(totals)):
        part = totals[:, strip, strip.start :]
        rows, columns = np.triu_indices(part.shape[1], m=part.shape[2])
        released = noise.gaussian(part[:, rows, columns], scale=scale) / UNIT
        result[:, strip, strip.start :][:, rows, columns] = released
        result[:, strip.start :, strip][:, columns, rows] = released
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
        scaled = np.maximum(weights, 0.0) / np.maximum(norms, 1.0)[:, None]
    scaled[~np.isfinite(norms)] = 0.0
    return np.asarray(np.sqrt(scaled) * (1 - 2.0**-32))


def _weighted(whole: Floats, factors: Floats, k: int) -> Floats:
    """Integer rows (b, d) times the k-th of their factors (b, K), integers again."""
    return np.trunc(whole * factors[:, k : k + 1])


def _whole(rows: Floats | IntegerRows) -> Floats:
    if isinstance(rows, IntegerRows):
        return rows.values.astype(np.float64)
    return whole_rows(rows, NORM)


def _exact(left: Floats, right: Floats) -> Integers:
    return np.asarray((left.T @ right).astype(np.int64))
