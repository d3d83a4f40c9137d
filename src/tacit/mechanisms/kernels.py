"""Loops over rows, compiled by numba: one pass over memory where numpy would need several.

The result for a row depends on that row alone: sums over its entries run in an order that only its
width decides. Compiled code is cached beside this file, or in the user's cache.
"""

import math
from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from tacit.compute.compiled import compiled

# Flags that vectorize the sum over a row; NaN and infinity keep their meaning.
_LAX = {"reassoc", "contract", "nsz"}

# The squares of a smaller norm may have underflowed.
_TINY = 1e-150

# The largest 32-bit integer.
_MOST = np.int64(2**31 - 1)

# Entries that one transform mixes; a power of two.
SPREAD = 64


def readable(block: NDArray[Any]) -> NDArray[Any]:
    """A block of rows as these loops read it: float16 as its bits, float32 and float64; other types
    become float64.
    """
    if block.dtype == np.float16:
        return np.ascontiguousarray(block).view(np.int16)
    if block.dtype in (np.float32, np.float64) and block.dtype.isnative:
        return np.ascontiguousarray(block)
    return np.ascontiguousarray(block, dtype=np.float64)


def row_buffer(rows: NDArray[Any], wide: bool = False) -> NDArray[Any]:
    """Scratch buffer for one row of a readable block; `wide` makes it float64 for loops that modify
    entries.
    """
    if wide or rows.dtype == np.float64:
        return np.empty(rows.shape[1], np.float64)
    return np.empty(rows.shape[1], np.float32)


@intrinsic
def _half(context: Any, bits: Any) -> Any:
    """The float16 of these bits as float32, in LLVM code: numba has no float16 on CPUs."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.fpext(builder.bitcast(values[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.int16), code


def _number(value: Any) -> Any:
    """An entry of a readable block as a float; `_number_by_type` compiles it."""
    raise NotImplementedError


@overload(_number, strict=False)
def _number_by_type(value: Any) -> Any:
    if isinstance(value, types.Integer):
        return lambda value: _half(value)  # type: ignore[call-arg]  # the context is numba's
    return lambda value: value


@compiled
def _read(row: Any, buffer: Any, centre: Any = None, radius: float = 1.0) -> None:
    """Write a readable row into a buffer, as its difference from a centre over a radius if there is
    a centre.
    """
    for j in range(len(row)):
        if centre is None:
            buffer[j] = _number(row[j])
        else:
            buffer[j] = (np.float64(_number(row[j])) - centre[j]) / radius


@partial(compiled, fastmath=_LAX)
def _squared(row: Any, centre: Any = None) -> float:
    """Squared norm of a row, or its squared distance from a centre."""
    total = 0.0
    for j in range(len(row)):
        value = np.float64(_number(row[j]))
        if centre is not None:
            value -= centre[j]
        total += value * value
    return total


@compiled
def _factor(row: Any, scale: float, floor: float) -> tuple[float, float]:
    """Two factors that, multiplied to a row one after the other, bring its norm to `scale` or
    less.
    """
    norm = math.sqrt(_squared(row))
    if _TINY < norm < math.inf:
        return scale / max(norm, floor), 1.0

    # The squares overflowed or underflowed, or an entry is not finite.
    largest = 0.0
    for j in range(len(row)):
        value = abs(np.float64(row[j]))
        if not value < math.inf:
            return 0.0, 0.0
        largest = max(largest, value)

    # A row that the floor keeps short, or zeros.
    if largest == 0.0 or (floor > 0.0 and norm < floor):
        if floor > 0.0:
            return scale / floor, 1.0
        return 0.0, 1.0

    # The norm of the row divided by its largest entry, whose inverse may overflow.
    squares = 0.0
    for j in range(len(row)):
        value = np.float64(row[j]) / largest
        squares += value * value
    first = 1e300
    if largest > 1e-300:
        first = 1.0 / largest

    # With these brackets no product is subnormal.
    return first, scale / (math.sqrt(squares) * (largest * first))


@compiled
def add_rows(
    rows: Any,
    labels: Any,
    scale: float,
    floor: float,
    totals: Any,
    row: Any,
    centres: Any = None,
    radii: Any = None,
) -> None:
    """Add rows, scaled to norm `scale` and rounded toward zero, to the totals of their classes.

    What is added has a norm of at most scale/(1 - 2^-32), for `scale` = UNIT * SLACK at most UNIT:
    see `rounding.py`.

    Parameters
    ----------
    rows, labels : arrays of shapes (b, d) and (b,)
        Readable rows, and their classes as int64.
    scale : float
    floor : float
        Rows shorter than this are divided by it instead of their norm: 0 makes all rows unit rows,
        1 scales none up.
    totals : array of shape (C, d), float64
        Exact as long as no entry leaves 53 bits.
    row : array of shape (d,)
        From `row_buffer`, wide if there are centres.
    centres, radii : arrays of shapes (C, d) and (C,), float64, optional
        The centre is first subtracted from each row of the class, and the difference divided by the
        radius.
    """
    centre: Any
    for i in range(rows.shape[0]):
        total = totals[labels[i]]
        if centres is None:
            centre = None
            radius = 1.0
        else:
            centre = centres[labels[i]]
            radius = radii[labels[i]]

        length = math.sqrt(_squared(rows[i], centre))
        norm = length / radius
        if length > _TINY and _TINY < norm < math.inf:
            factor = scale / max(norm, floor) / radius
            for j in range(rows.shape[1]):
                value = np.float64(_number(rows[i, j]))
                if centres is not None:
                    value -= centre[j]
                total[j] += np.trunc(value * factor)
            continue

        # The rare row whose norm float64 does not hold.
        _read(rows[i], row, centre, radius)
        first, second = _factor(row, scale, floor)
        if first != 0.0:
            for j in range(rows.shape[1]):
                total[j] += np.trunc(np.float64(row[j]) * first * second)


@compiled
def add_persons(
    rows: Any,
    at: Any,
    labels: Any,
    ends: Any,
    scale: float,
    floor: float,
    totals: Any,
    row: Any,
    class_sums: Any,
    centres: Any = None,
    radii: Any = None,
) -> None:
    """Like `add_rows`, for the rows of persons: what a person adds is scaled down to norm `scale`.

    Parameters
    ----------
    at, labels : arrays of shape (b,), int64
        Positions of rows, those of a person one after another, and their classes.
    ends : array of shape (persons,), int64
        The end of each person's positions.
    class_sums : array of shape (k, d), float64
        Scratch buffer for the classes of a person, k at most.
    """
    # The classes of a person, in the order in which they appear, and the squared norms of their
    # sums, -1 where they are not computed yet.
    classes = np.empty(len(class_sums), np.int64)
    squares = np.empty(len(class_sums))

    # The position of a class among those of the person, -1 for other classes.
    positions = np.full(totals.shape[0], -1)

    # The label of a row that is added to one sum alone.
    only_class = np.zeros(1, np.int64)

    start = 0
    for p in range(len(ends)):
        end = ends[p]
        if end - start == 1:
            # A single row is scaled as records are.
            j = at[start]
            add_rows(rows[j : j + 1], labels[start:end], scale, floor, totals, row, centres, radii)
            start = end
            continue

        n_classes = _sum_by_class(
            rows,
            at[start:end],
            labels[start:end],
            scale,
            floor,
            row,
            classes,
            positions,
            class_sums,
            squares,
            only_class,
            centres,
            radii,
        )

        # The joint norm of all sums of the person.
        person_square = 0.0
        for k in range(n_classes):
            square = squares[k]
            if square < 0:
                square = _squared(class_sums[k])
            person_square += square

        factor = scale / max(math.sqrt(person_square), scale)
        for k in range(n_classes):
            _add_scaled(class_sums[k], factor, totals[classes[k]])
            positions[classes[k]] = -1
        start = end


@compiled
def _sum_by_class(
    rows: Any,
    at: Any,
    labels: Any,
    scale: float,
    floor: float,
    row: Any,
    classes: Any,
    positions: Any,
    class_sums: Any,
    squares: Any,
    only_class: Any,
    centres: Any,
    radii: Any,
) -> int:
    """Write the sums of one person's rows by class, and return the number of classes.

    Arrays are as in `add_persons`; at first all `positions` are -1.
    """
    n_classes = 0
    for i in range(len(at)):
        j = at[i]
        c = labels[i]
        k = positions[c]
        if k < 0:
            k = n_classes
            positions[c] = k
            classes[k] = c
            n_classes += 1

            # The first row of a class is written and not added, which gives its norm too.
            if centres is None:
                length = math.sqrt(_squared(rows[j]))
                if _TINY < length < math.inf:
                    squares[k] = _write_scaled(rows[j], scale / max(length, floor), class_sums[k])
                    continue
            class_sums[k] = 0.0

        squares[k] = -1.0
        if centres is None:
            add_rows(rows[j : j + 1], only_class, scale, floor, class_sums[k : k + 1], row)
        else:
            add_rows(
                rows[j : j + 1],
                only_class,
                scale,
                floor,
                class_sums[k : k + 1],
                row,
                centres[c : c + 1],
                radii[c : c + 1],
            )

    return n_classes


@partial(compiled, fastmath=_LAX)
def _write_scaled(row: Any, factor: float, result: Any) -> float:
    """Write a readable row times a factor, rounded toward zero; the squared norm of what is
    written.
    """
    total = 0.0
    for j in range(len(row)):
        whole = np.trunc(np.float64(_number(row[j])) * factor)
        result[j] = whole
        total += whole * whole
    return total


@compiled
def _add_scaled(added: Any, factor: float, total: Any) -> None:
    """Add whole numbers times a factor, rounded toward zero."""
    if factor == 1.0:
        for j in range(len(added)):
            total[j] += added[j]
    else:
        for j in range(len(added)):
            total[j] += np.trunc(added[j] * factor)


@compiled
def squared_norm(matrix: Any) -> float:
    """Sum of the squares of a matrix, row by row."""
    squares = 0.0
    for i in range(matrix.shape[0]):
        squares += _squared(matrix[i])
    return squares


@compiled
def add_scaled(matrix: Any, scale: float, norm: float, totals: Any) -> None:
    """Add a matrix of whole numbers (a, d), times scale/norm and rounded toward zero if `norm`
    exceeds `scale`.
    """
    factor = scale / max(norm, scale)
    for i in range(matrix.shape[0]):
        _add_scaled(matrix[i], factor, totals[i])


@compiled
def _write_product(
    left: Any, right: Any, start: Any, end: Any, exact_rows: Any, product: Any
) -> None:
    """Write the sum of outer products of the whole numbers in rows `start` to `end`.

    Sums over up to `exact_rows` rows are exact, in whatever order BLAS adds; more rows are added in
    parts of so many, in order.
    """
    stop = min(start + exact_rows, end)
    np.dot(left[start:stop].T, right[start:stop], product)
    for first in range(stop, end, exact_rows):
        stop = min(first + exact_rows, end)
        product += np.dot(left[first:stop].T, right[first:stop])


@compiled
def add_products(
    left: Any,
    right: Any,
    ends: Any,
    exact_rows: int,
    scale: float,
    totals: Any,
    product: Any,
    norms: Any = None,
) -> None:
    """Add the sum of outer products of each person's rows of whole numbers, scaled as `add_scaled`
    does.

    Parameters
    ----------
    left, right : arrays of shapes (b, a) and (b, d), float64
    ends : array of shape (persons, 2), int64
        Where each person's rows begin and end.
    exact_rows : int
        Number of rows whose products float64 adds exactly.
    scale : float
    totals, product : arrays of shape (a, d), float64
        Totals, and a scratch buffer.
    norms : array of shape (persons,), optional
        Norm of all that a person adds, here and in other sums; by default that of what is added
        here.
    """
    for p in range(len(ends)):
        start, end = ends[p]
        _write_product(left, right, start, end, exact_rows, product)
        if norms is None:
            norm = math.sqrt(squared_norm(product))
        else:
            norm = norms[p]
        add_scaled(product, scale, norm, totals)


@compiled
def squared_norms(rows: Any, ends: Any, exact_rows: int, squares: Any) -> None:
    """Write the squared norm of each person's sum of x x' over rows x of whole numbers.

    Parameters
    ----------
    rows : array of shape (b, d), float64
    ends, exact_rows
        As in `add_products`.
    squares : array of shape (persons,), float64
    """
    width = rows.shape[1]
    product = np.empty((width, width))
    for p in range(len(ends)):
        start, end = ends[p]
        if end - start <= width:
            # the products of two rows have the same squares, and are fewer
            person_rows = rows[start:end]
            squares[p] = squared_norm(np.dot(person_rows, person_rows.T))
        else:
            _write_product(rows, rows, start, end, exact_rows, product)
            squares[p] = squared_norm(product)


@compiled
def add_few_products(
    left: Any, right: Any, ends: Any, scale: float, norms: Any, totals: Any, row: Any
) -> None:
    """Add the sum of outer products of each person's few rows of whole numbers, scaled as
    `add_scaled` does.

    Parameters
    ----------
    left, right : arrays of shapes (b, a) and (b, d), float64
    ends : array of shape (persons, 2), int64
        Where each person's rows begin and end.
    norms : array of shape (persons,)
        Norm of all that a person adds, here or in other sums too.
    totals : array of shape (a, d), float64
    row : array of shape (d,), float64
        Scratch buffer.
    """
    for p in range(len(ends)):
        start, end = ends[p]
        factor = scale / max(norms[p], scale)

        # Row k of the person's sum of products.
        for k in range(totals.shape[0]):
            value = left[start, k]
            right_row = right[start]
            for j in range(len(row)):
                row[j] = value * right_row[j]

            for i in range(start + 1, end):
                value = left[i, k]
                right_row = right[i]
                for j in range(len(row)):
                    row[j] += value * right_row[j]

            _add_scaled(row, factor, totals[k])


@compiled
def _rotate(row: Any, signs: Any, scratch: Any) -> None:
    """Rotate a row in place, which spreads each entry over up to SPREAD^2 others; `scratch` is as
    long as the row.

    The steps: multiply by public signs, apply a Hadamard transform to groups of SPREAD equally
    spaced entries, permute, then signs and transform again. Entries that no group takes are only in
    the second transform, with SPREAD others.
    """
    # Groups of `size` entries, at distance `stride` of each other.
    size = 1
    while 2 * size <= min(len(row), SPREAD):
        size *= 2
    stride = len(row) // size
    length = size * stride

    # The first transform takes the first entries.
    for j in range(len(row)):
        row[j] *= signs[0, j]
    _transform(row[:length], size, stride)

    # Entries of one group are put side by side, and so into different groups.
    scratch[:length] = row[:length]
    for i in range(size):
        for j in range(stride):
            row[j * size + i] = scratch[i * stride + j]

    # The second transform takes the last entries.
    for j in range(len(row)):
        row[j] *= signs[1, j]
    _transform(row[len(row) - length :], size, stride)


@compiled
def _transform(part: Any, size: int, stride: int) -> None:
    """Apply the orthogonal Hadamard transform, in place, to groups of `size` entries at distance
    `stride`.
    """
    root = 1.0 / math.sqrt(np.float64(size))
    for j in range(len(part)):
        part[j] *= root

    # Butterflies, from the widest to those of neighbours in a group.
    half = len(part) // 2
    while half >= stride:
        for start in range(0, len(part), 2 * half):
            low = part[start : start + half]
            high = part[start + half : start + 2 * half]
            for j in range(half):
                total = low[j] + high[j]
                high[j] = low[j] - high[j]
                low[j] = total
        half //= 2


def rotation_signs(width: int) -> NDArray[np.float32]:
    """Public signs for rows of this width, of shape (2, d); fixed for each width."""
    bits = np.random.PCG64(width).random_raw((2, width)) >> np.uint64(63)
    return 1 - 2 * bits.astype(np.float32)


@compiled
def round_rows(rows: Any, scale: float, limit: float, out: Any, row: Any) -> None:
    """Scale readable rows to norm `scale`, round each entry to the nearest integer and clip it to
    +-limit.

    `out`, of shape (b, d), takes the integers, and its type must hold `limit`; `row` is from
    `row_buffer`.
    """
    for i in range(rows.shape[0]):
        _read(rows[i], row)
        integers = out[i]
        first, second = _factor(row, scale, 0.0)
        if first == 0.0:
            integers[:] = 0
            continue
        for j in range(rows.shape[1]):
            integers[j] = min(max(np.rint(np.float64(row[j]) * first * second), -limit), limit)


@compiled
def round_rotated(
    rows: Any, scale: float, limit: float, out: Any, row: Any, signs: Any, along: Any, lost: Any
) -> None:
    """Like `round_rows`, for rows that are first rotated, all by the same `signs` from
    `rotation_signs`.

    The first d columns of `out` take the integers. `lost`, of shape (b,), takes what rounding
    removes from each row's product with `along`, of shape (d,), float64.
    """
    scratch = np.empty_like(row)
    for i in range(rows.shape[0]):
        _read(rows[i], row)
        integers = out[i]
        first, second = _factor(row, scale, 0.0)
        if first == 0.0:
            integers[:] = 0
            lost[i] = 0.0
            continue

        for j in range(rows.shape[1]):
            row[j] = np.float64(row[j]) * first * second
        _rotate(row, signs, scratch)
        for j in range(len(row)):
            integers[j] = min(max(np.rint(row[j]), -limit), limit)
        lost[i] = _lost(row, integers, along)


@partial(compiled, fastmath=_LAX)
def _lost(row: Any, integers: Any, along: Any) -> float:
    """Inner product of `along` with what rounding removed from a row."""
    total = 0.0
    for j in range(len(row)):
        total += (np.float64(row[j]) - integers[j]) * along[j]
    return total


@compiled
def add_clipped(products: Any, ends: Any, low: int, high: int, totals: Any) -> None:
    """Clip integer products to [low, high], subtract `low`, and add them up over each segment of
    rows.

    `products` are whole numbers of shape (r, t) in a type that holds the bounds exactly. `ends`, of
    shape (s,), int64, has the end of each segment. The sums are added to `totals`, of shape (s, t),
    int64.
    """
    width = products.shape[1]

    # The number of rows whose sum fits into 32 bits.
    is_narrow = high - low < _MOST and low > -_MOST and high < _MOST
    narrow_rows = np.int64(0)
    if is_narrow:
        narrow_rows = max(np.int64(1), _MOST // (high - low))
    narrow = np.zeros(width, np.int32)

    start = 0
    for s in range(len(ends)):
        total = totals[s]
        if is_narrow:
            _add_narrow(products, start, ends[s], low, high, narrow_rows, narrow, total)
        else:
            for i in range(start, ends[s]):
                for j in range(width):
                    total[j] += np.int64(min(max(products[i, j], low), high)) - low
        start = ends[s]


@compiled
def _add_narrow(
    products: Any,
    start: int,
    end: int,
    low: int,
    high: int,
    narrow_rows: Any,
    narrow: Any,
    total: Any,
) -> None:
    """One segment of `add_clipped`: `narrow_rows` rows at a time are added in 32 bits, which cannot
    overflow.
    """
    least = products.dtype.type(low)
    most = products.dtype.type(high)
    base = np.int32(low)

    for first in range(start, end, narrow_rows):
        narrow[:] = 0
        for i in range(first, min(first + narrow_rows, end)):
            row = products[i]
            for j in range(len(narrow)):
                narrow[j] += np.int32(min(max(row[j], least), most)) - base
        for j in range(len(narrow)):
            total[j] += np.int64(narrow[j])


@compiled
def add_shares(
    products: Any,
    ends: Any,
    classes: Any,
    divisors: Any,
    low: int,
    high: int,
    factor: int,
    totals: Any,
) -> None:
    """Clip integer products to [low, high], subtract `low`, multiply, divide, round down, and add
    up.

    `products` and `ends` are as in `add_clipped`, with at most 2^16 rows, in segments of one class
    after another. Each product is multiplied by `factor`, a power of two, and divided by the
    segment's divisor: `classes` and `divisors` have shape (s,). Sums are added to `totals`, of
    shape (C, t), int64, at the segment's class.

    The quotients are whole numbers exactly: with a = factor (product - low) <= 2^37 and a divisor m
    < 2^26, a/m is 1/m at least below the next whole number n, unless it is whole, and n m <= a + m
    < 2^53, so float64 does not round to n.
    """
    width = products.shape[1]
    least = np.float64(low)
    most = np.float64(high)
    times = np.float64(factor)

    # Sums of a class: whole numbers up to 2^53, so they are exact.
    sums = np.zeros(width)
    start = 0
    for s in range(len(ends)):
        divisor = np.float64(divisors[s])
        for i in range(start, ends[s]):
            row = products[i]
            for j in range(width):
                clipped = min(max(np.float64(row[j]), least), most)
                sums[j] += np.floor((clipped - least) * times / divisor)
        start = ends[s]

        is_last_of_class = s + 1 == len(ends) or classes[s + 1] != classes[s]
        if is_last_of_class:
            total = totals[classes[s]]
            for j in range(width):
                total[j] += np.int64(sums[j])
                sums[j] = 0.0


@compiled
def truncate_rows(rows: Any, scale: float) -> None:
    """Scale rows (b, d) of float64 by `scale`, longer ones to norm `scale`, and round toward zero,
    all in place.

    The norm of the result is at most scale/(1 - 2^-32): see `rounding.py`. Rows without a finite
    norm become zeros.
    """
    for i in range(rows.shape[0]):
        row = rows[i]
        norm = math.sqrt(_squared(row))
        if norm < math.inf:
            factor = scale / max(norm, 1.0)
            for j in range(len(row)):
                row[j] = np.trunc(row[j] * factor)
        else:
            row[:] = 0.0


@compiled
def below_largest(scores: Any, factor: float, offsets: Any) -> None:
    """Multiply scores (b, C) by a factor, add offsets (b, C) or (1, C), and subtract each row's
    largest, in place.
    """
    for i in range(scores.shape[0]):
        row = scores[i]
        added = offsets[0]
        if len(offsets) > 1:
            added = offsets[i]

        largest = -math.inf
        for j in range(len(row)):
            row[j] = row[j] * factor + added[j]
            largest = max(largest, row[j])
        for j in range(len(row)):
            row[j] -= largest


@compiled
def shares_less_one_hot(weights: Any, labels: Any) -> None:
    """Divide weights (b, C) by the sum of their row and subtract 1 at the row's label, in place."""
    for i in range(weights.shape[0]):
        row = weights[i]
        total = _sum(row)
        for j in range(len(row)):
            row[j] /= total
        row[labels[i]] -= 1.0


@compiled
def shares_less_node(weights: Any, labels: Any, starts: Any, leaves: Any) -> None:
    """Divide weights (b, C) by the sum of their row, and subtract what the row's label says, in
    place: 1 at a leaf; for label C + v the shares of leaves[starts[v] : starts[v + 1]], divided by
    their sum.
    """
    n_leaves = weights.shape[1]
    for i in range(weights.shape[0]):
        row = weights[i]
        total = _sum(row)
        for j in range(n_leaves):
            row[j] /= total

        if labels[i] < n_leaves:
            row[labels[i]] -= 1.0
            continue

        inner = labels[i] - n_leaves
        below = leaves[starts[inner] : starts[inner + 1]]
        share = 0.0
        for leaf in below:
            share += row[leaf]
        for leaf in below:
            # shares so small that they are zeros are equal
            row[leaf] -= row[leaf] / share if share > 0.0 else 1.0 / len(below)


@partial(compiled, fastmath=_LAX)
def _sum(row: Any) -> float:
    """Sum of a row."""
    total = 0.0
    for j in range(len(row)):
        total += row[j]
    return total
