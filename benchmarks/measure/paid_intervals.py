"""Coverage and width of the intervals of paid evaluations, as `paid_intervals.csv` holds them.

python benchmarks/measure/paid_intervals.py --out FILE.csv [--draws 1000] [--records 20 200]

Each draw has ten classes of equally many records, whose right answers are binomial, and Gaussian
noise on the numbers of right and of wrong records of each class. Intervals at 95 % are those of the
first class, of all records of a group of ten classes, and of balanced accuracy.
"""

import argparse
import csv
from itertools import product
from pathlib import Path

import numpy as np

from tacit.measure.intervals import Counts, Noise, accuracy_intervals, balanced_interval

NOISES = (0.0, 5.0, 20.0)
ACCURACIES = (0.5, 0.8, 0.95, 0.99)
N_CLASSES = 10
LEVEL = 0.95


def cells(
    records: int, noise: Noise, accuracy: float, draws: int
) -> dict[str, tuple[float, float]]:
    """Coverage and median width of the interval of each figure."""
    rng = np.random.default_rng(records)
    right = rng.binomial(records, accuracy, (draws, N_CLASSES))
    shape = right.shape
    noisy_right = right + rng.normal(0, noise.scale, shape)
    noisy_wrong = records - right + rng.normal(0, noise.scale, shape)

    one_class = Counts.of(noisy_right[:, 0], noisy_wrong[:, 0], 1, 1)
    group = Counts.of(noisy_right.sum(axis=1), noisy_wrong.sum(axis=1), N_CLASSES, N_CLASSES)
    balanced = [
        balanced_interval(Counts.of(noisy_right[i], noisy_wrong[i], 1, 1), noise, LEVEL)
        for i in range(draws)
    ]
    ends = {
        "class": accuracy_intervals(one_class, noise, LEVEL),
        "group": accuracy_intervals(group, noise, LEVEL),
        "balanced": tuple(np.array(balanced).T),
    }
    return {
        name: (
            float(np.mean((lower <= accuracy) & (upper >= accuracy))),
            float(np.median(upper - lower)),
        )
        for name, (lower, upper) in ends.items()
    }


def main() -> None:
    """Write the table, row by row."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--records", type=int, nargs="*", default=[20, 200])
    arguments = parser.parse_args()

    with arguments.out.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["records", "noise", "accuracy", "figure", "coverage", "width", "draws"])
        for records, scale, accuracy in product(arguments.records, NOISES, ACCURACIES):
            found = cells(records, Noise(scale), accuracy, arguments.draws)
            for figure, (coverage, width) in found.items():
                row = [records, scale, accuracy, figure, f"{coverage:.3f}", f"{width:.3f}"]
                writer.writerow([*row, arguments.draws])
            file.flush()


if __name__ == "__main__":
    main()
