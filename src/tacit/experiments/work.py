"""One cell of a sweep, as an engine's worker runs it: fit, measure, write the result."""

from __future__ import annotations

import json
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

from tacit.compute.progress import reporting
from tacit.compute.shared import sharing
from tacit.compute.timing import timing
from tacit.data.person_ids import PersonIdsWarning
from tacit.errors import InputError, TacitError
from tacit.experiments import results
from tacit.experiments.cell import Cell
from tacit.experiments.data import Records, records
from tacit.experiments.results import PREDICTION, REST, Result
from tacit.learners.common.overlap import MESSAGE_WITHOUT_NUMBER, OverlapWarning
from tacit.models import metrics
from tacit.models.decisions import pooled
from tacit.models.rows import unit_rows, unit_rows_about
from tacit.privacy.guarantee import rounded_up
from tacit.version import __version__

SHARED, STARTED = "shared", "started"
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
MEANS_2D = "means_2d"
POINTS = 300  # of the test set, in a picture of means
ESTIMATES = {
    "means": "means of rows",
    "unit means": "means of unit rows",
    "directions": "directions of sums of unit rows",
    "rows": "directions of sums of unit rows, and chosen public rows in place of private ones",
}
"""What the picture of means shows, by what a learner estimates."""


def work(folder: Path, cell: Cell) -> Result:
    """Compute a cell and write its result to the folder of the sweep; a cell that fails has its
    error as the result.
    """
    with (folder / STARTED / f"{platform.node()}-{os.getpid()}.txt").open(
        "a", encoding="utf-8"
    ) as file:
        file.write(cell.key + "\n")  # so that a cell that ran twice can be seen
    facts: dict[str, Any] = {name: getattr(cell, name) for name in IDENTITY} | {
        "budget": cell.shown_budget,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": platform.node(),
        "processor": _processor(),
        "versions": _versions(),
    }
    shared_work = nullcontext() if cell.timed else sharing(folder / SHARED)
    with shared_work, reporting(lambda *_: None):  # the sweep reports progress, by cells
        try:
            measured = measure(cell)
        except Exception as error:
            message = " ".join(str(error).split())[:500]
            fault = (
                message if isinstance(error, TacitError) else f"{type(error).__name__}: {message}"
            )
            measured = {"status": "failed", "error": fault}
    result = Result(**facts, **measured)
    results.write(folder, result)
    return result


def measure(cell: Cell) -> dict[str, Any]:
    """Fit and measure; fields of the result by name."""
    data = records(cell.source, cell.imbalance, cell.subset_seed)
    learner = cell.make(np.arange(len(data.classes)), data.sizes, **cell.public_inputs())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        of_records = cell.of_records(data)
        if cell.timed:  # compiles loops, starts threads and reads files into memory
            learner.fit(data.x, data.y, **of_records).predict(data.test_x)
        with timing() as seconds:
            started = time.perf_counter()
            learner.fit(data.x, data.y, **of_records)
            fitted = time.perf_counter()
        predicted = learner.predict(data.test_x)
        ended = time.perf_counter()
    phases = {**seconds, REST: fitted - started - sum(seconds.values()), PREDICTION: ended - fitted}
    scores = metrics.evaluate(data.test_y, predicted, learner.classes_, data.sizes)
    guarantee = cell.guarantee(learner)
    extra = {name: _extra(name, learner, data, predicted) for name in cell.keep}
    messages = _public_messages(caught)
    if messages:
        extra["warnings"] = messages
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
        "delta": cell.delta,
        "epsilon": _stated(guarantee.epsilon(cell.delta)),
        "rho": _stated(guarantee.rho) if guarantee.bounded else float("inf"),
        "mu": _stated(guarantee.mu) if guarantee.bounded else float("inf"),
        "guarantee": json.dumps(guarantee.to_json(), sort_keys=True),
        "extra": json.dumps(extra, sort_keys=True),
        "fit_seconds": fitted - started,
        "predict_seconds": ended - fitted,
        "phases": json.dumps(phases if cell.timed else {}),
    }


def _public_messages(caught: Iterable[warnings.WarningMessage]) -> list[str]:
    """The messages of these warnings without what is private, since a result may be published."""
    messages = set()
    for warning in caught:
        if issubclass(warning.category, PersonIdsWarning):
            continue
        if issubclass(warning.category, OverlapWarning):
            messages.add(MESSAGE_WITHOUT_NUMBER)
        else:
            messages.add(" ".join(str(warning.message).split()))
    return sorted(messages)


def _stated(figure: float | None) -> float | None:
    """A figure rounded as guarantees state it, so that "rho = 0.005" finds a cell calibrated to
    slightly below that.
    """
    return None if figure is None else float(rounded_up(figure))


def _extra(name: str, learner: Any, data: Records, predicted: NDArray[Any]) -> Any:
    """An attribute of the fitted learner, such as steps_ or answers_.answered, as plain values."""
    if name == MEANS_2D:
        return means_2d(learner, data, predicted)
    value = learner
    for part in name.split("."):
        if not hasattr(value, part):
            known = ", ".join(
                sorted(name for name in vars(learner) if name.endswith("_") and name[0] != "_")
            )
            fault = f"which a fitted {type(learner).__name__} does not have"
            raise InputError(f"keep names {name!r}, {fault}; it has {known}")
        value = getattr(value, part)
    return _plain(value)


def _plain(value: Any) -> Any:
    # fields without repr are long, or private
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value) if one.repr}
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return value.tolist()
    if callable(value):
        raise InputError("keep names a method; name what it computed, such as steps_")
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def means_2d(learner: Any, data: Records, predicted: NDArray[Any]) -> dict[str, Any]:
    """True and private class means on the first two principal components of the test rows, and some
    of these rows.

    Means and rows are those of what the learner averages. For public benchmarks: the true means are
    private.
    """
    prototypes, what = getattr(learner, "prototypes_", None), getattr(learner, "estimates", "")
    if prototypes is None or np.ndim(prototypes) != 2 or not what:
        fault = f"{type(learner).__name__} has no class means in the space of its rows"
        raise InputError(f"keep names {MEANS_2D!r}, and {fault}; leave it out")
    rows, train = _averaged(learner, data.test_x), _averaged(learner, data.x)
    true = np.array(
        [
            train[data.y == c].mean(axis=0) if n else np.full(train.shape[1], np.nan)
            for c, n in enumerate(data.sizes)
        ]
    )
    private = _averaged(learner, prototypes) if what == "rows" else prototypes
    if what in ("directions", "rows"):  # their lengths mean nothing
        true, private = unit_rows(true), unit_rows(private)
    centre = rows.mean(axis=0)
    axes = np.linalg.svd(rows - centre, full_matrices=False)[2][:2].T
    # of all classes, though rows be sorted
    shown = np.linspace(0, len(rows) - 1, min(len(rows), POINTS)).astype(int)
    points = (rows[shown] - centre) @ axes
    right = (predicted == data.test_y)[shown]
    return {
        "of": ESTIMATES[what],
        "true": ((true - centre) @ axes).tolist(),
        "private": ((private - centre) @ axes).tolist(),
        "points": [[*point, int(hit)] for point, hit in zip(points.tolist(), right, strict=True)],
    }


def _averaged(learner: Any, rows: Any) -> NDArray[np.float64]:
    """Rows as the learner averages them: as they are, pooled, or as unit rows about its centre."""
    plain = np.asarray(rows, dtype=np.float64)
    return (
        pooled(plain, learner.pooling)
        if learner.estimates == "means"
        else unit_rows_about(plain, learner.centre_)
    )


@lru_cache(maxsize=1)
def _processor() -> str:
    """Model of the processor, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor() or platform.machine())


@lru_cache(maxsize=1)
def _versions() -> str:
    import scipy
    import sklearn

    versions = {"tacit": __version__, "python": platform.python_version(), "numpy": np.__version__}
    return json.dumps(versions | {"scipy": scipy.__version__, "scikit-learn": sklearn.__version__})
