"""Unclipped scores: one sum of integer rows for each class, and its products with the candidates.

The score of candidate p is n_c N^2 + <p, sum of x>, with rows and candidates in the integers of
`float64`. Products in float64 are exact where no partial sum exceeds 2^53; larger sums are cut into
parts of fewer bits.

Per person: a record of a person with m records counts with the whole weight v_m = floor(F/m), F =
2^18, and the sum of weighted scores is divided by F and rounded down, once for each class. Scores
are in [0, W], W = 2 N^2. So a person adds at most m v_m W <= F W to the sums of all classes
together. One record that joins a person with m others adds at most v_(m+1) W, and lowers what each
of them adds by at most (v_m - v_(m+1)) W; that is at most F W in all, by the proof in
`tacit.mechanisms.exponential` for a window of F. Rounding widens the interval in which the scores
of a class move by 2 at most. So the intervals of all C classes add up to at most W + 2C, the
sensitivity. Rounding of weights takes at most m 2^-18 of a person's. Sums of weighted rows stay
below 2^18 2^18 2^26 = 2^62 for 2^26 persons.
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
SHARE_BITS = 18
_EXACT_BITS = 53


@phase(SCORING)
def unclipped_scores(
    public: Any,
    X: Any,
    labels: Integers,
    person_sizes: Integers | None,
    centre: Floats | None,
    scores: Integers,
) -> Integers:
    """Scores between 0 and 2 N^2 for each record, written to `scores` of shape (n_classes, m) and
    returned.

    Under a unit per person `person_sizes` (n,) has, for each record, the number of records of its
    person.
    """
    n_classes = len(scores)
    bits, weights = 0, np.ones(len(X), np.int64)
    if person_sizes is not None:
        bits, weights = SHARE_BITS, 2**SHARE_BITS // person_sizes
    arithmetic = ARITHMETICS["float64"].scaled(public)
    sums, counts = np.zeros((n_classes, public.shape[1]), np.int64), np.zeros(n_classes, np.int64)

    def summed(start: int) -> tuple[Integers, Floats, Integers]:
        weighted = weights[start : start + BLOCK]
        rows = arithmetic.integers(X[start : start + BLOCK], centre) * weighted[:, None]
        classes, places = np.unique(labels[start : start + BLOCK], return_inverse=True)
        totals = np.zeros((len(classes), rows.shape[1]))
        for row, place in zip(rows, places, strict=True):
            totals[place] += row  # below 2^44: exact
        counted = np.bincount(places, weighted * rows.any(axis=1), len(classes)).astype(np.int64)
        return classes, totals, counted

    blocks = in_threads(summed, range(0, len(X), BLOCK))
    for classes, totals, n in progress(blocks, "class sums", -(-len(X) // BLOCK)):
        sums[classes] += totals.astype(np.int64)
        counts[classes] += n

    split = parts_of(sums)

    def scored(start: int) -> int:
        candidates = arithmetic.integers(public[start : start + WIDE], centre)
        products = exact_product(candidates, split, bits)
        scores[:, start : start + WIDE] = products + (counts * (NORM**2 >> bits))[:, None]
        return len(candidates)

    for _ in progress(in_threads(scored, range(0, len(public), WIDE)), "scores", len(public), int):
        pass
    return scores


def parts_of(sums: Integers) -> list[tuple[Floats, int]]:
    """Whole numbers (C, d) as a sum of parts times 2^shift, small enough that their products with
    rows are exact.
    """
    width = sums.shape[1]
    root = -(-(width - 1).bit_length() // 2)  # |<p, part>| <= N sqrt(d) 2^bits
    bits = _EXACT_BITS - (NORM.bit_length() - 1) - root
    rest, shift = np.abs(sums), 0
    parts: list[tuple[Floats, int]] = []
    while rest.any() or not parts:
        parts.append(((np.sign(sums) * (rest & (2**bits - 1))).astype(np.float64), shift))
        rest, shift = rest >> bits, shift + bits
    return parts


def exact_product(
    candidates: NDArray[np.float64], parts: list[tuple[Floats, int]], bits: int = 0
) -> Integers:
    """Products of integer candidates of norm at most N, (m, d), with whole numbers from `parts_of`:
    (C, m).

    They are divided by 2^bits and rounded down; only the first part needs rounding, as others are
    multiples of it.
    """
    products = ((part @ candidates.T).astype(np.int64) for part, _ in parts)
    shifts = (shift - bits for _, shift in parts)
    shifted = (
        one << by if by >= 0 else one >> -by for one, by in zip(products, shifts, strict=True)
    )
    return np.asarray(sum(shifted, start=np.int64(0)))
