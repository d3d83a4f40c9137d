"""Forecasts against reality: what `tacit forecast` says, and what fits on the real records reach.

python benchmarks/measure/forecast.py EMBEDDINGS --out FOLDER [--workers 2] [--only cifar10/ ...]
[--cells FILE]

EMBEDDINGS holds a folder per encoder, with the data sets of docs/data.md. A forecast sees the
public set of the encoder and the facts in `SETS` alone; measured are fits on the private records,
and enough records are found by the same search on subsets of them; beyond the records that
there are it raises the budget, as the forecast does. Budgets are the papers' e, with
rho = e^2/2. The run also draws forecast.png. `cells.py` describes the files of a run.
"""

import math
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import tacit
from tacit.compute.checkpoint import Checkpoint
from tacit.measure.enough import enough_records
from tacit.measure.forecasting import forecast
from tacit.measure.simulated_fits import Accuracy, StatedTask, accuracy_of
from tacit.models.metrics import spread
from tacit.privacy.budget import Budget
from tacit.report import charts, paper
from tacit.report.figure import Axis, Figure, Panel, Point, log_axis

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from cells import Task, command, run_by_name

METHOD = "auto"

# e of the papers, and budgets of rho = e^2/2
EPSILONS = (0.1, 0.5, 2.0)
BUDGETS = tuple(Budget.zcdp(epsilon**2 / 2) for epsilon in EPSILONS)
INFINITE = Budget.zcdp(math.inf)

# Seeds of forecasts, and of the search; the table of what was measured has more.
SEEDS = 1
MEASURED_SEEDS = 2
CLOSE = 0.05
PICTURE = "forecast.png"


@dataclass(frozen=True)
class Problem:
    """A private data set, the public set of its encoder, and the records of its largest class."""

    folder: str
    public: str
    records: int


IMAGES = "mobilenetv2-in1k-160"
TEXTS = "all-minilm-l6-v2"
SETS = {
    "banking77": Problem(f"{TEXTS}/banking77", f"{TEXTS}/agnews", 100),
    "cifar10": Problem(f"{IMAGES}/cifar10", f"{IMAGES}/tiny_imagenet", 5000),
    "cifar100": Problem(f"{IMAGES}/cifar100", f"{IMAGES}/tiny_imagenet", 500),
    "clinc150": Problem(f"{TEXTS}/clinc150", f"{TEXTS}/agnews", 100),
    "s2d": Problem(f"{TEXTS}/s2d", f"{TEXTS}/agnews", 30),
    "trec": Problem(f"{TEXTS}/trec", f"{TEXTS}/agnews", 150),
}

# Finished fits, from which an interrupted run resumes; they hold for the code that made them.
FITS = Path(tempfile.gettempdir()) / "tacit-forecast-fits"

# The spread of clusters was chosen on these, so they do not judge the forecasts.
CHOSEN_ON = ("clinc150", "s2d", "trec")


@dataclass(frozen=True)
class Cell:
    """One line of cells.csv: accuracies at e of 0.1, 0.5, 2 and without privacy."""

    data: str
    imbalance: float
    source: str
    """measured, labels or clusters; the last two are forecasts."""
    balanced_01: float
    balanced_05: float
    balanced_2: float
    balanced_inf: float
    minority_01: float
    minority_05: float
    minority_2: float
    minority_inf: float
    enough_01: int
    """Records of the largest class; 0 for more than 64 times those that are stated."""
    enough_05: int
    enough_2: int


def tasks() -> Iterator[Task]:
    """List the tasks, those that judge first."""
    for data in SETS:
        for imbalance in (1.0,) if data in CHOSEN_ON else (1.0, 10.0):
            sources = ["measured", "clusters"]
            if SETS[data].folder.startswith(IMAGES):
                sources.insert(1, "labels")
            for source in sources:
                yield (data, imbalance, source)


def work(folder: Path, task: Task) -> tuple[Cell, float]:
    """Forecast, or measure."""
    data, imbalance, source = task
    start = time.perf_counter()
    problem = SETS[data]
    if source == "measured":
        values = measured(folder, problem, imbalance)
    else:
        values = forecasted(folder, problem, imbalance, source)
    return Cell(data, imbalance, source, *values), time.perf_counter() - start


def forecasted(folder: Path, problem: Problem, imbalance: float, source: str) -> list[float]:
    """Return the figures of a cell from public rows; clusters are made without their labels."""
    rows, labels = read(folder, problem.public, "train")
    if problem.public.endswith("agnews"):
        more, _ = read(folder, problem.public, "test")
        rows = np.concatenate([rows, more])
    _, classes = read(folder, problem.folder, "test")
    found = forecast(
        METHOD,
        public=rows,
        labels=labels if source == "labels" else None,
        classes=int(classes.max()) + 1,
        records=problem.records,
        imbalance=imbalance,
        budgets=BUDGETS,
        seeds=SEEDS,
        pseudo_classes=source,
        folder=FITS / f"{Path(problem.folder).name}-{imbalance:g}-{source}",
    )
    table = found.rows(source)
    enough = [found.enough_records[str(budget)].records or 0 for budget in BUDGETS]
    return [*(row.balanced for row in table), *(row.minority for row in table), *enough]


def measured(folder: Path, problem: Problem, imbalance: float) -> list[float]:
    """Return the figures of a cell from the private records."""
    x, y = read(folder, problem.folder, "train")
    test_x, test_y = read(folder, problem.folder, "test")
    public, _ = read(folder, problem.public, "train")
    task = StatedTask(int(test_y.max()) + 1, problem.records, imbalance)
    checkpoint = Checkpoint(FITS / f"{Path(problem.folder).name}-{imbalance:g}-measured")

    def fit(budget: Budget, factor: float, seed: int) -> Accuracy:
        rng = np.random.default_rng(seed)
        sizes = task.sizes(factor, rng)
        train = drawn(y, sizes, rng)
        learner = tacit.AutoPrototypes(
            budget, classes=task.n_classes, public=public, noise="research", random_state=seed
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            predicted = learner.fit(x[train], y[train]).predict(test_x)
        return accuracy_of(test_y, predicted, sizes, imbalance)

    def measure(budget: Budget, factor: float) -> Accuracy:
        n_seeds = SEEDS
        if factor == 1 and budget in (*BUDGETS, INFINITE):
            n_seeds = MEASURED_SEEDS
        accuracies = []
        for seed in range(n_seeds):
            name = f"{budget}-{factor!r}-{seed}.npy"
            if not checkpoint.has(name):
                checkpoint.write(name, np.array(fit(budget, factor, seed)))
            accuracies.append(checkpoint.read(name))
        return Accuracy(*np.mean(accuracies, axis=0).tolist())

    table = [measure(budget, 1.0) for budget in (*BUDGETS, INFINITE)]
    enough = enough_records(measure, BUDGETS, table[-1], task)
    records = [enough[str(budget)].records or 0 for budget in BUDGETS]
    return [*(row.balanced for row in table), *(row.minority for row in table), *records]


def drawn(
    labels: NDArray[np.int64], sizes: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw rows of each class, all of them where it has fewer than its size."""
    rows = []
    for label, size in enumerate(sizes.tolist()):
        rows.append(rng.permutation(np.flatnonzero(labels == label))[:size])
    return np.concatenate(rows)


def read(folder: Path, name: str, part: str) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Read the rows and labels of a part of a data set."""
    x = np.load(folder / name / f"{part}_x.npy").astype(np.float32)
    y = np.load(folder / name / f"{part}_y.npy").astype(np.int64)
    return x, y


# The table


def markdown(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield the lines of the tables: those that judge, their errors, and those of the choice."""
    by_key = {(cell.data, cell.imbalance, cell.source): cell for cell in cells}
    judged = [data for data in SETS if data not in CHOSEN_ON]
    yield from _accuracies(by_key, judged)
    yield ""
    yield from _records(by_key, judged)
    yield ""
    yield from _errors(by_key, judged)
    if any(cell.data in CHOSEN_ON for cell in cells):
        yield ""
        yield "Sets on which the spread of clusters was chosen:"
        yield ""
        yield from _accuracies(by_key, list(CHOSEN_ON))


def _pairs(by_key: dict, names: Sequence[str]) -> Iterator[tuple[Cell, Cell, bool]]:
    """Yield forecasts beside what was measured, and whether `tacit forecast` goes by them."""
    for (data, imbalance, source), cell in sorted(by_key.items()):
        measured_cell = by_key.get((data, imbalance, "measured"))
        if source == "measured" or data not in names or measured_cell is None:
            continue
        goes_by = source == "labels" or (data, imbalance, "labels") not in by_key
        yield cell, measured_cell, goes_by


def _balanced(cell: Cell) -> list[float]:
    return [cell.balanced_01, cell.balanced_05, cell.balanced_2, cell.balanced_inf]


def _enough(cell: Cell) -> list[int]:
    return [cell.enough_01, cell.enough_05, cell.enough_2]


def _accuracies(by_key: dict, names: Sequence[str]) -> Iterator[str]:
    yield "| set | imbalance | pseudo-classes | e = 0.1 | e = 0.5 | e = 2 | no privacy |"
    yield "|---|---|---|---|---|---|---|"
    for cell, real, _ in _pairs(by_key, names):
        figures = [
            f"{forecasted:.3f} ({measured_:.3f})"
            for forecasted, measured_ in zip(_balanced(cell), _balanced(real), strict=True)
        ]
        yield f"| {cell.data} | {cell.imbalance:g} | {cell.source} | {' | '.join(figures)} |"


def _records(by_key: dict, names: Sequence[str]) -> Iterator[str]:
    yield "| set | imbalance | pseudo-classes | e = 0.1 | e = 0.5 | e = 2 |"
    yield "|---|---|---|---|---|---|"
    for cell, real, _ in _pairs(by_key, names):
        figures = [
            f"{_count(forecasted)} ({_count(measured_)})"
            for forecasted, measured_ in zip(_enough(cell), _enough(real), strict=True)
        ]
        yield f"| {cell.data} | {cell.imbalance:g} | {cell.source} | {' | '.join(figures)} |"


def _count(records: int) -> str:
    return str(records) if records else "more"


def _errors(by_key: dict, names: Sequence[str]) -> Iterator[str]:
    """Yield what the forecasts that `tacit forecast` goes by miss, in all."""
    errors = []
    ratios = []
    for cell, real, goes_by in _pairs(by_key, names):
        if not goes_by:
            continue
        for which in range(len(EPSILONS)):
            errors.append(abs(_balanced(cell)[which] - _balanced(real)[which]))
            if _enough(cell)[which] and _enough(real)[which]:
                ratios.append(_enough(cell)[which] / _enough(real)[which])
    if not errors:
        return
    within = sum(error <= CLOSE for error in errors)
    yield (
        f"median absolute error {100 * np.median(errors):.1f} points, largest"
        f" {100 * max(errors):.1f}; {within} of {len(errors)} within 5 points"
    )
    yield ""
    close = sum(0.5 <= ratio <= 2 for ratio in ratios)
    yield (
        f"enough records: {close} of {len(ratios)} within a factor of two, largest factor"
        f" {max(max(ratio, 1 / ratio) for ratio in ratios):.1f}"
    )


def figure(cells: Sequence[Cell]) -> bytes:
    """Draw forecasts beside what was measured, a panel per set that judges and imbalance."""
    by_key = {(cell.data, cell.imbalance, cell.source): cell for cell in cells}
    panels = []
    for data, imbalance in product([data for data in SETS if data not in CHOSEN_ON], (1.0, 10.0)):
        points = []
        for source in ("measured", "labels", "clusters"):
            cell = by_key.get((data, imbalance, source))
            if cell is not None:
                name = source if source == "measured" else f"forecast, {source}"
                for epsilon, value in zip(EPSILONS, _balanced(cell)[:3], strict=True):
                    points.append(Point(name, epsilon, spread([value]), ()))
        panels.append(Panel(f"{data}, imbalance {imbalance:g}", tuple(points)))
    picture = Figure(
        name="forecast",
        title="Forecasts beside what was measured",
        caption="",
        legend="balanced accuracy",
        series=("measured", "forecast, labels", "forecast, clusters"),
        panels=tuple(panels),
        x=log_axis("e, where rho = e²/2", EPSILONS),
        y=Axis("balanced accuracy", limits=(0.0, 1.0)),
    )
    return paper.image(charts.lines, picture, "png")


def main() -> None:
    """Run."""
    command("Forecasts against reality.", Cell, 3, tasks(), work, markdown, {PICTURE: figure})


if __name__ == "__main__":
    run_by_name(__file__)
