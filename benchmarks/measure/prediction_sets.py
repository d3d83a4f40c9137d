"""Prediction sets with a paid threshold: how many hold the right class, and how large they are.

python benchmarks/measure/prediction_sets.py EMBEDDINGS --out FOLDER [--workers 2] [--cells FILE]
[--only cifar100/ ...]

EMBEDDINGS is that of benchmarks/utility/run.py. Each cell has 200 draws of calibration records and
of noise; coverage and size are of other rows. cifar100: probabilities of a release of `auto` at e =
.5 (rho = .125) from all training rows, calibrated on a random part of the 10,000 test rows and
measured on the others. The other cells are of simulated probabilities, which have as many rows as
they need: softmax of normal logits, that of the right class raised, so that two of three rows or so
are right; coverage is over the 60,000 rows that calibration records are drawn from. Beside each
size is that of split conformal prediction without noise and without edges, on the same records. The
run also draws prediction-sets.png. `cells.py` describes the files of a run.
"""

import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

import tacit
from tacit.measure.prediction_sets import Threshold, cells_of
from tacit.models.metrics import spread
from tacit.models.prediction_sets import SCORES, Score, edges, scores, scores_of_labels
from tacit.report import charts, paper
from tacit.report.figure import Axis, Figure, Panel, Point, log_axis

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "utility"))
from cells import Task, command
from problems import IMAGES, TINY, read, read_rows

REAL = "cifar100"
# simulated: classes, and by how much the logit of the right class is raised
SIMULATED = {"10 classes": (10, 2.0), "50 classes": (50, 2.5), "150 classes": (150, 3.0)}
SIZES = (500, 3000, 20_000)
RHOS = (0.01, 0.05, 0.5)
LEVEL = 0.9
DRAWS = 200

# rows of simulated probabilities, and those of which sizes are measured
ROWS = 60_000
MEASURED = 5_000
PICTURE = "prediction-sets.png"


@dataclass(frozen=True)
class Cell:
    """All draws of one setting.

    Parameters
    ----------
    dataset : str
    score : str
    records : int
        Calibration records.
    rho : float
    coverage, coverage_sd : float
        Mean over draws of the share of rows whose set holds the right class, and its standard
        deviation.
    size : float
        Mean number of classes in a set.
    size_without : float
        The same without noise and without edges.
    coverage_without : float
    all_classes : float
        Share of the draws in which every set holds all classes.
    """

    dataset: str
    score: str
    records: int
    rho: float
    coverage: float
    coverage_sd: float
    size: float
    size_without: float
    coverage_without: float
    all_classes: float


@dataclass(frozen=True)
class Rows:
    """Scores of the right classes (n,), and of all classes of some rows, (m, C); the likeliest
    class of a row is in every set, so its score is 0.
    """

    right: NDArray[np.float64]
    all_classes: NDArray[np.float64]


def tasks() -> Iterator[Task]:
    """Yield all tasks: data set, score, records, rho."""
    for score in SCORES:
        yield from product([REAL], [score], SIZES[:2], RHOS)
    yield from product(SIMULATED, SCORES[:1], SIZES, RHOS)


@lru_cache(maxsize=8)
def rows_of(data: Path, dataset: str, score: Score) -> Rows:
    """Return the scores of a data set."""
    if dataset == REAL:
        probabilities, labels = of_release(data)
        measured = probabilities
    else:
        probabilities, labels = simulated(*SIMULATED[dataset])
        measured = probabilities[:MEASURED]

    right = scores_of_labels(probabilities, labels, score)
    right[probabilities.argmax(axis=1) == labels] = 0.0
    of_classes = scores(measured, score)
    of_classes[np.arange(len(measured)), measured.argmax(axis=1)] = 0.0
    return Rows(right, of_classes)


@lru_cache(maxsize=1)
def of_release(data: Path) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the probabilities and labels of the test rows of CIFAR-100."""
    x, y = read(data, f"{IMAGES}/{REAL}", "train")
    test_x, test_y = read(data, f"{IMAGES}/{REAL}", "test")
    learner = tacit.AutoPrototypes(
        "rho=0.125",
        classes=100,
        public=read_rows(data, (TINY,))[:30_000],
        noise="research",
        random_state=0,
    )
    release = tacit.Release.of(learner.fit(x, y))
    return release.predict_proba(test_x), test_y


def simulated(n_classes: int, raised: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return simulated probabilities and labels."""
    rng = np.random.default_rng(n_classes)
    labels = rng.integers(n_classes, size=ROWS)
    logits = rng.normal(size=(ROWS, n_classes))
    logits[np.arange(ROWS), labels] += raised
    probabilities = np.exp(raised * (logits - logits.max(axis=1, keepdims=True)))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return probabilities, labels


def work(data: Path, task: Task) -> tuple[Cell, float]:
    """Compute a cell; return it and the seconds it took."""
    dataset, score, n_records, rho = task
    start = time.perf_counter()
    rows = rows_of(data, dataset, cast(Score, score))
    n_classes = rows.all_classes.shape[1]
    edge_list = edges(cast(Score, score), n_classes)
    deviation = 1 / math.sqrt(2 * rho)
    rule = Threshold(LEVEL, deviation, len(edge_list))
    rng = np.random.default_rng(n_records)

    draws = []
    for _ in range(DRAWS):
        if dataset == REAL:
            order = rng.permutation(len(rows.right))
            records, others = rows.right[order[:n_records]], order[n_records:]
        else:
            # of all rows, which calibration records are drawn from
            records = rows.right[rng.integers(len(rows.right), size=n_records)]
            others = np.arange(len(rows.right))
        table = np.bincount(cells_of(records, edge_list), minlength=len(edge_list) + 1)
        place = rule.chosen(table + deviation * rng.normal(size=len(table)))
        threshold = 1.0 if place == len(edge_list) else float(edge_list[place])

        # the order statistic of split conformal prediction
        rank = math.ceil(LEVEL * (n_records + 1))
        quantile = float(np.sort(records)[rank - 1])
        figures = [float(place == len(edge_list))]
        for at in (threshold, quantile):
            figures.append(float((rows.right[others] <= at).mean()))
            figures.append(mean_size(data, dataset, score, at))
        draws.append(figures)

    all_classes, coverage, size, coverage_without, size_without = np.mean(draws, axis=0).tolist()
    coverage_sd = float(np.std([figures[1] for figures in draws]))
    figures = (coverage, coverage_sd, size, size_without, coverage_without, all_classes)
    return Cell(*task, *figures), time.perf_counter() - start


def mean_size(data: Path, dataset: str, score: str, threshold: float) -> float:
    """Return the mean size of the sets of a threshold, over all rows that are measured."""
    ordered, n_rows = ordered_scores(data, dataset, score)
    return float(np.searchsorted(ordered, threshold, side="right") / n_rows)


@lru_cache(maxsize=8)
def ordered_scores(data: Path, dataset: str, score: str) -> tuple[NDArray[np.float64], int]:
    """Return the scores of all classes of all measured rows in rising order; number of rows."""
    of_classes = rows_of(data, dataset, cast(Score, score)).all_classes
    return np.sort(of_classes, axis=None), len(of_classes)


def markdown(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield a line for each cell, in the order of the tasks."""
    yield (
        "| data | score | records | rho | coverage | ± between draws | classes in a set"
        " | without noise | all classes |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    order = {task: i for i, task in enumerate(tasks())}
    for cell in sorted(
        cells, key=lambda cell: order[cell.dataset, cell.score, cell.records, cell.rho]
    ):
        yield (
            f"| {cell.dataset} | {cell.score} | {cell.records:,} | {cell.rho:g} |"
            f" {cell.coverage:.3f} | {cell.coverage_sd:.3f} | {cell.size:.2f} |"
            f" {cell.size_without:.2f} | {100 * cell.all_classes:.0f} % |"
        )


def figure(cells: Sequence[Cell]) -> bytes:
    """Return a PNG of coverage and size against the budget of calibration records."""
    series = {n: f"{n:,} records" for n in SIZES}
    panels = []
    for dataset in (REAL, "150 classes"):
        for title, name in (("coverage", "coverage"), ("size over that without noise", "ratio")):
            points = []
            for cell in sorted(cells, key=lambda cell: cell.rho):
                if cell.dataset != dataset or cell.score != SCORES[0]:
                    continue
                values = {"coverage": cell.coverage, "ratio": cell.size / cell.size_without}
                points.append(Point(series[cell.records], cell.rho, spread([values[name]]), ()))
            panels.append(Panel(f"{dataset}: {title}", tuple(points)))
    picture = Figure(
        name="prediction-sets",
        title="Prediction sets of level .9",
        caption="",
        legend="calibration",
        series=tuple(series.values()),
        panels=tuple(panel for panel in panels if panel.points),
        x=log_axis("rho of the calibration records", RHOS),
        y=Axis(""),
    )
    return paper.image(charts.lines, picture, "png")


def main() -> None:
    """Run."""
    command("Prediction sets.", Cell, 4, tasks(), work, markdown, {PICTURE: figure})


if __name__ == "__main__":
    main()
