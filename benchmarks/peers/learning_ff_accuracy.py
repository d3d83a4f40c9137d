"""Predict by prototypes and least squares of dp-learning-ff; published.py runs this in its
environment.

python benchmarks/peers/learning_ff_accuracy.py PROBLEM.npz PREDICTIONS.npz
"""

import contextlib
import os
import sys

import numpy as np


def main(problem: str, out: str) -> None:
    """Write one array of predictions for each method, budget and seed."""
    from dp_learning_ff.least_squares import LeastSquaresClassifier
    from dp_learning_ff.prototypes import give_private_prototypes

    data = np.load(problem)
    found = {}
    for rho in data["rhos"]:
        for seed in range(int(data["seeds"])):
            np.random.seed(seed)  # noqa: NPY002 - the prototypes of dp-learning-ff draw from this generator
            with open(os.devnull, "w") as null, contextlib.redirect_stdout(null):
                means = give_private_prototypes(
                    data["x"], data["y"], rho * np.array([5, 7, 52]) / 64, seed=seed
                )
            means /= np.linalg.norm(means, axis=1, keepdims=True)
            found[f"prototypes/{rho}/{seed}"] = np.argmax(data["test_x"] @ means.T, axis=1)
            for ridge in data["ridges"]:
                theta = LeastSquaresClassifier.dp_least_squares(
                    data["unit_x"],
                    data["y"],
                    2.0,
                    float(ridge),
                    1.0,
                    float(np.sqrt(3 / (2 * rho))),
                    seed,
                )
                found[f"least-squares, {ridge:g}/{rho}/{seed}"] = np.argmax(
                    data["test_x"] @ theta.T, axis=1
                )
    np.savez(out, **found)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
