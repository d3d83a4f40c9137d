"""Noisy class sums with counts, as a summary holds them: integers of which sums are exact.

A row of norm 1 is scaled by `ROW_SCALE` and gets one more column, `COUNT_SCALE`, so that the longer
row has norm 1 too. The sums of such rows, one for each class, get Gaussian noise once, in whole
units of 2^-32. Dividing by the scales gives back the sum of the rows, and their number.

Second moments are the sum of x x' over all rows x of norm 1, by the upper triangle, in whole units
of 2^-36.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.compute.wide import Totals
from tacit.models.rows import Floats
from tacit.privacy.events import Event, Gaussian, Parallel, compose
from tacit.privacy.sensitivity import ROOT_TWO, Sensitivity
from tacit.privacy.unit import Unit

UNIT = 2**32
"""Integers that stand for 1."""

UNIT_OF_MOMENTS = 2**36
"""Integers that stand for 1 in second moments."""

COUNT_SHARE = 0.05
"""Share of the squared norm of a row for its count. docs/auto.md says where it was chosen."""

ROW_SCALE = math.sqrt(1 - COUNT_SHARE)
COUNT_SCALE = math.sqrt(COUNT_SHARE)
"""Factors of a row and of its count of 1, so that both together have norm 1."""

OF_SUMS = Sensitivity(change_label=ROOT_TWO)
OF_MOMENTS = Sensitivity(
    replace=ROOT_TWO, change_label=0.0, replace_person=ROOT_TWO, change_labels_of_person=0.0
)
"""Of sums of rows by class, and of second moments of all rows: `gaussian.CLASS_SUMS` and
`outer_products.MOMENTS`, which prove them.
"""

SAME_CENTRE = 1e-9
"""Centres that differ by no more are the same mean of the same public rows, which processors round
differently.
"""


@dataclass(frozen=True, eq=False)
class Summarised:
    """What a fit of `ClassSummary` releases.

    Attributes
    ----------
    sums : array of int64, or Wide, of shape (C, d + 1)
        Noisy, in units of 2^-32.
    noise : float
        Standard deviation of their noise, where 1 is the bound on a record.
    centre : ndarray of shape (d,) or None
        The public centre of the rows.
    part : str
        The declared name of the records.
    moments : array of int64, or Wide, of shape (d (d + 1) / 2,), or None
        The upper triangle of noisy second moments, row by row, in units of 2^-36.
    noise_of_moments : float or None
        Standard deviation of their noise, where 1 is the bound on a record; 0 where they are exact,
        since rows are public.
    """

    sums: Totals
    noise: float
    centre: Floats | None
    part: str
    moments: Totals | None = None
    noise_of_moments: float | None = None


def event_of_noise(unit: Unit, noise_of_sums: float, noise_of_moments: float | None) -> Event:
    """Return what sums, and second moments if there are some, cost with noise of these standard
    deviations.

    Examples
    --------
    >>> event_of_noise(Unit.REPLACE, 2.0, None)
    Gaussian(noise_multiplier=1.0)
    """
    event: Event = Gaussian(noise_of_sums / OF_SUMS.under(unit))
    # other units change two classes at once, or persons who are in several
    if unit is Unit.ADD_REMOVE:
        event = Parallel(event, over="classes")
    sensitivity = OF_MOMENTS.under(unit)
    if noise_of_moments is None or sensitivity == 0:
        return event
    return compose([event, Gaussian(noise_of_moments / sensitivity)])


def same_centre(centre: Floats, other: Floats) -> bool:
    """Tell whether two centres, (d,), are one but for rounding."""
    return bool(np.abs(centre - other).max() <= SAME_CENTRE)


def without_scales(sums: Floats) -> Floats:
    """Undo the scales of sums with counts, (C, d + 1): the last column is the number of rows."""
    scales = np.full(sums.shape[1], ROW_SCALE)
    scales[-1] = COUNT_SCALE
    return np.asarray(sums / scales)


def symmetric(triangle: Floats, width: int) -> Floats:
    """Return the symmetric matrix (d, d) of an upper triangle, row by row, (d (d + 1) / 2,).

    >>> symmetric(np.array([1.0, 2.0, 3.0]), 2)
    array([[1., 2.],
           [2., 3.]])
    """
    rows, columns = np.triu_indices(width)
    matrix = np.empty((width, width))
    matrix[rows, columns] = triangle
    matrix[columns, rows] = triangle
    return matrix


def diagonal(triangle: Floats) -> Floats:
    """Return the diagonal of an upper triangle, row by row.

    >>> diagonal(np.array([1.0, 2.0, 3.0]))
    array([1., 3.])
    """
    width = (math.isqrt(8 * len(triangle) + 1) - 1) // 2
    # each row begins on the diagonal and is one entry shorter than the row above
    starts = np.cumsum([0, *range(width, 1, -1)])
    return np.asarray(triangle[starts])


def triangle_size(width: int) -> int:
    """Return the number of entries of an upper triangle of this width."""
    return width * (width + 1) // 2
