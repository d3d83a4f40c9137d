"""Time prototypes and least squares of dp-learning-ff, best of three; scale.py runs this in its
environment.

python benchmarks/peers/learning_ff.py ROWS.npz
"""

import contextlib
import os
import sys
import time

import numpy as np


def main(path: str) -> None:
    """Print a name and its seconds on each line."""
    from dp_learning_ff.least_squares import LeastSquaresClassifier
    from dp_learning_ff.prototypes import give_private_prototypes

    data = np.load(path)
    x, y = data["x"], data["y"]

    def prototypes(x: np.ndarray, y: np.ndarray) -> object:
        with open(os.devnull, "w") as null, contextlib.redirect_stdout(null):
            return give_private_prototypes(x, y, [5 / 128, 7 / 128, 52 / 128])

    def least_squares(x: np.ndarray, y: np.ndarray) -> object:
        return LeastSquaresClassifier.dp_least_squares(x, y, 1.0, 1.0, 1.0, 2.0)

    for name, work in (("prototypes", prototypes), ("least-squares", least_squares)):
        times = []
        for _ in range(3):
            started = time.perf_counter()
            work(x, y)
            times.append(time.perf_counter() - started)
        print(f"{name} {min(times)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
