"""Rows of no class: how well a release tells them from rows of its classes, and how many of either
it refuses.

python benchmarks/tasks/none_of_these.py EMBEDDINGS --out FOLDER [--workers 2] [--cells FILE]
[--only clinc150/ ...]

EMBEDDINGS is that of benchmarks/utility/run.py. Names of classes are in EMBEDDINGS/names.npz, which
benchmarks/utility/names.py writes; without the file, tasks with names fail. Rows of no class are
CLINC150's out-of-scope queries, the test rows of classes that were held out of all data, or
CIFAR-100 beside CIFAR-10. Only methods of a release are called, and no test row reaches `fit`. The
ceiling is the largest probability of scikit-learn's logistic regression without noise. The run also
draws none-of-these.png. `cells.py` describes the files of a run.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

import tacit
from tacit.models.metrics import area_under_roc, spread
from tacit.report import charts, paper
from tacit.report.figure import Axis, Figure, Panel, Point

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "utility"))
from cells import Task, command
from problems import IMAGES, NEWS, TEXT, TINY, read, read_rows, with_classes

DATASETS = {
    "clinc150": (f"{TEXT}/clinc150", (f"{TEXT}/banking77", *NEWS)),
    "half of clinc150": (f"{TEXT}/clinc150", (f"{TEXT}/banking77", *NEWS)),
    "cifar10": (f"{IMAGES}/cifar10", (TINY,)),
}
FOREIGN = {
    "clinc150": f"{TEXT}/clinc150/out_of_scope_x.npy",
    "cifar10": f"{IMAGES}/cifar100/test_x.npy",
}

# epsilon at delta 1e-5; 0 stands for the ceiling
EPSILONS = (0.1, 0.5, 2.0)
CEILING = 0.0
SHARES = (0.01, 0.05, 0.1, 0.2)

# rows of no class that are told to the release
KNOWN = 100
PICTURE = "none-of-these.png"


@dataclass(frozen=True)
class Cell:
    """One release.

    Parameters
    ----------
    dataset : str
    epsilon : float
        At delta 1e-5; 0 for logistic regression without noise.
    names : int
        Whether the fit had class names.
    area, doubt : float
        Area under the ROC curve by `strangeness`, and by 1 less the largest probability.
    area_known : float
        The area if the release knows the first 100 rows of no class; measured on the others.
    refused_1, refused_5, refused_10, refused_20 : float
        Share of the test rows that is refused where 1, 5, 10 or 20 % was asked.
    foreign_5 : float
        Share of the rows of no class that is refused where 5 % was asked.
    error : float
        Expected calibration error of the probabilities, 15 bins.
    sure_right : float
        Share of the answers with probability .9 or more that is right; nan if there are none.
    """

    dataset: str
    epsilon: float
    names: int
    area: float
    doubt: float
    area_known: float
    refused_1: float
    refused_5: float
    refused_10: float
    refused_20: float
    foreign_5: float
    error: float
    sure_right: float


@dataclass(frozen=True)
class Problem:
    """Private rows, test rows, rows of no class, public rows and rows of class names."""

    x: NDArray[np.float16]
    y: NDArray[np.int64]
    test_x: NDArray[np.float16]
    test_y: NDArray[np.int64]
    foreign: NDArray[np.float16]
    public: NDArray[np.float16]
    names: NDArray[np.float32] | None


def problem(data: Path, dataset: str, *, with_names: bool) -> Problem:
    """Read a data set; of halves, a fixed half of the classes is of no class."""
    store, public_stores = DATASETS[dataset]
    x, y = read(data, store, "train")
    test_x, test_y = read(data, store, "test")
    names = np.load(data / "names.npz")[store] if with_names else None
    n_classes = int(y.max()) + 1
    if dataset in FOREIGN:
        foreign = np.load(data / FOREIGN[dataset])
    else:
        order = np.random.default_rng(5).permutation(n_classes)
        classes = np.sort(order[: n_classes // 2])
        foreign = test_x[~np.isin(test_y, classes)]
        x, y = with_classes(x, y, classes)
        test_x, test_y = with_classes(test_x, test_y, classes)
        if names is not None:
            names = names[classes]

    # rows of no class come in the order of their file
    foreign = foreign[np.random.default_rng(0).permutation(len(foreign))]
    return Problem(x, y, test_x, test_y, foreign, read_rows(data, public_stores)[:30_000], names)


def tasks() -> Iterator[Task]:
    """Yield all tasks: data set, epsilon, whether with names."""
    for dataset in DATASETS:
        if dataset != "cifar10":
            yield dataset, CEILING, 0
        named = (0, 1) if dataset != "cifar10" else (0,)
        yield from product([dataset], EPSILONS, named)


def work(data: Path, task: Task) -> tuple[Cell, float]:
    """Compute a cell; return it and the seconds it took."""
    dataset, epsilon, names = task
    start = time.perf_counter()
    rows = problem(data, dataset, with_names=bool(names))
    if epsilon == CEILING:
        figures = _ceiling(rows)
    else:
        figures = _of_release(rows, epsilon)
    return Cell(*task, *figures), time.perf_counter() - start


def _ceiling(rows: Problem) -> list[float]:
    """Return the figures of logistic regression without noise."""
    model = LogisticRegression(C=10.0, max_iter=200).fit(rows.x.astype(np.float64), rows.y)
    probabilities = model.predict_proba(rows.test_x.astype(np.float64))
    foreign = model.predict_proba(rows.foreign.astype(np.float64)).max(axis=1)
    area = area_under_roc(1 - probabilities.max(axis=1), 1 - foreign)
    return [area, area, *[np.nan] * 6, *_calibration(probabilities, rows.test_y)]


def _of_release(rows: Problem, epsilon: float) -> list[float]:
    """Return the figures of a release of `auto`."""
    learner = tacit.AutoPrototypes(
        f"epsilon={epsilon!r},delta=1e-5",
        classes=int(rows.y.max()) + 1,
        public=rows.public,
        names=rows.names,
        noise="research",
        random_state=0,
    )
    release = tacit.Release.of(learner.fit(rows.x, rows.y))
    area = area_under_roc(release.strangeness(rows.test_x), release.strangeness(rows.foreign))

    probabilities = release.predict_proba(rows.test_x)
    of_foreign = release.predict_proba(rows.foreign).max(axis=1)
    doubt = area_under_roc(1 - probabilities.max(axis=1), 1 - of_foreign)

    known, others = rows.foreign[:KNOWN], rows.foreign[KNOWN:]
    of_test = release.strangeness(rows.test_x, foreign=known)
    area_known = area_under_roc(of_test, release.strangeness(others, foreign=known))

    refused = [float(np.mean(release.predict(rows.test_x, refuse=share) == -1)) for share in SHARES]
    foreign_refused = float(np.mean(release.predict(rows.foreign, refuse=0.05) == -1))
    calibration = _calibration(probabilities, rows.test_y)
    return [area, doubt, area_known, *refused, foreign_refused, *calibration]


def _calibration(probabilities: NDArray[np.float64], truth: NDArray[np.int64]) -> list[float]:
    """Return the expected calibration error, and how many sure answers are right."""
    confidence = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == truth
    bins = np.minimum((confidence * 15).astype(int), 14)
    gaps = np.bincount(bins, weights=right - confidence, minlength=15)
    sure = confidence >= 0.9
    share = float(right[sure].mean()) if sure.any() else np.nan
    return [float(np.abs(gaps).sum() / len(truth)), share]


def markdown(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield a line for each release, in the order of the tasks."""
    yield (
        "| data | epsilon | names | AUROC | by largest probability | 100 rows known"
        " | refused of 1 % | of 5 % | of 10 % | of 20 % | rows of no class, 5 %"
        " | calibration error | right at .9 |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    order = {task: i for i, task in enumerate(tasks())}
    for cell in sorted(cells, key=lambda cell: order[cell.dataset, cell.epsilon, cell.names]):
        budget = f"{cell.epsilon:g}" if cell.epsilon else "no privacy"
        refused = (cell.refused_1, cell.refused_5, cell.refused_10, cell.refused_20, cell.foreign_5)
        texts = [
            *(f"{value:.3f}" for value in (cell.area, cell.doubt, cell.area_known)),
            *(f"{value:.1%}".replace("%", " %") for value in refused),
            *(f"{value:.3f}" for value in (cell.error, cell.sure_right)),
        ]
        texts = ["" if "nan" in text else text for text in texts]
        yield f"| {cell.dataset} | {budget} | {'yes' if cell.names else ''} | {' | '.join(texts)} |"


def figure(cells: Sequence[Cell]) -> bytes:
    """Return a PNG of the share of test rows that is refused against the share asked for."""
    series = {epsilon: f"epsilon = {epsilon:g}" for epsilon in EPSILONS}
    panels = []
    for dataset in DATASETS:
        points = []
        for cell in sorted(cells, key=lambda cell: cell.epsilon):
            if cell.dataset != dataset or cell.names or cell.epsilon == CEILING:
                continue
            refused = (cell.refused_1, cell.refused_5, cell.refused_10, cell.refused_20)
            points += [
                Point(series[cell.epsilon], share, spread([value]), ())
                for share, value in zip(SHARES, refused, strict=True)
            ]
        panels.append(Panel(dataset, tuple(points)))
    picture = Figure(
        name="none-of-these",
        title="Rows of the classes that are refused, without names",
        caption="",
        legend="budget",
        series=tuple(series.values()),
        panels=tuple(panel for panel in panels if panel.points),
        x=Axis("share that was asked for", limits=(0, 0.2)),
        y=Axis("share that is refused", limits=(0, 0.4)),
    )
    return paper.image(charts.lines, picture, "png")


def main() -> None:
    """Run."""
    command("Rows of no class.", Cell, 3, tasks(), work, markdown, {PICTURE: figure})


if __name__ == "__main__":
    main()
