"""What `tacit.adapt` does to releases of `auto`, on rows of the task and on rows that do not suit
it.

python benchmarks/utility/adapting.py EMBEDDINGS --names names.npz > adapting.md

Half of the test rows are adapted to, the other half is classified; then the halves are swapped. A
last table has CIFAR-100 with all test rows adapted to and classified, without and with class names,
which `names.py` writes. Two seeds; noise is `research`, since nothing is released.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from methods import NOISE_SEEDS, budget
from numpy.typing import NDArray
from problems import IMAGES, SETTINGS, TEXT, Problem, problem, read

import tacit
from tacit.models.metrics import evaluate

CASES = (  # problem, imbalance and rough epsilon
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
MOST_GAINED = ("cifar100", 100, 2.0)  # of CASES; also with all test rows
OTHERS = {IMAGES: ("cifar10", "cifar100"), TEXT: ("banking77", "clinc150")}
SEEDS, LONG_TAIL = 2, 30.0
TASK = "of the task"

Rows = tuple[str, NDArray[np.float16]]


def kinds(
    folder: Path, data: Problem, half: NDArray[np.int64], store: str, seed: int
) -> Iterator[Rows]:
    """Rows to adapt to, by kind."""
    rng, x, y = np.random.default_rng(seed), data.test_x[half], data.test_y[half]
    yield TASK, x
    yield "a quarter of them", x[: len(x) // 4]
    chances = LONG_TAIL ** -(rng.permutation(data.n_classes) / max(data.n_classes - 1, 1))
    yield "long-tailed", x[rng.random(len(x)) < chances[y]]
    yield "of half of the classes", x[y < data.n_classes / 2]
    encoder, _, name = store.partition("/")
    other = next(one for one in OTHERS[encoder] if one != name)
    yield "of another task", read(folder, f"{encoder}/{other}", "test")[0]


def measured(data: Problem, part: NDArray[np.int64], release: tacit.Release) -> NDArray[np.float64]:
    """Balanced and minority accuracy on a part of the test rows."""
    predicted = np.asarray(release.predict(data.test_x[part]))
    scores = evaluate(data.test_y[part], predicted, np.arange(data.n_classes), data.sizes)
    return np.array([scores.balanced, scores.minority])


def fitted(data: Problem, rough: float, seed: int) -> tacit.Release:
    """The release of `auto`, with names if the problem has some."""
    learner = tacit.AutoPrototypes(
        budget(rough),
        public=data.public,
        classes=data.n_classes,
        names=data.names,
        noise="research",
        random_state=NOISE_SEEDS + seed,
    )
    return tacit.Release.of(learner.fit(data.x, data.y))


def with_all_test_rows(folder: Path, names: Path) -> Iterator[str]:
    """The last table."""
    name, ratio, rough = MOST_GAINED
    yield (
        f"\n| {name}, imbalance {ratio}, e = {rough:g}; all test rows | before | after"
        " |\n|---|---|---|"
    )
    for title, file in (("without names", None), ("with names", names)):
        before, after = [], []
        for seed in range(SEEDS):
            data = problem(folder, name, ratio, seed, file)
            release, every = fitted(data, rough, seed), np.arange(len(data.test_x))
            adapted = tacit.adapt(release, data.test_x).release
            before.append(measured(data, every, release))
            after.append(before[-1] if adapted is None else measured(data, every, adapted))
        shown = ["{:.3f} / {:.3f}".format(*np.mean(values, axis=0)) for values in (before, after)]
        yield f"| {title} | {' | '.join(shown)} |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="What adapting does to releases of auto.")
    parser.add_argument("embeddings", type=Path)
    parser.add_argument(
        "--names", type=Path, required=True, help="rows of class names, written by names.py"
    )
    given = parser.parse_args()
    folder = given.embeddings
    changes: dict[str, list[NDArray[np.float64] | None]] = {}
    print("| data set | imbalance, e | rows per class | before | after |\n|---|---|---|---|---|")
    for name, ratio, rough in CASES:
        before, after, rows_per_class = [], [], 0.0
        for seed in range(SEEDS):
            data = problem(folder, name, ratio, seed)
            release = fitted(data, rough, seed)
            order = np.random.default_rng(seed).permutation(len(data.test_x))
            halves = order[::2], order[1::2]
            for half, rest in (halves, halves[::-1]):
                base = measured(data, rest, release)
                for kind, x in kinds(folder, data, half, SETTINGS[name].private, seed):
                    adapted = tacit.adapt(release, x).release
                    new = base if adapted is None else measured(data, rest, adapted)
                    changes.setdefault(kind, []).append(None if adapted is None else new - base)
                    if kind == TASK:
                        before.append(base)
                        after.append(new)
                        rows_per_class = len(x) / data.n_classes
        shown = ["{:.3f} / {:.3f}".format(*np.mean(values, axis=0)) for values in (before, after)]
        unchanged = np.array_equal(before, after)
        last = "not adapted" if unchanged else shown[1]
        print(
            f"| {name} | {ratio}, {rough:g} | {rows_per_class:.0f} | {shown[0]} | {last} |",
            flush=True,
        )
    print("\n| rows | adapted | points gained on average | at worst |\n|---|---|---|---|")
    for kind, found in changes.items():
        open_ = 100 * np.array([change for change in found if change is not None])
        means = "{:+.1f} / {:+.1f}".format(*open_.mean(axis=0)) if len(open_) else ""
        worst = f"{open_[:, 0].min():+.1f}" if len(open_) else ""
        print(f"| {kind} | {len(open_)} of {len(found)} | {means} | {worst} |")
    for line in with_all_test_rows(folder, given.names):
        print(line)


if __name__ == "__main__":
    main()
