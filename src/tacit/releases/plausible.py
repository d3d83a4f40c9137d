"""Check of a summary's sums against its own counts: a poisoned summary is named.

The sum of n unit rows is no longer than n. Both are noisy, so the bound is widened by what noise
exceeds with a probability below 1e-16: a sum that exceeds it was not made as the recipe says.
A summary within the bounds may still be of wrong records.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.errors import quoted
from tacit.models.rows import Floats
from tacit.models.summarised import COUNT_SCALE, ROW_SCALE, diagonal

# standard deviations that noise stays within
WITHIN = 9.0

# records of a class in one part, which no summary has
MOST_RECORDS = 2.0**31

# entries of one part, whatever its noise: those of 10^5 parts add up in integers
MOST = 2.0**40

# relative error of rounded rows and of norms
ROUNDING = 1e-6


def implausible(sums: Floats, noise: Floats, classes: tuple[Any, ...], n_parts: int) -> str | None:
    """Name the first class whose sum or count cannot be; None if all can.

    Parameters
    ----------
    sums : ndarray of shape (C, d + 1)
        Scaled sums with counts, as they were released.
    noise : ndarray of shape (C,)
        Standard deviation of the noise of each class's sum.
    classes : tuple of length C
    n_parts : int
        How many parts were added up.
    """
    width = sums.shape[1] - 1
    rows = sums[:, :-1]
    # without an array of squares
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows)) / ROW_SCALE
    counts = sums[:, -1] / COUNT_SCALE
    noise_of_length = noise * (math.sqrt(width) + WITHIN) / ROW_SCALE
    noise_of_count = noise * WITHIN / COUNT_SCALE
    most_rows = np.maximum(counts + noise_of_count, 0)

    faults = {
        "larger numbers than sums have": (np.abs(sums) > MOST * n_parts).any(axis=1),
        "a negative number of records": counts < -noise_of_count,
        f"more than {MOST_RECORDS:.0f} records a part": counts > MOST_RECORDS * n_parts,
        "a longer sum than its count allows": (
            lengths - noise_of_length > most_rows * (1 + ROUNDING) + ROUNDING
        ),
    }
    for fault, classes_at_fault in faults.items():
        if classes_at_fault.any():
            label = classes[int(np.argmax(classes_at_fault))]
            return f"class {quoted(label)} has {fault}, beyond what noise explains"
    return None


def implausible_moments(
    triangle: Floats, noise: float, counts: Floats, count_noise: Floats, n_parts: int = 1
) -> str | None:
    """Describe second moments that cannot be; None if they can.

    A record, or a person, adds a positive semidefinite matrix of norm 1 or less, and 1 or more to
    the counts.

    Parameters
    ----------
    triangle : ndarray of shape (d (d + 1) / 2,)
        Upper triangle, row by row, with noise of this standard deviation.
    counts, count_noise : ndarrays of shape (C,)
        Noisy counts of the classes, and their standard deviations.
    n_parts : int, default=1
        How many parts were added up.
    """
    if np.abs(triangle).max() > MOST * n_parts:
        return "its second moments are larger numbers than sums have"

    noise_of_total = WITHIN * float(np.linalg.norm(count_noise))
    most_rows = max(float(counts.sum()) + noise_of_total, 0.0)
    noise_of_length = noise * (math.sqrt(len(triangle)) + WITHIN)
    if np.linalg.norm(triangle) - noise_of_length > most_rows * (1 + ROUNDING) + ROUNDING:
        return "its second moments are larger than its counts allow, beyond what noise explains"

    if (diagonal(triangle) < -WITHIN * noise).any():
        return "a sum of squares is negative, beyond what noise explains"
    return None
