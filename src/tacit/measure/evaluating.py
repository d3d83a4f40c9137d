"""Paid evaluation: how well a classifier does on private test records, at a price that their ledger
counts.

One table of counts is released, with noise, whose cells partition the records: group by class by
outcome (`tacit.mechanisms.partition_tables`). All figures and intervals follow from the noisy table
(`tacit.measure.intervals`), so they cost nothing more, and neither does a division into declared
groups. Each further table has its part of the budget.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.compute.texts import nfc
from tacit.compute.wide import Wide
from tacit.data.labels import class_indices
from tacit.data.persons import persons_under
from tacit.errors import InputError, quoted
from tacit.learners.common.validation import has_label_sets
from tacit.measure.evaluation import Evaluation
from tacit.measure.intervals import Floats
from tacit.measure.labelled_records import (
    Classifier,
    check_label_of_each,
    label_positions,
    predicts_several,
)
from tacit.measure.part_tables import (
    CONFIDENCE_EDGES,
    check_size_of_file,
    noise_of_cost,
    part_of,
    shape_of,
)
from tacit.mechanisms import partition_tables
from tacit.mechanisms.noise import Seed, noise_source
from tacit.privacy.budget import Budget
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.ledger import Ledger, check_ledger, scope_of
from tacit.privacy.parts import part_name
from tacit.privacy.unit import Unit, checked_unit
from tacit.releases.fields import NOT_STATED
from tacit.releases.release import Release

TABLES = ("right", "predicted", "confidence")
"""Outcomes of a record: right or wrong, the predicted class, or right or wrong by the probability
of the predicted class.
"""

OTHER = "other"
"""The group of records whose group was not declared."""

MOST_GROUPS = 1000
MOST_CELLS = 50_000_000


class ProbabilisticClassifier(Classifier, Protocol):
    """A classifier that also states probabilities, which a table of confidence needs."""

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, of shape (n, C)."""


def evaluate(
    release: ProbabilisticClassifier,
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
    part: str | None = None,
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
    part : str, optional
        Declared name of the part of all records that these are, such as "hospital A". Tables of
        several parts add up, and may be written to a file for that (`Evaluation.save`). It needs a
        `Release`, whose hash the tables carry.

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
    sha256 = NOT_STATED
    if part is not None:
        part = part_name(part)
        sha256 = _hash_of(release)

    truth, outcomes = _outcomes(release, X, y, kinds)
    groups_of_records = _groups_of_records(by, group_names, len(truth))
    members = persons_under(unit, persons, len(truth), offered=tuple(Unit), stacklevel=2)
    sizes = None if members is None else members.of_same_person
    guarantee = Guarantee(unit, event, scope=scope_of(ledger), delta=budget.delta)

    classes = np.asarray(release.classes_)
    shapes = _shapes(kinds, len(group_names), len(classes))
    if part is not None:
        # before the charge, since tables of a part are for a file
        check_size_of_file(sum(map(math.prod, shapes.values())))
    counts = []
    for kind, shape in shapes.items():
        cells = np.ravel_multi_index((groups_of_records, truth, *outcomes[kind]), shape)
        counts.append(partition_tables.cell_counts(cells, math.prod(shape), sizes))

    if ledger is not None:
        ledger.charge(guarantee, what="evaluation of a classifier", part=part)
    noisy = partition_tables.noisy_tables(counts, event, unit, source)

    released = {}
    for (kind, shape), values in zip(shapes.items(), noisy, strict=True):
        released[kind] = Wide(values.high.reshape(shape), values.low.reshape(shape))
    combination = None
    if part is not None:
        combination = part_of(part, released, classes.tolist(), guarantee)
    return Evaluation(
        classes=classes,
        group_names=group_names,
        counts=released,
        cell_noise=noise_of_cost(guarantee, len(kinds)),
        guarantee_=guarantee,
        noise=noise,
        release_sha256=sha256,
        combination=combination,
    )


def _hash_of(release: Any) -> str:
    """Return the hash of the arrays of a release; an error if it is a learner."""
    if isinstance(release, Release):
        return release.sha256
    raise InputError(
        f"release={release!r:.60} must be a Release where a part is named, since tables of several"
        " parts must be of one; pass tacit.Release.of(model)"
    )


def _checked_tables(tables: Any) -> tuple[str, ...]:
    """Return the kinds of tables, each once."""
    kinds = (tables,) if isinstance(tables, str) else tuple(tables)
    is_repeated = len(set(kinds)) < len(kinds)
    is_unknown = not set(kinds) <= set(TABLES)
    if not kinds or is_repeated or is_unknown:
        raise InputError(
            f"tables={quoted(tables)} must be one or several of {', '.join(TABLES)}; pass for"
            " example tables='right'"
        )
    return kinds


def _shapes(kinds: tuple[str, ...], n_groups: int, n_classes: int) -> dict[str, tuple[int, ...]]:
    """Return the shape of each table: groups, classes, and outcomes."""
    shapes = {kind: shape_of(kind, n_groups, n_classes) for kind in kinds}
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


def _groups_of_records(by: Any, names: tuple[str, ...], n: int) -> NDArray[np.int64]:
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
    release: ProbabilisticClassifier, X: Any, y: Any, kinds: tuple[str, ...]
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

    # the place of a record along each axis after its group and class
    wrong = (predicted != truth).astype(np.int64)
    bins = np.searchsorted(CONFIDENCE_EDGES[1:-1], confidence, side="right")
    places = {"right": (wrong,), "predicted": (predicted,), "confidence": (wrong, bins)}
    return truth, {kind: places[kind] for kind in kinds}
