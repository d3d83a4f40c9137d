"""Noise on tables of counts whose cells partition the records, such as class by right or wrong.

Unit: add/remove one record, or one person with all their records. Each record is in one cell of
each table, and counts 1 there. A person's record counts floor(2^32/m) in units of 2^-32, where m is
the number of that person's records, so that a person counts 1 at most in each table, over all its
cells (groups of records included).

Sensitivity of one table: what a record or a person adds is a vector v without negative entries, of
L1 norm at most 1, and so of L2 norm at most 1. Under every other relation (`IN_L1`, `IN_L2`) such a
vector is replaced by another one w: |v - w|_1 <= 2 and |v - w|_2^2 <= |v|^2 + |w|^2 <= 2, since the
inner product of v and w is not negative. That holds for a changed label too, which moves one record
from one cell to another.
Of q tables together: q times that in L1, and sqrt(q) times that in L2, since squares add up over
tables.
One record more of a person with m records: the weights of these change from 1/m to 1/(m+1), and the
new record has 1/(m+1). That is 2/(m+1) <= 1 in L1 for m >= 1, and in whole units too: m f(m) -
(m-1) f(m+1) <= m f(m) <= 2^32 with f(m) = floor(2^32/m). So add-remove-person implies add-remove at
the same cost, as `Event.for_record_of_person` says.

Theorem, Gaussian: noise of standard deviation z times the L2 sensitivity is 1/z-GDP and
1/(2 z^2)-zCDP, by the proofs in `gaussian.py`, whose units of 2^-32 are used here too.
Theorem, Laplace: noise of scale b times the L1 sensitivity is (1/b)-DP [Dwork et al. 2006]. Drawn
in units of 2^-32, where the exact curve of `Laplace` holds for discrete noise too.
Rounding to whole units is post-processing, and so is all that follows from the noisy tables.

Source: Dwork et al. 2006 for histograms; person weights as in `one_hot.py`.
"""

import math
from collections.abc import Sequence

import numpy as np

from tacit.compute.wide import Wide
from tacit.mechanisms.gaussian import CLASS_COUNTS, UNIT
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.mechanisms.rounding import product_up
from tacit.mechanisms.wide import with_gaussian_noise
from tacit.privacy.budget import Budget
from tacit.privacy.events import Gaussian, Laplace
from tacit.privacy.sensitivity import Sensitivity
from tacit.privacy.unit import Unit

IN_L2 = CLASS_COUNTS
"""Of one table, in L2."""

IN_L1 = Sensitivity()
"""Of one table, in L1: 2 under every relation other than add/remove."""


def cell_counts(cells: Integers, n_cells: int, sizes: Integers | None = None) -> Wide:
    """Exact number of records in each cell, in units of 2^-32; not private.

    `cells` has the cell of each record, of shape (n,). Under a unit per person `sizes`, of shape
    (n,), has the number of records of each record's person, by which it counts less.
    """
    if sizes is None:
        counts = np.bincount(cells, minlength=n_cells).astype(np.int64)
        return Wide(counts, np.zeros_like(counts))

    # below 2^31 persons, their sum fits int64
    weights = np.zeros(n_cells, dtype=np.int64)
    np.add.at(weights, cells, UNIT // sizes)
    return Wide.of(weights)


def noisy_tables(
    tables: Sequence[Wide], cost: Gaussian | Laplace, unit: Unit, noise: NoiseSource
) -> list[Wide]:
    """Release tables of `cell_counts` of the same records, each cell with independent noise, in
    units of 2^-32.

    `cost` is from `event`; without a bound the tables are exact.
    """
    scale = noise_of_cells(cost, unit, len(tables)) * UNIT
    return [_noisy(table, cost, scale, noise) for table in tables]


def _noisy(table: Wide, cost: Gaussian | Laplace, scale: float, noise: NoiseSource) -> Wide:
    if not cost.bounded:
        return table
    if isinstance(cost, Gaussian):
        return Wide.of(with_gaussian_noise(table, scale=scale, noise=noise))
    return table + noise.laplace(np.zeros(table.shape, dtype=np.int64), scale=scale)


def noise_of_cells(cost: Gaussian | Laplace, unit: Unit, n_tables: int = 1) -> float:
    """Return the noise of each cell, in records: the standard deviation of Gaussian noise, or the
    scale of Laplace noise.
    """
    if isinstance(cost, Laplace):
        return product_up(cost.noise_multiplier, IN_L1.under(unit), float(n_tables))

    # rounded up; exact for one table
    root = math.sqrt(n_tables) if n_tables == 1 else math.sqrt(n_tables) * (1 + 2.0**-50)
    return product_up(cost.noise_multiplier, IN_L2.under(unit), root)


def event(budget: Budget) -> Gaussian | Laplace:
    """Event of `noisy_tables` under the unit in which the budget is read: Laplace noise for a pure
    budget, else Gaussian.
    """
    if budget.kind == "pure":
        return Laplace(budget.laplace())
    return Gaussian(budget.gaussian())
