"""Where `auto` is worse at a larger budget than at a smaller one.

python benchmarks/utility/more_budget.py > more-budget.md

Reads the cells of the utility table (`cells.csv`, which run.py writes) and of the default method
(`default-cells.csv`, which default.py writes), and lists every cell whose balanced accuracy is
below that of a smaller budget by more than `WORSE` points, and by more than `ERRORS` standard
errors where there are several seeds. `tests/benchmarks/test_more_budget.py` fails if the list is
longer than more-budget.md. To measure again, run default.py and run.py --only with the method.
"""

import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
METHODS = ("auto", "auto with names")
WORSE = 2.0
ERRORS = 3.0

Problem = tuple[str, str, str]
"""Data set with its public rows, records, and method."""
Accuracies = Mapping[float, Mapping[str, float]]
"""Balanced accuracy in percent, by budget and seed."""


@dataclass(frozen=True)
class Loss:
    """A cell at a larger budget, and the smaller one that is furthest above it."""

    problem: Problem
    smaller: float
    larger: float
    points: float

    @property
    def key(self) -> tuple[str, ...]:
        """The cell, without the size of the loss."""
        return (*self.problem, f"{self.larger:g}")


def stored_accuracies(folder: Path = HERE) -> dict[Problem, Accuracies]:
    """Read the accuracies of all stored cells of `auto`."""
    found: dict[Problem, dict[float, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    with (folder / "cells.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            problem = (row["dataset"], f"imbalance {row['ratio']}", row["method"])
            found[problem][float(row["rough"])][row["seed"]] = 100 * float(row["balanced"])

    with (folder / "default-cells.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            store = row["store"].rpartition("/")[2]
            data = f"{store}, classes: {row['classes']}, {row['pool']} public rows"
            problem = (data, row["records"], row["method"])
            found[problem][float(row["rough"])][row["seed"]] = float(row["balanced"])
    return {problem: of for problem, of in found.items() if problem[-1] in METHODS}


def losses(accuracies: Mapping[Problem, Accuracies]) -> list[Loss]:
    """List the cells in which a smaller budget is better, the largest loss first."""
    found = []
    for problem, of_budget in accuracies.items():
        for larger in of_budget:
            worst = max(
                (
                    Loss(problem, smaller, larger, points)
                    for smaller in of_budget
                    if smaller < larger
                    for points in [loss(of_budget[smaller], of_budget[larger])]
                ),
                key=lambda candidate: candidate.points,
                default=None,
            )
            if worst is not None and worst.points > 0:
                found.append(worst)
    return sorted(found, key=lambda cell: -cell.points)


def loss(smaller: Mapping[str, float], larger: Mapping[str, float]) -> float:
    """Points by which the larger budget is worse, over the seeds of both; 0 if no more than chance
    and two points.
    """
    seeds = sorted(set(smaller) & set(larger))
    if not seeds:
        return 0.0
    points = np.array([smaller[seed] - larger[seed] for seed in seeds])
    error = 0.0
    if len(points) > 1:
        error = float(points.std(ddof=1)) / len(points) ** 0.5
    mean = float(points.mean())
    return mean if mean > max(WORSE, ERRORS * error) else 0.0


def lines(found: list[Loss], n_cells: int) -> Iterator[str]:
    """The list in Markdown."""
    yield f"{len(found)} of {n_cells} cells.\n"
    yield "| data | records | method | e | points below | a smaller e |"
    yield "|---|---|---|---|---|---|"
    for cell in found:
        yield f"| {' | '.join(cell.key)} | {cell.points:.1f} | {cell.smaller:g} |"


def listed(text: str) -> set[tuple[str, ...]]:
    """The cells of a list in Markdown."""
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {tuple(row[:4]) for row in rows[1:]}


def main() -> None:
    """Print the list."""
    accuracies = stored_accuracies()
    n_cells = sum(len(of_budget) for of_budget in accuracies.values())
    print("\n".join(lines(losses(accuracies), n_cells)))


if __name__ == "__main__":
    main()
