"""The table of class sums with counts: the first release of `AutoPrototypes`, and all of
`ClassSummary`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tacit.compute.wide import Totals
from tacit.learners.common.exact_sums import ClassSums, SecondMoments, blocks_of
from tacit.learners.common.unit_rows import UnitRows
from tacit.mechanisms.blocks import Block
from tacit.mechanisms.noise import NoiseSource
from tacit.models.rows import Floats
from tacit.models.summarised import COUNT_SCALE, ROW_SCALE, UNIT


def sums(records: UnitRows, n_classes: int, *, multiplier: float, noise: NoiseSource) -> Floats:
    """Release the sums of each class's scaled rows with their counts, (C, d + 1).

    They are exact where the multiplier is 0, as under an infinite budget.
    """
    if multiplier > 0:
        return noisy_integers(records, n_classes, multiplier=multiplier, noise=noise) / UNIT
    return query(records, n_classes).released(records, multiplier=multiplier, noise=noise)


def noisy_integers(
    records: UnitRows, n_classes: int, *, multiplier: float, noise: NoiseSource
) -> Totals:
    """Release the same sums in whole units of 2^-32; the multiplier is above 0."""
    table = query(records, n_classes)
    return table.noisy_integers(records, multiplier=multiplier, noise=noise)


def noisy_moments(records: UnitRows, *, multiplier: float, noise: NoiseSource) -> Totals:
    """Release the upper triangle of the rows' second moments, in whole units of 2^-36.

    They are exact where the multiplier is 0, as under units by which rows are public.
    """
    moments = SecondMoments("second moments", records.width, blocks_of)
    return moments.noisy_integers(records, multiplier=multiplier, noise=noise)


def query(records: UnitRows, n_classes: int) -> ClassSums:
    """Return what is summed: rows of norm 1 that carry their count."""
    return ClassSums("class sums", n_classes, records.width + 1, rows_with_counts)


def rows_with_counts(records: UnitRows, label: str) -> Iterator[Block]:
    """Yield unit rows times `ROW_SCALE`, with one more column of `COUNT_SCALE`."""
    for block in records.blocks(label):
        counts = np.full(len(block.rows), COUNT_SCALE)
        yield block._replace(rows=np.column_stack([block.rows * ROW_SCALE, counts]))
