"""The price of noise at each owner: summaries of 1 to 100 owners beside a single noisy sum.

python benchmarks/summaries/distributed.py EMBEDDINGS --out FOLDER [--workers 2] [--cells FILE]
[--only all/2/ ...]

EMBEDDINGS is that of benchmarks/utility/run.py. Records of CIFAR-100 are dealt to k owners at
random, either all 50,000 ("all") or 500 to each owner ("each"), and every owner lists all classes.
A cell has the balanced accuracy of

- the combination of k summaries, whose noise has variance k z^2;
- a single noisy sum of all records with the same total noise;
- a single noisy sum of all records with variance z^2: a trusted centre draws it, or a secure sum
  adds it up from k shares of variance z^2/k in integers, up to what the sum of discrete Gaussians
  differs from a discrete Gaussian (Kairouz, Liu and Steinke 2021). The secure sum is not built; its
  figure is that of the trusted centre.

The run also draws summaries-noise.png. `cells.py` describes the files of a run.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

import tacit
from tacit.models.metrics import spread
from tacit.report import charts, paper
from tacit.report.figure import Axis, Figure, Panel, Point

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "utility"))
from cells import Task, command, run_by_name
from central import central_sum
from problems import Problem, problem

ALL = "all"
EACH = "each"
RECORDS_OF_EACH = 500

EPSILONS = (0.5, 2.0, 10.0)
DELTA = 1e-5
OWNERS = (1, 3, 10, 30, 100)
SEEDS = 3
PICTURE = "summaries-noise.png"


@dataclass(frozen=True)
class Cell:
    """Balanced accuracy of the three ways to learn from the same records.

    Parameters
    ----------
    dealing : str
        "all" or "each".
    epsilon : float
        At delta 1e-5, of each record.
    owners : int
    seed : int
        Decides the owners of records, and noise.
    combined, same_noise, one_noise : float
        Of summaries, and of a single noisy sum with the noise of all summaries or of one.
    """

    dealing: str
    epsilon: float
    owners: int
    seed: int
    combined: float
    same_noise: float
    one_noise: float


def tasks() -> Iterator[Task]:
    """Yield all tasks: dealing, epsilon, owners, seed."""
    for dealing in (ALL, EACH):
        for epsilon in EPSILONS:
            for n_owners in OWNERS:
                for seed in range(SEEDS):
                    yield dealing, epsilon, n_owners, seed


@lru_cache(maxsize=1)
def rows(embeddings: Path) -> Problem:
    """Return CIFAR-100, with rows of Tiny ImageNet as public rows."""
    return problem(embeddings, "cifar100", 1, 0)


def work(embeddings: Path, task: Task) -> tuple[Cell, float]:
    """Compute a cell; return it and the seconds it took."""
    dealing, epsilon, n_owners, seed = task
    start = time.perf_counter()
    n_records = len(rows(embeddings).y)
    if dealing == EACH:
        n_records = n_owners * RECORDS_OF_EACH

    cell = Cell(
        *task,
        combined=combined(embeddings, n_records, epsilon, n_owners, seed),
        same_noise=single_sum(embeddings, n_records, epsilon, n_owners, seed),
        one_noise=single_sum(embeddings, n_records, epsilon, 1, seed),
    )
    return cell, time.perf_counter() - start


def chosen(data: Problem, n_records: int, seed: int) -> NDArray[np.int64]:
    """Return the positions of so many records, in random order."""
    return np.random.default_rng(seed).permutation(len(data.y))[:n_records]


def budget_of(epsilon: float) -> tacit.Budget:
    """Return the budget of each record."""
    return tacit.Budget.approx(epsilon, DELTA)


def combined(embeddings: Path, n_records: int, epsilon: float, n_owners: int, seed: int) -> float:
    """Return the balanced accuracy of the summaries of all owners."""
    data = rows(embeddings)
    summaries = []
    for i, part in enumerate(np.array_split(chosen(data, n_records, seed), n_owners)):
        summariser = tacit.ClassSummary(
            budget_of(epsilon),
            classes=data.n_classes,
            part=f"owner {i + 1}",
            public=data.public,
            noise="research",
            # each owner draws noise of its own
            random_state=1000 * seed + i,
        )
        summaries.append(tacit.Summary.of(summariser.fit(data.x[part], data.y[part])))
    return balanced(tacit.combine(summaries, public=data.public), data)


@cache
def single_sum(embeddings: Path, n_records: int, epsilon: float, n_noises: int, seed: int) -> float:
    """Return the balanced accuracy of noisy sums of all records, with the noise of so many
    summaries.
    """
    data = rows(embeddings)
    order = chosen(data, n_records, seed)
    model = central_sum(
        data.x[order],
        data.y[order],
        data.public,
        n_classes=data.n_classes,
        budget=budget_of(epsilon),
        n_noises=n_noises,
        seed=seed,
    )
    return balanced(model, data)


def balanced(model: tacit.Release | tacit.AutoPrototypes, data: Problem) -> float:
    """Return the accuracy on the test rows, of which every class has equally many."""
    return float(np.mean(model.predict(data.test_x) == data.test_y))


def markdown(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield the table: for each number of owners the three accuracies, mean over seeds."""
    yield f"| records | owners | {' | '.join(f'epsilon {epsilon:g}' for epsilon in EPSILONS)} |"
    yield "|---|---|" + "---|" * len(EPSILONS)
    for dealing, words in ((ALL, "50,000 in all"), (EACH, "500 each")):
        for n_owners in OWNERS:
            texts = []
            for epsilon in EPSILONS:
                key = (dealing, epsilon, n_owners)
                found = [c for c in cells if (c.dealing, c.epsilon, c.owners) == key]
                columns = ("combined", "same_noise", "one_noise")
                means = [fmean(getattr(cell, column) for cell in found) for column in columns]
                texts.append(" / ".join(f"{mean:.3f}" for mean in means))
            yield f"| {words} | {n_owners} | {' | '.join(texts)} |"


def figure(cells: Sequence[Cell]) -> bytes:
    """Return a PNG of accuracy against the number of owners, with a panel for each epsilon."""
    series = {
        (ALL, "one_noise"): "50,000 records, one noise",
        (ALL, "combined"): "50,000 records, summaries",
        (EACH, "one_noise"): "500 records an owner, one noise",
        (EACH, "combined"): "500 records an owner, summaries",
    }
    panels = []
    for epsilon in EPSILONS:
        points = []
        for (dealing, column), name in series.items():
            for n_owners in OWNERS:
                key = (dealing, epsilon, n_owners)
                found = [c for c in cells if (c.dealing, c.epsilon, c.owners) == key]
                values = [100 * getattr(cell, column) for cell in found]
                points.append(Point(name, float(n_owners), spread(values), ()))
        panels.append(Panel(f"epsilon {epsilon:g}", tuple(points)))
    picture = Figure(
        name="summaries-noise",
        title="CIFAR-100: noise of each owner, and one noise by a trusted centre or a secure sum",
        caption="",
        legend="classifier",
        series=tuple(series.values()),
        panels=tuple(panels),
        x=Axis("owners", log=True, limits=(1.0, 100.0)),
        y=Axis("balanced accuracy (%)", limits=(0.0, 65.0)),
    )
    return paper.image(charts.lines, picture, "png")


def main() -> None:
    """Run the cells, and write the table and the picture."""
    command("Noise of owners.", Cell, 4, tasks(), work, markdown, {PICTURE: figure})


if __name__ == "__main__":
    run_by_name(__file__)
