"""People with several records: accuracy of fits that protect each person.

Protection is by the rule of a method, or by group privacy.

python benchmarks/persons/run.py EMBEDDINGS --out FOLDER [--workers 2] [--only noisy-sum/ ...]
[--cells FILE]

EMBEDDINGS is that of benchmarks/utility/run.py; the data are its `cifar100`, whose records are
dealt out to made-up people. A method learns under add-remove-person with the ids of these people;
under group privacy it learns under add-remove at a budget that gives the same guarantee to a person
with the most records. The run also draws persons.png. `cells.py` describes the files of a run.
"""

import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
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

# e of the papers: rho = e^2/2
EPSILONS = (0.5, 2.0)

# numbers of seeds; 1 for the other methods
SEEDS = {"noisy-sum": 3, "least-squares": 3}
NOISE_SEEDS = 1000

# of the law of records per person
EXPONENT = 1.7

# the picture: its method, rough epsilon, and records per person
PICTURE = "persons.png"
PICTURE_METHOD = "noisy-sum"
PICTURE_EPSILON = 0.5
PICTURE_COUNTS = (1, 2, 5, 10, 20, 50)


@dataclass(frozen=True)
class People:
    """People to whom records are dealt out.

    Parameters
    ----------
    most : int
        Most records of a person.
    tail : bool
        Each person has a number of records by Zipf's law, P(m) ~ m^-1.7, cut at `most`; otherwise
        each has `most`.
    sorted : bool
        Records are dealt out by class, so that most people have records of one class; otherwise at
        random.
    """

    most: int
    tail: bool = False
    sorted: bool = False

    def ids(self, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return whose each record is, the same for all seeds of the noise."""
        n = len(labels)
        rng = np.random.default_rng(0)
        order = rng.permutation(n)
        if self.sorted:
            order = order[np.argsort(labels[order], kind="stable")]

        sizes = np.full(n, self.most)
        if self.tail:
            sizes = np.minimum(rng.zipf(EXPONENT, n), self.most)

        # the first n places of all people, in turn
        ids = np.empty(n, dtype=np.int64)
        ids[order] = np.repeat(np.arange(n), sizes)[:n]
        return ids


# populations of the table, and of the picture
PEOPLE = {
    "5 records each, one class": People(5, sorted=True),
    "20 records each, mixed classes": People(20),
    "heavy tail up to 50": People(50, tail=True),
    "heavy tail up to 1,000": People(1000, tail=True),
}
MIXED = {f"{count} records each, mixed classes": People(count) for count in PICTURE_COUNTS}


@dataclass(frozen=True)
class Cell:
    """One fit: method, protected people, rough epsilon, seed of the noise, balanced accuracy."""

    method: str
    protects: str
    rough: float
    seed: int
    balanced: float


def group_name(size: int) -> str:
    """Return the name of group privacy for people with at most so many records."""
    return "each record" if size == 1 else f"groups of {size} records"


def group_sizes(people: Iterable[People]) -> dict[str, int]:
    """Return sizes of groups by name, for these populations and for one record."""
    sizes = [1, *(population.most for population in people)]
    return {group_name(size): size for size in sizes}


def tasks() -> Iterator[Task]:
    """Yield all tasks: method, protected people, rough epsilon, seed."""
    for method in METHODS:
        pairs = list(product([*PEOPLE, *group_sizes(PEOPLE.values())], EPSILONS))
        if method == PICTURE_METHOD:
            pairs += product([*MIXED, *group_sizes(MIXED.values())], [PICTURE_EPSILON])

        # table and picture have some pairs in common
        for seed in range(SEEDS.get(method, 1)):
            for protects, rough in dict.fromkeys(pairs):
                yield method, protects, rough, seed


def work(data: Path, task: Task) -> tuple[Cell, float]:
    """Compute a cell; return it and the seconds it took."""
    cifar100 = problem(data, "cifar100", 1, 0)
    start = time.perf_counter()
    predicted = fit(cifar100, *task).predict(cifar100.test_x)
    scores = evaluate(cifar100.test_y, predicted, np.arange(cifar100.n_classes), cifar100.sizes)
    return Cell(*task, scores.balanced), time.perf_counter() - start


def fit(
    data: Problem, method: str, protects: str, rough: float, seed: int
) -> tacit.NoisySumPrototypes:
    """Fit with a guarantee of rho = rough^2/2 for a person, or for a group of records."""
    rho = rough**2 / 2
    common = {
        "classes": data.n_classes,
        "public": data.public,
        "noise": "research",
        "random_state": NOISE_SEEDS + seed,
    }
    populations = {**PEOPLE, **MIXED}
    if protects in populations:
        model = METHODS[method](f"rho={rho!r}", unit="add-remove-person", **common)
        return model.fit(data.x, data.y, persons=populations[protects].ids(data.y))

    # rho of a group is that of a record times the square of the group's size
    size = group_sizes(populations.values())[protects]
    model = METHODS[method](f"rho={rho / size**2!r}", unit="add-remove", **common)
    model.fit(data.x, data.y)
    assert model.guarantee_.per_person(most_records=size).rho <= rho * (1 + 1e-9)
    return model


def markdown(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield a table for each method: mean balanced accuracy over seeds at each e."""
    epsilons = " / ".join(f"{rough:g}" for rough in EPSILONS)
    methods_of_cells = {cell.method for cell in cells}
    for method in METHODS:
        if method not in methods_of_cells:
            continue
        yield f"\n### {method}, balanced accuracy at e = {epsilons}\n"
        yield (
            "| people | bounded by person | group privacy of the most records | each record alone"
            " protected |"
        )
        yield "|---|---|---|---|"
        for name, people in PEOPLE.items():
            texts = []
            for protects in (name, group_name(people.most), group_name(1)):
                means = [_mean(cells, method, protects, rough) for rough in EPSILONS]
                texts.append(" / ".join(means))
            yield f"| {name} | {' | '.join(texts)} |"


def _values(cells: Sequence[Cell], method: str, protects: str, rough: float) -> list[float]:
    """Return the accuracies of all seeds."""
    return [
        cell.balanced
        for cell in cells
        if (cell.method, cell.protects, cell.rough) == (method, protects, rough)
    ]


def _mean(cells: Sequence[Cell], method: str, protects: str, rough: float) -> str:
    """Return the mean accuracy over seeds, as .912; nothing without cells."""
    values = _values(cells, method, protects, rough)
    if not values:
        return ""
    return f"{np.mean(values):.3f}".removeprefix("0")


def figure(cells: Sequence[Cell]) -> bytes:
    """Return a PNG of accuracy against records per person."""
    mixed_names = dict(zip(PICTURE_COUNTS, MIXED, strict=True))
    by_person = _points(cells, "bounded by person", mixed_names)
    by_group = _points(
        cells, "group privacy", {count: group_name(count) for count in PICTURE_COUNTS}
    )
    # one line across the picture, whatever people have
    alone = _points(cells, "each record alone", {PICTURE_COUNTS[0]: group_name(1)})

    picture = Figure(
        name="persons",
        title=(
            f"CIFAR-100, {PICTURE_METHOD}: what protecting people costs at e = {PICTURE_EPSILON:g}"
        ),
        caption="",
        legend="protection",
        series=("bounded by person", "group privacy", "each record alone"),
        panels=(Panel("", (*by_person, *by_group), tuple(alone)),),
        x=log_axis("records per person", PICTURE_COUNTS),
        y=Axis("balanced accuracy", limits=(0, 0.7)),
    )
    return paper.image(charts.lines, picture, "png")


def _points(cells: Sequence[Cell], series: str, protects: Mapping[int, str]) -> list[Point]:
    """Return a point for each number of records per person that has cells."""
    points = []
    for count, name in protects.items():
        values = _values(cells, PICTURE_METHOD, name, PICTURE_EPSILON)
        if values:
            points.append(Point(series, float(count), spread(values), ()))
    return points


def main() -> None:
    """Run."""
    command("People, not rows.", Cell, 4, tasks(), work, markdown, {PICTURE: figure})


if __name__ == "__main__":
    main()
