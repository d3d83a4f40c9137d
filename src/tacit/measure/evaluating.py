"""Paid evaluation: how well a classifier does on private test records, at a price that their ledger
counts.

One table of counts is released, with noise, whose cells partition the records: group by class by
outcome (`tacit.mechanisms.partition_tables`). All figures and intervals follow from the noisy table
(`tacit.measure.intervals`), so they cost nothing more, and neither does a division into declared
groups. Each further table has its part of the budget.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.compute.texts import nfc
from tacit.data.labels import class_indices
from tacit.data.persons import persons_under
from tacit.errors import InputError, quoted
from tacit.learners.common.validation import has_label_sets
from tacit.measure import intervals
from tacit.measure.intervals import Counts, Floats, Noise
from tacit.measure.labelled_records import (
    check_label_of_each,
    label_positions,
    predicts_several,
)
from tacit.mechanisms import partition_tables
from tacit.mechanisms.noise import Seed, noise_source
from tacit.privacy.budget import Budget
from tacit.privacy.events import Laplace
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.ledger import Ledger, check_ledger, scope_of
from tacit.privacy.unit import Unit, checked_unit

TABLES = ("right", "predicted", "confidence")
"""Outcomes of a record: right or wrong, the predicted class, or right or wrong by the probability
of the predicted class.
"""

CONFIDENCE_EDGES = np.linspace(0, 1, 11)
"""Public edges of the bins of confidence."""

OTHER = "other"
"""The group of records whose group was not declared."""

MOST_GROUPS = 1000
MOST_CELLS = 50_000_000

ABOUT_TEST_RECORDS = (
    "The figures are about the test records, and so is this guarantee. Another one covers the"
    " records that the classifier was trained on; for someone among both, the costs add up."
)


class Classifier(Protocol):
    """A fitted classifier of one label a row: a release, or a learner after `fit`."""

    @property
    def classes_(self) -> NDArray[Any]:
        """The class list, of shape (C,)."""

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row, of shape (n,)."""

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, of shape (n, C)."""


@dataclass(frozen=True, eq=False)
class Figures:
    """Accuracies that follow from noisy counts of right and wrong records of each class.

    Parameters
    ----------
    classes : ndarray of shape (C,)
    counts : Counts
        Of the classes.
    noise : Noise
        Of each noisy cell.
    """

    classes: NDArray[Any]
    counts: Counts
    noise: Noise

    @property
    def records(self) -> float:
        """Noisy number of records; under a unit per person, of persons by their weight."""
        return float(self.counts.records.sum())

    @property
    def accuracy(self) -> float:
        """Share of right records; nan where noise hides whether there are records."""
        return float(intervals.accuracy(self._total, self.noise)[0])

    @property
    def balanced_accuracy(self) -> float:
        """Mean of the accuracies of all classes; nan where noise hides the size of one."""
        return intervals.balanced_accuracy(self.counts, self.noise)

    @property
    def per_class(self) -> dict[Any, float]:
        """Accuracy of each class; nan where noise hides whether there are records."""
        shares = intervals.accuracy(self.counts, self.noise)
        return dict(zip(self.classes.tolist(), shares.tolist(), strict=True))

    def interval(self, name: str = "balanced_accuracy", level: float = 0.95) -> tuple[float, float]:
        """Return an interval that covers the sampling of the test records and the noise.

        Parameters
        ----------
        name : {"accuracy", "balanced_accuracy"}
        level : float, default=0.95
            The least probability with which it holds the accuracy on new records of the same kind.
        """
        checked_level(level)
        if name == "accuracy":
            lower, upper = intervals.accuracy_intervals(self._total, self.noise, level)
            return float(lower[0]), float(upper[0])
        if name == "balanced_accuracy":
            return intervals.balanced_interval(self.counts, self.noise, level)
        raise InputError(
            f"name={quoted(name)} is not one of accuracy, balanced_accuracy; class_intervals has"
            " those of classes"
        )

    def class_intervals(self, level: float = 0.95) -> dict[Any, tuple[float, float]]:
        """Return the interval of the accuracy of each class; (0, 1) where nothing is known."""
        lower, upper = intervals.accuracy_intervals(self.counts, self.noise, checked_level(level))
        ends = zip(lower.tolist(), upper.tolist(), strict=True)
        return dict(zip(self.classes.tolist(), ends, strict=True))

    @property
    def hidden_classes(self) -> int:
        """Number of classes of which noise hides whether they have records."""
        return sum(math.isnan(share) for share in self.per_class.values())

    @property
    def _total(self) -> Counts:
        return self.counts.total()


@dataclass(frozen=True, eq=False)
class Bin:
    """Records of one bin of confidence: how many, noisy, and how many of them are right."""

    low: float
    high: float
    records: float
    accuracy: float
    interval: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Result of `evaluate`: noisy tables, and all that follows from them.

    Parameters
    ----------
    classes : ndarray of shape (C,)
    group_names : tuple of str
        Declared groups, and last that of all others; one name without groups.
    tables : dict of str to ndarray
        The noisy tables, by kind, of shape (groups, C, outcomes ...); the first gives the figures.
    cell_noise : Noise
        Of each cell of each table.
    guarantee_ : Guarantee
        What the tables cost the test records.
    noise : str
        The source of noise.
    """

    classes: NDArray[Any]
    group_names: tuple[str, ...]
    tables: Mapping[str, Floats]
    cell_noise: Noise
    guarantee_: Guarantee
    noise: str

    @property
    def overall(self) -> Figures:
        """Figures of all records."""
        return self._figures(slice(None))

    @property
    def groups(self) -> dict[str, Figures]:
        """Figures of each declared group, and of all others; empty without groups."""
        if len(self.group_names) == 1:
            return {}
        return {name: self._figures([i]) for i, name in enumerate(self.group_names)}

    @property
    def accuracy(self) -> float:
        """Share of right records, or of persons' weights."""
        return self.overall.accuracy

    @property
    def balanced_accuracy(self) -> float:
        """Mean of the accuracies of all classes."""
        return self.overall.balanced_accuracy

    @property
    def per_class(self) -> dict[Any, float]:
        """Accuracy of each class; nan where noise hides whether there are records."""
        return self.overall.per_class

    def interval(self, name: str = "balanced_accuracy", level: float = 0.95) -> tuple[float, float]:
        """Return the interval of a figure of all records; see `Figures.interval`."""
        return self.overall.interval(name, level)

    @property
    def confusion(self) -> Floats:
        """Noisy number of records of each class (row) by predicted class, of shape (C, C).

        Raises
        ------
        InputError
            Without a table of predicted classes.
        """
        return np.asarray(self._table("predicted").sum(axis=0))

    @property
    def calibration(self) -> list[Bin]:
        """Accuracy in each bin of the probability that the predicted class was given.

        Raises
        ------
        InputError
            Without a table of confidence.
        """
        table = self._table("confidence").sum(axis=(0, 1))
        n_cells = len(self.group_names) * len(self.classes)
        counts = Counts.of(table[0], table[1], n_cells, n_cells)
        shares = intervals.accuracy(counts, self.cell_noise)
        lower, upper = intervals.accuracy_intervals(counts, self.cell_noise, 0.95)
        edges = CONFIDENCE_EDGES.tolist()
        return [
            Bin(
                edges[i],
                edges[i + 1],
                float(counts.records[i]),
                float(shares[i]),
                (float(lower[i]), float(upper[i])),
            )
            for i in range(len(shares))
        ]

    def statement(self) -> str:
        """Return the guarantee of the test records in words."""
        return f"{self.guarantee_.statement()}\n{ABOUT_TEST_RECORDS}"

    def _table(self, kind: str) -> Floats:
        if kind not in self.tables:
            raise InputError(
                f"there is no table {kind!r} among {', '.join(self.tables)}; pass"
                f" tables=[..., {kind!r}], which is paid for"
            )
        return self.tables[kind]

    def _figures(self, groups: Any) -> Figures:
        kind, table = next(iter(self.tables.items()))
        table = table[groups]
        n_groups = len(table)
        table = table.sum(axis=0)
        n_classes = len(self.classes)
        if kind == "predicted":
            right = np.diagonal(table)
            wrong = table.sum(axis=1) - right
            counts = Counts.of(right, wrong, n_groups, n_groups * (n_classes - 1))
        else:
            # of right and wrong, by bin of confidence where there are bins
            table = table.reshape(n_classes, 2, -1)
            n_cells = n_groups * table.shape[2]
            sums = table.sum(axis=2)
            counts = Counts.of(sums[:, 0], sums[:, 1], n_cells, n_cells)
        return Figures(self.classes, counts, self.cell_noise)


def evaluate(
    release: Classifier,
    X: Any,
    y: Any,
    *,
    budget: Budget | str,
    persons: Any = None,
    by: Any = None,
    groups: Sequence[Any] | None = None,
    tables: str | Sequence[str] = "right",
    unit: Unit | str = Unit.ADD_REMOVE,
    ledger: Ledger | None = None,
    noise: str = "secure",
    random_state: Seed = None,
) -> Evaluation:
    """Measure a classifier on private test records, at a price.

    Parameters
    ----------
    release : Release, or a fitted learner
        It predicts one label a row.
    X : array-like of shape (n, d)
        Test records, which it was not trained on.
    y : array-like of shape (n,)
        Their labels, each in the class list of the release.
    budget : Budget or str
        Of the test records: pure ("epsilon=1", Laplace noise), or rho, mu or epsilon with delta
        (Gaussian noise).
    persons : array-like of shape (n,), optional
        Whose each record is; needed under a unit per person. Each person then counts 1 in all: the
        accuracy is the mean over persons of the share of their records that is right.
    by : array-like of shape (n,), optional
        A further column, such as a hospital or an age band, whose value says to which group a
        record belongs. Figures by group cost nothing more.
    groups : sequence, optional
        The declared values of `by`, from public knowledge; records of any other value are the group
        "other".
    tables : {"right", "predicted", "confidence"} or sequence of them, default="right"
        What is counted in each class: right or wrong records, predicted classes (`confusion`), or
        right or wrong by bin of confidence (`calibration`). All share the budget, and the first
        gives the figures.
    unit : Unit or str, default="add-remove"
        The unit in which the budget is read.
    ledger : Ledger, optional
        That of the test records, charged before noise is drawn.
    noise : {"secure", "opendp", "research"}, default="secure"
    random_state : int, optional
        Seed of research noise, whose results are not for release.

    Returns
    -------
    Evaluation
        `accuracy`, `balanced_accuracy`, `per_class`, `groups`, `interval(name, level=.95)` and
        `guarantee_`.

    Raises
    ------
    InputError
        If records, labels, groups or persons are not of that form; nothing is charged then.
    BudgetError
        If the budget cannot be read.
    LedgerError
        If the ledger does not allow it.

    Notes
    -----
    Guarantee: every table partitions the records, so it has sensitivity 1 under add/remove, in L1
    and L2. One `Gaussian` or `Laplace` event of the unit covers all tables; the figures are
    post-processing.
    Source: `tacit.mechanisms.partition_tables`; intervals, `tacit.measure.intervals`.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> X = np.repeat([[1.0, 0.0], [0.0, 1.0]], 500, axis=0)
    >>> y = np.repeat(["cat", "dog"], 500)
    >>> model = tacit.NoisySumPrototypes("rho=0.5", classes=["cat", "dog"]).fit(X, y)
    >>> result = tacit.evaluate(tacit.Release.of(model), X, y, budget="rho=0.05")
    >>> low, high = result.interval("accuracy")
    >>> 0.95 < low < high == 1, result.guarantee_.rho
    (True, 0.05)
    """
    kinds = _checked_tables(tables)
    budget = Budget.parse(budget)
    event = partition_tables.event(budget)
    unit = checked_unit(unit)
    check_ledger(ledger)
    source = noise_source(noise, random_state)
    group_names = _checked_groups(by, groups)

    truth, outcomes = _outcomes(release, X, y, kinds)
    group = _group_of(by, group_names, len(truth))
    members = persons_under(unit, persons, len(truth), offered=tuple(Unit), stacklevel=2)
    sizes = None if members is None else members.of_same_person
    guarantee = Guarantee(unit, event, scope=scope_of(ledger), delta=budget.delta)

    classes = np.asarray(release.classes_)
    shapes = _shapes(kinds, len(group_names), len(classes))
    counts = []
    for kind, shape in shapes.items():
        cells = np.ravel_multi_index((group, truth, *outcomes[kind]), shape)
        counts.append(partition_tables.cell_counts(cells, math.prod(shape), sizes))

    if ledger is not None:
        ledger.charge(guarantee, what="evaluation of a classifier")
    noisy = partition_tables.noisy_tables(counts, event, unit, source)

    cell_noise = Noise(
        partition_tables.noise_of_cells(event, unit, len(kinds)), isinstance(event, Laplace)
    )
    released = zip(shapes.items(), noisy, strict=True)
    return Evaluation(
        classes=classes,
        group_names=group_names,
        tables={kind: values.reshape(shape) for (kind, shape), values in released},
        cell_noise=cell_noise,
        guarantee_=guarantee,
        noise=noise,
    )


def checked_level(level: Any) -> float:
    """Return the level of an interval, between 0 and 1."""
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
        raise InputError(f"level={quoted(level)} must be between 0 and 1; pass for example 0.95")
    return float(level)


def _checked_tables(tables: Any) -> tuple[str, ...]:
    """Return the kinds of tables, each once."""
    kinds = (tables,) if isinstance(tables, str) else tuple(tables)
    if not kinds or len(set(kinds)) < len(kinds) or not set(kinds) <= set(TABLES):
        raise InputError(
            f"tables={quoted(tables)} must be one or several of {', '.join(TABLES)}; pass for"
            " example tables='right'"
        )
    return kinds


def _shapes(kinds: tuple[str, ...], n_groups: int, n_classes: int) -> dict[str, tuple[int, ...]]:
    """Return the shape of each table: groups, classes, and outcomes."""
    outcomes: dict[str, tuple[int, ...]] = {
        "right": (2,),
        "predicted": (n_classes,),
        "confidence": (2, len(CONFIDENCE_EDGES) - 1),
    }
    shapes = {kind: (n_groups, n_classes, *outcomes[kind]) for kind in kinds}
    if sum(map(math.prod, shapes.values())) > MOST_CELLS:
        raise InputError(
            f"the tables have more than {MOST_CELLS} cells; declare fewer groups, or leave"
            " 'predicted' out"
        )
    return shapes


def _checked_groups(by: Any, groups: Any) -> tuple[str, ...]:
    """Return the names of the declared groups and of all others."""
    if by is None and groups is None:
        return ("all",)
    if by is None:
        raise InputError("groups are values of a column; pass by=..., a value for each record")
    if groups is None:
        raise InputError(
            "the groups must be declared, since those that occur are private; pass groups=[...]"
        )
    if isinstance(groups, str | bytes) or not len(groups):
        raise InputError(
            f"groups={quoted(groups)} must list values; pass for example groups=['a', 'b']"
        )
    names = [_group_text(value) for value in groups]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise InputError(f"groups name {quoted(repeated[0])} twice; name it once")
    if len(names) > MOST_GROUPS:
        raise InputError(f"groups has {len(names)} values, more than {MOST_GROUPS}; merge some")
    return (*[name for name in names if name != OTHER], OTHER)


def _group_text(value: Any) -> str:
    """Return a value of a group as text, in which values are compared: 3.0 is 3."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    return str(nfc(str(value))).strip()


def _group_of(by: Any, names: tuple[str, ...], n: int) -> NDArray[np.int64]:
    """Return the position of each record's group, of shape (n,); undeclared values are the last."""
    if by is None:
        return np.zeros(n, dtype=np.int64)
    values = np.asarray(by)
    if values.shape != (n,):
        raise InputError(
            f"by has shape {values.shape} and must have shape ({n},), a value for each record"
        )
    positions = {name: i for i, name in enumerate(names)}
    last = len(names) - 1
    places = (positions.get(_group_text(value), last) for value in values.tolist())
    return np.fromiter(places, np.int64, n)


def _outcomes(
    release: Classifier, X: Any, y: Any, kinds: tuple[str, ...]
) -> tuple[NDArray[np.int64], dict[str, tuple[NDArray[np.int64], ...]]]:
    """Return the class of each record, and its places in the tables of each kind."""
    if predicts_several(release) or has_label_sets(y):
        raise InputError(
            "a paid evaluation counts one label a record, and these may have several; evaluate a"
            " classifier of one label"
        )
    classes = np.asarray(release.classes_)
    truth = label_positions(y, classes)
    if not len(truth):
        raise InputError("there are no test records; pass one at least")

    if "confidence" in kinds:
        probabilities = np.asarray(release.predict_proba(X))
        predicted = probabilities.argmax(axis=1)
        confidence = probabilities.max(axis=1)
    else:
        predicted = class_indices(np.asarray(release.predict(X)), classes)
        confidence = np.zeros(len(predicted))
    check_label_of_each(len(predicted), len(truth))

    wrong = (predicted != truth).astype(np.int64)
    bins = np.searchsorted(CONFIDENCE_EDGES[1:-1], confidence, side="right")
    places = {"right": (wrong,), "predicted": (predicted,), "confidence": (wrong, bins)}
    return truth, {kind: places[kind] for kind in kinds}
