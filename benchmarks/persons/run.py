"""People with several records: accuracy when each person is protected, by rule, and by group
privacy.

python benchmarks/persons/run.py EMBEDDINGS --out FOLDER [--workers 2] [--only noisy-sum/ ...]
[--cells FILE]

EMBEDDINGS is that of benchmarks/utility/run.py; the data are its `cifar100`, whose records are
dealt out to made-up people. A method learns under add-remove-person with the ids of these people;
under group privacy it learns under add-remove at a budget that gives the same guarantee to a person
with the most records. The run also draws persons.png. `cells.py` describes the files of a run.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import tacit
from tacit.models.metrics import evaluate, spread
from tacit.report import charts, paper
from tacit.report.figure import Axis, Figure, Panel, Point, log_axis

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "utility"))
from cells import Task, command
from problems import Problem, problem

METHODS = {
    "noisy-sum": tacit.NoisySumPrototypes,
    "auto": tacit.AutoPrototypes,
    "least-squares": tacit.LeastSquares,
    "gradient-descent": tacit.GradientDescent,
    "public": tacit.PublicPrototypes,
}
EPSILONS = (0.5, 2.0)  # e of the papers: rho = e^2/2
SEEDS = {"noisy-sum": 3, "least-squares": 3}  # of the other methods: 1
NOISE_SEEDS = 1000
EXPONENT = 1.7  # of the tails
PICTURE = "persons.png"
DRAWN, DRAWN_EPSILON = "noisy-sum", 0.5
DRAWN_MOST = (1, 2, 5, 10, 20, 50)


@dataclass(frozen=True)
class People:
    """How many records each person has: `most`, or with a `tail` a draw from Zipf's law, P(m) ~
    m^-1.7, cut at `most`.

    Records are dealt out at random, or sorted by class, so that a person's are of one class as far
    as they go.
    """

    most: int
    tail: bool = False
    sorted: bool = False

    def ids(self, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Whose each record is, the same for all seeds of the noise."""
        rng, n = np.random.default_rng(0), len(labels)
        order = rng.permutation(n)
        if self.sorted:
            order = order[np.argsort(labels[order], kind="stable")]
        sizes = np.minimum(rng.zipf(EXPONENT, n), self.most) if self.tail else np.full(n, self.most)
        ids = np.empty(n, dtype=np.int64)
        ids[order] = np.repeat(np.arange(n), sizes)[:n]
        return ids


PEOPLE = {
    "5 records each, one class": People(5, sorted=True),
    "20 records each, mixed classes": People(20),
    "heavy tail up to 50": People(50, tail=True),
    "heavy tail up to 1,000": People(1000, tail=True),
}
"""Populations of the table."""
MIXED = {f"{most} records each, mixed classes": People(most) for most in DRAWN_MOST}
"""Populations of the picture."""


@dataclass(frozen=True)
class Cell:
    """One fit: method, whom it protects, rough epsilon, seed of the noise, and the balanced
    accuracy.
    """

    method: str
    protects: str
    rough: float
    seed: int
    balanced: float


def group(most: int) -> str:
    """The name of group privacy for people with at most so many records."""
    return "each record" if most == 1 else f"groups of {most} records"


def tasks() -> Iterator[Task]:
    """All tasks."""
    for method in METHODS:
        for seed in range(SEEDS.get(method, 1)):
            found = [
                (name, rough) for name in (*PEOPLE, *groups(PEOPLE.values())) for rough in EPSILONS
            ]
            if method == DRAWN:
                found += [(name, DRAWN_EPSILON) for name in (*MIXED, *groups(MIXED.values()))]
            yield from ((method, name, rough, seed) for name, rough in dict.fromkeys(found))


def groups(people: Sequence[People]) -> dict[str, int]:
    """Sizes of groups by name, for these populations and for one record."""
    return {group(most): most for most in (1, *(each.most for each in people))}


def work(data: Path, task: Task) -> tuple[Cell, float]:
    """Compute a cell; return it and the seconds it took."""
    given = problem(data, "cifar100", 1, 0)
    started = time.perf_counter()
    model = fitted(given, *task)
    scores = evaluate(
        given.test_y, model.predict(given.test_x), np.arange(given.n_classes), given.sizes
    )
    return Cell(*task, scores.balanced), time.perf_counter() - started


def fitted(
    given: Problem, method: str, protects: str, rough: float, seed: int
) -> tacit.NoisySumPrototypes:
    """A fit that guarantees rho = rough^2/2 to those it protects."""
    rho, people = rough**2 / 2, {**PEOPLE, **MIXED}.get(protects)
    most = 1 if people is not None else groups([*PEOPLE.values(), *MIXED.values()])[protects]
    model = METHODS[method](
        f"rho={rho / most**2!r}",
        classes=given.n_classes,
        public=given.public,
        unit="add-remove" if people is None else "add-remove-person",
        noise="research",
        random_state=NOISE_SEEDS + seed,
    )
    if people is not None:
        return model.fit(given.x, given.y, persons=people.ids(given.y))
    model.fit(given.x, given.y)
    assert model.guarantee_.per_person(most_records=most).rho <= rho * (1 + 1e-9)
    return model


def markdown(cells: Sequence[Cell]) -> Iterator[str]:
    """A table for each method: mean balanced accuracy over seeds at each e."""
    epsilons = " / ".join(f"{rough:g}" for rough in EPSILONS)
    for method in (method for method in METHODS if any(cell.method == method for cell in cells)):
        yield f"\n### {method}, balanced accuracy at e = {epsilons}\n"
        yield (
            "| people | bounded by person | group privacy of the most records | each record alone"
            " protected |"
        )
        yield "|---|---|---|---|"
        for name, people in PEOPLE.items():
            shown = [
                " / ".join(_mean(cells, method, who, rough) for rough in EPSILONS)
                for who in (name, group(people.most), group(1))
            ]
            yield f"| {name} | {' | '.join(shown)} |"


def _values(cells: Sequence[Cell], method: str, protects: str, rough: float) -> list[float]:
    return [
        cell.balanced
        for cell in cells
        if (cell.method, cell.protects, cell.rough) == (method, protects, rough)
    ]


def _mean(cells: Sequence[Cell], *key: object) -> str:
    values = _values(cells, *key)
    return f"{np.mean(values):.3f}".removeprefix("0") if values else ""


def drawn(cells: Sequence[Cell]) -> bytes:
    """A PNG of accuracy against records per person."""
    series: dict[str, Callable[[int], str]] = {
        "bounded by person": lambda most: f"{most} records each, mixed classes",
        "group privacy": group,
        "each record alone": lambda most: group(1),
    }
    points = {
        name: tuple(
            Point(name, float(most), spread(values), ())
            for most in DRAWN_MOST
            if (values := _values(cells, DRAWN, protects(most), DRAWN_EPSILON))
        )
        for name, protects in series.items()
    }
    *lines, alone = points.values()
    title = f"CIFAR-100, {DRAWN}: what protecting people costs at e = {DRAWN_EPSILON:g}"
    panel = Panel("", tuple(point for line in lines for point in line), alone[:1])
    x = log_axis("records per person", DRAWN_MOST)
    y = Axis("balanced accuracy", limits=(0, 0.7))
    return paper.image(
        charts.lines,
        Figure("persons", title, "", "protection", tuple(series), (panel,), x, y),
        "png",
    )


def main() -> None:
    """Run."""
    command("People, not rows.", Cell, 4, tasks(), work, markdown, {PICTURE: drawn})


if __name__ == "__main__":
    main()
