"""Arguments of a forecast, checked: the method, the public rows, the task and the budgets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tacit.data.labels import class_list
from tacit.data.rows import as_rows, check_rows
from tacit.errors import InputError, nearest, quoted
from tacit.learners.common.base import PrivateClassifier
from tacit.learners.common.parameters import real, whole
from tacit.learners.methods import (
    ALIASES,
    METHODS,
    SETTINGS,
    in_python,
    load,
    method_called,
    setting_called,
)
from tacit.measure.pseudo_classes import (
    FEWEST_ROWS,
    Integers,
    Kind,
    guessed_spread,
    spread_of,
    usable_classes,
)
from tacit.measure.simulated_fits import (
    StatedTask,
)
from tacit.models.rows import Floats
from tacit.privacy.budget import Budget
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit

MOST_CLASSES = 10_000
MOST_RECORDS_STATED = 10**9

# what a forecast sets itself, and what it cannot simulate
SET_HERE = {
    "folder",
    "budget", "classes", "noise", "random_state", "unit", "ledger", "public", "allow_overlap",
}  # fmt: skip
NOT_SIMULATED = ("names", "tree", "most_labels")


def named_method(
    method: Any, parameters: dict[str, Any]
) -> tuple[str, type[PrivateClassifier], dict[str, Any]]:
    """Return the name of a method, its class, and the parameters that a forecast does not set."""
    learner_class: type[PrivateClassifier]
    if isinstance(method, PrivateClassifier):
        learner_class = type(method)
        name = learner_class.__name__
        parameters = {**method.get_params(deep=False), **parameters}
    else:
        name, parameters = _named(method, parameters)
        learner_class = load(METHODS[name])
        _check_parameters(name, learner_class, parameters)

    if learner_class.needs_names or not learner_class.uses_records:
        raise InputError(
            f"method {name} learns from class names and not from records, so a forecast has nothing"
            " to simulate; evaluate it on public rows"
        )
    for parameter in NOT_SIMULATED:
        if parameters.get(parameter) is not None:
            raise InputError(
                f"{parameter} cannot be simulated, since public rows have none; leave it out, and"
                " take the forecast for one without it"
            )

    if isinstance(method, PrivateClassifier):
        # a learner has a value for each of its parameters, those that are set here too
        not_passed = {*SET_HERE, *NOT_SIMULATED}
        parameters = {key: value for key, value in parameters.items() if key not in not_passed}
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


def public_rows(public: Any, labels: Any) -> tuple[Floats, Integers | None]:
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


def stated_task(classes: Any, records: Any, imbalance: Any, records_per_person: Any) -> StatedTask:
    """Return what is stated about the private records, checked."""
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


def kinds_of_pseudo_classes(
    rows: Floats, labels: Integers | None, task: StatedTask, wanted: str
) -> tuple[tuple[Kind, ...], tuple[str, ...]]:
    """Return the kinds of pseudo-classes that the public rows suffice for, and what to say."""
    kinds: tuple[Kind, ...] = ()
    n_usable = 0 if labels is None else len(usable_classes(labels))
    if n_usable >= task.n_classes:
        kinds += ("labels",)
        notes: tuple[str, ...] = (
            "private classes are taken to be as far apart as the public classes",
        )
    else:
        fault = (
            f"the public rows have {n_usable} classes of {FEWEST_ROWS} rows or more, fewer than"
            f" {task.n_classes}"
        )
        if wanted == "labels":
            raise InputError(f"{fault}; leave pseudo_classes out, or pass rows of more classes")
        notes = (f"{fault}, so clusters alone stand in for the private classes",)

    fewest = FEWEST_ROWS * task.n_classes
    if len(rows) >= fewest:
        kinds += ("clusters",)
    if wanted == "labels":
        kinds = tuple(kind for kind in kinds if kind == "labels")
    elif wanted == "clusters":
        kinds = tuple(kind for kind in kinds if kind == "clusters")
        if n_usable >= task.n_classes:
            # nothing is taken from the public classes
            notes = ()
    if not kinds:
        raise InputError(
            f"classes={task.n_classes} need {fewest} public rows or more, and public has"
            f" {len(rows)}; pass more public rows"
        )
    return kinds, notes


def spread_of_clusters(
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


def chosen_unit(unit: Any, learner_class: type[PrivateClassifier]) -> Unit:
    """Return the neighbouring relation of the budgets; by default the method's first."""
    if unit is None:
        return Unit(learner_class.units[0])
    if not isinstance(unit, str) or unit not in list(Unit):
        raise InputError(f"unit={quoted(unit)} must be one of {', '.join(Unit)}; correct it")
    return Unit(unit)


def finite_budgets(
    budgets: Any, learner_class: type[PrivateClassifier], delta: float
) -> tuple[Budget, ...]:
    """Return finite budgets of one kind."""
    items = budgets
    if isinstance(budgets, str):
        items = split_budgets(budgets)
    elif isinstance(budgets, Budget):
        items = [budgets]
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
    if len({budget.kind for budget in parsed}) > 1:
        raise InputError(
            f"budgets are of several kinds ({' and '.join(map(str, parsed))}), which have no one"
            " axis; pass budgets of one kind, such as rho=0.1,rho=0.5"
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
