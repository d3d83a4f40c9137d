"""Private choice among five releases: how often the chosen one is nearly the best.

python benchmarks/measure/choose.py EMBEDDINGS

EMBEDDINGS is that of benchmarks/utility/run.py. Each task has five releases: three methods on the
embeddings of the encoder, and two on those of a smaller one, its first components. Each of 100
draws takes 1,000 test records and chooses by epsilon 0.4. Two files beside this one are written:
choose.csv has the accuracy of the chosen and of the best release in each draw, on the records of
the draw and on all test records, and choose-candidates.csv that of every release on all of them.
"""

import csv
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tacit

OUT = Path(__file__).with_suffix(".csv")
CANDIDATES = OUT.with_name("choose-candidates.csv")
DRAWS = 100
RECORDS = 1_000
N_PUBLIC = 5_000
BUDGET = "epsilon=0.4"


@dataclass(frozen=True)
class Task:
    """A data set: its public rows, the records that releases learn from, the budget of each."""

    folder: str
    public: str
    n_train: int
    budget: str
    n_components: int


TASKS = {
    "cifar10": Task(
        "mobilenetv2-in1k-160/cifar10", "mobilenetv2-in1k-160/tiny_imagenet", 5_000, "rho=0.02", 64
    ),
    "cifar100": Task(
        "mobilenetv2-in1k-160/cifar100",
        "mobilenetv2-in1k-160/tiny_imagenet",
        50_000,
        "rho=0.1",
        128,
    ),
    "banking77": Task(
        "all-minilm-l6-v2/banking77", "all-minilm-l6-v2/agnews", 10_003, "rho=0.5", 192
    ),
}


def part(folder: Path, name: str) -> NDArray[Any]:
    """An array of a data set, float32 where it has rows."""
    array = np.load(folder / f"{name}.npy")
    return array.astype(np.float32) if name.endswith("_x") else array.astype(np.int64)


def releases_of(task: Task, root: Path) -> tuple[dict[str, Any], list[NDArray[Any]], NDArray[Any]]:
    """Return the fitted candidates by name, the test rows of each, and the labels."""
    folder = root / task.folder
    x = part(folder, "train_x")[: task.n_train]
    y = part(folder, "train_y")[: task.n_train]
    test_x = part(folder, "test_x")
    test_y = part(folder, "test_y")
    public = part(root / task.public, "train_x")[:N_PUBLIC]
    classes = range(int(test_y.max()) + 1)
    common: dict[str, Any] = {"classes": list(classes), "noise": "research"}

    # all share the seed of noise, which is no matter here: each is one release
    learners = {
        "noisy-sum": tacit.NoisySumPrototypes(task.budget, random_state=0, **common),
        "auto": tacit.AutoPrototypes(task.budget, public=public, random_state=1, **common),
        "least-squares": tacit.LeastSquares(task.budget, random_state=2, **common),
        "noisy-sum, smaller": tacit.NoisySumPrototypes(task.budget, random_state=3, **common),
        "least-squares, smaller": tacit.LeastSquares(task.budget, random_state=4, **common),
    }
    rows = []
    for name, learner in learners.items():
        width = x.shape[1]
        if name.endswith("smaller"):
            width = task.n_components
        learner.fit(x[:, :width], y)
        rows.append(test_x[:, :width])
    return learners, rows, test_y


def main(root: Path) -> None:
    """Fit the candidates of each task, draw, choose, and write both tables."""
    draws = []
    candidates = []
    for name, task in TASKS.items():
        learners, rows, y = releases_of(task, root)
        hits = np.array(
            [learner.predict(x) == y for learner, x in zip(learners.values(), rows, strict=True)]
        )
        of_all = hits.mean(axis=1)
        for candidate, accuracy in zip(learners, of_all, strict=True):
            candidates.append([name, candidate, f"{accuracy:.4f}"])

        rng = np.random.default_rng(0)
        for draw in range(DRAWS):
            sample = rng.choice(len(y), RECORDS, replace=False)
            chosen = tacit.choose(
                list(learners.values()),
                [x[sample] for x in rows],
                y[sample],
                budget=BUDGET,
                noise="research",
                random_state=draw,
            )
            of_draw = hits[:, sample].mean(axis=1)
            shares = (of_draw[chosen], of_draw.max(), of_all[chosen], of_all.max())
            near = of_draw[chosen] >= of_draw.max() - 0.01
            # the same on all test records, and that of the best of the draw, without noise
            near_of_all = of_all[chosen] >= of_all.max() - 0.01
            without_noise = of_all[of_draw.argmax()] >= of_all.max() - 0.01
            verdicts = [int(near), int(near_of_all), int(without_noise)]
            draws.append([name, draw, *(f"{share:.4f}" for share in shares), *verdicts])

    for path, header, lines in (
        (
            OUT,
            [
                "task",
                "draw",
                "chosen",
                "best",
                "chosen_of_all",
                "best_of_all",
                "near",
                "near_of_all",
                "near_of_all_without_noise",
            ],
            draws,
        ),
        (CANDIDATES, ["task", "candidate", "accuracy"], candidates),
    ):
        with path.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(header)
            writer.writerows(lines)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
