"""Synthetic rows: what other models learn from rows that were drawn from a release of `auto`.

python benchmarks/tasks/synthetic_rows.py EMBEDDINGS --out FOLDER [--workers 2] [--only trec/ ...]
[--cells FILE]

EMBEDDINGS is that of benchmarks/utility/run.py. The private data are the training rows of a data
set, and public rows are of other data. 200 rows a class are drawn. Figures are balanced accuracies
on the test rows, which are divided by their norms for models that learned from drawn rows. The run
also draws synthetic-rows.png. `cells.py` describes the files of a run.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

import tacit
from tacit.models.metrics import evaluate, spread
from tacit.models.rows import unit_rows
from tacit.releases.sampling import Sampler
from tacit.report import charts, paper
from tacit.report.figure import Axis, Figure, Panel, Point

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "utility"))
from cells import Task, command, run_by_name
from cells import spread as written
from problems import IMAGES, NEWS, TEXT, TINY, read, read_rows

QUESTIONS = (f"{TEXT}/banking77", f"{TEXT}/clinc150")
WHOLE = 10**9


@dataclass(frozen=True)
class Source:
    """Where private and public rows are from, and how many private ones are taken."""

    private: str
    public: tuple[str, ...]
    rows: int = WHOLE


SOURCES = {
    "cifar100": Source(f"{IMAGES}/cifar100", (TINY,)),
    "cifar100, 10,000 records": Source(f"{IMAGES}/cifar100", (TINY,), 10_000),
    "banking77": Source(f"{TEXT}/banking77", NEWS),
    "trec": Source(f"{TEXT}/trec", NEWS),
    "clinc150": Source(f"{TEXT}/clinc150", NEWS),
    "cifar10": Source(f"{IMAGES}/cifar10", (TINY,)),
    "agnews": Source(f"{TEXT}/agnews", QUESTIONS),
    "s2d": Source(f"{TEXT}/s2d", NEWS),
    "sst2": Source(f"{TEXT}/sst2", QUESTIONS),
}

# e of the papers: rho = e^2/2
EPSILONS = (0.5, 2.0)
SEEDS = range(2)
ROWS_OF_CLASS = 200
PUBLIC_ROWS = 30_000
PICTURE = "synthetic-rows.png"

# columns of the table, with their names
MODELS = {
    "release": "the release",
    "logistic": "logistic regression",
    "neighbours": "five nearest neighbours",
    "nearest": "logistic regression on nearest public rows",
}


@dataclass(frozen=True)
class Cell:
    """Balanced accuracies of one release, and of models that learned from rows drawn from it.

    Parameters
    ----------
    dataset : str
    rough : float
        Rough epsilon.
    seed : int
        Of the noise of the release, and of the draws.
    release : float
        Of the release itself.
    logistic, neighbours : float
        Of logistic regression and of five nearest neighbours that learned from drawn rows.
    nearest : float
        Of logistic regression that learned from the public rows nearest to the drawn ones.
    public_rows : int
        How many these are.
    """

    dataset: str
    rough: float
    seed: int
    release: float
    logistic: float
    neighbours: float
    nearest: float
    public_rows: int


@dataclass(frozen=True)
class Data:
    """Private, test and public rows of a data set."""

    x: NDArray[np.float16]
    y: NDArray[np.int64]
    test_x: NDArray[np.float16]
    test_y: NDArray[np.int64]
    public: NDArray[np.float16]


@lru_cache(maxsize=1)
def data_of(folder: Path, dataset: str) -> Data:
    """Read a data set."""
    source = SOURCES[dataset]
    x, y = read(folder, source.private, "train")
    test_x, test_y = read(folder, source.private, "test")
    public = read_rows(folder, source.public)[:PUBLIC_ROWS]
    return Data(x[: source.rows], y[: source.rows], test_x, test_y, public)


def tasks() -> Iterator[Task]:
    """Yield all tasks: data set, rough epsilon, seed; all of the first seed come first."""
    for seed, dataset, rough in product(SEEDS, SOURCES, EPSILONS):
        yield dataset, rough, seed


def work(folder: Path, task: Task) -> tuple[Cell, float]:
    """Compute a cell; return it and the seconds it took."""
    dataset, rough, seed = task
    start = time.perf_counter()
    data = data_of(folder, dataset)
    n_classes = int(data.y.max()) + 1
    learner = tacit.AutoPrototypes(
        f"rho={rough**2 / 2!r}",
        classes=n_classes,
        public=data.public,
        noise="research",
        random_state=1000 + seed,
    )
    release = tacit.Release.of(learner.fit(data.x, data.y), name=dataset)

    # what `Release.sample` gives, and the public rows of `tacit synthesize --nearest`
    sampler = Sampler(release.document, release.arrays, release.source)
    drawn = sampler.draw(ROWS_OF_CLASS * n_classes, random_state=seed)
    positions, labels = sampler.nearest(drawn, data.public)

    test_x = unit_rows(data.test_x).astype(np.float32)
    public_x = unit_rows(data.public[positions]).astype(np.float32)
    logistic = LogisticRegression(max_iter=1000).fit(drawn.rows, drawn.labels)
    neighbours = KNeighborsClassifier(5).fit(drawn.rows, drawn.labels)
    on_public = LogisticRegression(max_iter=1000).fit(public_x, labels)

    accuracies = []
    for predicted in (
        release.predict(data.test_x),
        logistic.predict(test_x),
        neighbours.predict(test_x),
        on_public.predict(test_x),
    ):
        scores = evaluate(data.test_y, predicted, np.arange(n_classes))
        accuracies.append(scores.balanced)
    cell = Cell(dataset, rough, seed, *accuracies, len(positions))
    return cell, time.perf_counter() - start


def markdown(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield a line for each data set and budget: means over seeds."""
    yield f"| data, e | {' | '.join(MODELS.values())} | nearest public rows |"
    yield "|---" * (2 + len(MODELS)) + "|"
    for dataset, rough in product(SOURCES, EPSILONS):
        group = [cell for cell in cells if (cell.dataset, cell.rough) == (dataset, rough)]
        if not group:
            continue
        texts = [written([getattr(cell, name) for cell in group], 3) for name in MODELS]
        n_public = round(np.mean([cell.public_rows for cell in group]))
        line = f"| {dataset}, e = {rough:g} | {' | '.join(texts)} |".replace("0.", ".")
        yield f"{line} {n_public:,} |".replace("e = .5", "e = 0.5")


def figure(cells: Sequence[Cell]) -> bytes:
    """Return a PNG of the accuracy of models against that of the release."""
    panels = []
    for rough in EPSILONS:
        points = []
        for name in ("logistic", "nearest", "neighbours"):
            group = sorted(
                (cell for cell in cells if cell.rough == rough), key=lambda cell: cell.release
            )
            of_model: Any = [
                Point(MODELS[name], cell.release, spread([getattr(cell, name)]), ())
                for cell in group
                if cell.seed == 0
            ]
            points += of_model
        panels.append(Panel(f"e = {rough:g}", tuple(points)))
    picture = Figure(
        name="synthetic-rows",
        title="Models that learned from drawn rows, beside the release that the rows are from",
        caption="",
        legend="learned from drawn rows",
        series=tuple(MODELS[name] for name in ("logistic", "nearest", "neighbours")),
        panels=tuple(panel for panel in panels if panel.points),
        x=Axis("balanced accuracy of the release", limits=(0.5, 1)),
        y=Axis("balanced accuracy of the model", limits=(0, 1)),
    )
    return paper.image(charts.scatter, picture, "png")


def main() -> None:
    """Run."""
    command("Synthetic rows.", Cell, 3, tasks(), work, markdown, {PICTURE: figure})


if __name__ == "__main__":
    run_by_name(__file__)
