"""PATE with its defaults: number of teachers, aimed accuracy of labels and student, beside other
choices of these.

python benchmarks/pate/defaults.py DATA --out FOLDER [--workers 2] [--only mnist ...] [--cells FILE]

DATA is as for run.py, with the embeddings of AG News and SST-2 too. Teachers, voting and student
are those of `tacit.PATE` where nothing is chosen; a task changes at most the number of teachers and
the aimed accuracy.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from problems import MORE, PROBLEMS, problem
from run import BUDGETS, DELTA, PLAIN, SEEDS, SHARES, groups_of

import tacit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from cells import command, spread

DEFAULT = 0  # in place of a number of teachers and of an aimed accuracy
Task = tuple[str, str, int, float, int]  # problem, groups, number, aimed accuracy, seed


@dataclass(frozen=True)
class Cell:
    """One fit. `number` and `aimed` are as chosen, or 0 by default; `teachers` is how many there
    were.
    """

    problem: str
    shares: str
    number: int
    aimed: float
    seed: int
    teachers: int
    labels: int
    label_accuracy: float
    student: float
    seconds: float


def tasks() -> Iterator[Task]:
    """The defaults on three seeds; other choices on one."""
    names = [name for name in (*PROBLEMS, *MORE) if name != "adult"]
    for seed in SEEDS:
        yield ("mnist", SHARES[0], DEFAULT, DEFAULT, seed)
        yield from ((name, PLAIN, DEFAULT, DEFAULT, seed) for name in names)
    for name in names:
        yield from ((name, PLAIN, DEFAULT, aimed, 0) for aimed in (0.8, 0.95))
        yield (name, PLAIN, 250 if name in PROBLEMS else 100, DEFAULT, 0)


def work(data: Path, task: Task) -> tuple[Cell, float]:
    """Compute a cell; return it and the seconds it took."""
    name, shares, number, aimed, seed = task
    given = problem(data, name, seed)
    plain, started = shares == PLAIN, time.perf_counter()
    model = tacit.PATE(
        **(
            {"budget": f"epsilon=1,delta={DELTA:g}"}
            if plain
            else {"budgets": BUDGETS, "delta": DELTA}
        ),
        classes=given.n_classes,
        teachers=tacit.pate.Teachers(number or None),
        label_accuracy=aimed or None,
        seed=seed,
        noise="research",
        random_state=1000 + seed,
    )
    groups = None if plain else groups_of(len(given.y), shares, seed)
    model.fit(given.x, given.y, groups=groups, public=given.public_x)
    seconds = time.perf_counter() - started
    labels = model.answers_.labels
    known = labels >= 0
    right = float(np.mean(labels[known] == given.public_y[known]))
    score = float(model.score(given.test_x, given.test_y))
    return (
        Cell(*task, model.votes_.votes.shape[1], int(known.sum()), right, score, round(seconds)),
        seconds,
    )


def markdown(cells: Sequence[Cell]) -> Iterator[str]:
    """A row for each problem and choice: mean and standard deviation over seeds."""
    yield (
        "| data | groups | teachers | labels aimed to be right | seeds | labels | right | student |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for row in dict.fromkeys(_choice(cell) for cell in sorted(cells, key=_choice)):
        own = [cell for cell in cells if _choice(cell) == row]
        teachers = f"{own[0].teachers}" + ("" if own[0].number else " (default)")
        labels = spread([cell.labels for cell in own], 0)
        right, student = (
            spread([getattr(cell, name) for cell in own], 3)
            for name in ("label_accuracy", "student")
        )
        shown = [
            own[0].problem,
            own[0].shares,
            teachers,
            f"{own[0].aimed:g}" if own[0].aimed else "default",
        ]
        yield "| " + " | ".join([*shown, str(len(own)), labels, right, student]) + " |"


def _choice(cell: Cell) -> tuple[str, bool, int, float]:
    return cell.problem, cell.shares != PLAIN, cell.number, cell.aimed


def main() -> None:
    """Run."""
    command("PATE with its defaults.", Cell, 5, tasks(), work, markdown)


if __name__ == "__main__":
    main()
