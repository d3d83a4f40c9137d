"""Partitions of classes into blocks, chosen so that a randomized response is most informative.

A record whose class has the public prior p answers with a block of a partition by randomized
response over the g blocks (`block_response.py`). With block masses m_a, E = e^epsilon and w_a = 1 +
(E - 1) m_a, the answer is a with probability w_a/(E + g - 1), and its mutual information with the
class is

    I = (epsilon E - sum_a w_a ln w_a) / (E + g - 1),

the entropy of the answer less the entropy of randomized response. The candidate for each g from 2
to C is the greedy partition: classes in falling order of probability, each to the lightest block so
far. The partition with the largest I is chosen, to a millionth. It depends on the prior and epsilon
alone, never on a label.
Bound: x ln x is convex, so I is at most its value for the masses that all others majorise: likely
classes are alone as long as they exceed the mean of what is left, and the other blocks are equal. A
g is tried if its bound exceeds the best I so far; bounds rise with g, then fall. Equal blocks, in
the best number, are an upper bound for every partition. If the greedy partition into that many
blocks reaches it, no other is tried. The g - 1 likeliest classes alone and all others in one block,
a natural candidate, are never better: these masses majorise those of the greedy partition.
Row i has order i of a number of public random orders of the classes, modulo their number. It
decides between equal classes, so records of equal priors have different blocks. If they had the
same, no answer would ever tell two classes of one block apart.
Of more than EXACT classes only likely ones are sorted and placed: those above a part of the mass
that the bound gives the equal blocks. The part is smaller for few blocks and for few classes in a
block. All other classes are the tail, which fills the blocks up to a common level, in the row's
public order: a class goes to the block where the middle of its mass falls. I is counted as if the
tail could be divided. Measured on priors of 500 kinds, that costs .07 % of I on average, .9 % for
the worst kind, and 3 % for the worst single prior. No block is empty, since a block without a
likely class has room for more mass than any class of the tail; beyond some 100,000 classes rounding
may empty a few.
"""

import math
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.compiled import compiled
from tacit.compute.threads import in_threads

# public orders; fewer of very many classes, so that all have at most so many places
ORDERS, PLACES = 256, 1 << 22
EXACT = 32  # classes up to which all are sorted
FINE = 3.0  # the larger, the more classes are sorted
BINS = 32  # parts of a block; the tail fills whole parts
TOLERANCE = 1e-5  # by which a row may miss the sum 1
_GAIN, _MORE = 1e-12, 1e-6  # information that is worth another partition, absolute and relative
_VALUES = 1 << 20  # entries of priors that one task reads
_SMALL = 1e-2  # from here on log(1 + x) is exact enough, and faster than log1p
_LAX = {"reassoc", "contract", "nsz"}  # vectorizes sums
# Without tests of every divisor, and without counting references to rows, which took 40 % of the
# time. Without the
# latter no array can be made inside.
_compiled = partial(compiled, error_model="numpy", _nrt=False)
_inlined = partial(_compiled, forceinline=True)  # a call takes longer than some bodies


def partitions_of(
    priors: NDArray[Any], epsilon: float, first: int = 0
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The block of each class under each prior, of shape (priors, classes), and each prior's number
    of blocks.

    If all classes are alone, their blocks are their indices.

    Parameters
    ----------
    priors : array of shape (priors, classes)
        Rows that are not negative and add up to 1. The number of blocks of any other row is 0.
    epsilon : float
        Above 0; infinity leaves every class alone.
    first : int, default=0
        The number of the first row, by which rows have public orders of the classes.
    """
    n, size = priors.shape
    blocks = np.empty((n, size), dtype=np.min_scalar_type(size - 1))
    counts = np.empty(n, dtype=np.int64)
    finite = min(float(epsilon), 700.0)
    flat = flat_count(finite, size)
    orders, places = public_orders(size)
    step = max(1, _VALUES // size)

    def choose(start: int) -> None:
        part = slice(start, start + step)
        rows = priors[part]
        native = rows.dtype in (np.float32, np.float64) and rows.dtype.isnative
        # for others it would be compiled again
        rows = np.require(rows, None if native else np.float64, ["C", "W"])
        scratch = (
            np.empty((2, size + 1), np.int64),
            np.empty((5, size + 1)),
            np.empty(size, np.int32),
        )
        eights, bins = (
            np.zeros(size // 8 + 1, np.uint64),
            np.zeros(BINS * (2 * flat + 3), blocks.dtype),
        )
        choose_partitions(
            rows,
            finite,
            flat,
            orders,
            places,
            first + start,
            blocks[part],
            counts[part],
            *scratch,
            eights,
            bins,
        )

    for _ in in_threads(choose, range(0, n, step)):
        pass
    if epsilon == math.inf:
        blocks[:] = np.arange(size)
        counts[counts > 0] = size
    return blocks, counts


def order_count(size: int) -> int:
    """The number of public orders of so many classes."""
    return max(min(ORDERS, PLACES // size), 1)


@lru_cache(maxsize=8)
def public_orders(size: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Random orders of so many classes, of shape (orders, size), and the place of each class in
    each order.
    """
    orders = np.argsort(np.random.default_rng(size).random((order_count(size), size)), axis=1)
    short = np.min_scalar_type(size - 1)
    return orders.astype(short), np.argsort(orders, axis=1).astype(short)


def flat_blocks(epsilon: float) -> float:
    """The number of equal blocks with the largest information: (E - 1)^2 / ((epsilon - 1) E +
    1).
    """
    if epsilon < 0.01:
        return 2.0
    growth = math.expm1(epsilon)
    return growth / ((epsilon - 1) * math.exp(epsilon) + 1) * growth


def flat_count(epsilon: float, size: int) -> int:
    """The number of equal blocks with the largest information, at most `size`."""
    lower = max(math.floor(min(flat_blocks(epsilon), size)), 2)
    growth, goal = math.expm1(epsilon), math.exp(epsilon) * epsilon
    told = [
        (goal - (g + growth) * math.log1p(growth / g)) / (growth + g) for g in (lower, lower + 1)
    ]
    return lower if told[0] >= told[1] else max(min(lower + 1, size), 2)


@_compiled
def choose_partitions(
    rows: Any,
    epsilon: float,
    flat: int,
    orders: Any,
    places: Any,
    first: int,
    out: Any,
    counts: Any,
    *scratch: Any,
) -> None:
    """Choose the partition of each prior (b, C): blocks to `out` (b, C), their number to `counts`
    (b,).

    `flat` is the best number of equal blocks.
    """
    size, growth, goal = rows.shape[1], math.expm1(epsilon), math.exp(epsilon) * epsilon
    most = (goal - flat * _term(1.0 / flat, growth)) / (growth + flat)
    fine = 1.2 + FINE * (1.0 / flat + flat / size)
    integers, floats, units, eights, bins = scratch
    flags = eights.view(np.uint8)
    likeliest, chosen_blocks = integers
    masses, rests, loads, _, spent = floats
    spent[0] = 0.0
    bits, shift = 1, 32
    while 1 << bits < size:
        bits += 1
    while 1 << (32 - shift) < BINS * (flat + 1):
        shift -= 1
    for i in range(rows.shape[0]):
        row, blocks, number = rows[i], out[i], (first + i) % len(orders)
        order = orders[number]
        total, largest = _adds_up(row)
        if not abs(total - 1.0) <= TOLERANCE:
            counts[i] = 0
            continue
        if size == 1:
            counts[i], blocks[0] = 1, 0
            continue
        head, level = 0, max((1.0 - largest) / flat, _GAIN)
        while True:
            cutoff = np.float32(level / fine if size > EXACT and level >= _GAIN else -1.0)
            if largest + 1e-9 > cutoff:
                head = _likeliest(
                    row, cutoff, order, places[number], bits, flags, eights, likeliest, masses
                )
            rests[0] = 1.0
            for j in range(head):
                masses[j] /= total
                rests[j + 1] = max(rests[j] - masses[j], 0.0)
            tried = chosen = flat
            if head > 0 and rests[1] <= _GAIN:
                tried, chosen = 0, 2
            elif not _flat(floats, head, flat, most, growth, goal, chosen_blocks):
                tried, chosen = _best_count(floats, head, flat, size, growth, goal, chosen_blocks)
            if tried != chosen:
                _place(masses, head, chosen, chosen_blocks, loads)
            alone = _alone(masses, rests, head, chosen, 0)
            level = (
                _level(loads, chosen, rests[head])
                if head > chosen
                else rests[alone] / (chosen - alone)
            )
            if head >= chosen - 1 or cutoff <= 0.9 * level:  # then no block is empty
                break
        counts[i] = chosen
        if chosen == size:
            for j in range(size):
                blocks[j] = j
            continue
        if head < size:
            bins_per_mass = BINS * min(1.0, flat / chosen) / max(level, _GAIN)
            _in_units(row, cutoff, np.float32(bins_per_mass / total * (1 << shift) / 2.0), units)
            _divide(loads, chosen, level, bins_per_mass, bins)
            _fill(units, order, bins, np.uint32(shift), blocks)
        for j in range(head):
            blocks[likeliest[j]] = chosen_blocks[j]


@partial(_inlined, fastmath=_LAX)
def _adds_up(row: Any) -> tuple[float, float]:
    """The sum of a row, or less than 0 if an entry is; and about the largest entry."""
    total, least, largest = 0.0, np.float32(0.0), np.int32(0)
    for j in range(len(row)):
        total += row[j]
        least += min(row[j], np.float32(0.0))
        largest = max(largest, np.int32(row[j] * np.float32(2**30)))
    return total if least == 0.0 else -1.0, largest / 2.0**30


@_inlined
def _in_units(row: Any, cutoff: Any, scale: Any, units: Any) -> None:
    for j in range(len(row)):
        units[j] = np.int32(row[j] * scale) if row[j] <= cutoff else np.int32(0)


@_inlined
def _likeliest(
    row: Any,
    cutoff: Any,
    order: Any,
    places: Any,
    bits: int,
    flags: Any,
    eights: Any,
    labels: Any,
    masses: Any,
) -> int:
    """How many classes exceed the cutoff; `labels` and `masses` take these in falling order, equal
    ones by place.

    They are found eight flags at a time, and sorted by integers: the mass, and in the last bits the
    place.
    """
    head = 0
    for j in range(len(row)):
        flags[j] = row[j] > cutoff
    for k in range(len(eights)):
        if eights[k]:
            for j in range(8 * k, 8 * k + 8):
                labels[head] = j
                head += flags[j]
    for j in range(head):
        label = labels[j]
        labels[j] = (np.int64(np.float64(row[label]) * (1 << (62 - bits))) << bits) - np.int64(
            places[label]
        )
    gap = 1
    while 3 * gap + 1 < head:
        gap = 3 * gap + 1
    while gap > 0:  # shell sort
        for j in range(gap, head):
            key, k = labels[j], j - gap
            while k >= 0 and labels[k] < key:
                labels[k + gap] = labels[k]
                k -= gap
            labels[k + gap] = key
        gap //= 3
    for j in range(head):
        label = order[-labels[j] & ((1 << bits) - 1)]
        labels[j], masses[j] = label, row[label]
    return head


@_inlined
def _alone(masses: Any, rests: Any, head: int, g: int, alone: int) -> int:
    """How many classes exceed the mean of what is left for the other of g blocks; sought from
    `alone` on.
    """
    while alone > 0 and (alone >= g or masses[alone - 1] * (g - alone + 1) <= rests[alone - 1]):
        alone -= 1
    while alone < min(head, g - 1) and masses[alone] * (g - alone) > rests[alone]:
        alone += 1
    return alone


@_inlined
def _flat(
    floats: Any, head: int, g: int, most: float, growth: float, goal: float, places: Any
) -> bool:
    """Whether the greedy partition into g blocks is as informative as equal blocks."""
    masses, rests, loads, _, _ = floats
    if head > 0 and masses[0] * g > 1.0:
        return False
    _place(masses, head, g, places, loads)
    value = most if head <= g else _told(loads, g, rests[head], growth, goal)
    return bool(most <= value + _GAIN + _MORE * value)


@_inlined
def _best_count(
    floats: Any, head: int, flat: int, size: int, growth: float, goal: float, places: Any
) -> tuple[int, int]:
    """The number of blocks that was tried last, to which `places` and the loads belong, and the
    best number.
    """
    masses, rests, loads, bounds, spent = floats
    best, chosen, tried, alone, known = -1.0, 0, 0, 0, 0
    g = low = high = peak = flat
    while True:
        alone = _alone(masses, rests, head, g, alone)
        while known < alone:
            spent[known + 1] = spent[known] + _term(masses[known], growth)
            known += 1
        equal = _term(rests[alone] / (g - alone), growth)
        bounds[g] = (goal - spent[alone] - (g - alone) * equal) / (growth + g)
        if bounds[g] > bounds[peak] or (bounds[g] == bounds[peak] and g < peak):
            peak = g
        while not (peak == low > 2 or peak == high < size):  # else the next bound may be larger
            enough = best + _GAIN + _MORE * best
            if chosen > 0 and bounds[peak] <= enough:
                return tried, chosen
            tried, value = peak, bounds[peak]
            _place(masses, head, tried, places, loads)
            if head > tried:
                value = _told(loads, tried, rests[head], growth, goal)
            if chosen == 0 or value > enough:
                best, chosen = value, tried
            bounds[tried] = -1.0
            for other in range(low, high + 1):
                peak = other if bounds[other] > bounds[peak] else peak
        g = low - 1 if peak == low > 2 else high + 1
        low, high = min(low, g), max(high, g)


@_inlined
def _term(mass: float, growth: float) -> float:
    """w ln w of a block."""
    x = mass * growth
    return (1.0 + x) * (math.log(1.0 + x) if x > _SMALL else math.log1p(x))


@_inlined
def _place(masses: Any, head: int, g: int, places: Any, loads: Any) -> None:
    """Place sorted classes, each in the lightest of g blocks."""
    loads[:g] = 0.0
    for j in range(head):
        lightest = min(j, g - 1)
        if j >= g:
            lightest = 0
            for a in range(1, g):
                if loads[a] < loads[lightest]:
                    lightest = a
        loads[lightest] += masses[j]
        places[j] = lightest


@_inlined
def _told(loads: Any, g: int, tail: float, growth: float, goal: float) -> float:
    """The information of g blocks once the tail has filled these up."""
    level, total, filled = _level(loads, g, tail), 0.0, 0
    for a in range(g):
        if loads[a] > level:
            total += _term(loads[a], growth)
        else:
            filled += 1
    if filled > 0:
        total += filled * _term(level, growth)
    return (goal - total) / (growth + g)


@_inlined
def _level(loads: Any, g: int, tail: float) -> float:
    """The mass up to which the tail fills the lightest of g blocks."""
    total, fullest = tail, loads[0]
    for a in range(g):
        total += loads[a]
        fullest = max(fullest, loads[a])
    level, count = total / g, g
    if fullest < level:
        return level
    while True:
        total, among = tail, 0
        for a in range(g):
            if loads[a] < level:
                total += loads[a]
                among += 1
        if among == 0 or among >= count:
            return level
        level, count = total / among, among


@_inlined
def _divide(loads: Any, g: int, level: float, per: float, bins: Any) -> None:
    """Divide the tail among the blocks, each up to the level: the block of each part of the
    tail.
    """
    last, filled = g - 1, 0.5
    for a in range(g):
        if loads[a] < level:
            last, part = a, bins[np.int64(filled) :]
            # The next block overwrites what is too much. Rounding may fill BINS + 1 parts, and none
            # must be left out:
            # it would keep the block of another row.
            for k in range(BINS + 1):
                part[k] = a
            filled += (level - loads[a]) * per
    part = bins[np.int64(filled) :]
    for k in range(BINS):
        part[k] = last


@_inlined
def _fill(units: Any, order: Any, bins: Any, shift: Any, blocks: Any) -> None:
    """Give the classes, in this order, to the block in whose part of the tail their middle is."""
    filled = np.uint32(0)
    for k in range(len(order)):
        label = order[k]
        value = np.uint32(units[label])
        blocks[label] = bins[np.uint32(2 * filled + value) >> shift]
        filled = np.uint32(filled + value)
