"""Accuracy of releases of `auto` before and after `tacit.adapt`, on rows of the task and others.

python benchmarks/utility/adapting.py EMBEDDINGS --names names.npz > adapting.md

Half of the test rows are adapted to, the other half is classified; then the halves are swapped. A
last table has CIFAR-100 with all test rows adapted to and classified, without and with class names,
which `names.py` writes. Two seeds; noise is `research`, since nothing is released.
"""

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from methods import NOISE_SEEDS, budget
from numpy.typing import NDArray
from problems import IMAGES, SETTINGS, TEXT, Problem, problem, read

import tacit
from tacit.models.metrics import evaluate

# problem, imbalance and rough epsilon
CASES = (
    ("cifar100", 100, 0.5),
    ("cifar100", 100, 1.0),
    ("cifar100", 100, 2.0),
    ("cifar100", 100, 8.0),
    ("cifar100", 10, 0.5),
    ("cifar100", 1, 0.5),
    ("cifar10", 100, 2.0),
    ("cifar10", 10, 0.1),
    ("banking77", 10, 0.5),
    ("banking77", 10, 2.0),
    ("banking77", 10, 8.0),
    ("banking77", 1, 0.5),
    ("clinc150", 10, 0.5),
    ("clinc150", 10, 2.0),
    ("clinc150", 1, 0.5),
    ("agnews, 1,200 own rows", 100, 2.0),
    ("agnews, 1,200 own rows", 10, 0.5),
    ("sst2, 1,200 own rows", 100, 2.0),
    ("sst2, 1,200 own rows", 10, 0.5),
    ("clinc150 of 20 classes, 900 own rows", 10, 0.5),
    ("tiny imagenet of 20 classes, 1,500 own rows", 100, 2.0),
)

# the case that gains most, which is also measured with all test rows
MOST_GAINED = ("cifar100", 100, 2.0)

# other tasks by encoder
OTHERS = {IMAGES: ("cifar10", "cifar100"), TEXT: ("banking77", "clinc150")}
SEEDS = 2

# how many rows of the first class there are for one of the last
LONG_TAIL = 30.0

# the kind of rows that the first table is of
TASK = "of the task"

# balanced and minority accuracy, (2,)
Accuracies = NDArray[np.float64]


def rows_by_kind(
    folder: Path, data: Problem, half: NDArray[np.int64], store: str, seed: int
) -> dict[str, NDArray[np.float16]]:
    """Return rows to adapt to, of several kinds, from a half of the test rows of a store."""
    x = data.test_x[half]
    y = data.test_y[half]

    # classes in random order, from all of the rows of the first to one in 30 of the last
    rng = np.random.default_rng(seed)
    ranks = rng.permutation(data.n_classes) / max(data.n_classes - 1, 1)
    shares = LONG_TAIL**-ranks
    long_tailed = rng.random(len(x)) < shares[y]

    encoder, _, name = store.partition("/")
    others = [other for other in OTHERS[encoder] if other != name]
    other_x, _ = read(folder, f"{encoder}/{others[0]}", "test")
    return {
        TASK: x,
        "a quarter of them": x[: len(x) // 4],
        "long-tailed": x[long_tailed],
        "of half of the classes": x[y < data.n_classes / 2],
        "of another task": other_x,
    }


def accuracies(data: Problem, rows: NDArray[np.int64], release: tacit.Release) -> Accuracies:
    """Return balanced and minority accuracy on some test rows."""
    predicted = np.asarray(release.predict(data.test_x[rows]))
    scores = evaluate(data.test_y[rows], predicted, np.arange(data.n_classes), data.sizes)
    return np.array([scores.balanced, scores.minority])


def adapted_accuracies(
    data: Problem, rows: NDArray[np.int64], release: tacit.Release, x: NDArray[np.float16]
) -> Accuracies | None:
    """Return the accuracies of a release after it was adapted to x; None if it was not adapted."""
    adapted = tacit.adapt(release, x).release
    if adapted is None:
        return None
    return accuracies(data, rows, adapted)


def fit(data: Problem, rough: float, seed: int) -> tacit.Release:
    """Return the release of `auto`, with names if the problem has some."""
    learner = tacit.AutoPrototypes(
        budget(rough),
        public=data.public,
        classes=data.n_classes,
        names=data.names,
        noise="research",
        random_state=NOISE_SEEDS + seed,
    )
    return tacit.Release.of(learner.fit(data.x, data.y))


@dataclass(frozen=True)
class Adapting:
    """One adaptation: the kind and number of rows, accuracies before, and after if it changed."""

    kind: str
    n_rows: int
    n_classes: int
    before: Accuracies
    adapted: Accuracies | None

    @property
    def after(self) -> Accuracies:
        """Accuracies after; those before if the release was not adapted."""
        if self.adapted is None:
            return self.before
        return self.adapted


def adaptings(folder: Path, name: str, ratio: int, rough: float) -> Iterator[Adapting]:
    """Adapt to each half of the test rows, and measure on the other half."""
    for seed in range(SEEDS):
        data = problem(folder, name, ratio, seed)
        release = fit(data, rough, seed)
        order = np.random.default_rng(seed).permutation(len(data.test_x))
        halves = [order[::2], order[1::2]]
        for half, other_half in (halves, reversed(halves)):
            before = accuracies(data, other_half, release)
            kinds = rows_by_kind(folder, data, half, SETTINGS[name].private, seed)
            for kind, x in kinds.items():
                adapted = adapted_accuracies(data, other_half, release, x)
                yield Adapting(kind, len(x), data.n_classes, before, adapted)


def mean_text(values: Sequence[Accuracies]) -> str:
    """Return mean balanced / minority accuracy."""
    return "{:.3f} / {:.3f}".format(*np.mean(values, axis=0))


def row_of_case(name: str, ratio: int, rough: float, adaptings_of_case: Sequence[Adapting]) -> str:
    """Return the row of the first table, which is of rows of the task."""
    task_adaptings = [adapting for adapting in adaptings_of_case if adapting.kind == TASK]
    before = [adapting.before for adapting in task_adaptings]
    after = [adapting.after for adapting in task_adaptings]
    after_text = "not adapted" if np.array_equal(before, after) else mean_text(after)
    rows_per_class = task_adaptings[-1].n_rows / task_adaptings[-1].n_classes
    return (
        f"| {name} | {ratio}, {rough:g} | {rows_per_class:.0f} | {mean_text(before)}"
        f" | {after_text} |"
    )


def row_of_kind(kind: str, adaptings_of_kind: Sequence[Adapting]) -> str:
    """Return the row of the second table: points gained where releases were adapted."""
    gains = [
        100 * (adapting.adapted - adapting.before)
        for adapting in adaptings_of_kind
        if adapting.adapted is not None
    ]
    mean_gain = ""
    worst_gain = ""
    if gains:
        mean_gain = "{:+.1f} / {:+.1f}".format(*np.mean(gains, axis=0))
        worst_gain = f"{min(balanced for balanced, _ in gains):+.1f}"
    return f"| {kind} | {len(gains)} of {len(adaptings_of_kind)} | {mean_gain} | {worst_gain} |"


def with_all_test_rows(folder: Path, names: Path) -> Iterator[str]:
    """Yield the last table, in which all test rows are adapted to and classified."""
    name, ratio, rough = MOST_GAINED
    yield (
        f"\n| {name}, imbalance {ratio}, e = {rough:g}; all test rows | before | after"
        " |\n|---|---|---|"
    )
    for title, names_file in (("without names", None), ("with names", names)):
        before = []
        after = []
        for seed in range(SEEDS):
            data = problem(folder, name, ratio, seed, names_file)
            release = fit(data, rough, seed)
            all_rows = np.arange(len(data.test_x))
            before.append(accuracies(data, all_rows, release))
            adapted = adapted_accuracies(data, all_rows, release, data.test_x)
            after.append(before[-1] if adapted is None else adapted)
        yield f"| {title} | {mean_text(before)} | {mean_text(after)} |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="What adapting does to releases of auto.")
    parser.add_argument("embeddings", type=Path)
    parser.add_argument(
        "--names", type=Path, required=True, help="rows of class names, written by names.py"
    )
    arguments = parser.parse_args()
    folder = arguments.embeddings

    print("| data set | imbalance, e | rows per class | before | after |\n|---|---|---|---|---|")
    adaptings_by_kind: dict[str, list[Adapting]] = defaultdict(list)
    for case in CASES:
        adaptings_of_case = list(adaptings(folder, *case))
        print(row_of_case(*case, adaptings_of_case), flush=True)
        for adapting in adaptings_of_case:
            adaptings_by_kind[adapting.kind].append(adapting)

    print("\n| rows | adapted | points gained on average | at worst |\n|---|---|---|---|")
    for kind, adaptings_of_kind in adaptings_by_kind.items():
        print(row_of_kind(kind, adaptings_of_kind))
    for line in with_all_test_rows(folder, arguments.names):
        print(line)


if __name__ == "__main__":
    main()
