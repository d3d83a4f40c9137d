"""Partitions of classes into blocks: about which blocks of classes a randomized response says most.

A record whose class has the public prior p answers with a block of a partition by randomized response over the g blocks
(`block_response.py`). With block masses m_a, E = e^epsilon and w_a = 1 + (E - 1) m_a, the answer is a with probability
w_a/(E + g - 1), and its mutual information with the class is

    I = (epsilon E - sum_a w_a ln w_a) / (E + g - 1),

the entropy of the answer less the entropy of randomized response. The candidate for each g from 2 to C is the greedy
partition: classes in falling order of probability, each to the lightest block so far; equal classes by index. The
partition with the largest I is chosen, to a millionth. It depends on the prior and epsilon alone, never on a label.
Bound: x ln x is convex, so I is at most its value for the masses that all others majorise: likely classes are alone as
long as they exceed the mean of what is left, and the other blocks are equal. A g is tried if its bound exceeds the best
I so far; bounds rise with g, then fall. The g - 1 likeliest classes alone and all others in one block, a natural
candidate, are never better: these masses majorise those of the greedy partition.
Rows of more than EXACT classes are sorted only as far as it matters. Classes of probability at most (1 - max p)/(FINE
g), with g the best number of blocks of a flat prior, fill the blocks up to a common level in order of index, and I is
counted as if they could be divided. Measured, that costs less than one percent of I.
"""

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.threads import in_threads
from tacit.mechanisms.kernels import compiled

EXACT = 32  # classes up to which all are sorted
FINE = 4  # classes of less than this part of an average block are not sorted
TOLERANCE = 1e-5  # by which a row may miss the sum 1
_GAIN, _MORE = 1e-12, 1e-6  # information that is worth another partition, absolute and relative
_VALUES = 1 << 17  # entries of priors that one task reads; they fit into a cache
_FINITE = {"reassoc", "contract", "nsz", "nnan", "ninf"}  # vectorizes maxima; no entry is NaN or infinite
_LAX = {"reassoc", "contract", "nsz"}


def partitions_of(priors: NDArray[Any], epsilon: float, exact: bool = False) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The block of each class under each prior, of shape (priors, classes), and each prior's number of blocks.

    Blocks are numbered from 0 by their likeliest class. If all classes are alone, their blocks are their indices.

    Parameters
    ----------
    priors : array of shape (priors, classes)
        Rows that are not negative and add up to 1. The number of blocks of any other row is 0.
    epsilon : float
        Above 0; infinity leaves every class alone.
    exact : bool, default=False
        Whether to sort all classes, however many and unlikely.
    """
    n, size = priors.shape
    blocks = np.empty((n, size), dtype=np.min_scalar_type(size - 1))
    counts = np.empty(n, dtype=np.int64)
    finite = min(float(epsilon), 700.0)
    fine = math.inf if exact else FINE * min(flat_blocks(finite), float(size))  # other types would be compiled again
    step = max(1, _VALUES // size)

    def choose(start: int) -> None:
        part = slice(start, start + step)
        rows = priors[part]
        native = rows.dtype in (np.float32, np.float64) and rows.dtype.isnative
        rows = np.require(rows, None if native else np.float64, ["C", "W"])  # for others it would be compiled again
        choose_partitions(rows, finite, fine, blocks[part], counts[part])

    for _ in in_threads(choose, range(0, n, step)):
        pass
    if epsilon == math.inf:
        blocks[:] = np.arange(size)
        counts[counts > 0] = size
    return blocks, counts


def flat_blocks(epsilon: float) -> float:
    """The number of equal blocks with the largest information: (E - 1)^2 / ((epsilon - 1) E + 1)."""
    if epsilon < 0.01:
        return 2.0
    growth = math.expm1(epsilon)
    return growth / ((epsilon - 1) * math.exp(epsilon) + 1) * growth


@compiled
def choose_partitions(rows: Any, epsilon: float, fine: float, out: Any, counts: Any) -> None:
    """Choose the partition of each prior (b, C): blocks to `out` (b, C), their number to `counts` (b,)."""
    size, growth = rows.shape[1], math.expm1(epsilon)
    goal = math.exp(epsilon) * epsilon
    order, places = np.empty(size + 1, np.int64), np.empty(size, np.int64)
    masses, loads, bounds = np.empty(size + 1), np.empty(size), np.empty(size + 1)
    for i in range(rows.shape[0]):
        row, blocks = rows[i], out[i]
        if not _adds_up(row):
            counts[i] = 0
            continue
        if size == 1:
            counts[i], blocks[0] = 1, 0
            continue
        head, cutoff = _likeliest(row, fine, order, masses)
        tail = _rest(masses, head) if head < size else 0.0
        g, chosen = _best_count(masses, head, tail, size, growth, goal, places, loads, bounds)
        if chosen == size:
            for j in range(size):
                blocks[j] = j
            counts[i] = size
            continue
        if g != chosen:
            _greedy(masses, head, tail, chosen, growth, goal, places, loads)
        if head < size:
            _fill(row, cutoff, loads, chosen, tail, bounds, blocks)
        for j in range(head):
            blocks[order[j]] = places[j]
        counts[i] = max(np.int64(_largest(blocks)) + 1, 2)


@partial(compiled, fastmath=_LAX)
def _adds_up(row: Any) -> bool:
    """Whether a row is not negative and adds up to 1."""
    total, least = 0.0, 0.0
    for j in range(len(row)):
        total += row[j]
        least += min(row[j], 0.0)
    return least == 0.0 and abs(total - 1.0) <= TOLERANCE


@partial(compiled, fastmath=_FINITE)
def _largest(row: Any) -> Any:
    largest = row[0]
    for j in range(len(row)):
        largest = row[j] if row[j] > largest else largest
    return largest


@compiled
def _likeliest(row: Any, fine: float, order: Any, masses: Any) -> tuple[int, float]:
    """How many classes exceed the cutoff, and the cutoff; `order` and `masses` take these classes in falling order."""
    size, cutoff = len(row), -1.0
    if size > EXACT:
        cutoff = max(1.0 - _largest(row), 0.0) / fine
    head = 0
    for j in range(size):
        order[head] = j
        head += row[j] > cutoff
    for j in range(head):
        masses[j] = row[order[j]]
    gap = 1
    while 3 * gap + 1 < head:
        gap = 3 * gap + 1
    while gap > 0:  # shell sort
        for j in range(gap, head):
            value, label, k = masses[j], order[j], j - gap
            while k >= 0 and (masses[k] < value or (masses[k] == value and order[k] > label)):
                masses[k + gap], order[k + gap] = masses[k], order[k]
                k -= gap
            masses[k + gap], order[k + gap] = value, label
        gap //= 3
    return head, cutoff


@compiled
def _rest(masses: Any, head: int) -> float:
    rest = 1.0
    for j in range(head):
        rest -= masses[j]
    return max(rest, 0.0)


@compiled
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


@compiled
def _term(mass: float, growth: float) -> float:
    """w ln w of a block."""
    x = mass * growth
    return (1.0 + x) * math.log1p(x)


@compiled
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
    level, total = _level(loads, g, tail), 0.0
    for a in range(g):
        total += _term(max(loads[a], level), growth)
    return (goal - total) / (growth + g)


@compiled
def _level(loads: Any, g: int, tail: float) -> float:
    """The mass up to which the tail fills the lightest of g blocks."""
    level, count = math.inf, g + 1
    while True:
        total, among = tail, 0
        for a in range(g):
            if loads[a] < level:
                total += loads[a]
                among += 1
        if among == 0 or among >= count:
            return level
        level, count = total / among, among


@compiled
def _fill(row: Any, cutoff: float, loads: Any, g: int, tail: float, ends: Any, blocks: Any) -> None:
    """Give the classes up to the cutoff, in order of index, to one block after the other, each up to the level."""
    level = _level(loads, g, tail)
    first, last, total = -1, 0, 0.0
    for a in range(g):
        total += max(level - loads[a], 0.0)
        ends[a] = total
        if loads[a] < level:
            first, last = a if first < 0 else first, a
    if first < 0:  # the tail has no mass
        for a in range(1, g):
            last = a if loads[a] < loads[last] else last
        first = last
    block, total, used = first, 0.0, loads[first] > 0.0
    for j in range(len(row)):
        value = np.float64(row[j])
        if value <= cutoff:
            while block < last and used and total + value / 2 > ends[block]:
                block += 1
                used = loads[block] > 0.0
            blocks[j], used = block, True
            total += value
