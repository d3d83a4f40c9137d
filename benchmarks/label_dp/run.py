"""Label privacy on real data: flipped labels and accuracy, by method and epsilon.

python benchmarks/label_dp/run.py DATA --out FOLDER [--workers 2] [--only cifar10/rr ...] [--cells
FILE]

DATA holds mnist.npz, fashion_mnist.npz, embeddings of CIFAR-10, Banking77, CLINC150 and AG News,
and names.npz, which benchmarks/utility/names.py writes. Images go to the network of the notebook of
"How to DP-fy ML" (two convolutions, a hidden layer of 32; needs torch, and Opacus for DP-SGD),
embeddings to the default linear model. The test set serves only to measure accuracy. `cells.py`
describes the files of a run.
"""

import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import tacit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from cells import Task, command, spread

SEEDS = range(3)
CLUSTERS = {"randomizer": "rr-with-prior", "prior": "clusters"}
BLOCKS = "blocks"
NAMED = "blocks with names"
MISNAMED = "blocks with permuted names"
RR_NAMED = "rr with prior from names"
NO_LABELS = "no labels: names and rows"

# parameters of LabelPrivate by method
METHODS: dict[str, dict[str, Any]] = {
    NAMED: {},
    MISNAMED: {},
    BLOCKS: {},
    RR_NAMED: {"randomizer": "rr-with-prior"},
    "rr": {"randomizer": "rr"},
    "rr with clusters": CLUSTERS,
    "rr in two stages": {"randomizer": "rr-with-prior", "stages": 2},
    "rr with clusters in two stages": {**CLUSTERS, "stages": 2},
    "laplace (ALIBI)": {"randomizer": "laplace"},
    "symmetric unary": {"randomizer": "symmetric-unary"},
    "optimised unary": {"randomizer": "optimised-unary"},
    "rr with backward correction": {"randomizer": "rr", "correction": "backward"},
}

# other methods
PATE_FM = "PATE-FM, delta 1e-5"
DP_SGD = "DP-SGD: unit add-remove, delta 1e-5"
AS_THEY_ARE = "labels as they are, at any epsilon"

WITH_NAMES = (NAMED, MISNAMED, RR_NAMED, NO_LABELS)
PICTURE_METHODS = (BLOCKS, "rr", "rr with clusters", DP_SGD)
TEXT_METHODS = (
    NO_LABELS,
    NAMED,
    BLOCKS,
    MISNAMED,
    RR_NAMED,
    "rr",
    "rr in two stages",
    "laplace (ALIBI)",
    "optimised unary",
)

# methods and epsilons of each problem
CELLS = {
    "cifar10": (*(name for name in METHODS if name not in WITH_NAMES), PATE_FM),
    "mnist": PICTURE_METHODS,
    "fashion-mnist": PICTURE_METHODS,
    "banking77": TEXT_METHODS,
    "clinc150": TEXT_METHODS,
    "agnews": TEXT_METHODS,
}
EPSILONS = {
    "cifar10": (0.5, 1.0, 2.0, 4.0),
    "mnist": (0.5, 1.0, 2.0, 4.0),
    "fashion-mnist": (1.0, 2.0),
    "banking77": (0.5, 1.0, 2.0, 4.0),
    "clinc150": (0.5, 1.0, 2.0, 4.0),
    "agnews": (0.5, 1.0, 2.0, 4.0),
}

# embeddings; the other problems are images
STORES = {
    "cifar10": "mobilenetv2-in1k-160/cifar10",
    "banking77": "all-minilm-l6-v2/banking77",
    "clinc150": "all-minilm-l6-v2/clinc150",
    "agnews": "all-minilm-l6-v2/agnews",
}

# in DATA, as benchmarks/utility/names.py writes it
NAMES = "names.npz"

# of the notebook's network
TRAINING = {"epochs": 5, "batch_size": 250, "learning_rate": 2e-3}

# test accuracies in percent; LP-2ST of Ghazi et al. 2021 uses ResNet18, a much larger network
PUBLISHED = {
    ("mnist", 1.0): "notebook: RR 93.0; LP-2ST 95.8",
    ("mnist", 2.0): "LP-2ST 98.8",
    ("fashion-mnist", 1.0): "LP-2ST 83.3",
    ("fashion-mnist", 2.0): "LP-2ST 91.2",
}


@dataclass(frozen=True)
class Cell:
    """One fit. `flipped` is the share of labels that changed; only a benchmark may compute it."""

    problem: str
    method: str
    epsilon: float
    seed: int
    flipped: float
    accuracy: float


def tasks() -> Iterator[Task]:
    """Yield all tasks: problem, method, epsilon, seed."""
    for name, epsilons in EPSILONS.items():
        yield from product([name], CELLS[name], epsilons, SEEDS)
        yield from product([name], [AS_THEY_ARE], epsilons[-1:], SEEDS)


@lru_cache(maxsize=1)
def problem(data: Path, name: str) -> tuple[np.ndarray, ...]:
    """Return training records and labels, then test records and labels."""
    arrays = []
    if name in STORES:
        folder = data / "embeddings" / STORES[name]
        for split in ("train", "test"):
            arrays.append(np.load(folder / f"{split}_x.npy").astype(np.float32))
            arrays.append(np.load(folder / f"{split}_y.npy").astype(np.int64))
        return tuple(arrays)

    with np.load(data / f"{name.replace('-', '_')}.npz") as file:
        for split in ("train", "test"):
            # images with one channel
            arrays.append(file[f"{split}_x"][:, None])
            arrays.append(file[f"{split}_y"].astype(np.int64))
    return tuple(arrays)


def notebook(shape: tuple[int, ...], n_classes: int) -> Any:
    """Return the notebook's network, for images of 28 x 28 pixels."""
    from torch import nn

    return nn.Sequential(
        nn.ZeroPad2d(3),
        nn.Conv2d(shape[0], 16, 8, 2),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
        nn.Linear(512, 32),
        nn.ReLU(),
        nn.Linear(32, n_classes),
    )


def names_of(data: Path, name: str) -> np.ndarray:
    """Return the rows of the class names of a problem."""
    with np.load(data / NAMES) as file:
        return np.asarray(file[STORES[name]])


def learner(
    data: Path, name: str, method: str, epsilon: float, seed: int, x: np.ndarray, n_classes: int
) -> Any:
    """Return the learner of a task, which will fit the records `x`."""
    common: dict[str, Any] = {
        "classes": n_classes,
        "noise": "research",
        "random_state": 1000 + seed,
        "seed": seed,
    }
    approximate_budget = f"epsilon={epsilon},delta=1e-5"

    # under change-label the records are public, without their labels
    if method == PATE_FM:
        return tacit.PATE(
            approximate_budget,
            public=x[:5000],
            unit="change-label",
            teachers={"number": 1000},
            **common,
        )
    if method == NO_LABELS:
        names = names_of(data, name)
        return tacit.NamePrototypes(
            classes=n_classes, names=names, public=x, adapt=True, unit="change-label"
        )
    if method == DP_SGD:
        return tacit.DPSGD(approximate_budget, base=notebook, **common)

    if method in WITH_NAMES:
        common["names"] = names_of(data, name)
    if method == MISNAMED:
        common["names"] = np.random.default_rng(seed).permutation(common["names"])
    if name not in STORES:
        common["base"] = notebook
        common["training"] = TRAINING
    budget = "epsilon=inf" if method == AS_THEY_ARE else f"epsilon={epsilon}"
    return tacit.LabelPrivate(budget, **common, **METHODS.get(method, {}))


def work(data: Path, task: Task) -> tuple[Cell, float]:
    """Compute a cell; return it and the seconds it took."""
    name, method, epsilon, seed = task
    x, y, test_x, test_y = problem(data, name)
    start = time.perf_counter()
    model = learner(data, name, method, epsilon, seed, x, int(y.max()) + 1).fit(x, y)
    flipped = math.nan
    noisy_labels = getattr(model, "noisy_labels_", None)
    # other randomizers answer with bits, numbers or blocks of classes, not with a label a record
    if method not in (NAMED, MISNAMED, BLOCKS) and np.ndim(noisy_labels) == 1:
        flipped = float(np.mean(noisy_labels != y))
    accuracy = float(np.mean(model.predict(test_x) == test_y))
    return Cell(*task, flipped, accuracy), time.perf_counter() - start


def markdown(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield a table for each problem.

    Figures are in percent: mean and standard deviation over seeds, or the only value.
    """
    for name in dict.fromkeys(cell.problem for cell in cells):
        cells_of_problem = [cell for cell in cells if cell.problem == name]
        epsilons = sorted({cell.epsilon for cell in cells_of_problem})
        header = [f"epsilon {epsilon:g}: labels flipped | test accuracy" for epsilon in epsilons]
        yield f"\n### {name}\n"
        yield f"| method | {' | '.join(header)} |"
        yield "|---" * (1 + 2 * len(epsilons)) + "|"

        for method in dict.fromkeys(cell.method for cell in cells_of_problem):
            texts = [method]
            for epsilon in epsilons:
                group = [
                    cell
                    for cell in cells_of_problem
                    if (cell.method, cell.epsilon) == (method, epsilon)
                ]
                flipped = [100 * cell.flipped for cell in group if not math.isnan(cell.flipped)]
                accuracies = [100 * cell.accuracy for cell in group]
                texts.append(spread(flipped, 1) if flipped else "")
                texts.append(spread(accuracies, 1) if accuracies else "")
            yield f"| {' | '.join(texts)} |"

        published = [PUBLISHED.get((name, epsilon), "") for epsilon in epsilons]
        if any(published):
            # below the accuracies
            texts = [f" | {text}" for text in published]
            yield f"| published | {' | '.join(texts)} |"


def main() -> None:
    """Run."""
    command("Label privacy on real data.", Cell, 4, tasks(), work, markdown)


if __name__ == "__main__":
    main()
