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
from tacit.models.summarised import COUNT_SCALE, ROW_SCALE

# standard deviations that noise stays within
WITHIN = 9.0

# records of a class in one part, which no summary has
MOST_RECORDS = 2.0**31

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
