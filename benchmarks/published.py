"""Compare dp-learning-ff with tacit: accuracy of prototypes and of least squares on real
embeddings.

python benchmarks/published.py EMBEDDINGS --peer PYTHON

PYTHON is the Python of an environment made by: python -m venv ff; ff/bin/pip install
"dp-learning-ff==0.0.8". EMBEDDINGS holds cifar10 and cifar100. Both packages get the
same imbalanced subset. For prototypes both get the true class counts, which are then unprotected,
and rows as they are, as published. "paper steps" are the three steps that dp-learning-ff has;
otherwise "coinpress" has one step.
The noise of dp-learning-ff is that of replacing a record within its class, so tacit's prototypes
are shown under this unit too. The ridge of dp-learning-ff is the best of five on the test set,
which favours it. rho = e^2/2; balanced accuracy, mean over seeds; noise is `research`.
"""

import argparse
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from timing import table

import tacit
from tacit.data.imbalance import imbalanced_subset
from tacit.learners.prototypes.coinpress import PAPER_STEPS
from tacit.models.rows import unit_rows

EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
SEEDS = 3
RATIOS = (1, 50)
RIDGES = (1.0, 10.0, 100.0, 1000.0, 10000.0)
PEER = Path(__file__).parent / "peers" / "learning_ff_accuracy.py"


def problem(folder: Path, name: str, ratio: float) -> dict[str, np.ndarray]:
    """An imbalanced subset of a data set, and its test set."""
    x, y, test_x, test_y = (
        np.load(folder / name / f"{part}.npy")
        for part in ("train_x", "train_y", "test_x", "test_y")
    )
    kept = np.sort(imbalanced_subset(y, ratio, 0))
    rows = x[kept].astype(float)
    return {
        "x": rows,
        "unit_x": unit_rows(rows),
        "y": y[kept].astype(np.int64),
        "test_x": test_x.astype(float),
        "test_y": test_y,
        "rhos": np.array(EPSILONS) ** 2 / 2,
        "seeds": np.array(SEEDS),
        "ridges": np.array(RIDGES),
    }


def theirs(python: str, given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Predictions of dp-learning-ff."""
    with tempfile.TemporaryDirectory() as folder:
        asked, found = Path(folder) / "problem.npz", Path(folder) / "predictions.npz"
        np.savez(asked, **{name: value for name, value in given.items() if name != "test_y"})
        subprocess.run([python, str(PEER), str(asked), str(found)], check=True)
        with np.load(found) as arrays:
            return dict(arrays)


def ours(given: Mapping[str, np.ndarray], rho: float, seed: int) -> dict[str, np.ndarray]:
    """Predictions of tacit."""
    counts = np.bincount(given["y"]).tolist()
    common: dict[str, Any] = {"classes": len(counts), "noise": "research", "random_state": seed}
    means = common | {"counts": counts}
    of_the_paper = means | {"steps": PAPER_STEPS}
    learners = {
        "coinpress": (tacit.CoinPressPrototypes(f"rho={rho!r}", **means), "x"),
        "coinpress, paper steps": (
            tacit.CoinPressPrototypes(f"rho={rho!r}", **of_the_paper),
            "x",
        ),
        "coinpress, paper steps, replace": (
            tacit.CoinPressPrototypes(f"rho={rho!r}", unit="replace", **of_the_paper),
            "x",
        ),
        "least-squares": (tacit.LeastSquares(f"rho={rho!r}", **common), "x"),
        "least-squares, alpha=2": (tacit.LeastSquares(f"rho={rho!r}", alpha=2.0, **common), "x"),
    }
    return {
        name: learner.fit(given[rows], given["y"]).predict(given["test_x"])
        for name, (learner, rows) in learners.items()
    }


def compared(given: Mapping[str, np.ndarray], python: str) -> dict[str, list[float]]:
    """Balanced accuracy of each method at each budget, mean over seeds."""
    test_y = given["test_y"]
    classes = np.unique(test_y)

    def balanced(predicted: np.ndarray) -> float:
        return float(np.mean([(predicted[test_y == c] == c).mean() for c in classes]))

    peer = {name: balanced(predicted) for name, predicted in theirs(python, given).items()}
    rows: dict[str, list[float]] = {}
    for rho in given["rhos"]:
        found: dict[str, list[float]] = {}
        for seed in range(SEEDS):
            for name, predicted in ours(given, float(rho), seed).items():
                found.setdefault(name, []).append(balanced(predicted))
        means = {name: float(np.mean(values)) for name, values in found.items()}

        def of_peer(name: str, rho: float = rho) -> float:
            return float(np.mean([peer[f"{name}/{rho}/{seed}"] for seed in range(SEEDS)]))

        means["dp-learning-ff prototypes"] = of_peer("prototypes")
        means["dp-learning-ff least squares"] = max(
            of_peer(f"least-squares, {ridge:g}") for ridge in RIDGES
        )
        for name, value in means.items():
            rows.setdefault(name, []).append(value)
    return rows


def main() -> None:
    """Print a table for each data set and imbalance."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("embeddings", type=Path)
    parser.add_argument(
        "--peer", required=True, help="python of an environment with dp-learning-ff"
    )
    given = parser.parse_args()
    for name in ("cifar10", "cifar100"):
        for ratio in RATIOS:
            rows = compared(problem(given.embeddings, name, ratio), given.peer)
            shown = [
                [method, *(f"{value:.3f}" for value in values)]
                for method, values in sorted(rows.items())
            ]
            table(
                f"{name}, imbalance {ratio}", ["method", *(f"e = {e:g}" for e in EPSILONS)], shown
            )


if __name__ == "__main__":
    main()
