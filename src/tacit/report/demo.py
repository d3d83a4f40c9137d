"""The demonstration's comparison: three learners on imbalanced digits, over budgets and seeds."""

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from itertools import product
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.progress import progress
from tacit.data.digits import DigitsSplit
from tacit.data.imbalance import imbalanced_subset
from tacit.learners.base import PrivateClassifier
from tacit.learners.prototypes.coinpress import CoinPressPrototypes
from tacit.learners.prototypes.noisy_sum import NoisySumPrototypes
from tacit.learners.prototypes.public import PublicPrototypes
from tacit.models.metrics import evaluate
from tacit.report.figures import Result, by_rho

ROUGH_EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
IMBALANCE = 10.0
MEASURES = ("balanced", "minority")


@dataclass(frozen=True)
class Problem:
    """Digits less the public mean, the private part imbalanced."""

    x: NDArray[np.float64]
    y: NDArray[np.int64]
    public_x: NDArray[np.float64]
    test_x: NDArray[np.float64]
    test_y: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Private records per class."""
        return np.bincount(self.y, minlength=10)


def problem(digits: DigitsSplit) -> Problem:
    """The imbalanced digits; the centre is that of the public rows, so it costs nothing."""
    kept = imbalanced_subset(digits.private_y, IMBALANCE, seed=0, n_classes=10)
    centre = digits.public_x.mean(axis=0)
    return Problem(
        x=digits.private_x[kept] - centre,
        y=digits.private_y[kept],
        public_x=digits.public_x - centre,
        test_x=digits.test_x - centre,
        test_y=digits.test_y,
    )


def compare(data: Problem, n_seeds: int) -> list[Result]:
    """Fit every learner at every budget and seed with research noise, and once without privacy."""
    budgets = [(rough**2 / 2, seed) for rough, seed in product(ROUGH_EPSILONS, range(n_seeds))] + [(float("inf"), 0)]
    results = []
    for rho, seed in progress(budgets, "comparing learners", len(budgets)):
        for method, learner in _learners(data, rho, seed):
            learner.fit(data.x, data.y)
            scores = evaluate(data.test_y, learner.predict(data.test_x), learner.classes_, data.sizes)
            assert scores.minority is not None
            results.append(Result(method, rho, seed, scores.balanced, scores.minority))
    return results


def medians(results: Sequence[Result]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a table: a row for each rho, medians over seeds of balanced / minority accuracy."""
    methods = list(dict.fromkeys(result.method for result in results))
    values = {
        (method, measure): by_rho([result for result in results if result.method == method], measure)
        for method in methods
        for measure in MEASURES
    }
    rows = [
        [f"rho={rho:g}"]
        + [" / ".join(f"{median(values[method, measure][rho]):.3f}" for measure in MEASURES) for method in methods]
        for rho in by_rho(results, "balanced")
    ]
    return ["", *methods], rows


def csv(results: Sequence[Result]) -> str:
    """All results as comma-separated values."""
    lines = [",".join(str(value) for value in astuple(result)) for result in results]
    return "\n".join([",".join(field.name for field in fields(Result)), *lines, ""])


def _learners(data: Problem, rho: float, seed: int) -> Iterator[tuple[str, PrivateClassifier]]:
    shared: dict[str, Any] = {"budget": f"rho={rho}", "classes": range(10), "noise": "research", "random_state": seed}
    yield "noisy-sum", NoisySumPrototypes(**shared)
    yield "coinpress", CoinPressPrototypes(**shared, public=data.public_x)
    yield "public", PublicPrototypes(**shared, public=data.public_x)
