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

from tacit.data.persons import persons_under
from tacit.errors import BudgetError, InputError, quoted
from tacit.learners.common.validation import has_label_sets
from tacit.measure.labelled_records import check_label_of_each, label_positions
from tacit.mechanisms import partition_tables
from tacit.mechanisms.gaussian import UNIT
from tacit.mechanisms.noise import NoiseSource, Seed, noise_source
from tacit.models.prediction_sets import SCORES, Score, edges, scores_of_labels
from tacit.models.rows import Floats
from tacit.privacy.budget import Budget
from tacit.privacy.events import Gaussian
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.ledger import Ledger, check_ledger, scope_of
from tacit.privacy.unit import Unit, checked_unit
from tacit.releases.fields import Recorded
from tacit.releases.measured import ALL_CLASSES, PredictionSets
from tacit.releases.release import Release, check_takes_sets
from tacit.releases.statement import statement_of

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

    def most_above(self, total: float) -> float:
        """Return the most records above an edge that passes, from the noisy number of all."""
        a = 1 - self.level
        return a * (total + 1) - 1 - self.margin - SLACK

    def chosen(self, table: Floats) -> int:
        """Return the position of the chosen edge, from a noisy table (J + 1,); J is none of them,
        and stands for sets of all classes.
        """
        total = table.sum()
        if total < self.floor:
            return self.n_edges

        # noisy numbers above edges J - 1, J - 2, ..., 0
        above = np.cumsum(table[::-1])[:-1]
        passed = above <= self.most_above(float(total))
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
    counts = partition_tables.cell_counts(cells_of(scores, edge_list), len(edge_list) + 1, sizes)
    (table,) = partition_tables.noisy_tables([counts], cost, unit, noise)
    deviation = partition_tables.noise_of_cells(cost, unit) if cost.bounded else 0.0
    place = Threshold(level, deviation, len(edge_list)).chosen(table / UNIT)
    if place == len(edge_list):
        return None
    return float(edge_list[place])


def calibrate_sets(
    release: Release,
    X: ArrayLike,
    y: ArrayLike,
    *,
    level: float = 0.9,
    budget: Budget | str,
    score: Score = "probability",
    persons: Any = None,
    unit: Unit | str = Unit.ADD_REMOVE,
    ledger: Ledger | None = None,
    noise: str = "secure",
    random_state: Seed = None,
) -> Release:
    """Make prediction sets from private calibration records, at a price.

    Parameters
    ----------
    release : Release
        It predicts one label a row.
    X : array-like of shape (n, d)
        Calibration records, which the release was not trained on; new rows must be drawn as they
        were.
    y : array-like of shape (n,)
        Their labels, each in the class list of the release.
    level : float, default=0.9
        Least probability with which a set holds the right class.
    budget : Budget or str
        Of the calibration records: rho, mu, or epsilon with delta.
    score : {"probability", "cumulative"}, default="probability"
        What decides which classes are in a set: their own probability, which makes sets smallest on
        average, or that of all likelier classes, which gives rows that are harder to tell larger
        sets.
    persons : array-like of shape (n,), optional
        Whose each record is; needed under a unit per person. The promise is then about a random
        record of a new person.
    unit : Unit or str, default="add-remove"
        The unit in which the budget is read.
    ledger : Ledger, optional
        That of the calibration records, charged before noise is drawn.
    noise : {"secure", "opendp", "research"}, default="secure"
    random_state : int, optional
        Seed of research noise, which stamps the release.

    Returns
    -------
    Release
        The same release, which now carries the sets (`predict_sets`); `save` writes it.

    Raises
    ------
    InputError
        If records, labels, the level or persons are not of that form; nothing is charged then.
    BudgetError
        If the budget is pure or cannot be read.
    LedgerError
        If the ledger does not allow it.
    ReleaseError
        If the release is older than prediction sets, or gives a row several labels.

    Notes
    -----
    Guarantee: one `Gaussian` event of the unit, about the calibration records; that of the release
    does not change.
    Source: `tacit.measure.prediction_sets`, which has the theorem of coverage.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> rng = np.random.default_rng(0)
    >>> def rows(n):
    ...     y = rng.integers(3, size=n)
    ...     return np.eye(3)[y] + rng.normal(0, 0.7, (n, 3)), y
    >>> X, y = rows(2000)
    >>> release = tacit.Release.of(tacit.NoisySumPrototypes("rho=0.5", classes=3).fit(X, y))
    >>> release = tacit.calibrate_sets(release, *rows(1000), level=0.9, budget="rho=0.05")
    >>> sets = release.predict_sets([[1.0, 0.0, 0.0], [0.4, 0.4, 0.3]])
    >>> sets[0].tolist(), len(sets[1]) > 1
    ([0], True)
    """
    if not isinstance(release, Release):
        raise InputError(
            f"release={release!r:.60} must be a Release; pass tacit.Release.load(folder)"
        )
    check_takes_sets(release.document, release.source)
    level = _checked_level(level)
    if score not in SCORES:
        raise InputError(f"score={quoted(score)} must be one of {', '.join(SCORES)}")
    budget = Budget.parse(budget)
    cost = _event(budget)
    unit = checked_unit(unit)
    check_ledger(ledger)
    source = noise_source(noise, random_state)

    labels = _checked_labels(y, release.classes)
    probabilities = release.predict_proba(X)
    check_label_of_each(len(probabilities), len(labels))
    members = persons_under(unit, persons, len(labels), offered=tuple(Unit), stacklevel=2)
    sizes = None if members is None else members.of_same_person
    scores = scores_of_labels(probabilities, labels, score)

    guarantee = Guarantee(unit, cost, scope=scope_of(ledger), delta=budget.delta)
    if ledger is not None:
        ledger.charge(guarantee, what="threshold of prediction sets")
    threshold = paid_threshold(
        scores,
        edges(score, len(release.classes)),
        level=level,
        cost=cost,
        unit=unit,
        noise=source,
        sizes=sizes,
    )
    sets = PredictionSets(
        level=level,
        score=score,
        threshold=ALL_CLASSES if threshold is None else threshold,
        noise=noise,  # type: ignore[arg-type]  # pydantic checks
        guarantee=Recorded.of(guarantee),
        statement=statement_of(guarantee, noise),
    )
    return release.with_sets(sets)


def _checked_level(level: Any) -> float:
    """Return the level of sets, above 0 and below 1."""
    is_number = isinstance(level, int | float | np.integer | np.floating)
    if not is_number or isinstance(level, bool) or not 0 < level < 1:
        raise InputError(
            f"level={quoted(level)} must be above 0 and below 1, the least share of new rows whose"
            " set holds the right class; pass for example level=0.9 (--sets 0.9)"
        )
    return float(level)


def _event(budget: Budget) -> Gaussian:
    """Return the event that spends a budget."""
    if budget.kind == "pure":
        raise BudgetError(
            f"budget {budget} is pure, and the coverage of sets is proven for Gaussian noise; pass"
            f" {budget.hint('approx')}"
        )
    return Gaussian(budget.gaussian())


def _checked_labels(y: Any, classes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the positions of labels in the class list, (n,)."""
    if has_label_sets(y):
        raise InputError(
            "calibration records of prediction sets have one label each; pass y of shape (n,)"
        )
    positions = label_positions(y, classes)
    if not 0 < len(positions) <= MOST_RECORDS:
        raise InputError(
            f"there are {len(positions)} calibration records; pass 1 to {MOST_RECORDS} of them"
        )
    return positions
