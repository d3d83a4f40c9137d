"""Partitions of classes into blocks, chosen so that a randomized response is most informative.

A record whose class has the public prior p answers with a block of a partition by randomized response over the g blocks
(`block_response.py`). With block masses m_a, E = e^epsilon and w_a = 1 + (E - 1) m_a, the answer is a with probability
w_a/(E + g - 1), and its mutual information with the class is

    I = (epsilon E - sum_a w_a ln w_a) / (E + g - 1),

the entropy of the answer less the entropy of randomized response. The candidate for each g from 2 to C is the greedy
partition: classes in falling order of probability, each to the lightest block so far. The partition with the largest I
is chosen, to a millionth. It depends on the prior and epsilon alone, never on a label.
Bound: x ln x is convex, so I is at most its value for the masses that all others majorise: likely classes are alone as
long as they exceed the mean of what is left, and the other blocks are equal. A g is tried if its bound exceeds the best
I so far; bounds rise with g, then fall. Equal blocks, in the best number, are an upper bound for every partition. If
the greedy partition into that many blocks reaches it, no other is tried. The g - 1 likeliest classes alone and all
others in one block, a natural candidate, are never better: these masses majorise those of the greedy partition.
Row i has order i of a number of public random orders of the classes, modulo their number. It decides between equal
classes, so records of equal priors have different blocks. If they had the same, no answer would ever tell two classes
of one block apart.
Of more than EXACT classes, those of probability at most (1 - max p)/(FINE g), with g the best number of blocks of a
flat prior, are not sorted. They fill the blocks up to a common level, in the row's public order, and I is counted as if
they could be divided. Measured, that costs less than one percent of I.
"""

import math
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.compiled import compiled
from tacit.compute.threads import in_threads

ORDERS, PLACES = 256, 1 << 22  # public orders; fewer of very many classes, so that all have at most so many places
EXACT = 32  # classes up to which all are sorted
FINE = 4  # classes of less than this part of an average block are not sorted
TOLERANCE = 1e-5  # by which a row may miss the sum 1
_GAIN, _MORE = 1e-12, 1e-6  # information that is worth another partition, absolute and relative
_VALUES = 1 << 20  # entries of priors that one task reads
_SMALL = 1e-2  # from here on log(1 + x) is exact enough, and faster than log1p
_UNITS = 2**27  # in which masses are added up when blocks are filled; integers are added faster
_LAX = {"reassoc", "contract", "nsz"}  # vectorizes sums
_compiled = partial(compiled, error_model="numpy")  # without tests of every divisor
_inlined = partial(_compiled, forceinline=True)  # a call, with the references it counts, takes longer than some bodies


def partitions_of(priors: NDArray[Any], epsilon: float, first: int = 0) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The block of each class under each prior, of shape (priors, classes), and each prior's number of blocks.

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
    fine = FINE * min(flat_blocks(finite), float(size))
    orders, places = public_orders(size)
    step = max(1, _VALUES // size)

    def choose(start: int) -> None:
        part = slice(start, start + step)
        rows = priors[part]
        native = rows.dtype in (np.float32, np.float64) and rows.dtype.isnative
        rows = np.require(rows, None if native else np.float64, ["C", "W"])  # for others it would be compiled again
        choose_partitions(rows, finite, fine, orders, places, first + start, blocks[part], counts[part])

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
def public_orders(size: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Random orders of so many classes, of shape (orders, size), and the place of each class in each order."""
    orders = np.argsort(np.random.default_rng(size).random((order_count(size), size)), axis=1)
    return orders.astype(np.uint32), np.argsort(orders, axis=1).astype(np.uint32)


def flat_blocks(epsilon: float) -> float:
    """The number of equal blocks with the largest information: (E - 1)^2 / ((epsilon - 1) E + 1)."""
    if epsilon < 0.01:
        return 2.0
    growth = math.expm1(epsilon)
    return growth / ((epsilon - 1) * math.exp(epsilon) + 1) * growth


@_compiled
def choose_partitions(
    rows: Any, epsilon: float, fine: float, orders: Any, places: Any, first: int, out: Any, counts: Any
) -> None:
    """Choose the partition of each prior (b, C): blocks to `out` (b, C), their number to `counts` (b,)."""
    size, growth = rows.shape[1], math.expm1(epsilon)
    goal = math.exp(epsilon) * epsilon
    likeliest, chosen_blocks = np.empty(size, np.int64), np.empty(size, np.int64)
    masses, loads, bounds = np.empty(size + 1), np.empty(size), np.empty(size + 1)
    units = np.empty(size, np.int32)
    flat, most = _flat_best(size, growth, goal)
    for i in range(rows.shape[0]):
        row, blocks, number = rows[i], out[i], (first + i) % len(orders)
        if not _adds_up(row):
            counts[i] = 0
            continue
        if size == 1:
            counts[i], blocks[0] = 1, 0
            continue
        _in_units(row, units)
        head = _likeliest(row, units, fine, places[number], likeliest, masses)
        tail = _rest(masses, head) if head < size else 0.0
        g = chosen = flat
        if not _flat(masses, head, tail, flat, most, growth, goal, chosen_blocks, loads):
            g, chosen = _best_count(masses, head, tail, size, growth, goal, chosen_blocks, loads, bounds)
        if chosen == size:
            for j in range(size):
                blocks[j] = j
            counts[i] = size
            continue
        if g != chosen:
            _greedy(masses, head, tail, chosen, growth, goal, chosen_blocks, loads)
        if head < size:
            for j in range(head):
                units[likeliest[j]] = 0
            _fill(units, orders[number], loads, chosen, tail, blocks)
        for j in range(head):
            blocks[likeliest[j]] = chosen_blocks[j]
        counts[i] = max(np.int64(_largest(blocks)) + 1, 2)


@partial(_inlined, fastmath=_LAX)
def _adds_up(row: Any) -> bool:
    """Whether a row is not negative and adds up to 1."""
    total, least = 0.0, 0.0
    for j in range(len(row)):
        total += row[j]
        least += min(row[j], 0.0)
    return least == 0.0 and abs(total - 1.0) <= TOLERANCE


@partial(_inlined, fastmath=_LAX)
def _in_units(row: Any, units: Any) -> None:
    for j in range(len(row)):
        units[j] = np.int32(row[j] * np.float32(_UNITS))


@_inlined
def _largest(row: Any) -> Any:
    """The largest of integers."""
    largest = row[0]
    for j in range(len(row)):
        largest = max(largest, row[j])
    return largest


@_inlined
def _likeliest(row: Any, units: Any, fine: float, places: Any, order: Any, masses: Any) -> int:
    """How many classes exceed the cutoff; `order` and `masses` take these in falling order, equal ones by place."""
    head, cutoff = 0, np.int32(-1)
    if len(row) > EXACT:
        cutoff = np.int32(max(_UNITS - _largest(units), 0) / fine)
    for j in range(len(row)):
        if units[j] > cutoff:
            order[head], masses[head] = j, row[j]
            head += 1
    gap = 1
    while 3 * gap + 1 < head:
        gap = 3 * gap + 1
    while gap > 0:  # shell sort
        for j in range(gap, head):
            value, label, k = masses[j], order[j], j - gap
            while k >= 0 and (masses[k] < value or (masses[k] == value and places[order[k]] > places[label])):
                masses[k + gap], order[k + gap] = masses[k], order[k]
                k -= gap
            masses[k + gap], order[k + gap] = value, label
        gap //= 3
    return head


@_inlined
def _rest(masses: Any, head: int) -> float:
    rest = 1.0
    for j in range(head):
        rest -= masses[j]
    return max(rest, 0.0)


@_inlined
def _flat_best(size: int, growth: float, goal: float) -> tuple[int, float]:
    """The best number of equal blocks, and their information, which no partition exceeds."""
    best, most = 2, -1.0
    for g in range(2, size + 1):
        value = (goal - g * _term(1.0 / g, growth)) / (growth + g)
        if value <= most:
            break
        best, most = g, value
    return best, most


@_inlined
def _flat(
    masses: Any, head: int, tail: float, g: int, most: float, growth: float, goal: float, places: Any, loads: Any
) -> bool:
    """Whether the greedy partition into g blocks is as informative as equal blocks."""
    if head > 0 and masses[0] * g > 1.0:
        return False
    value = _greedy(masses, head, tail, g, growth, goal, places, loads)
    return bool(most <= value + _GAIN + _MORE * value)


@_inlined
def _best_count(
    masses: Any, head: int, tail: float, size: int, growth: float, goal: float, places: Any, loads: Any, bounds: Any
) -> tuple[int, int]:
    """The number of blocks that was tried last, to which `places` and `loads` belong, and the best number."""
    alone, rest, spent = 0, 1.0, 0.0
    best, chosen, tried = -1.0, 0, 0
    last, before, rising = 1, -1.0, True
    while True:
        if last < size and (rising or tried == last):
            last += 1
            while alone < min(head, last - 1) and masses[alone] * (last - alone) > rest:
                spent += _term(masses[alone], growth)
                rest = max(rest - masses[alone], 0.0)
                alone += 1
            equal = _term(rest / (last - alone), growth)
            bounds[last] = (goal - spent - (last - alone) * equal) / (growth + last)
            before, rising = bounds[last], bounds[last] > before + _GAIN
            continue
        g = 2
        for other in range(3, last + 1):
            if bounds[other] > bounds[g]:
                g = other
        enough = best + _GAIN + _MORE * best
        if chosen > 0 and bounds[g] <= enough:
            return tried, chosen
        value = _greedy(masses, head, tail, g, growth, goal, places, loads)
        bounds[g], tried = -1.0, g
        if chosen == 0 or value > enough:
            best, chosen = value, g


@_inlined
def _term(mass: float, growth: float) -> float:
    """w ln w of a block."""
    x = mass * growth
    return (1.0 + x) * (math.log(1.0 + x) if x > _SMALL else math.log1p(x))


@_inlined
def _greedy(masses: Any, head: int, tail: float, g: int, growth: float, goal: float, places: Any, loads: Any) -> float:
    """Place sorted classes, each in the lightest of g blocks; the information once the tail has filled these up."""
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
def _fill(units: Any, order: Any, loads: Any, g: int, tail: float, blocks: Any) -> None:
    """Give the classes, in this order, to one block after the other, each up to the level; sorted ones have 0 units."""
    level = _level(loads, g, tail)
    last = 0
    for a in range(1, g):
        last = a if loads[a] < level or (loads[last] >= level and loads[a] < loads[last]) else last
    blocks[:] = last
    k, filled, level_of = 0, np.int64(0), 0.0
    for a in range(last):
        if loads[a] >= level:
            continue
        level_of += (level - loads[a]) * _UNITS
        end = np.int64(level_of)
        if loads[a] == 0.0:  # a block has at least one class
            while k < len(order) and filled + units[order[k]] == filled:
                blocks[order[k]] = a
                k += 1
            if k < len(order):
                blocks[order[k]] = a
                filled += units[order[k]]
                k += 1
        while k < len(order):
            value = np.int64(units[order[k]])
            if filled + (value >> 1) > end:
                break
            blocks[order[k]] = a
            filled += value
            k += 1
