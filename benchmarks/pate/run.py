"""PATE on real data: number and accuracy of labels, and accuracy of the student, by collector and
stopping rule.

python benchmarks/pate/run.py DATA --out FOLDER [--workers 2] [--only mnist/250/34-43-23 ...]
[--cells FILE]

DATA holds mnist.npz, fashion_mnist.npz, adult_train.csv.gz, adult_test.csv.gz and the embeddings of
CIFAR-10.
Every cell is a line in FOLDER/cells.csv, written as soon as it is done; an interrupted run resumes
where it stopped. `--cells` starts from the cells.csv of another run. The run ends by writing
FOLDER/table.md; --report only writes it. Noise is `research`, since nothing is released. Only this
benchmark knows the true labels of the public records.
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
from problems import FOREST, PROBLEMS, Problem, problem
from table import Cell, markdown

import tacit
from tacit.learners.pate.collectors import COLLECTORS

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from cells import command

DELTA = 1e-5
BUDGETS = {"a": 1.0, "b": 2.0, "c": 3.0}
USUAL = {"voting": {"kind": "confident", "sigma": 40, "sigma1": 150, "threshold": 200}}
LABEL_ACCURACY = 0.95
PLAIN = "all at 1"
SHARES = ("34-43-23", "54-37-9")
TEACHERS = (250, 1000)
SEEDS = range(3)

Task = tuple[str, int, str, str, str, int]
COLUMNS = ("problem", "teachers", "shares", "collector", "stopping", "seed")


def tasks() -> Iterator[Task]:
    """All tasks.

    With groups, gnmax stops at the smallest budget, which is PLAIN. The larger number of teachers
    is for the privacy filter: noise that grows with the number of teachers then gives more labels
    at the same privacy cost.
    """
    schemes = [(PLAIN, "gnmax"), *product(SHARES, [name for name in COLLECTORS if name != "gnmax"])]
    for name, many, seed, (shares, collector) in product(PROBLEMS, TEACHERS, SEEDS, schemes):
        if many > TEACHERS[0] and (
            PROBLEMS[name][2] is FOREST or collector not in ("gnmax", "weighting")
        ):
            continue
        for stopping in ("data-dependent", "filter") if many == TEACHERS[0] else ("filter",):
            yield (name, many, shares, collector, stopping, seed)


def groups_of(n: int, shares: str, seed: int) -> np.ndarray:
    """A budget group for each record, by position."""
    ends = np.cumsum([int(share) for share in shares.split("-")]) * n // 100
    # differs from any shuffle of the data set
    place = np.random.default_rng([seed, 1]).permutation(n)
    return np.array(list(BUDGETS))[np.searchsorted(ends, place, side="right")]


def work(data: Path, task: Task) -> tuple[Cell, float]:
    """Compute a cell; return it and the seconds it took."""
    name, _, shares, *_, seed = task
    given = problem(data, name, seed)
    groups = None if shares == PLAIN else groups_of(len(given.y), shares, seed)
    started, fits = time.perf_counter(), []
    with tempfile.TemporaryDirectory() as folder:
        # the second fit takes teachers and labels from the folder
        for semi_supervised in (False, True):
            student = tacit.pate.Student("logistic-regression", semi_supervised=semi_supervised)
            model = voting(task, given, student, Path(folder) / "run")
            model.fit(
                given.x,
                given.y,
                groups=groups,
                public=given.public_x,
                test=(given.test_x, given.test_y),
            )
            fits.append(model)
    return measured(task, given, *fits), time.perf_counter() - started


def voting(task: Task, given: Problem, student: tacit.pate.Student, folder: Path) -> tacit.PATE:
    """PATE for a task."""
    _, many, shares, collector, stopping, seed = task
    return tacit.PATE(
        **(
            {"budget": f"epsilon=1,delta={DELTA:g}"}
            if shares == PLAIN
            else {"budgets": BUDGETS, "delta": DELTA}
        ),
        **(USUAL if stopping == "data-dependent" else {}),
        classes=given.n_classes,
        teachers=tacit.pate.Teachers(
            many, given.teacher, expected_accuracy=given.expected_accuracy
        ),
        label_accuracy=LABEL_ACCURACY,
        student=student,
        collector=collector,
        queries=tacit.pate.Queries(stopping=stopping),
        seed=seed,
        run=tacit.pate.Run(folder),
        noise="research",
        random_state=1000 + seed,
    )


def measured(task: Task, given: Problem, model: tacit.PATE, semi_supervised: tacit.PATE) -> Cell:
    """Measure fits whose students learn from the labels alone, and from unlabelled records too."""
    labels = model.answers_.labels
    known = labels >= 0
    spent = model.answers_.spent_
    return Cell(
        **dict(zip(COLUMNS, task, strict=True)),
        teacher_accuracy=float(model.votes_.accuracies.mean()),
        labels=int(known.sum()),
        label_accuracy=float(np.mean(labels[known] == given.public_y[known])),
        supervised=float(model.score(given.test_x, given.test_y)),
        semi_supervised=float(semi_supervised.score(given.test_x, given.test_y)),
        epsilon=max(
            spent.epsilon(DELTA, group) for group in [name for name, _ in spent.groups] or [None]
        ),
    )


def main() -> None:
    """Run."""
    command("PATE on real data.", Cell, len(COLUMNS), tasks(), work, markdown)


if __name__ == "__main__":
    main()
