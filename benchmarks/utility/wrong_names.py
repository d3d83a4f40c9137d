"""What wrong class names cost `auto`: the names of the task in another order, and names of another
task.

python benchmarks/utility/wrong_names.py EMBEDDINGS --names names.npz [--workers 2] > wrong-names.md

Balanced accuracy without names, with three kinds of wrong ones, and with the right ones, which
`names.py` writes; and how many fits used the names. Eight seeds of records, order and noise, which
is `research`, since nothing is released.
"""

import argparse
from itertools import islice
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from methods import NOISE_SEEDS, budget
from numpy.typing import NDArray
from problems import SETTINGS, problem

import tacit
from tacit.models.metrics import evaluate

CASES = {  # problem and imbalance; another task with as many names
    ("banking77", 10): "clinc150",
    ("banking77, 1,500 own rows", 10): "clinc150",
    ("cifar100", 10): None,
    ("agnews", 10): "clinc150",
}
EPSILONS = 0.1, 0.2, 0.5
SEEDS, STREAM = 8, 40

Fits = tuple[float, float]  # balanced accuracy, and 1 if the names were used


def shuffled(names: NDArray[np.float32], seed: int) -> NDArray[np.float32]:
    """Names in a random order in which no class has its own."""
    order, wrong = np.random.default_rng([STREAM, seed]).permutation(len(names)), names.copy()
    wrong[order] = names[np.roll(order, 1)]
    return wrong


def fits(folder: Path, file: Path, name: str, ratio: int, rough: float, seed: int) -> list[Fits]:
    """A fit for each column of the table; nan where there are no such names."""
    data = problem(folder, name, ratio, seed, file)
    assert data.names is not None
    other = CASES[name, ratio]
    encoder = SETTINGS[name].private.partition("/")[0]

    def fit(names: NDArray[np.float32] | None) -> Fits:
        learner = tacit.AutoPrototypes(
            budget(rough),
            public=data.public,
            classes=data.n_classes,
            names=names,
            noise="research",
            random_state=NOISE_SEEDS + seed,
        )
        predicted = learner.fit(data.x, data.y).predict(data.test_x)
        scores = evaluate(data.test_y, predicted, np.arange(data.n_classes), data.sizes)
        return float(scores.balanced), float(learner.names_used_)

    of_others = (
        (np.nan, np.nan)
        if other is None
        else fit(np.load(file)[f"{encoder}/{other}"][: data.n_classes])
    )
    in_order = fit(shuffled(data.names, seed)), fit(np.roll(data.names, -1, axis=0))
    return [fit(None), *in_order, of_others, fit(data.names)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="What wrong class names cost auto.")
    parser.add_argument("embeddings", type=Path)
    parser.add_argument(
        "--names", type=Path, required=True, help="rows of class names, written by names.py"
    )
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    print(
        "| data set, imbalance | e | no names | shuffled | of the next class | of another task |"
        " right |"
    )
    print("|---|---|---|---|---|---|---|")
    jobs = [
        (name, ratio, rough, seed)
        for name, ratio in CASES
        for rough in EPSILONS
        for seed in range(SEEDS)
    ]
    run = Parallel(n_jobs=given.workers, return_as="generator")
    found = run(delayed(fits)(given.embeddings, given.names, *job) for job in jobs)
    for name, ratio, rough, _ in jobs[::SEEDS]:
        each = np.array(list(islice(found, SEEDS)))  # (seed, column, accuracy and use)
        columns = zip(each[..., 0].mean(axis=0), each[..., 1].sum(axis=0), strict=True)
        shown = [
            "" if np.isnan(accuracy) else f"{accuracy:.3f} ({used:.0f})"
            for accuracy, used in columns
        ]
        shown[0] = shown[0].removesuffix(" (0)")
        print(f"| {name}, {ratio} | {rough:g} | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    main()
