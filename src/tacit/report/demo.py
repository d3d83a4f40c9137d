"""The comparisons of the demonstration on imbalanced digits: over learners and budgets, and over
public rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from tacit.compute.progress import progress
from tacit.experiments.data import Records, data_source, public_rows
from tacit.experiments.data import records as records_of
from tacit.experiments.plan import DataSet
from tacit.experiments.results import Result
from tacit.learners.prototypes.auto import AutoPrototypes
from tacit.learners.prototypes.coinpress import CoinPressPrototypes
from tacit.learners.prototypes.noisy_sum import NoisySumPrototypes
from tacit.learners.prototypes.public import PublicPrototypes
from tacit.models.metrics import evaluate
from tacit.report.accuracy import BALANCED, MINORITY, result_of_fit
from tacit.report.groups import grouped

ROUGH_EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
IMBALANCE = 10.0
WORTH_RHO = 0.125
"""At which the worth of public rows is shown."""
FEW_ROWS = (30, 100)


class Digits(NamedTuple):
    """Digits less the public mean: an imbalanced private part with its test rows, and public
    rows.
    """

    records: Records
    public: Any


def digits() -> Digits:
    """The data of the demonstration; the centre is that of the public rows, so it costs nothing."""
    source = data_source(DataSet.model_validate({"name": "digits", "builtin": "digits"}), Path())
    return Digits(records_of(source, IMBALANCE, 0), public_rows(source, "own", None))


def compare(data: Digits, n_seeds: int) -> list[Result]:
    """Fit every learner at every budget and seed with research noise, and once without privacy."""
    budgets = [(rough**2 / 2, seed) for rough, seed in product(ROUGH_EPSILONS, range(n_seeds))] + [
        (float("inf"), 0)
    ]
    records, results = data.records, []
    for rho, seed in progress(budgets, "comparing learners", len(budgets)):
        shared: dict[str, Any] = {"classes": range(10), "noise": "research", "random_state": seed}
        learners = {
            "auto": AutoPrototypes(f"rho={rho}", **shared, public=data.public),
            "noisy-sum": NoisySumPrototypes(f"rho={rho}", **shared),
            "coinpress": CoinPressPrototypes(f"rho={rho}", **shared, public=data.public),
            "public": PublicPrototypes(f"rho={rho}", **shared, public=data.public),
        }
        results += [
            _measured(name, learner, records, rho, seed) for name, learner in learners.items()
        ]
    return results


def worth_of_public_rows(data: Digits, n_seeds: int) -> list[Result]:
    """Fit `auto` with few and with all public rows, and `noisy-sum`, for which they are the centre
    alone.
    """
    rho, records, results = WORTH_RHO, data.records, []
    for seed in range(n_seeds):
        shared: dict[str, Any] = {"classes": range(10), "noise": "research", "random_state": seed}
        learner: Any = NoisySumPrototypes(f"rho={rho}", **shared)
        results.append(_measured("noisy-sum, for the centre", learner, records, rho, seed))
        for n in (*FEW_ROWS, len(data.public)):
            learner = AutoPrototypes(f"rho={rho}", **shared, public=data.public[:n])
            results.append(_measured(f"auto, {n} rows", learner, records, rho, seed))
    return results


def _measured(name: str, learner: Any, records: Records, rho: float, seed: int) -> Result:
    predicted = learner.fit(records.x, records.y).predict(records.test_x)
    scores = evaluate(records.test_y, predicted, learner.classes_, records.sizes)
    return result_of_fit(name, rho, seed, scores.balanced, scores.minority)


def medians(results: Sequence[Result]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a table: a row for each rho, medians over seeds of balanced / minority
    accuracy.
    """
    learners = list(dict.fromkeys(one.learner for one in results))
    rows = []
    for (rho,), group in grouped(results, "rho"):
        cells = []
        for learner in learners:
            measured = [
                (one.balanced_accuracy, one.minority_accuracy)
                for one in group
                if one.learner == learner
            ]
            cells.append(
                " / ".join(f"{median(values):.3f}" for values in zip(*measured, strict=True))
            )
        rows.append([f"rho={rho:g}", *cells])
    return ["", *learners], rows


def csv(results: Sequence[Result]) -> str:
    """All results as comma-separated values."""
    names = ("method", "rho", "seed", BALANCED, MINORITY)
    lines = [",".join(str(getattr(one, name)) for name in names) for one in results]
    return "\n".join(["method,rho,seed,balanced,minority", *lines, ""])
