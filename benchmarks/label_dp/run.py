"""Label privacy on real data: share of flipped labels and accuracy of the classifier, by method and
epsilon.

python benchmarks/label_dp/run.py DATA --out FOLDER [--workers 2] [--only cifar10/rr ...] [--cells
FILE]

DATA holds mnist.npz, fashion_mnist.npz, embeddings of CIFAR-10, Banking77, CLINC150 and AG News,
and names.npz, which benchmarks/utility/names.py writes. Images go to the network of the notebook of
"How to DP-fy ML" (two convolutions, a hidden layer of 32; needs torch, and Opacus for DP-SGD),
embeddings to the default linear model. The test set serves only to measure accuracy. `cells.py`
describes the files of a run.
"""

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
BLOCKS, NAMED, MISNAMED, RR_NAMED, NO_LABELS = (
    "blocks",
    "blocks with names",
    "blocks with permuted names",
    "rr with prior from names",
    "no labels: names and rows",
)
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
"""Parameters of LabelPrivate by name."""
PATE_FM = "PATE-FM, delta 1e-5"
DP_SGD = "DP-SGD: unit add-remove, delta 1e-5"
AS_THEY_ARE = "labels as they are, at any epsilon"
OF_PICTURES = (BLOCKS, "rr", "rr with clusters", DP_SGD)
WITH_NAMES = (NAMED, MISNAMED, RR_NAMED, NO_LABELS)
OF_TEXTS = (
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
CELLS = {
    "cifar10": (*(name for name in METHODS if name not in WITH_NAMES), PATE_FM),
    "mnist": OF_PICTURES,
    "fashion-mnist": OF_PICTURES,
}
EPSILONS = {
    "cifar10": (0.5, 1.0, 2.0, 4.0),
    "mnist": (0.5, 1.0, 2.0, 4.0),
    "fashion-mnist": (1.0, 2.0),
}
TEXTS = ("banking77", "clinc150", "agnews")
CELLS |= dict.fromkeys(TEXTS, OF_TEXTS)
EPSILONS |= dict.fromkeys(TEXTS, (0.5, 1.0, 2.0, 4.0))
STORES = {"cifar10": "mobilenetv2-in1k-160/cifar10"} | {
    name: f"all-minilm-l6-v2/{name}" for name in TEXTS
}
NAMES = "names.npz"  # in DATA, as benchmarks/utility/names.py writes it
TRAINING = {"epochs": 5, "batch_size": 250, "learning_rate": 2e-3}
PUBLISHED = {
    ("mnist", 1.0): "notebook: RR 93.0; LP-2ST 95.8",
    ("mnist", 2.0): "LP-2ST 98.8",
    ("fashion-mnist", 1.0): "LP-2ST 83.3",
    ("fashion-mnist", 2.0): "LP-2ST 91.2",
}
"""Test accuracies in percent. LP-2ST of Ghazi et al. 2021 uses ResNet18, a much larger network."""


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
    """All tasks."""
    for name, epsilons in EPSILONS.items():
        yield from product([name], CELLS[name], epsilons, SEEDS)
        yield from product([name], [AS_THEY_ARE], epsilons[-1:], SEEDS)


@lru_cache(maxsize=1)
def problem(data: Path, name: str) -> tuple[np.ndarray, ...]:
    """Training records and labels, then test records and labels."""
    if name in STORES:
        folder = data / "embeddings" / STORES[name]
        x, y, test_x, test_y = (
            np.load(folder / f"{part}.npy") for part in ("train_x", "train_y", "test_x", "test_y")
        )
        return (
            x.astype(np.float32),
            y.astype(np.int64),
            test_x.astype(np.float32),
            test_y.astype(np.int64),
        )
    with np.load(data / f"{name.replace('-', '_')}.npz") as file:
        x, y, test_x, test_y = (file[part] for part in ("train_x", "train_y", "test_x", "test_y"))
        return x[:, None], y.astype(np.int64), test_x[:, None], test_y.astype(np.int64)


def notebook(shape: tuple[int, ...], n_classes: int) -> Any:
    """The notebook's network, for images of 28 x 28 pixels."""
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
    """Rows of the class names of a problem."""
    with np.load(data / NAMES) as file:
        return np.asarray(file[STORES[name]])


def learner(
    data: Path, name: str, method: str, epsilon: float, seed: int, x: np.ndarray, n_classes: int
) -> Any:
    """The learner of a task."""
    common: dict[str, Any] = {
        "classes": n_classes,
        "noise": "research",
        "random_state": 1000 + seed,
        "seed": seed,
    }
    approximate = f"epsilon={epsilon},delta=1e-5"
    if method == PATE_FM:  # teachers vote on the features of the records
        return tacit.PATE(
            approximate, public=x[:5000], unit="change-label", teachers={"number": 1000}, **common
        )
    if method == DP_SGD:
        return tacit.DPSGD(approximate, base=notebook, **common)
    if method == NO_LABELS:  # the features are public
        names = names_of(data, name)
        return tacit.NamePrototypes(
            classes=n_classes, names=names, public=x, adapt=True, unit="change-label"
        )
    if method in WITH_NAMES:
        common["names"] = names_of(data, name)
    if method == MISNAMED:
        common["names"] = np.random.default_rng(seed).permutation(common["names"])
    base, training = (None, None) if name in STORES else (notebook, TRAINING)
    budget = "epsilon=inf" if method == AS_THEY_ARE else f"epsilon={epsilon}"
    return tacit.LabelPrivate(
        budget, base=base, training=training, **common, **METHODS.get(method, {})
    )


def work(data: Path, task: Task) -> tuple[Cell, float]:
    """Compute a cell; return it and the seconds it took."""
    name, method, epsilon, seed = task
    x, y, test_x, test_y = problem(data, name)
    started = time.perf_counter()
    model = learner(data, name, method, epsilon, seed, x, int(y.max()) + 1).fit(x, y)
    given = getattr(model, "noisy_labels_", np.zeros((0, 0)))
    flipped = (
        float(np.mean(given != y))
        if given.ndim == 1 and method not in (NAMED, MISNAMED, BLOCKS)
        else float("nan")
    )
    return (
        Cell(*task, flipped, float(np.mean(model.predict(test_x) == test_y))),
        time.perf_counter() - started,
    )


def markdown(cells: Sequence[Cell]) -> Iterator[str]:
    """A table for each problem: mean and standard deviation over seeds in percent, or the only
    value.
    """
    for name in dict.fromkeys(cell.problem for cell in cells):
        own = [cell for cell in cells if cell.problem == name]
        epsilons = sorted({cell.epsilon for cell in own})
        yield f"\n### {name}\n"
        yield (
            "| method | "
            + " | ".join(f"epsilon {e:g}: labels flipped | test accuracy" for e in epsilons)
            + " |"
        )
        yield "|---" * (1 + 2 * len(epsilons)) + "|"
        for method in dict.fromkeys(cell.method for cell in own):
            shown = [method]
            for epsilon in epsilons:
                found = [cell for cell in own if (cell.method, cell.epsilon) == (method, epsilon)]
                flipped = [100 * cell.flipped for cell in found if not np.isnan(cell.flipped)]
                shown.append(spread(flipped, 1) if flipped else "")
                shown.append(spread([100 * cell.accuracy for cell in found], 1) if found else "")
            yield "| " + " | ".join(shown) + " |"
        published = [PUBLISHED.get((name, epsilon), "") for epsilon in epsilons]
        if any(published):
            yield "| published | " + " | ".join(f" | {text}" for text in published) + " |"


def main() -> None:
    """Run."""
    command("Label privacy on real data.", Cell, 4, tasks(), work, markdown)


if __name__ == "__main__":
    main()
