"""CIFAR-100 dealt to ten owners: each alone, all combined, and central fits.

python benchmarks/summaries/owners.py EMBEDDINGS --out FOLDER [--workers 2] [--cells FILE]
[--only 2/0/ ...]

EMBEDDINGS is that of benchmarks/utility/run.py. The owners and their records are those of
examples/ten_owners.py: owners of unequal sizes, and rare classes that two owners have. A cell is
one of

- "owner 1" to "owner 10": `auto` on the records of the owner;
- "combined": the summaries of all owners;
- "combined, second moments": the same with second moments of the rows, by least squares;
- "central fit": `auto` on all records, at the same price per record;
- "central sum": the same without gradient steps;
- "central sum, noise of ten": the same with the total noise of ten summaries for every class.

`cells.py` describes the files of a run.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from statistics import fmean

import tacit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "utility"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
import ten_owners
from cells import Task, command, run_by_name
from central import central_sum
from problems import IMAGES
from ten_owners import OWNERS, Owner, Problem

EPSILONS = (0.5, 2.0, 10.0)
DELTA = 1e-5
SEEDS = 3

COMBINED = "combined"
WITH_MOMENTS = "combined, second moments"
CENTRAL_FIT = "central fit"
CENTRAL_SUM = "central sum"
NOISE_OF_TEN = "central sum, noise of ten"
ALONE = tuple(f"owner {i + 1}" for i in range(OWNERS))
WHO = (*ALONE, COMBINED, WITH_MOMENTS, NOISE_OF_TEN, CENTRAL_SUM, CENTRAL_FIT)


@dataclass(frozen=True)
class Cell:
    """One classifier.

    Parameters
    ----------
    epsilon : float
        At delta 1e-5, of each record.
    seed : int
        Decides class sizes, owners of records, and noise.
    who : str
        See the docstring of the file.
    records, classes : int
        What the classifier learned from.
    balanced, common, minority : float
        Mean accuracy over all 100 classes, over the 60 that every owner lists, and over the 25 with
        the fewest records.
    """

    epsilon: float
    seed: int
    who: str
    records: int
    classes: int
    balanced: float
    common: float
    minority: float


def tasks() -> Iterator[Task]:
    """Yield all tasks: epsilon, seed, who."""
    yield from product(EPSILONS, range(SEEDS), WHO)


@lru_cache(maxsize=1)
def dealt(embeddings: Path, seed: int) -> tuple[Problem, list[Owner]]:
    """Return the records and their owners."""
    problem = ten_owners.cifar100(embeddings / IMAGES, seed)
    return problem, ten_owners.deal(problem, seed)


def work(embeddings: Path, task: Task) -> tuple[Cell, float]:
    """Compute a cell; return it and the seconds it took."""
    epsilon, seed, who = task
    start = time.perf_counter()
    problem, owners = dealt(embeddings, seed)
    budget = f"epsilon={epsilon!r},delta={DELTA!r}"

    records: Problem | Owner = problem
    classes = list(range(problem.n_classes))
    if who in ALONE:
        records = owners[ALONE.index(who)]
        classes = records.classes

    if who in (COMBINED, WITH_MOMENTS):
        model = combined(problem, owners, budget, seed, moments=who == WITH_MOMENTS)
    elif who in (CENTRAL_SUM, NOISE_OF_TEN):
        model = central_sum(
            problem.x,
            problem.y,
            problem.public,
            n_classes=problem.n_classes,
            budget=tacit.Budget.parse(budget),
            n_noises=1 if who == CENTRAL_SUM else OWNERS,
            seed=seed,
        )
    else:
        model = ten_owners.fit(problem, records, classes, budget, "research", seed)

    found = ten_owners.scores(model, problem)
    cell = Cell(
        epsilon=epsilon,
        seed=seed,
        who=who,
        records=len(records.y),
        classes=len(classes),
        balanced=found.balanced,
        common=found.common,
        minority=found.minority,
    )
    return cell, time.perf_counter() - start


def combined(
    problem: Problem, owners: Sequence[Owner], budget: str, seed: int, *, moments: bool
) -> tacit.Release:
    """Combine a summary of each owner."""
    summaries = []
    for i, owner in enumerate(owners):
        # each owner draws noise of its own
        noise_seed = 1000 * seed + i
        summaries.append(
            ten_owners.summary(owner, problem, budget, "research", noise_seed, moments=moments)
        )
    if moments:
        return tacit.combine(summaries, method="least-squares")
    return tacit.combine(summaries, public=problem.public)


def markdown(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield the table: the three accuracies of each, mean over seeds."""
    yield "| who | records | classes | " + " | ".join(f"epsilon {e:g}" for e in EPSILONS) + " |"
    yield "|---|---|---|" + "---|" * len(EPSILONS)
    for who in WHO:
        of_who = [cell for cell in cells if cell.who == who]
        records = fmean(cell.records for cell in of_who)
        classes = fmean(cell.classes for cell in of_who)
        texts = []
        for epsilon in EPSILONS:
            found = [cell for cell in of_who if cell.epsilon == epsilon]
            columns = ("balanced", "common", "minority")
            means = [fmean(getattr(cell, column) for cell in found) for column in columns]
            texts.append(" / ".join(f"{mean:.3f}" for mean in means))
        yield f"| {who} | {records:,.0f} | {classes:.0f} | {' | '.join(texts)} |"


def main() -> None:
    """Run the cells and write the table."""
    command("Ten owners.", Cell, 3, tasks(), work, markdown)


if __name__ == "__main__":
    run_by_name(__file__)
