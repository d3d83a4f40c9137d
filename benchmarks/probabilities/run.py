"""How well probabilities are calibrated: the expected calibration error of every method on test
sets.

python benchmarks/probabilities/run.py EMBEDDINGS --out FOLDER [--workers 2] [--only auto/ ...]
[--cells FILE]

EMBEDDINGS and the data are those of benchmarks/utility/run.py; `cells.py` describes the files of a
run. The expected calibration error has 15 bins of equal width of the largest probability: the mean
over test rows of the distance between the accuracy and the mean probability of their bin. Only
`fit` and `predict_proba` are called, and no test row reaches `fit`.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tacit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "utility"))
from cells import Task, command
from problems import SETTINGS, Problem, problem

METHODS = {
    "auto": tacit.AutoPrototypes,
    "noisy-sum": tacit.NoisySumPrototypes,
    "coinpress": tacit.CoinPressPrototypes,
    "public": tacit.PublicPrototypes,
    "least-squares": tacit.LeastSquares,
    "gradient-descent": tacit.GradientDescent,
    "feature-covariance": tacit.FeatureCovariance,
    "global-adapt": tacit.GlobalAdapt,
    "newton": tacit.Newton,
    "projected": tacit.ProjectedPrototypes,
}
MAIN = ("cifar100", "cifar10", "banking77")
SLOW = ("newton", "projected", "public")  # on banking77 alone
RATIOS, EPSILONS = (1, 10), (0.5, 2.0)  # imbalance, and e of the papers: rho = e^2/2
SEEDS, NOISE_SEEDS = 3, 1000  # of auto on the main data sets; else one
BINS, PARTS = 15, 5


@dataclass(frozen=True)
class Cell:
    """One fit: calibration error, mean of the largest probability, accuracy, and the accuracy of
    rows by confidence.

    `least` and `most` are the accuracies of the fifths of the rows with the smallest and the
    largest confidence, `fall` is by how much the accuracy falls at most from a fifth to the next
    more confident one.
    """

    method: str
    dataset: str
    ratio: int
    rough: float
    seed: int
    error: float
    confidence: float
    accuracy: float
    least: float
    most: float
    fall: float


def tasks() -> Iterator[Task]:
    """All cells, those of the main data sets first."""
    for dataset, ratio, rough, seed in product(MAIN, RATIOS, EPSILONS, range(SEEDS)):
        yield "auto", dataset, ratio, rough, seed
    for dataset, ratio, rough in product(
        [name for name in SETTINGS if name not in MAIN], RATIOS, EPSILONS
    ):
        yield "auto", dataset, ratio, rough, 0
    for method, dataset, ratio, rough in product(list(METHODS)[1:], MAIN, RATIOS, EPSILONS):
        if method not in SLOW or dataset == "banking77":
            yield method, dataset, ratio, rough, 0


def expected_calibration_error(
    probabilities: NDArray[np.float64], labels: NDArray[np.int64]
) -> float:
    """Of probabilities (n, C) for these class indices (n,)."""
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    distances = np.bincount(bins, confidence, BINS) - np.bincount(bins, right, BINS)
    return float(np.abs(distances).sum() / len(labels))


def measured(probabilities: NDArray[np.float64], labels: NDArray[np.int64]) -> dict[str, float]:
    """The figures of a cell."""
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    parts = [
        float(right[rows].mean())
        for rows in np.array_split(np.argsort(confidence, kind="stable"), PARTS)
    ]
    return {
        "error": expected_calibration_error(probabilities, labels),
        "confidence": float(confidence.mean()),
        "accuracy": float(right.mean()),
        "least": parts[0],
        "most": parts[-1],
        "fall": max(0.0, -min(np.diff(parts))),
    }


def fitted(data: Problem, method: str, rough: float, seed: int) -> Any:
    """The learner after its fit."""
    more = {"counts": np.maximum(data.sizes, 1)} if method == "coinpress" else {}
    shared = {
        "public": data.public,
        "classes": data.n_classes,
        "noise": "research",
        "random_state": NOISE_SEEDS + seed,
    }
    return METHODS[method](f"rho={rough**2 / 2!r}", **shared | more).fit(data.x, data.y)


def work(embeddings: Path, task: Task) -> tuple[Cell, float]:
    """The cell of a task, and the seconds it took."""
    method, dataset, ratio, rough, seed = task
    started = time.perf_counter()
    data = problem(embeddings, dataset, ratio, seed)
    learner = fitted(data, method, rough, seed)
    return (
        Cell(*task, **measured(learner.predict_proba(data.test_x), data.test_y)),
        time.perf_counter() - started,
    )


def table(cells: Sequence[Cell]) -> Iterator[str]:
    """Markdown: `auto` on the main data sets, on the others, then the other methods."""
    auto = [cell for cell in cells if cell.method == "auto"]
    yield from ("### auto", "")
    yield from lines([cell for cell in auto if cell.dataset in MAIN], "data set")
    yield from ("", "### auto on other data", "")
    yield from lines([cell for cell in auto if cell.dataset not in MAIN], "data set")
    yield from ("", "### other methods", "")
    yield from lines([cell for cell in cells if cell.method != "auto"], "method, data set")


def lines(cells: Sequence[Cell], of: str) -> Iterator[str]:
    """A line for each cell without its seed: means over seeds, and the largest error and fall."""
    yield (
        f"| {of} | imbalance | e | calibration error | largest | accuracy | confidence | least sure"
        " | surest | fall |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    seen = dict.fromkeys((cell.method, cell.dataset, cell.ratio, cell.rough) for cell in cells)
    for key in sorted(
        seen, key=lambda key: (list(METHODS).index(key[0]), list(SETTINGS).index(key[1]), *key[2:])
    ):
        own = [cell for cell in cells if (cell.method, cell.dataset, cell.ratio, cell.rough) == key]
        name = key[1] if key[0] == "auto" else f"{key[0]}, {key[1]}"
        means = {
            field: np.mean([getattr(cell, field) for cell in own])
            for field in ("accuracy", "confidence")
        }
        ends = " | ".join(
            f"{np.mean([getattr(cell, field) for cell in own]):.2f}" for field in ("least", "most")
        )
        errors = [cell.error for cell in own]
        figures = (
            f"{np.mean(errors):.3f} | {max(errors):.3f} | {means['accuracy']:.3f} |"
            f" {means['confidence']:.3f}"
        )
        yield (
            f"| {name} | {key[2]} | {key[3]:g} | {figures} | {ends} |"
            f" {max(cell.fall for cell in own):.3f} |"
        )


def main() -> None:
    """Read the command line, compute the missing cells, and write the table."""
    command("The calibration of probabilities.", Cell, 5, tasks(), work, table)


if __name__ == "__main__":
    main()
