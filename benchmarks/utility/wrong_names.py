"""What wrong class names cost `auto`: names in random order, each the next class's name, and names of another task.

python benchmarks/utility/wrong_names.py EMBEDDINGS --names names.npz [--workers 2] > wrong-names.md

Balanced accuracy without names, with wrong names, and with the right ones, which `names.py` writes; means over eight
seeds of records, order and noise. Noise is `research`, since nothing is released. Classes are in alphabetical order, so
the next class's name is often similar.
"""

import argparse
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from methods import NOISE_SEEDS, budget
from numpy.typing import NDArray
from problems import SETTINGS, problem

import tacit
from tacit.models.metrics import evaluate

CASES = {  # problem and imbalance; another task with as many names
    ("banking77", 10): "clinc150", ("banking77, 1,500 own rows", 10): "clinc150", ("clinc150", 10): None,
    ("cifar100", 10): None, ("cifar10", 10): "cifar100", ("agnews", 10): "clinc150",
}  # fmt: skip
EPSILONS = 0.1, 0.15, 0.2, 0.5
SEEDS = 8


def accuracies(folder: Path, file: Path, name: str, ratio: int, rough: float, seed: int) -> list[float]:
    """Balanced accuracy without names, with three kinds of wrong ones (nan if there are none), and with right ones."""
    data = problem(folder, name, ratio, seed, file)
    assert data.names is not None
    other = CASES[name, ratio]
    encoder = SETTINGS[name].private.partition("/")[0]
    of_others = None if other is None else np.load(file)[f"{encoder}/{other}"][: data.n_classes]

    def accuracy(names: NDArray[np.float32] | None) -> float:
        learner = tacit.AutoPrototypes(
            budget(rough), public=data.public, classes=data.n_classes, names=names, noise="research",
            random_state=NOISE_SEEDS + seed,
        )  # fmt: skip
        predicted = learner.fit(data.x, data.y).predict(data.test_x)
        return float(evaluate(data.test_y, predicted, np.arange(data.n_classes), data.sizes).balanced)

    order = np.random.default_rng(seed).permutation(data.n_classes)
    wrong = data.names[order], np.roll(data.names, -1, axis=0), of_others
    return [accuracy(None), *(np.nan if names is None else accuracy(names) for names in wrong), accuracy(data.names)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="What wrong class names cost auto.")
    parser.add_argument("embeddings", type=Path)
    parser.add_argument("--names", type=Path, required=True, help="rows of class names, written by names.py")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    print("| data set, imbalance | e | no names | in random order | the next class's | of another task | right names |")
    print("|---|---|---|---|---|---|---|")
    jobs = [(name, ratio, rough, seed) for name, ratio in CASES for rough in EPSILONS for seed in range(SEEDS)]
    run = Parallel(n_jobs=given.workers, return_as="generator")
    found = run(delayed(accuracies)(given.embeddings, given.names, *job) for job in jobs)
    for (name, ratio, rough, _), first in zip(jobs[::SEEDS], found, strict=False):
        means = np.mean([first, *(next(found) for _ in range(SEEDS - 1))], axis=0)
        shown = ["" if np.isnan(mean) else f"{mean:.3f}" for mean in means]
        print(f"| {name}, {ratio} | {rough:g} | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    main()
