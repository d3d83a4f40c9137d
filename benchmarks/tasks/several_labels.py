"""Several labels a record: quality on GoEmotions by method and budget, beside a fit for each label,
and with every label doubled.

python benchmarks/tasks/several_labels.py EMBEDDINGS --out FOLDER [--workers 2] [--only joint/ ...]
[--cells FILE]

EMBEDDINGS is that of benchmarks/utility/run.py. The private data are the 43,410 training comments
of GoEmotions, of which each has some of 28 labels; public rows are those of SST-2, AG News and
Banking77. The variants are:

- joint: one fit of all labels with the whole budget;
- doubled: the same with each label twice, 56 in all, and twice the most labels a record;
- each: a fit for every label by itself, each on a 28th of rho. A method learns whether a record has
  the label from two classes; the largest probability decides.

The run also draws several-labels.png. `cells.py` describes the files of a run.
"""

import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import tacit
from tacit.models.label_set_metrics import evaluate_label_sets
from tacit.models.metrics import spread
from tacit.report import charts, paper
from tacit.report.figure import Axis, Figure, Panel, Point

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from cells import Task, command, run_by_name

TEXT = "all-minilm-l6-v2"
PUBLIC = ("sst2", "agnews", "banking77")
N_LABELS = 28

# e of the papers: rho = e^2 / 2
EPSILONS = (0.1, 0.5, 2.0)
SEEDS = range(3)

METHODS = {
    "gradient-descent": tacit.GradientDescent,
    "least-squares": tacit.LeastSquares,
    "noisy-sum": tacit.NoisySumPrototypes,
    "auto": tacit.AutoPrototypes,
}

# five of six records have one label, and nearly all others two; noise on sums grows with the root
# of the most labels, so that sums learn more from records of two labels that weigh less
MOST_LABELS = {"gradient-descent": 2, "least-squares": 1, "noisy-sum": 1, "auto": 1}

# a fit for each label takes 28 fits
EACH = ("gradient-descent",)

PICTURE = "several-labels.png"


@dataclass(frozen=True)
class Cell:
    """Quality of one method at one budget.

    Parameters
    ----------
    variant : str
        joint, doubled or each.
    method : str
    rough : float
        Rough epsilon.
    seed : int
    precision : float
        Mean average precision.
    rare : float
        The same over the third of the labels with the fewest training records.
    micro_f1, macro_f1, exact : float
        F1, and the share of rows whose set of labels is right.
    calibration : float
        Expected calibration error.
    """

    variant: str
    method: str
    rough: float
    seed: int
    precision: float
    rare: float
    micro_f1: float
    macro_f1: float
    exact: float
    calibration: float


@dataclass(frozen=True)
class Comments:
    """Private rows (n, d) and labels (n, 28), test rows and labels, and public rows."""

    x: NDArray[np.float16]
    y: NDArray[np.bool_]
    test_x: NDArray[np.float16]
    test_y: NDArray[np.bool_]
    public: NDArray[np.float16]


@lru_cache(maxsize=1)
def comments(data: Path) -> Comments:
    """Read the data."""

    def part(dataset: str, name: str) -> NDArray[np.float16]:
        return np.load(data / TEXT / dataset / f"{name}.npy")

    return Comments(
        part("goemotions", "train_x"),
        part("goemotions", "train_y"),
        part("goemotions", "test_x"),
        part("goemotions", "test_y"),
        np.concatenate([part(dataset, "train_x") for dataset in PUBLIC]),
    )


def tasks() -> Iterator[Task]:
    """Yield all tasks: variant, method, rough epsilon, seed."""
    for rough in EPSILONS:
        for method in METHODS:
            for seed in SEEDS:
                yield "joint", method, rough, seed
            yield "doubled", method, rough, 0
        for method in EACH:
            yield "each", method, rough, 0
    # without privacy
    for method in EACH:
        yield "joint", method, math.inf, 0


def work(data: Path, task: Task) -> tuple[Cell, float]:
    """Compute a cell; return it and the seconds it took."""
    variant, method, rough, seed = task
    start = time.perf_counter()
    rows = comments(data)
    if variant == "each":
        probabilities, predicted = _by_label(rows, method, rough, seed)
    else:
        probabilities, predicted = _together(rows, method, rough, seed, double=variant == "doubled")
    scores = evaluate_label_sets(
        rows.test_y, predicted, probabilities, np.arange(N_LABELS), rows.y.sum(axis=0)
    )
    cell = Cell(
        *task,
        scores.mean_average_precision,
        scores.rare_third or np.nan,
        scores.micro_f1,
        scores.macro_f1,
        scores.exact_match,
        scores.calibration_error,
    )
    return cell, time.perf_counter() - start


def _together(
    rows: Comments, method: str, rough: float, seed: int, *, double: bool
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the probabilities and the labels of the test rows by one fit of all labels."""
    copies = 2 if double else 1
    learner = METHODS[method](
        f"rho={rough**2 / 2!r}",
        classes=copies * N_LABELS,
        most_labels=copies * MOST_LABELS[method],
        public=rows.public,
        noise="research",
        random_state=seed,
    )
    learner.fit(rows.x, np.tile(rows.y, (1, copies)))
    # the first copies of the labels are measured
    probabilities = learner.predict_proba(rows.test_x)[:, :N_LABELS]
    predicted = learner.predict(rows.test_x)[:, :N_LABELS].astype(bool)
    return probabilities, predicted


def _by_label(
    rows: Comments, method: str, rough: float, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the probabilities and the labels of the test rows by a fit for each label."""
    rho = rough**2 / 2 / N_LABELS
    columns = []
    for label in range(N_LABELS):
        learner = METHODS[method](
            f"rho={rho!r}",
            classes=2,
            public=rows.public,
            noise="research",
            random_state=1000 * seed + label,
        )
        learner.fit(rows.x, rows.y[:, label].astype(np.int64))
        columns.append(learner.predict_proba(rows.test_x)[:, 1])
    probabilities = np.stack(columns, axis=1)
    return probabilities, probabilities > 0.5


def _cells_of(cells: Sequence[Cell], variant: str, method: str, rough: float) -> list[Cell]:
    key = (variant, method, rough)
    return [cell for cell in cells if (cell.variant, cell.method, cell.rough) == key]


def markdown(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield a line for each variant, method and budget: means over seeds."""
    yield (
        "| fit, method | e | mean average precision | rare third | micro F1 | macro F1 |"
        " whole set right | calibration error |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    names = {
        "joint": "all labels together",
        "doubled": "every label twice",
        "each": "a fit for each label",
    }
    for variant, name in names.items():
        for method in METHODS:
            for rough in (*EPSILONS, math.inf):
                group = _cells_of(cells, variant, method, rough)
                if not group:
                    continue
                budget = f"{rough:g}" if rough < math.inf else "without privacy"
                figures = [
                    np.mean([getattr(cell, figure) for cell in group])
                    for figure in (
                        "precision",
                        "rare",
                        "micro_f1",
                        "macro_f1",
                        "exact",
                        "calibration",
                    )
                ]
                texts = [f"{figure:.3f}".removeprefix("0") for figure in figures]
                if variant == "each":
                    # a fit of two classes balances them, so one half is no threshold for F1
                    texts[2:] = [""] * len(texts[2:])
                yield f"| {name}, {method} | {budget} | {' | '.join(texts)} |"


def figure(cells: Sequence[Cell]) -> bytes:
    """Return a PNG of the mean average precision and of the rare third against the budget."""
    names = {
        **{("joint", method): method for method in METHODS},
        **{("each", method): f"{method}, a fit for each label" for method in EACH},
    }
    panels = []
    for title, measure in (("all labels", "precision"), ("rare third", "rare")):
        points = []
        for (variant, method), name in names.items():
            for rough in EPSILONS:
                group = _cells_of(cells, variant, method, rough)
                if group:
                    values = [getattr(cell, measure) for cell in group]
                    points.append(Point(name, rough, spread(values), ()))
        flat = [
            Point(names["joint", cell.method], cell.rough, spread([getattr(cell, measure)]), ())
            for cell in cells
            if cell.rough == math.inf
        ]
        panels.append(Panel(title, tuple(points), tuple(flat)))
    present = {point.series for panel in panels for point in panel.points}
    picture = Figure(
        name="several-labels",
        title="GoEmotions: mean average precision against the budget",
        caption="",
        legend="method",
        series=tuple(name for name in names.values() if name in present),
        panels=tuple(panels),
        x=Axis("rough epsilon e"),
        y=Axis("mean average precision", limits=(0, 0.4)),
    )
    return paper.image(charts.lines, picture, "png")


def main() -> None:
    """Run."""
    command("Several labels a record.", Cell, 4, tasks(), work, markdown, {PICTURE: figure})


if __name__ == "__main__":
    run_by_name(__file__)
