"""Summaries with and without second moments: `auto` beside `least-squares`.

python benchmarks/summaries/moments.py EMBEDDINGS --out FOLDER [--workers 2] [--cells FILE]

EMBEDDINGS is that of benchmarks/utility/run.py. The records of CIFAR-10 and CIFAR-100 are dealt to
one owner or to ten, evenly and at random. Each summary has the whole budget: with second moments
these take 30 % of it. `cells.py` describes the files of a run.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

import tacit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "utility"))
from cells import Task, command, run_by_name
from problems import problem

DATA = ("cifar10", "cifar100")
RATIOS = (1, 10)
BUDGETS = (0.05, 0.5)
OWNERS = (1, 10)
METHODS = ("auto", "least-squares")


@dataclass(frozen=True)
class Cell:
    """One combination.

    Parameters
    ----------
    data : str
    ratio : int
        Size of the largest class over that of the smallest.
    rho : float
        Of each record.
    owners : int
    method : str
    balanced, minority : float
        Mean accuracy over all classes, and over the quarter with the fewest records.
    """

    data: str
    ratio: int
    rho: float
    owners: int
    method: str
    balanced: float
    minority: float


def tasks() -> Iterator[Task]:
    """Yield all tasks: the fields of a cell before the accuracies."""
    yield from product(DATA, RATIOS, BUDGETS, OWNERS, METHODS)


def work(embeddings: Path, task: Task) -> tuple[Cell, float]:
    """Compute a cell; return it and the seconds it took."""
    data, ratio, rho, owners, method = task
    start = time.perf_counter()
    records = problem(embeddings, data, ratio, 0)
    owner_of_record = np.random.default_rng(0).integers(owners, size=len(records.y))

    summaries = []
    for owner in range(owners):
        own = owner_of_record == owner
        learner = tacit.ClassSummary(
            f"rho={rho}",
            classes=records.n_classes,
            part=f"owner {owner}",
            public=records.public,
            moments=method == "least-squares",
            noise="research",
            random_state=owner,
        )
        learner.fit(records.x[own], records.y[own])
        summaries.append(tacit.Summary.of(learner))
    release = tacit.combine(summaries, public=records.public, method=method)

    right = release.predict(records.test_x) == records.test_y
    recalls = np.array([right[records.test_y == c].mean() for c in range(records.n_classes)])
    smallest = np.argsort(records.sizes, kind="stable")[: max(1, records.n_classes // 4)]
    cell = Cell(*task, balanced=float(recalls.mean()), minority=float(recalls[smallest].mean()))
    return cell, time.perf_counter() - start


def markdown(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield the table: balanced accuracy, and that of the smallest quarter of the classes."""
    yield "| data | imbalance | rho | owners | `auto` | `least-squares` |"
    yield "|---|---|---|---|---|---|"
    found = {(c.data, c.ratio, c.rho, c.owners, c.method): c for c in cells}
    for data, ratio, rho, owners in product(DATA, RATIOS, BUDGETS, OWNERS):
        texts = []
        for method in METHODS:
            cell = found[data, ratio, rho, owners, method]
            texts.append(f"{cell.balanced:.3f} / {cell.minority:.3f}")
        yield f"| {data} | {ratio} | {rho:g} | {owners} | {' | '.join(texts)} |"


def main() -> None:
    """Run the cells and write the table."""
    command("Second moments in summaries.", Cell, 5, tasks(), work, markdown)


if __name__ == "__main__":
    run_by_name(__file__)
