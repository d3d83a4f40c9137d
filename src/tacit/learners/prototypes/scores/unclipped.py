"""Unclipped scores: one sum of integer rows for each class, and its products with the candidates.

The score of candidate p for class c is n_c N^2 + <p, sum of x>: n_c is the number of records of the
class, x runs over them, and rows and candidates are integers of norm at most N, in the arithmetic
`float64`. Products in float64 are exact where no partial sum exceeds 2^53; larger sums are cut into
parts of fewer bits.

Under a unit per person a record of a person with m records gets the whole-number weight v_m =
floor(F/m), F = 2^18, and the sum of weighted scores is divided by F and rounded down, once for each
class. A record's score is in [0, W], W = 2 N^2. Therefore:

- A person adds at most m v_m W <= F W to the sums of all classes together.
- One record that joins a person with m others adds at most v_(m+1) W, and lowers what each of the
  others adds by at most (v_m - v_(m+1)) W. The total is at most F W, by the proof in
  `tacit.mechanisms.exponential` for a window of F.
- Rounding down widens the interval in which the scores of a class move by at most 2. So the
  intervals of all C classes add up to at most W + 2C, which is the sensitivity.
- Rounding the weights takes at most m 2^-18 of a person's weight.
- Sums of weighted rows stay below 2^18 2^18 2^26 = 2^62 for 2^26 persons, so they fit 64 bits.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.progress import progress
from tacit.compute.threads import in_threads
from tacit.compute.timing import SCORING, phase
from tacit.learners.prototypes.scores.arithmetic import ARITHMETICS, BLOCK, Arithmetic
from tacit.mechanisms.noise import Integers
from tacit.models.rows import Floats

# N = 2^18; a product of a candidate and a row is in [-N^2, N^2]
NORM = ARITHMETICS["float64"].norm

# candidates that are scored at once: for speed alone, since scores are exact
WIDE = 8 * BLOCK

# F = 2^SHARE_BITS: weights of records under a unit per person are multiples of 1/F
SHARE_BITS = 18

# float64 holds all whole numbers up to 2^53
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
    """Compute scores between 0 and 2 N^2 for each record, into `scores` of shape (n_classes, m).

    Under a unit per person `person_sizes` (n,) has, for each record, the number of records of its
    person.

    Returns
    -------
    `scores`
    """
    weight_bits = 0
    weights = np.ones(len(X), np.int64)
    if person_sizes is not None:
        weight_bits = SHARE_BITS
        weights = 2**SHARE_BITS // person_sizes

    # scaled so that rounded rows of this width have norm N at most
    arithmetic = ARITHMETICS["float64"].scaled(public)
    sums, class_weights = _class_sums(arithmetic, X, labels, weights, centre, len(scores))
    sum_parts = parts_of(sums)

    # n_c N^2: it shifts each product from [-N^2, N^2] to [0, 2 N^2]. N^2 is divided by F before
    # the product, which might not fit 64 bits otherwise; both are powers of 2, so nothing is lost.
    shifts = class_weights * (NORM**2 >> weight_bits)

    def score_block(start: int) -> int:
        block = slice(start, start + WIDE)
        candidates = arithmetic.integers(public[block], centre)
        scores[:, block] = exact_product(candidates, sum_parts, weight_bits) + shifts[:, None]
        return len(candidates)

    # the threads write into `scores`; what the loop draws from them are numbers of candidates
    block_sizes = in_threads(score_block, range(0, len(public), WIDE))
    for _ in progress(block_sizes, "scores", len(public), size=int):
        pass
    return scores


def _class_sums(
    arithmetic: Arithmetic,
    X: Any,
    labels: Integers,
    weights: Integers,
    centre: Floats | None,
    n_classes: int,
) -> tuple[Integers, Integers]:
    """Weighted sums of integer rows by class, (C, d), and the total weight of each class, (C,)."""
    sums = np.zeros((n_classes, X.shape[1]), np.int64)
    class_weights = np.zeros(n_classes, np.int64)

    def sum_block(start: int) -> tuple[Integers, Floats, Integers]:
        block = slice(start, start + BLOCK)
        block_weights = weights[block]
        rows = arithmetic.integers(X[block], centre) * block_weights[:, None]
        classes, positions = np.unique(labels[block], return_inverse=True)

        # Entries stay below 2^18 2^18 BLOCK = 2^44, so float64 adds them exactly. A loop over rows
        # adds them many times faster than `np.add.at`.
        block_sums = np.zeros((len(classes), rows.shape[1]))
        for row, position in zip(rows, positions, strict=True):
            block_sums[position] += row

        # A row of zeros has no direction and contributes nothing. The weights of a block add up to
        # 2^18 BLOCK = 2^26 at most, which float64 holds exactly.
        present_weights = block_weights * rows.any(axis=1)
        totals = np.bincount(positions, present_weights, len(classes)).astype(np.int64)
        return classes, block_sums, totals

    n_blocks = -(-len(X) // BLOCK)
    blocks = in_threads(sum_block, range(0, len(X), BLOCK))
    for classes, block_sums, totals in progress(blocks, "class sums", n_blocks):
        # no class is twice in `classes`
        sums[classes] += block_sums.astype(np.int64)
        class_weights[classes] += totals
    return sums, class_weights


def parts_of(sums: Integers) -> list[tuple[Floats, int]]:
    """Split whole numbers (C, d) into parts: sums = part_0 2^shift_0 + part_1 2^shift_1 + ...

    Each part has so few bits that its products with integer rows are exact in float64. At least one
    part is returned.
    """
    width = sums.shape[1]

    # Entries of a part are below 2^bits, so |<p, part>| <= N sqrt(d) 2^bits by Cauchy and Schwarz.
    # That must not exceed 2^53. log2(d) and its half, log2(sqrt(d)), are rounded up; N is a power
    # of 2, of which bit_length - 1 is the exponent.
    width_bits = (width - 1).bit_length()
    root_bits = -(-width_bits // 2)
    bits = _EXACT_BITS - (NORM.bit_length() - 1) - root_bits

    # magnitudes, since shifts turn them to 0, but a negative number to -1
    signs = np.sign(sums)
    remainder = np.abs(sums)
    shift = 0
    parts: list[tuple[Floats, int]] = []
    while remainder.any() or not parts:
        lowest_bits = remainder & (2**bits - 1)
        parts.append(((signs * lowest_bits).astype(np.float64), shift))
        remainder = remainder >> bits
        shift += bits
    return parts


def exact_product(
    candidates: NDArray[np.float64], parts: list[tuple[Floats, int]], divisor_bits: int = 0
) -> Integers:
    """Products of integer candidates (m, d) with whole numbers (C, d), divided by a power of 2.

    The result has shape (C, m), and the divisor is 2^divisor_bits. Candidates have norm at most N;
    the whole numbers are passed as `parts_of` returns them. The quotient is rounded down. Each part
    may be rounded by itself: only the first needs rounding, since the shift of the others is at
    least `divisor_bits`.
    """
    first_part, _ = parts[0]
    total = np.zeros((len(first_part), len(candidates)), np.int64)
    for part, part_shift in parts:
        product = (part @ candidates.T).astype(np.int64)
        shift = part_shift - divisor_bits
        if shift >= 0:
            total += product << shift
        else:
            total += product >> -shift
    return total
