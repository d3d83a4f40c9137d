"""Labels of public rows: how many reach a probability, how many of them are right, and what a
classifier learns from them.

python benchmarks/tasks/label_public.py EMBEDDINGS --out FOLDER [--workers 2] [--only clinc150/ ...]
[--cells FILE]

EMBEDDINGS is that of benchmarks/utility/run.py. The private data are all training rows of a data
set. The pool is a half of its test rows, and what is learned from the labels of the pool is
measured on the other half. A second pool, of rows of no class, shows how many of these a stated
probability leaves out. The run also draws label-public.png. `cells.py` describes the files of a
run.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

import tacit
from tacit.models.metrics import spread
from tacit.report import charts, paper
from tacit.report.figure import Axis, Figure, Panel, Point

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "utility"))
from cells import Task, command, run_by_name
from problems import TEXT, TINY, Problem, problem

# rows of no class, by data set
FOREIGN = {
    "clinc150": f"{TEXT}/clinc150/out_of_scope_x.npy",
    "banking77": f"{TEXT}/clinc150/out_of_scope_x.npy",
    "cifar100": f"{TINY}/test_x.npy",
}

# e of the papers: rho = e^2/2
EPSILONS = (0.1, 0.5, 2.0)

# least probabilities of the table, and of the picture; 0 stands for none
TABLE = (0.0, 0.5, 0.8, 0.9)
PICTURE_PROBABILITIES = (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
PICTURE = "label-public.png"


@dataclass(frozen=True)
class Cell:
    """Labels of one pool by one release.

    Parameters
    ----------
    dataset : str
    rough : float
        Rough epsilon.
    at_least : float
        The least probability of a label; 0 for none.
    labelled, right : float
        Share of the pool that has a label, and of these that are right.
    foreign : float
        Share of the rows of no class that have a label.
    student : float
        Accuracy of logistic regression that learned from the labels; nan where it was not run.
    release : float
        Accuracy of the release on the same rows.
    """

    dataset: str
    rough: float
    at_least: float
    labelled: float
    right: float
    foreign: float
    student: float
    release: float


@dataclass(frozen=True)
class Pool:
    """A release, labels of its pool without a least probability, and what they are measured on."""

    release: tacit.Release
    rows: NDArray[np.float16]
    truth: NDArray[np.int64]
    other_rows: NDArray[np.float16]
    other_truth: NDArray[np.int64]
    foreign: NDArray[np.float64]
    """The largest probability of each row of no class, of shape (m,)."""


@lru_cache(maxsize=1)
def pool_of(data: Path, dataset: str, rough: float) -> Pool:
    """Fit `auto`, and cut the test rows into a pool and the rest."""
    private: Problem = problem(data, dataset, 1, 0)
    learner = tacit.AutoPrototypes(
        f"rho={rough**2 / 2!r}",
        classes=private.n_classes,
        public=private.public,
        noise="research",
        random_state=0,
    )
    release = tacit.Release.of(learner.fit(private.x, private.y), name=dataset)
    foreign = release.predict_proba(np.load(data / FOREIGN[dataset])).max(axis=1)

    order = np.random.default_rng(0).permutation(len(private.test_x))
    in_pool = order[: len(order) // 2]
    others = order[len(order) // 2 :]
    return Pool(
        release,
        private.test_x[in_pool],
        private.test_y[in_pool],
        private.test_x[others],
        private.test_y[others],
        foreign,
    )


def tasks() -> Iterator[Task]:
    """Yield all tasks: data set, rough epsilon, least probability."""
    yield from product(FOREIGN, EPSILONS, sorted({*TABLE, *PICTURE_PROBABILITIES}))


def work(data: Path, task: Task) -> tuple[Cell, float]:
    """Compute a cell; return it and the seconds it took."""
    dataset, rough, at_least = task
    start = time.perf_counter()
    pool = pool_of(data, dataset, rough)
    release_right = pool.release.predict(pool.other_rows) == pool.other_truth
    shares = [0.0, np.nan, float(np.mean(pool.foreign >= at_least)), np.nan]
    try:
        labels = tacit.label_public(pool.release, pool.rows, at_least=at_least or None)
    except tacit.TacitError:
        # no row reaches the probability
        pass
    else:
        shares[0] = len(labels.rows) / len(pool.rows)
        shares[1] = float(np.mean(labels.labels == pool.truth[labels.rows]))
        if at_least in TABLE and len(set(labels.labels.tolist())) > 1:
            shares[3] = _student_accuracy(labels, pool)
    cell = Cell(*task, *shares, float(np.mean(release_right)))
    return cell, time.perf_counter() - start


def _student_accuracy(labels: tacit.PublicLabels, pool: Pool) -> float:
    """Return the accuracy of logistic regression on labelled rows, measured on other rows."""
    rows, targets = labels.join(pool.rows)
    student = LogisticRegression(C=10.0, max_iter=300)
    student.fit(rows.astype(np.float64), targets)
    return float(student.score(pool.other_rows.astype(np.float64), pool.other_truth))


def markdown(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield a line for each data set, budget and least probability."""
    yield (
        "| data, e | least probability | pool labelled | right | rows of no class labelled |"
        " classifier from the labels | release |"
    )
    yield "|---|---|---|---|---|---|---|"
    datasets = list(FOREIGN)
    # several workers finish in any order
    for cell in sorted(cells, key=lambda c: (datasets.index(c.dataset), c.rough, c.at_least)):
        if cell.at_least not in TABLE:
            continue
        probability = f"{cell.at_least:g}".removeprefix("0") if cell.at_least else "none"
        shares = (cell.labelled, cell.right, cell.foreign, cell.student, cell.release)
        texts = ["" if np.isnan(share) else f"{share:.3f}" for share in shares]
        name = f"{cell.dataset}, {cell.rough:g}"
        yield f"| {name} | {probability} | {' | '.join(texts).replace('0.', '.')} |"


def figure(cells: Sequence[Cell]) -> bytes:
    """Return a PNG of the share that is right against the share that is labelled."""
    names = {rough: f"e = {rough:g}" for rough in EPSILONS}
    panels = []
    for dataset in FOREIGN:
        points = [
            Point(names[cell.rough], cell.labelled, spread([cell.right]), ())
            for cell in sorted(cells, key=lambda cell: (cell.rough, cell.labelled))
            if cell.dataset == dataset and not np.isnan(cell.right) and cell.labelled > 0.02
        ]
        panels.append(Panel(dataset, tuple(points)))
    picture = Figure(
        name="label-public",
        title="Labels of a public pool by auto: fewer labels, more of them right",
        caption="",
        legend="budget",
        series=tuple(names.values()),
        panels=tuple(panel for panel in panels if panel.points),
        x=Axis("share of the pool that is labelled", limits=(0, 1)),
        y=Axis("share of the labels that is right", limits=(0.5, 1)),
    )
    return paper.image(charts.lines, picture, "png")


def main() -> None:
    """Run."""
    command("Labels of public rows.", Cell, 3, tasks(), work, markdown, {PICTURE: figure})


if __name__ == "__main__":
    run_by_name(__file__)
