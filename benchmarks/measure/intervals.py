"""Coverage of the intervals of `tacit.models.intervals` at 95 %, by simulation.

python benchmarks/measure/intervals.py

Writes intervals.csv beside this file: for each case the share of draws whose interval holds the
true figure and its mean width, and the same of 1.96 standard errors on either side. Cases of rows
are balanced accuracies of classes of the given numbers of rows and accuracies. Cases of persons are
accuracies of persons whose own accuracy is drawn from a Beta distribution, so that two rows of one
person correlate as stated.

intervals_of_labels.csv has the same of the average precision of one label in 2,000 rows, whose
scores are normal, and higher by the stated number of standard deviations for rows of the label.
"""

import csv
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from tacit.models.intervals import Interval, interval_of_mean, interval_of_share
from tacit.models.label_set_metrics import average_precision

OUT = Path(__file__).with_suffix(".csv")
OF_LABELS = OUT.with_stem("intervals_of_labels")
HEADER = ["case", "coverage", "width", "coverage_by_error", "width_by_error"]
DRAWS = 2_000

# rows of each class, and their accuracies
CLASSES: dict[str, tuple[list[int], list[float]]] = {
    "1 class of 590": ([590], [0.99]),
    "1 class of 20": ([20], [0.8]),
    "10 classes of 20": ([20] * 10, [0.8] * 10),
    "10 classes of 20, nearly all right": ([20] * 10, [0.99] * 10),
    "100 classes of 6": ([6] * 100, [0.99] * 100),
    "100 classes of 1": ([1] * 100, [0.5] * 100),
    "20 classes of 30, .5 to 1": ([30] * 20, list(np.linspace(0.5, 1, 20))),
    "6 classes of 50 to 5": ([50, 30, 18, 11, 8, 5], [0.97, 0.95, 0.9, 0.8, 0.7, 0.5]),
    "9 classes of 200 at .95, 1 of 5 at .5": ([200] * 9 + [5], [0.95] * 9 + [0.5]),
    "9 classes of 200 at .99, 1 of 5 at .8": ([200] * 9 + [5], [0.99] * 9 + [0.8]),
    "10 classes of 1000, 90 of 5": ([1_000] * 10 + [5] * 90, [0.99] * 100),
}

# persons: their number, rows of each, accuracy, correlation of rows
PERSONS = (10, 30, 100, 400)
SIZES: dict[str, Callable[[np.random.Generator, int], NDArray[np.int64]]] = {
    "20 rows each": lambda rng, n: np.full(n, 20),
    "skew": lambda rng, n: np.ceil(rng.lognormal(1, 1, n)).astype(np.int64),
}
ACCURACIES = (0.8, 0.99)
CORRELATIONS = (0.05, 0.5, 0.95)

# rows of a test set, those that have the label, and how far apart scores are
ROWS_OF_LABELS = 2_000
RECORDS = (40, 10, 4)
DISTANCES = (1.0, 2.0, 3.0)


def draws_of_classes(
    rows: list[int], accuracies: list[float], rng: np.random.Generator
) -> Iterator[tuple[float, float, Interval]]:
    """Yield figure, standard error and interval of the balanced accuracy of test sets."""
    n_classes = len(rows)
    index = np.repeat(np.arange(n_classes), rows)
    weights = 1 / (np.array(rows)[index] * n_classes)
    for _ in range(DRAWS):
        hits = (rng.random(len(index)) < np.array(accuracies)[index]).astype(float)
        shares = np.bincount(index, hits) / rows
        parts = (hits - shares[index]) * weights
        figure = float(shares.mean())
        yield figure, np.sqrt((parts**2).sum()), interval_of_share(figure, parts, weights, None)


def draws_of_persons(
    n_persons: int, sizes: str, accuracy: float, correlation: float, rng: np.random.Generator
) -> Iterator[tuple[float, float, Interval]]:
    """Yield figure, standard error and interval of the accuracy of test sets of persons."""
    spread = (1 - correlation) / correlation
    for _ in range(DRAWS):
        counts = SIZES[sizes](rng, n_persons)
        codes = np.repeat(np.arange(n_persons), counts)
        chances = rng.beta(accuracy * spread, (1 - accuracy) * spread, n_persons)
        hits = (rng.random(len(codes)) < chances[codes]).astype(float)
        figure = float(hits.mean())
        weights = np.full(len(codes), 1 / len(codes))
        parts = (hits - figure) * weights
        variance = n_persons / (n_persons - 1) * (np.bincount(codes, parts) ** 2).sum()
        yield figure, np.sqrt(variance), interval_of_share(figure, parts, weights, codes)


def draws_of_label(
    records: int, distance: float, rng: np.random.Generator
) -> Iterator[tuple[float, float, Interval]]:
    """Yield figure, standard error and interval of the average precision of a label."""
    truth = np.arange(ROWS_OF_LABELS) < records
    for _ in range(DRAWS):
        scores = rng.normal(size=ROWS_OF_LABELS) + distance * truth
        figure, parts = average_precision(truth, scores)
        interval = interval_of_mean(figure, parts, truth / records, None)
        yield figure, np.sqrt((parts**2).sum()), interval


def true_precision(records: int, distance: float) -> float:
    """Return the average precision of a label in infinitely many rows."""
    scores = np.linspace(-8, 12, 200_001)
    share = records / ROWS_OF_LABELS
    found = share * ndtr(distance - scores)
    precision = found / (found + (1 - share) * ndtr(-scores))
    density = np.exp(-((scores - distance) ** 2) / 2)
    return float((density * precision).sum() / density.sum())


def coverage(draws: Iterator[tuple[float, float, Interval]], truth: float) -> list[str]:
    """Coverage and mean width of the intervals, then of 1.96 standard errors."""
    rows = []
    for figure, error, (low, high) in draws:
        least = max(0.0, figure - 1.96 * error)
        most = min(1.0, figure + 1.96 * error)
        rows.append((low <= truth <= high, high - low, least <= truth <= most, most - least))
    return [f"{value:.4f}" for value in np.mean(rows, axis=0)]


def main() -> None:
    """Simulate every case and write the tables."""
    with OUT.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        for name, (rows, accuracies) in CLASSES.items():
            rng = np.random.default_rng(0)
            draws = draws_of_classes(rows, accuracies, rng)
            writer.writerow([name, *coverage(draws, float(np.mean(accuracies)))])
        for case in product(PERSONS, SIZES, ACCURACIES, CORRELATIONS):
            rng = np.random.default_rng(0)
            n_persons, sizes, accuracy, correlation = case
            name = f"{n_persons} persons, {sizes}, accuracy {accuracy}, correlation {correlation}"
            writer.writerow([name, *coverage(draws_of_persons(*case, rng), accuracy)])

    with OF_LABELS.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        for records, distance in product(RECORDS, DISTANCES):
            rng = np.random.default_rng(0)
            name = f"label of {records} records, {distance:g} standard deviations apart"
            of_label = coverage(
                draws_of_label(records, distance, rng), true_precision(records, distance)
            )
            writer.writerow([name, *of_label])


if __name__ == "__main__":
    main()
