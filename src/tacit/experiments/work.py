"""One cell of a sweep, as an engine's worker runs it: fit, measure, write the result."""

from __future__ import annotations

import json
import math
import os
import platform
import time
import warnings
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.progress import unreported
from tacit.compute.shared import sharing
from tacit.compute.timing import timing
from tacit.data.person_ids import PersonIdsWarning
from tacit.errors import InputError, TacitError
from tacit.experiments import results
from tacit.experiments.cell import REALISED, SET_BY_CELL, Cell
from tacit.experiments.data import Records, records
from tacit.experiments.results import PREDICTION, REST, SETTINGS, TRIALS, Result
from tacit.learners.common.overlap import MESSAGE_WITHOUT_NUMBER, OverlapWarning
from tacit.models import metrics
from tacit.models.decisions import pooled
from tacit.models.rows import unit_rows, unit_rows_about
from tacit.privacy.guarantee import rounded_up
from tacit.version import __version__

# folders within the folder of a sweep
SHARED = "shared"
STARTED = "started"
IDENTITY = (
    "key",
    "plan",
    "data",
    "encoder",
    "learner",
    "method",
    "parameters",
    "public",
    "public_rows",
    "imbalance",
    "seed",
    "unit",
    "tuning",
    "names",
)
"""Fields of a result that are those of its cell."""

# entry of `keep` that stands for a picture of means
MEANS_2D = "means_2d"

# fitted attributes that a learner took from public facts where no parameter sets them
SETTINGS_FITTED = ("window_", "learning_rate_")

# a public fact of a release with the window, which a search keeps of the learner that it chose
WINDOW = "clip window of 1 + cosine"

# a grouped parameter that says where a fit runs
RUN = "run"

# parameters that change no result
NO_SETTINGS = ("allow_overlap", "jobs")

# letters of a setting; longer ones are data
LONGEST_SETTING = 60

# test rows shown in a picture of means
POINTS = 300

ESTIMATES = {
    "means": "means of rows",
    "unit means": "means of unit rows",
    "directions": "directions of sums of unit rows",
    "rows": "directions of sums of unit rows, and chosen public rows in place of private ones",
}
"""What the picture of means shows, by what a learner estimates."""


def work(folder: Path, cell: Cell) -> Result:
    """Compute a cell and write its result to the folder of the sweep.

    The result of a cell that fails is its error.
    """
    # one line for each start, so that a cell that ran twice can be seen
    starts = folder / STARTED / f"{platform.node()}-{os.getpid()}.txt"
    with starts.open("a", encoding="utf-8") as file:
        file.write(cell.key + "\n")

    facts: dict[str, Any] = {name: getattr(cell, name) for name in IDENTITY} | {
        "budget": cell.shown_budget,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": platform.node(),
        "processor": _processor(),
        "versions": _versions(),
    }

    shared_work = nullcontext() if cell.timed else sharing(folder / SHARED)
    # the sweep reports progress, by cells
    with shared_work, unreported():
        try:
            measured = measure(cell)
        except Exception as error:
            measured = {"status": "failed", "error": _fault(error)}
    result = Result(**facts, **measured)
    results.write(folder, result)
    return result


def _fault(error: Exception) -> str:
    """Return an error as one line; the errors that tacit raises on purpose need no type."""
    message = " ".join(str(error).split())[:500]
    if isinstance(error, TacitError):
        return message
    return f"{type(error).__name__}: {message}"


def measure(cell: Cell) -> dict[str, Any]:
    """Fit, predict the test records and measure; return fields of the result by name."""
    data = records(cell.source, cell.imbalance, cell.subset_seed)
    learner = cell.make(np.arange(len(data.classes)), data.sizes, **cell.public_inputs())
    with warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("always")
        predicted, times = _fit_and_predict(cell, learner, data)

    extra = {name: _extra(name, learner, data, predicted) for name in cell.keep}
    extra[SETTINGS] = settings_of(cell, learner)
    if cell.has_search:
        extra[TRIALS] = _trials(learner)
    messages = _public_messages(caught_warnings)
    if messages:
        extra["warnings"] = messages

    scores = metrics.evaluate(data.test_y, predicted, learner.classes_, data.sizes)
    return {
        "status": "done",
        "accuracy": scores.accuracy,
        "balanced_accuracy": scores.balanced,
        "minority_accuracy": scores.minority,
        "recall": [float(scores.per_class[c]) for c in learner.classes_],
        "class_sizes": data.sizes.tolist(),
        "n_train": len(data.y),
        "n_test": len(data.test_y),
        "width": int(data.x.shape[1]),
        "n_classes": len(data.classes),
        "extra": json.dumps(extra, sort_keys=True),
        **_guarantee_fields(cell, learner),
        **times,
    }


def settings_of(cell: Cell, learner: Any) -> dict[str, Any]:
    """Return the hyperparameters that a fitted learner used: those that were set or are default,
    those that a search chose, and those that it took from public rows.
    """
    settings = {}
    for name, value in sorted(_parameters_of(learner).items()):
        # rows, long lists and what is left to the learner are no settings
        short = isinstance(value, bool | int | float | str | tuple | list)
        if (
            name not in (*SET_BY_CELL, *NO_SETTINGS)
            and short
            and len(str(value)) <= LONGEST_SETTING
        ):
            settings[name] = _plain(value)

    for attribute in SETTINGS_FITTED:
        value = getattr(learner, attribute, None)
        if value is not None:
            settings[attribute.removesuffix("_")] = _plain(value)
    released = getattr(learner, "released_", None)
    if cell.has_search and released is not None and WINDOW in released.mechanism:
        settings["window"] = _plain(released.mechanism[WINDOW])
    if cell.has_realised_counts:
        settings["counts"] = REALISED
    return settings


def _parameters_of(learner: Any) -> dict[str, Any]:
    """Return the parameters of a fitted learner, or of the learner that a search chose.

    Fields of grouped parameters are named as in `teachers.number`.
    """
    estimator = getattr(learner, "estimator", learner)
    parameters = estimator.get_params(deep=False) | getattr(learner, "best_params_", {})
    fields_of_groups = list(estimator.flat_names.values())
    if not fields_of_groups:
        return dict(parameters)

    values = estimator.get_params(deep=True)
    for field in fields_of_groups:
        group, _, name = field.partition("__")
        parameters.pop(group, None)
        # a field that the kind of a group lacks has no value
        if group != RUN and field in values:
            parameters[f"{group}.{name}"] = values[field]
    return dict(parameters)


def _trials(learner: Any) -> list[dict[str, Any]]:
    """Return the parameters and the score of each run of a search, where it keeps them."""
    runs = getattr(learner, "scores_", [])
    return [{"parameters": _plain(candidate), "score": score} for candidate, score in runs]


def _fit_and_predict(
    cell: Cell, learner: Any, data: Records
) -> tuple[NDArray[Any], dict[str, Any]]:
    """Fit the learner; return what it predicts for the test records, and fields of times."""
    fit_arguments = cell.fit_arguments(data)
    if cell.timed:
        # compiles loops, starts threads and reads files into memory before the clock starts
        learner.fit(data.x, data.y, **fit_arguments).predict(data.test_x)

    with timing() as seconds_of_phase:
        start = time.perf_counter()
        learner.fit(data.x, data.y, **fit_arguments)
        fit_end = time.perf_counter()
    predicted = learner.predict(data.test_x)
    predict_end = time.perf_counter()

    fit_seconds = fit_end - start
    predict_seconds = predict_end - fit_end
    phases = {}
    if cell.timed:
        rest = fit_seconds - sum(seconds_of_phase.values())
        phases = {**seconds_of_phase, REST: rest, PREDICTION: predict_seconds}
    return predicted, {
        "fit_seconds": fit_seconds,
        "predict_seconds": predict_seconds,
        "phases": json.dumps(phases),
    }


def _guarantee_fields(cell: Cell, learner: Any) -> dict[str, Any]:
    """Return the guarantee of a fit in each of its forms."""
    guarantee = cell.guarantee(learner)
    rho: float | None = math.inf
    mu: float | None = math.inf
    if guarantee.bounded:
        rho = _rounded_up(guarantee.rho)
        mu = _rounded_up(guarantee.mu)
    return {
        "delta": cell.delta,
        "epsilon": _rounded_up(guarantee.epsilon(cell.delta)),
        "rho": rho,
        "mu": mu,
        "guarantee": json.dumps(guarantee.to_json(), sort_keys=True),
    }


def _public_messages(caught_warnings: Iterable[warnings.WarningMessage]) -> list[str]:
    """Return the warnings' messages without private facts, since a result may be published."""
    messages = set()
    for warning in caught_warnings:
        if issubclass(warning.category, PersonIdsWarning):
            continue
        if issubclass(warning.category, OverlapWarning):
            messages.add(MESSAGE_WITHOUT_NUMBER)
        else:
            messages.add(" ".join(str(warning.message).split()))
    return sorted(messages)


def _rounded_up(figure: float | None) -> float | None:
    """Round a figure as guarantees state it.

    So "rho = 0.005" selects a cell that was calibrated to slightly below that.
    """
    return None if figure is None else float(rounded_up(figure))


def _extra(name: str, learner: Any, data: Records, predicted: NDArray[Any]) -> Any:
    """Return an attribute of the fitted learner as plain values: steps_, answers_.answered."""
    if name == MEANS_2D:
        return means_2d(learner, data, predicted)

    value = learner
    for part in name.split("."):
        if not hasattr(value, part):
            attributes = sorted(
                attribute
                for attribute in vars(learner)
                if attribute.endswith("_") and not attribute.startswith("_")
            )
            raise InputError(
                f"keep names {name!r}, which a fitted {type(learner).__name__} does not have; it"
                f" has {', '.join(attributes)}"
            )
        value = getattr(value, part)
    return _plain(value)


def _plain(value: Any) -> Any:
    """Turn a value into what JSON holds: dicts, lists, numbers and texts."""
    if is_dataclass(value) and not isinstance(value, type):
        # fields without repr are long, or private
        shown = [item.name for item in fields(value) if item.repr]
        return {name: _plain(getattr(value, name)) for name in shown}
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return value.tolist()
    if callable(value):
        raise InputError("keep names a method; name what it computed, such as steps_")
    if isinstance(value, str | int | float | bool | None):
        return value
    return str(value)


def means_2d(learner: Any, data: Records, predicted: NDArray[Any]) -> dict[str, Any]:
    """Project true and private class means, and some test rows, on the first two principal
    components of the test rows.

    Means and rows are those of what the learner averages. For public benchmarks: the true means are
    private.
    """
    estimates = learner.estimates
    if not estimates or np.ndim(learner.prototypes_) != 2:
        raise InputError(
            f"keep names {MEANS_2D!r}, and {type(learner).__name__} has no class means in the"
            " space of its rows; leave it out"
        )

    test_rows = _averaged_rows(learner, data.test_x)
    true_means = _class_means(_averaged_rows(learner, data.x), data)
    private_means = learner.prototypes_
    if estimates == "rows":
        private_means = _averaged_rows(learner, learner.prototypes_)
    if estimates in ("directions", "rows"):
        # the lengths of these means say nothing
        true_means = unit_rows(true_means)
        private_means = unit_rows(private_means)

    centre = test_rows.mean(axis=0)
    axes = np.linalg.svd(test_rows - centre, full_matrices=False)[2][:2].T

    # evenly spaced, so that all classes are shown even if rows are sorted by class
    n_points = min(len(test_rows), POINTS)
    shown_rows = np.linspace(0, len(test_rows) - 1, n_points).astype(int)
    points = (test_rows[shown_rows] - centre) @ axes
    correct = (predicted == data.test_y)[shown_rows]
    return {
        "of": ESTIMATES[estimates],
        "true": ((true_means - centre) @ axes).tolist(),
        "private": ((private_means - centre) @ axes).tolist(),
        "points": [[*point, int(hit)] for point, hit in zip(points.tolist(), correct, strict=True)],
    }


def _class_means(rows: NDArray[np.float64], data: Records) -> NDArray[np.float64]:
    """Return the mean of the training rows of each class, (C, d); NaN for a class without any."""
    means = np.full((len(data.sizes), rows.shape[1]), np.nan)
    for c, size in enumerate(data.sizes):
        if size:
            means[c] = rows[data.y == c].mean(axis=0)
    return means


def _averaged_rows(learner: Any, rows: Any) -> NDArray[np.float64]:
    """Return rows as the learner averages them: as they are or pooled, or as unit rows about its
    centre.
    """
    float_rows = np.asarray(rows, dtype=np.float64)
    if learner.estimates == "means":
        return pooled(float_rows, learner.pooling)
    return unit_rows_about(float_rows, learner.centre_)


@lru_cache(maxsize=1)
def _processor() -> str:
    """Return the model of the processor, where the system states it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


@lru_cache(maxsize=1)
def _versions() -> str:
    import scipy
    import sklearn

    versions = {"tacit": __version__, "python": platform.python_version(), "numpy": np.__version__}
    return json.dumps(versions | {"scipy": scipy.__version__, "scikit-learn": sklearn.__version__})
