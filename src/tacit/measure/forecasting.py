"""Forecasts: the accuracy to expect of a fit, from public facts and public rows alone.

No private record is read: pseudo-classes of public rows (`pseudo_classes.py`) stand in for the
private classes, and the real learner fits them with research noise (`simulated_fits.py`). What is
stated about the private records is declared, and so unprotected.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.compute.checkpoint import Checkpoint
from tacit.compute.progress import progress
from tacit.data.labels import class_list
from tacit.data.rows import as_rows, check_rows
from tacit.errors import InputError, nearest, quoted
from tacit.learners.common.base import PrivateClassifier
from tacit.learners.common.parameters import one_of, real, whole
from tacit.learners.methods import (
    ALIASES,
    METHODS,
    SETTINGS,
    in_python,
    load,
    method_called,
    setting_called,
)
from tacit.measure.enough import Enough, enough_records
from tacit.measure.pseudo_classes import (
    FEWEST_ROWS,
    Integers,
    Kind,
    guessed_spread,
    spread_of,
    usable_classes,
)
from tacit.measure.simulated_fits import (
    Accuracy,
    SimulatedFits,
    StatedTask,
    content_hash,
    rows_to_learn_from,
    without_privacy,
)
from tacit.models.rows import Floats
from tacit.privacy.budget import Budget
from tacit.privacy.decimals import rounded_up
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit

DELTA = 1e-6
BUDGETS = "epsilon=0.1,epsilon=0.5,epsilon=2"

# The search for enough records takes many fits, which share one seed.
SEEDS_OF_SEARCH = 1

MOST_CLASSES = 10_000
MOST_RECORDS_STATED = 10**9

# what a forecast sets itself, and what it cannot simulate
SET_HERE = {
    "folder",
    "budget", "classes", "noise", "random_state", "unit", "ledger", "public", "allow_overlap",
}  # fmt: skip
NOT_SIMULATED = ("names", "tree", "most_labels")


class ForecastRow(NamedTuple):
    """Accuracy to expect at one budget."""

    pseudo_classes: Kind
    """What stands in for the private classes."""
    budget: str
    epsilon: float
    """Of the promise, at the delta of the forecast; inf without privacy."""
    balanced: float
    """Balanced accuracy, the mean over seeds."""
    minority: float
    """Accuracy of the 25 % smallest classes, the mean over seeds."""
    sd: float
    """Standard deviation of the balanced accuracy over seeds, which draw classes and noise."""


@dataclass(frozen=True)
class Forecast:
    """The accuracy to expect of a fit, as `tacit.forecast` returns it."""

    method: str
    declared: tuple[str, ...]
    """What was stated about the private records, which nothing protects."""
    guesses: tuple[str, ...]
    """What was not stated, and is assumed."""
    delta: float
    table: tuple[ForecastRow, ...]
    """A row for each kind of pseudo-classes and budget, the last of each kind without privacy."""
    basis: Kind
    """The pseudo-classes of `enough_records` and of `sentence`."""
    enough_records: Mapping[str, Enough]
    """What is enough at each budget."""
    sentence: str

    def rows(self, kind: Kind) -> list[ForecastRow]:
        """Return the rows of one kind of pseudo-classes."""
        return [row for row in self.table if row.pseudo_classes == kind]

    def figure(self) -> Any:
        """Draw balanced and minority accuracy against epsilon, as an altair chart.

        It needs the extra `experiments`.
        """
        # by name, since the library that draws lies above this package
        return load("tacit.report.forecasts:forecast_chart")(self)

    def facts(self) -> dict[str, Any]:
        """Return the forecast as plain values, for JSON."""
        enough = {}
        for budget, found in self.enough_records.items():
            enough[budget] = found._asdict()
            if found.budget_for_minority is not None:
                enough[budget]["budget_for_minority"] = str(found.budget_for_minority)
        table = [row._asdict() for row in self.table]
        others = {"table": table, "enough_records": enough}
        return {**asdict(self), **others}


def forecast(
    method: str | PrivateClassifier,
    /,
    *,
    public: Any,
    classes: Any,
    records: int,
    imbalance: float = 1.0,
    budgets: str | Iterable[str | Budget] = BUDGETS,
    labels: Any = None,
    pseudo_classes: Literal["both", "labels", "clusters"] = "both",
    spread: float | None = None,
    unit: Unit | str | None = None,
    delta: float = DELTA,
    records_per_person: int = 1,
    seeds: int = 3,
    folder: str | Path | None = None,
    **parameters: Any,
) -> Forecast:
    """Forecast the accuracy of a fit from public facts and public rows, before it spends anything.

    Parameters
    ----------
    method : str or learner
        A name that `tacit fit` takes, or a learner, whose budget, classes, noise and public rows
        are set here.
    public : array of shape (m, d) or EmbeddingStore
        Public rows of the encoder that the private rows have. A store that a ledger covers is
        refused.
    classes : int or sequence
        The private classes, or how many there are; at least 2.
    records : int
        Private records of the largest class. Like all that is stated here it is declared and
        unprotected: state what is public, or a guess.
    imbalance : float, default=1
        Size of the largest class divided by that of the smallest; sizes in between fall
        geometrically.
    budgets : str or sequence of Budget, default="epsilon=0.1,epsilon=0.5,epsilon=2"
        Budgets with commas between them. An epsilon alone is pure; where the method takes no pure
        budget, it is at `delta`.
    labels : array of shape (m,), optional
        Classes of the public rows, by default those of a store. They need not be the private ones.
    pseudo_classes : {"both", "labels", "clusters"}, default="both"
        What stands in for the private classes: classes of the public rows, clusters of them, or
        both, where the forecast goes by the classes. It goes by clusters alone where the public
        rows have too few classes.
    spread : float, optional
        Share of the variance of unit rows that lies between the private classes, from 0 to 1, for
        clusters. By default that of the public classes, if there are enough, or else a guess.
    unit : Unit or str, optional
        Neighbouring relation of the budgets; by default the method's first.
    delta : float, default=1e-6
        Where epsilon is stated.
    records_per_person : int, default=1
        Under a unit per person, how many records each person has.
    seeds : int, default=3
        Fits of each budget, which differ in pseudo-classes, rows and noise.
    folder : str or Path, optional
        Where finished fits are kept, so that an interrupted forecast resumes.
    parameters
        Further parameters of the method, such as `k=5`.

    Returns
    -------
    Forecast
        With `table`, `enough_records`, `sentence` and `figure()`.

    Raises
    ------
    InputError
        If the method is not known or an argument is out of range, or there are too few public rows
        for that many classes.

    Notes
    -----
    No private record is read, and nothing is charged. docs/forecast.md compares forecasts with what
    was then measured.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> rng = np.random.default_rng(0)
    >>> rows = np.repeat(rng.normal(size=(8, 16)), 40, axis=0) + rng.normal(0, 0.5, (320, 16))
    >>> found = tacit.forecast("noisy-sum", public=rows, labels=np.repeat(range(8), 40),
    ...                        classes=4, records=100, budgets="rho=0.1", seeds=1)
    >>> [(row.pseudo_classes, row.budget, row.balanced > 0.8) for row in found.table[:2]]
    [('labels', 'rho=0.1', True), ('labels', 'rho=inf', True)]
    """
    name, learner_class, parameters = _method(method, parameters)
    rows, public_labels = _public_rows(public, labels)
    task = _task(classes, records, imbalance, records_per_person)
    real("delta", delta, 1e-30, 1 - 1e-9)
    whole("seeds", seeds, 1, 1000)

    one_of("pseudo_classes", pseudo_classes, ("both", "labels", "clusters"))
    kinds, notes = _kinds(rows, public_labels, task, pseudo_classes)
    spread, spread_note = _spread(rows, public_labels, task, spread)
    if "clusters" in kinds:
        notes += spread_note

    chosen_unit = Unit(_unit(unit, learner_class))
    budget_list = _budgets(budgets, learner_class, delta)
    fits = SimulatedFits(
        learner_class=learner_class,
        parameters={"unit": chosen_unit, **parameters},
        task=task,
        rows=rows,
        labels=public_labels,
        spread=spread,
        checkpoint=_checkpoint(folder, name, parameters, chosen_unit, task, rows, public_labels),
    )
    epsilons = [_epsilon(fits, budget, delta) for budget in budget_list]
    notes += _about_repeats(fits, kinds[0])

    infinite = without_privacy(learner_class)
    table = _table(fits, kinds, [*budget_list, infinite], [*epsilons, math.inf], seeds)
    search_seeds = range(min(seeds, SEEDS_OF_SEARCH))

    def measure(budget: Budget, factor: float) -> Accuracy:
        found = [fits.accuracy(kinds[0], budget, seed, factor) for seed in search_seeds]
        return _mean(found)

    enough = enough_records(measure, budget_list, measure(infinite, 1.0), task)
    return Forecast(
        method=name,
        declared=_declared(task, chosen_unit),
        guesses=notes,
        delta=delta,
        table=table,
        basis=kinds[0],
        enough_records=enough,
        sentence=_sentence(table, kinds[0], enough, task),
    )


# Arguments


def _method(
    method: Any, parameters: dict[str, Any]
) -> tuple[str, type[PrivateClassifier], dict[str, Any]]:
    """Return the name of a method, its class, and the parameters that are not set here."""
    if isinstance(method, PrivateClassifier):
        of_learner = method.get_params(deep=False)
        parameters = {**of_learner, **parameters}
        learner_class: type[PrivateClassifier] = type(method)
        name = learner_class.__name__
        set_parameters = {key: parameters[key] for key in NOT_SIMULATED if key in parameters}
        parameters = {key: value for key, value in parameters.items() if key not in SET_HERE}
        parameters = {key: value for key, value in parameters.items() if key not in NOT_SIMULATED}
    else:
        name, parameters = _named(method, parameters)
        learner_class = load(METHODS[name])
        set_parameters = {key: parameters[key] for key in NOT_SIMULATED if key in parameters}
        _check_parameters(name, learner_class, parameters)

    if learner_class.needs_names or not learner_class.uses_records:
        raise InputError(
            f"method {name} learns from class names and not from records, so a forecast has nothing"
            " to simulate; evaluate it on public rows"
        )
    for parameter, value in set_parameters.items():
        if value is not None:
            raise InputError(
                f"{parameter} cannot be simulated, since public rows have none; leave it out, and"
                " take the forecast for one without it"
            )
    return name, learner_class, parameters


def _named(method: Any, parameters: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name in METHODS of a published name, and parameters with those it stands for."""
    if not isinstance(method, str):
        raise InputError(
            f"method={quoted(method)} must be a name or a learner; pass for example 'auto'"
        )
    setting = setting_called(method)
    if setting is not None:
        return setting[0], {**setting[1], **parameters}
    name = method_called(method)
    if name in METHODS:
        return name, parameters
    fault = in_python(method)
    if fault is not None:
        raise InputError(f"method {method!r} {fault}")
    known = nearest(method.lower(), METHODS, *ALIASES, *SETTINGS)
    raise InputError(f"method {method!r} is not known; {known}")


def _check_parameters(
    name: str, learner_class: type[PrivateClassifier], parameters: Mapping[str, Any]
) -> None:
    """Refuse what is no parameter of the method."""
    accepted = [key for key in learner_class.flat_parameters() if key not in SET_HERE]
    for parameter in parameters:
        if parameter not in accepted:
            known = ", ".join(accepted) or "none"
            raise InputError(f"{parameter} is not a parameter of {name}; it has: {known}")


def _public_rows(public: Any, labels: Any) -> tuple[Floats, Integers | None]:
    """Return the public rows, checked, and the positions of their classes, if they have any."""
    from tacit.data.embeddings import EmbeddingStore

    rows = public
    if isinstance(public, EmbeddingStore):
        _check_uncovered(public)
        rows = public.x
        if labels is None:
            labels = public.y
    rows = as_rows(rows, "public")
    check_rows(rows, name="public")
    rows = np.asarray(rows, np.float64)
    if labels is None:
        return rows, None

    classes = np.asarray(labels)
    if classes.shape != (len(rows),):
        raise InputError(
            f"labels has shape {classes.shape}, and public has {len(rows)} rows; pass one label for"
            " each row, or leave labels out"
        )
    _, positions = np.unique(classes, return_inverse=True)
    return rows, np.asarray(positions, np.int64)


def _check_uncovered(store: Any) -> None:
    """Refuse a store whose uses a ledger counts."""
    ledger = Ledger.in_use(None, store.folder, store.identity)
    if ledger is not None and not ledger.account().empty:
        raise InputError(
            f"{store.folder} is private: {ledger.path} counts its uses; pass rows that are public"
        )


def _task(classes: Any, records: Any, imbalance: Any, records_per_person: Any) -> StatedTask:
    if isinstance(classes, int | np.integer):
        n_classes = whole("classes", classes, 2, MOST_CLASSES)
    else:
        n_classes = whole("number of classes", len(class_list(classes)), 2, MOST_CLASSES)
    task = StatedTask(
        n_classes=n_classes,
        records=whole("records", records, 1, MOST_RECORDS_STATED),
        imbalance=real("imbalance", imbalance, 1, 1e9),
        records_per_person=whole("records_per_person", records_per_person, 1, MOST_RECORDS_STATED),
    )
    task.total  # noqa: B018  raises where the smallest class would have no record
    return task


def _kinds(
    rows: Floats, labels: Integers | None, task: StatedTask, wanted: str
) -> tuple[tuple[Kind, ...], tuple[str, ...]]:
    """Return the kinds of pseudo-classes that the public rows suffice for, and what to say."""
    kinds: tuple[Kind, ...] = ()
    notes: tuple[str, ...] = ()
    n_usable = 0 if labels is None else len(usable_classes(labels))
    if n_usable >= task.n_classes:
        kinds += ("labels",)
        notes += ("private classes are taken to be as far apart as the public classes",)
    else:
        fault = (
            f"the public rows have {n_usable} classes of {FEWEST_ROWS} rows or more, fewer than"
            f" {task.n_classes}"
        )
        notes += (f"{fault}, so clusters alone stand in for the private classes",)
        if wanted == "labels":
            raise InputError(f"{fault}; leave pseudo_classes out, or pass rows of more classes")

    fewest = FEWEST_ROWS * task.n_classes
    if len(rows) >= fewest:
        kinds += ("clusters",)
    if wanted != "both":
        kinds = tuple(kind for kind in kinds if kind == wanted)
        notes = notes if "labels" in kinds or n_usable < task.n_classes else ()
    if not kinds:
        raise InputError(
            f"classes={task.n_classes} need {fewest} public rows or more, and public has"
            f" {len(rows)}; pass more public rows"
        )
    return kinds, notes


def _spread(
    rows: Floats, labels: Integers | None, task: StatedTask, declared: Any
) -> tuple[float, tuple[str, ...]]:
    """Return the spread of clusters, and what to say of it."""
    if declared is not None:
        return real("spread", declared, 0, 1), ()
    if labels is not None and len(usable_classes(labels)) >= task.n_classes:
        spread = spread_of(rows, labels)
        return spread, (f"the spread of clusters, {spread:.2f}, is that of the public classes",)
    spread = guessed_spread(task.n_classes)
    return spread, (
        f"the spread of clusters, {spread:.2f}, is a guess from other tasks of as many classes",
    )


def _unit(unit: Any, learner_class: type[PrivateClassifier]) -> Unit | str:
    if unit is None:
        return learner_class.units[0]
    if not isinstance(unit, str) or unit not in list(Unit):
        raise InputError(f"unit={quoted(unit)} must be one of {', '.join(Unit)}; correct it")
    return unit


def _budgets(
    budgets: Any, learner_class: type[PrivateClassifier], delta: float
) -> tuple[Budget, ...]:
    """Return finite budgets of one kind."""
    items = budgets
    if isinstance(budgets, str | Budget):
        items = split_budgets(budgets) if isinstance(budgets, str) else [budgets]
    parsed = []
    for item in items:
        budget = Budget.parse(item)
        if budget.kind == "pure" and "pure" not in learner_class.budget_kinds:
            assert budget.epsilon is not None
            budget = Budget.approx(budget.epsilon, delta)
        if budget.infinite:
            raise InputError(
                f"budget {budget} protects nothing, and is forecast anyway; leave it out"
            )
        if budget not in parsed:
            parsed.append(budget)
    if not parsed:
        raise InputError("budgets is empty; pass for example budgets='epsilon=0.5,epsilon=2'")
    kinds = {budget.kind for budget in parsed}
    if len(kinds) > 1:
        raise InputError(
            f"budgets are of several kinds ({', '.join(sorted(kinds))}), which have no one axis;"
            " pass budgets of one kind"
        )
    return tuple(parsed)


def split_budgets(text: str) -> list[str]:
    """Split budgets at commas; a delta belongs to the epsilon before it.

    >>> split_budgets("epsilon=1,delta=1e-6,epsilon=2")
    ['epsilon=1,delta=1e-6', 'epsilon=2']
    """
    parts: list[str] = []
    for item in text.split(","):
        if item.strip().startswith("delta") and parts:
            parts[-1] += "," + item
        else:
            parts.append(item)
    return parts


def _checkpoint(
    folder: Any,
    name: str,
    parameters: Mapping[str, Any],
    unit: Unit,
    task: StatedTask,
    rows: Floats,
    labels: NDArray[Any] | None,
) -> Checkpoint | None:
    if folder is None:
        return None
    key = f"{name} {sorted(parameters.items())} {unit} {task} {content_hash([rows, labels])}"
    return Checkpoint(Path(folder), key)


def _epsilon(fits: SimulatedFits, budget: Budget, delta: float) -> float:
    """Return the epsilon that a fit promises, which also checks the budget and the parameters."""
    public = fits.rows if fits.learner_class.needs_public else None
    return fits.learner(budget, public).promise().epsilon(delta)


# Results


def _table(
    fits: SimulatedFits,
    kinds: tuple[Kind, ...],
    budgets: list[Budget],
    epsilons: list[float],
    seeds: int,
) -> tuple[ForecastRow, ...]:
    cells = [(kind, budget, seed) for kind in kinds for budget in budgets for seed in range(seeds)]
    found: dict[tuple[Kind, Budget], list[Accuracy]] = {}
    for kind, budget, seed in progress(cells, "fits on pseudo-classes", len(cells)):
        found.setdefault((kind, budget), []).append(fits.accuracy(kind, budget, seed))

    epsilon_of = dict(zip(budgets, epsilons, strict=True))
    rows = []
    for (kind, budget), accuracies in found.items():
        mean = _mean(accuracies)
        sd = 0.0
        if seeds > 1:
            sd = float(np.std([accuracy.balanced for accuracy in accuracies], ddof=1))
        rows.append(ForecastRow(kind, str(budget), epsilon_of[budget], *mean, sd))
    return tuple(rows)


def _mean(accuracies: list[Accuracy]) -> Accuracy:
    return Accuracy(*np.mean(accuracies, axis=0).tolist())


def _about_repeats(fits: SimulatedFits, kind: Kind) -> tuple[str, ...]:
    """Say where a public row stands for several records."""
    n_rows = rows_to_learn_from(fits.pseudo_classes(kind, 0).labels)
    if n_rows >= fits.task.records:
        return ()
    return (
        f"the median pseudo-class has {n_rows} public rows to learn from, fewer than"
        f" {fits.task.records} records, so each stands for several",
    )


def _declared(task: StatedTask, unit: Unit) -> tuple[str, ...]:
    facts = [
        f"{task.n_classes} classes",
        f"{task.records} records of the largest class",
        f"imbalance {task.imbalance:g}",
    ]
    if unit.per_person:
        facts.append(f"{task.records_per_person} records of each person")
    return tuple(facts)


def _sentence(
    table: tuple[ForecastRow, ...], basis: Kind, enough: Mapping[str, Enough], task: StatedTask
) -> str:
    """Say at which budgets the records are enough, and what the others and small classes need."""
    *private, baseline = [row for row in table if row.pseudo_classes == basis]
    records = f"{task.records} records of the largest class"
    sufficient = [row for row in private if _is_enough(enough[row.budget].records, task)]
    others = [row for row in private if row not in sufficient]

    phrases = []
    if sufficient:
        accuracies = " and ".join(f"{row.balanced:.2f} at {row.budget}" for row in sufficient)
        phrases.append(
            f"{records} are enough for a balanced accuracy of {accuracies}, within 5 points of"
            f" {baseline.balanced:.2f} without privacy"
        )
    for row in others:
        needed = _records_text(enough[row.budget].records)
        phrases.append(
            f"at {row.budget} a balanced accuracy of {row.balanced:.2f} is to be expected, and"
            f" enough records are {needed}"
        )
    if task.imbalance > 1:
        phrases.append(_about_small_classes(private, enough, task))
    text = "; ".join(phrases)
    return f"{text[0].upper()}{text[1:]}."


def _is_enough(records: int | None, task: StatedTask) -> bool:
    return records is not None and records <= task.records


def _records_text(records: int | None) -> str:
    if records is None:
        return "more than 64 times as many"
    return f"about {records} of the largest class"


def _about_small_classes(
    private: list[ForecastRow], enough: Mapping[str, Enough], task: StatedTask
) -> str:
    """Say what small classes need at the largest budget."""
    row = max(private, key=lambda row: row.epsilon)
    found = enough[row.budget]
    start = f"for small classes at {row.budget} (accuracy {row.minority:.2f})"
    if found.records_for_minority is None:
        return f"{start} you need more than 64 times as many records, or as large a budget"
    if _is_enough(found.records_for_minority, task):
        return f"{start} they are enough too"
    smallest = math.ceil(found.records_for_minority / task.imbalance)
    return (
        f"{start} you need about {smallest} records of the smallest class or a budget of"
        f" {_rounded(found.budget_for_minority)}"
    )


def _rounded(budget: Budget | None) -> str:
    """Write a budget that was interpolated, to two digits, rounded up."""
    assert budget is not None
    return ",".join(f"{name}={rounded_up(value, 2)}" for name, value in budget._parts().items())
