"""Tables of the cells, beside the published figures."""

import csv
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from cells import spread


@dataclass(frozen=True)
class Cell:
    """One fit: its labels and what was learned from them. `epsilon` is the largest that any group
    spent.
    """

    problem: str
    teachers: int
    shares: str
    collector: str
    stopping: str
    seed: int
    teacher_accuracy: float
    labels: int
    label_accuracy: float
    supervised: float
    semi_supervised: float
    epsilon: float


PUBLISHED = {
    ("mnist", "all at 1", "gnmax"): (365, 0.974, 0.9117),
    ("mnist", "34-43-23", "upsampling"): (1333, 0.972, None),
    ("mnist", "34-43-23", "weighting"): (1312, 0.9724, 0.9527),
}
"""Labels, label accuracy and student accuracy of Boenisch et al. 2022, with convolutional teachers
and students.
"""
IN_ZCDP = Path(__file__).parent / "labels_in_zcdp.csv"
"""Labels of the same votings, charged as noisy counts in zCDP: means over seeds, of commit
8d040ad.
"""
HEAD = (
    "groups",
    "collector",
    "labels",
    "right",
    "student",
    "semi-supervised student",
    "epsilon spent",
)
DIGITS = {"labels": 0, "epsilon": 2}
MEASURES = ("labels", "label_accuracy", "supervised", "semi_supervised", "epsilon")


def labels_in_zcdp() -> dict[tuple[str, ...], str]:
    """Labels by problem, teachers, shares and collector."""
    with IN_ZCDP.open(encoding="utf-8", newline="") as file:
        return {tuple(row[:-1]): row[-1] for row in list(csv.reader(file))[1:]}


def markdown(cells: Sequence[Cell]) -> Iterator[str]:
    """A table for each problem, number of teachers and stopping rule: mean and standard deviation
    over seeds.
    """
    for key in dict.fromkeys((cell.problem, cell.stopping, cell.teachers) for cell in cells):
        own = [cell for cell in cells if (cell.problem, cell.stopping, cell.teachers) == key]
        name, stopping, teachers = key
        how = "stopped as published" if stopping == "data-dependent" else "stopped by the filter"
        right = np.mean([cell.teacher_accuracy for cell in own])
        yield f"\n### {name}, {teachers} teachers, {how}\n"
        yield (
            f"A teacher is right about {right:.1%} of the test records."
            f" {len({cell.seed for cell in own})} seeds.\n"
        )
        compared = [row for row in PUBLISHED if stopping == "data-dependent" and row[0] == name]
        head = (*HEAD, "published: labels", "right", "student") if compared else HEAD
        head = head if stopping == "data-dependent" else (*HEAD, "labels at the price of counts")
        yield "| " + " | ".join(head) + " |"
        yield "|---" * len(head) + "|"
        for row in dict.fromkeys((cell.shares, cell.collector) for cell in own):
            found = [cell for cell in own if (cell.shares, cell.collector) == row]
            shown = [
                *row,
                *(
                    spread([getattr(cell, name) for cell in found], DIGITS.get(name, 3))
                    for name in MEASURES
                ),
            ]
            if compared:
                published = PUBLISHED.get((name, *row), (None, None, None))
                shown += ["" if value is None else f"{value:.4g}" for value in published]
            if stopping != "data-dependent":
                shown.append(labels_in_zcdp().get((name, str(teachers), *row), ""))
            yield "| " + " | ".join(shown) + " |"
