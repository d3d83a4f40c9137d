"""Unclipped scores: one sum of integer rows for each class, and its products with the candidates.

The score of candidate p is n_c N^2 + <p, sum of x>, with rows and candidates in the integers of `float64`. Products in
float64 are exact where no partial sum exceeds 2^53; larger sums are cut into parts of fewer bits.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.progress import progress
from tacit.compute.threads import in_threads
from tacit.compute.timing import SCORING, phase
from tacit.learners.prototypes.scores.arithmetic import ARITHMETICS, BLOCK
from tacit.mechanisms.noise import Integers
from tacit.models.rows import Floats

NORM = ARITHMETICS["float64"].norm
WIDE = 8 * BLOCK  # candidates at once
_EXACT_BITS = 53


@phase(SCORING)
def unclipped_scores(public: Any, X: Any, labels: Integers, centre: Floats | None, scores: Integers) -> Integers:
    """Scores between 0 and 2 N^2 for each record, written to `scores` of shape (n_classes, m) and returned."""
    n_classes = len(scores)
    arithmetic = ARITHMETICS["float64"].scaled(public)
    sums, counts = np.zeros((n_classes, public.shape[1]), np.int64), np.zeros(n_classes, np.int64)

    def summed(start: int) -> tuple[Integers, Floats, Integers]:
        rows = arithmetic.integers(X[start : start + BLOCK], centre)
        classes, places = np.unique(labels[start : start + BLOCK], return_inverse=True)
        totals = np.zeros((len(classes), rows.shape[1]))
        for row, place in zip(rows, places, strict=True):
            totals[place] += row  # below 2^26: exact
        return classes, totals, np.bincount(places[rows.any(axis=1)], minlength=len(classes))

    blocks = in_threads(summed, range(0, len(X), BLOCK))
    for classes, totals, n in progress(blocks, "class sums", -(-len(X) // BLOCK)):
        sums[classes] += totals.astype(np.int64)
        counts[classes] += n

    split = parts_of(sums)

    def scored(start: int) -> int:
        candidates = arithmetic.integers(public[start : start + WIDE], centre)
        scores[:, start : start + WIDE] = exact_product(candidates, split) + (counts * NORM**2)[:, None]
        return len(candidates)

    for _ in progress(in_threads(scored, range(0, len(public), WIDE)), "scores", len(public), int):
        pass
    return scores


def parts_of(sums: Integers) -> list[tuple[Floats, int]]:
    """Whole numbers (C, d) as a sum of parts times 2^shift, small enough that their products with rows are exact."""
    width = sums.shape[1]
    root = -(-(width - 1).bit_length() // 2)  # |<p, part>| <= N sqrt(d) 2^bits
    bits = _EXACT_BITS - (NORM.bit_length() - 1) - root
    rest, shift = np.abs(sums), 0
    parts: list[tuple[Floats, int]] = []
    while rest.any() or not parts:
        parts.append(((np.sign(sums) * (rest & (2**bits - 1))).astype(np.float64), shift))
        rest, shift = rest >> bits, shift + bits
    return parts


def exact_product(candidates: NDArray[np.float64], parts: list[tuple[Floats, int]]) -> Integers:
    """Products of integer candidates of norm at most N, (m, d), with whole numbers from `parts_of`: (C, m)."""
    products = ((part @ candidates.T).astype(np.int64) << shift for part, shift in parts)
    return np.asarray(sum(products, start=np.int64(0)))
