r"""Threshold of prediction sets, from private calibration records, at a price.

A score of a row's class is one of `tacit.models.prediction_sets`. The calibration records' scores
fall into cells between public edges e_0 < ... < e_(J-1); cell k holds scores in (e_(k-1), e_k], and
the last cell J those above all edges. A threshold e_t makes the sets {class: score <= e_t}; t = J
stands for sets of all classes.

Unit, sensitivity, theorem of privacy: one table whose cells partition the records, with Gaussian
noise of standard deviation s in each cell (`tacit.mechanisms.partition_tables`). A record counts 1,
a person's record 1/m where m is the number of that person's records. The threshold is
post-processing.

The rule. Let M_t be the noisy number of records in cells above t, M that in all cells,
a = 1 - level, and

    tau^2 = s^2 max over t of (1 - a)^2 (J - t) + a^2 (t + 1),     b = tau / sqrt(2 pi),
    floor = b/a + z s sqrt(J + 1),     z the upper a-quantile of N(0, 1).

If M < floor, the threshold is t = J. Else go down from t = J - 1 as long as M_t <= a (M + 1) - 1 -
b; the threshold is the last t that passed, or J if the first does not.

Theorem of coverage: if the calibration records and a new record are exchangeable (persons, and a
random record of a new person), the new record's set holds its class with probability at least
1 - a, over records and noise together, whatever their number n, which the rule does not know.

Proof. Take the n + 1 records of calibration and test together; each is the test record equally
often. Order them by cell from the top, so that each has a rank r from 1 to n + 1. If a record of
cell k is the test record and its set misses it, then t < k, and so edge k - 1 has passed (this is
why the rule goes down from the top). At least r - 1 of the n others lie above edge k - 1. So with
W = (M_t - N_t) - a (M - n), t = k - 1, where N_t is the exact number,

    r - 1 + W <= a (n + 1) - 1 - b.

W is a sum of independent Gaussians, (1 - a) times the noise of cells above t less a times that of
the others. Its standard deviation is tau at most, and noise is independent of the records. So this
has probability at most h(r), with x = a (n + 1) - b and h(u) = 1 for u <= x, else
Phi((x - u)/tau). As h falls, the n + 1 probabilities add up to at most

    integral of h over u > 0  =  x + tau E[Z+]  =  x + b  =  a (n + 1)     if x >= 0,

that is, a for each record on average. If x < 0, then a (n + 1) < b. A miss needs M >= floor too, so
that the noise of M exceeds floor - b/a = z s sqrt(J + 1), which is z of its standard deviations:
probability at most a.
Persons: order all records of n + 1 persons in the same way. A record's rank is now the weight of
the records up to it, itself included; at least that less 1, the most that its person weighs, lies
above its edge among the others. The probabilities, times the weights, add up to at most the same
integral. QED

Rounding: weights 1/m are rounded down to units of 2^-32, and noise to such units, which together
moves M_t by less than SLACK, by which the rule is stricter, for at most MOST_RECORDS.

No bound on the noise of all M_t together is needed, and none on n: the rule loses b, which is .4
standard deviations of noise, where such bounds lose 2 to 3. At n = 500, rho = .05 and level .9 the
sets then cover .92, not .95.

Source: tacit. Without noise it is split conformal prediction [Papadopoulos et al. 2002; Vovk et al.
2005], and with persons that of [Lee, Barber and Willett 2023]. A secretly drawn record of each
person keeps exchangeability too. But one more record of a person would then change the draw, and
the cost for one record would exceed that for one person.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.data.labels import class_indices, clean_labels
from tacit.data.persons import persons_under
from tacit.errors import BudgetError, InputError, ReleaseError, quoted
from tacit.learners.common.validation import has_label_sets, plain_labels
from tacit.mechanisms import partition_tables
from tacit.mechanisms.noise import NoiseSource, Seed, noise_source
from tacit.models.prediction_sets import SCORES, Score, SetRule, edges, scores_of_labels
from tacit.models.rows import Floats
from tacit.privacy.budget import Budget
from tacit.privacy.events import Gaussian
from tacit.privacy.guarantee import THIS_RUN, Guarantee
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit
from tacit.releases.release import Release

MOST_RECORDS = 2**24
"""Of calibration records, for which rounding stays below SLACK."""

SLACK = 2.0**-7


@dataclass(frozen=True)
class Threshold:
    """Rule of the module's docstring: which edge a noisy table chooses.

    Parameters
    ----------
    level : float
        Least probability with which a set holds the right class; above 0 and below 1.
    deviation : float
        Standard deviation of the noise of each cell, in records; 0 without noise.
    n_edges : int
    """

    level: float
    deviation: float
    n_edges: int

    @property
    def margin(self) -> float:
        """The number b: expected excess of the noise at the worst edge, in records."""
        a = 1 - self.level
        cells_above = np.arange(1, self.n_edges + 1)
        cells_below = self.n_edges + 1 - cells_above
        variances = (1 - a) ** 2 * cells_above + a**2 * cells_below
        tau = self.deviation * math.sqrt(variances.max())
        return tau / math.sqrt(2 * math.pi)

    @property
    def floor(self) -> float:
        """Noisy number of records below which every set holds all classes."""
        a = 1 - self.level
        z = NormalDist().inv_cdf(self.level)
        return self.margin / a + z * self.deviation * math.sqrt(self.n_edges + 1)

    def chosen(self, table: Floats) -> int:
        """Return the position of the chosen edge, from a noisy table (J + 1,); J is none of them,
        and stands for sets of all classes.
        """
        total = table.sum()
        if total < self.floor:
            return self.n_edges

        # noisy numbers above edges J - 1, J - 2, ..., 0
        above = np.cumsum(table[::-1])[:-1]
        a = 1 - self.level
        passed = above <= a * (total + 1) - 1 - self.margin - SLACK
        n_passed = int(np.argmin(passed)) if not passed.all() else self.n_edges
        return self.n_edges - n_passed


def cells_of(scores: Floats, edge_list: Floats) -> NDArray[np.int64]:
    """Return the cell of each score, (n,): the number of edges below it."""
    return np.searchsorted(edge_list, scores, side="left").astype(np.int64)


def paid_threshold(
    scores: Floats,
    edge_list: Floats,
    *,
    level: float,
    cost: Gaussian,
    unit: Unit,
    noise: NoiseSource,
    sizes: NDArray[np.int64] | None = None,
) -> float | None:
    """Release a threshold for scores (n,) of calibration records; None if sets hold all classes.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Of the right classes; private.
    edge_list : ndarray of shape (J,)
        Public thresholds in rising order.
    level : float
    cost : Gaussian
        By `partition_tables.event`.
    unit, noise
        The neighbouring relation, and the source of noise.
    sizes : ndarray of shape (n,), optional
        Under a unit per person, the number of records of each record's person.
    """
    counts = partition_tables.cell_counts(
        cells_of(scores, edge_list), len(edge_list) + 1, sizes
    )
    (table,) = partition_tables.noisy_tables([counts], cost, unit, noise)
    deviation = partition_tables.noise_of_cells(cost, unit) if cost.bounded else 0.0
    place = Threshold(level, deviation, len(edge_list)).chosen(table)
    if place == len(edge_list):
        return None
    return float(edge_list[place])
