"""The comparisons of the demonstration on imbalanced digits.

`compare` is over learners and budgets, `worth_of_public_rows` over numbers of public rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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
from tacit.privacy.decimals import rounded_up
from tacit.report.accuracy import BALANCED, MINORITY, result_of_fit
from tacit.report.groups import grouped

# the papers' rough epsilon e, where rho = e²/2
ROUGH_EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)

# ratio of the largest to the smallest class
IMBALANCE = 10.0

# budget at which the worth of public rows is shown, and numbers of rows beside all of them
WORTH_RHO = 0.125
FEW_ROWS = (30, 100)


class Digits(NamedTuple):
    """Digits less the public mean: an imbalanced private part with its test rows, and public
    rows.
    """

    records: Records
    public: Any


def digits() -> Digits:
    """Return the data of the demonstration.

    The centre that is subtracted is that of the public rows, so it has no privacy cost.
    """
    data_set = DataSet.model_validate({"name": "digits", "builtin": "digits"})
    source = data_source(data_set, Path())
    return Digits(records_of(source, IMBALANCE, 0), public_rows(source, "own", None))


def compare(data: Digits, n_seeds: int) -> list[Result]:
    """Fit every learner at every budget and seed with research noise, and once without privacy."""
    fits = []
    for rough_epsilon in ROUGH_EPSILONS:
        for seed in range(n_seeds):
            fits.append((rough_epsilon**2 / 2, seed))
    # without noise, all seeds give the same result
    fits.append((math.inf, 0))

    results = []
    for rho, seed in progress(fits, "comparing learners", len(fits)):
        budget = f"rho={rho}"
        common = _common_parameters(seed)
        learners = {
            "auto": AutoPrototypes(budget, **common, public=data.public),
            "noisy-sum": NoisySumPrototypes(budget, **common),
            "coinpress": CoinPressPrototypes(budget, **common),
            "public": PublicPrototypes(budget, **common, public=data.public),
        }
        for name, learner in learners.items():
            results.append(_result(name, learner, data.records, rho, seed))
    return results


def worth_of_public_rows(data: Digits, n_seeds: int) -> list[Result]:
    """Fit `auto` with few and with all public rows, and `noisy-sum`.

    For `noisy-sum` public rows are the centre alone.
    """
    budget = f"rho={WORTH_RHO}"
    results = []
    for seed in range(n_seeds):
        common = _common_parameters(seed)
        learners: dict[str, Any] = {
            "noisy-sum, for the centre": NoisySumPrototypes(budget, **common)
        }
        for n_rows in (*FEW_ROWS, len(data.public)):
            learners[f"auto, {n_rows} rows"] = AutoPrototypes(
                budget, **common, public=data.public[:n_rows]
            )
        for name, learner in learners.items():
            results.append(_result(name, learner, data.records, WORTH_RHO, seed))
    return results


def _common_parameters(seed: int) -> dict[str, Any]:
    return {"classes": range(10), "noise": "research", "random_state": seed}


def _result(name: str, learner: Any, records: Records, rho: float, seed: int) -> Result:
    """Fit a learner, and measure it on the test rows."""
    predicted = learner.fit(records.x, records.y).predict(records.test_x)
    scores = evaluate(records.test_y, predicted, learner.classes_, records.sizes)
    return result_of_fit(name, rho, seed, scores.balanced, scores.minority)


def medians(results: Sequence[Result]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of a table of medians over seeds.

    There is a row for each rho, with balanced / minority accuracy of each learner.
    """
    learners = list(dict.fromkeys(result.learner for result in results))
    rows = []
    for (rho,), results_at_rho in grouped(results, "rho"):
        row = [f"rho={rounded_up(rho)}"]
        for learner in learners:
            group = [result for result in results_at_rho if result.learner == learner]
            balanced = median(getattr(result, BALANCED) for result in group)
            minority = median(getattr(result, MINORITY) for result in group)
            row.append(f"{balanced:.3f} / {minority:.3f}")
        rows.append(row)
    return ["", *learners], rows


def csv(results: Sequence[Result]) -> str:
    """Return all results as comma-separated values."""
    lines = ["method,rho,seed,balanced,minority"]
    for result in results:
        values = [getattr(result, name) for name in ("method", "rho", "seed", BALANCED, MINORITY)]
        lines.append(",".join(map(str, values)))
    return "\n".join(lines) + "\n"
