"""The problems of the table: private records for teachers, public records to query, and test
records.

The private records are the official training set. The official test set is split by position: most
of it is queried, and the rest is used for testing. The features of a record depend on that record
alone.
"""

import csv
import gzip
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

import tacit

TESTED = 1000
EDGES = "edges:28"
LARGE = {
    "age": 100,
    "education_num": 16,
    "capital_gain": 1e5,
    "capital_loss": 5e3,
    "hours_per_week": 100,
}


@dataclass(frozen=True)
class Problem:
    """Rows and class indices of each part, and the kind of teacher."""

    x: np.ndarray
    y: np.ndarray
    public_x: np.ndarray
    public_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    n_classes: int
    teacher: Any
    expected_accuracy: float


def problem(data: Path, name: str, seed: int) -> Problem:
    """The problem of this name; the seed determines which test records are queried."""
    _, n_test, teacher, expected = (PROBLEMS | MORE)[name]
    x, y, test_x, test_y = whole(data, name)
    parts = tacit.split(
        len(test_y), n_private=1, n_public=len(test_y) - n_test - 1, n_test=n_test, seed=seed
    )
    asked, tested = np.concatenate([parts.private, parts.public]), parts.test
    return Problem(
        x,
        y,
        test_x[asked],
        test_y[asked],
        test_x[tested],
        test_y[tested],
        int(y.max()) + 1,
        teacher,
        expected,
    )


@lru_cache(maxsize=1)
def whole(data: Path, name: str) -> tuple[np.ndarray, ...]:
    """The data set: rows and class indices of its training set, then of its test set."""
    return (PROBLEMS | MORE)[name][0](data)


def pictures(name: str) -> Callable[[Path], tuple[np.ndarray, ...]]:
    """A reader of images as directions of edges, 392 columns."""

    def read(data: Path) -> tuple[np.ndarray, ...]:
        with np.load(data / f"{name}.npz") as file:
            return (
                tacit.encode(file["train_x"], EDGES), file["train_y"].astype(np.int64),
                tacit.encode(file["test_x"], EDGES), file["test_y"].astype(np.int64),
            )  # fmt: skip

    return read


def embeddings(encoder: str, name: str) -> Callable[[Path], tuple[np.ndarray, ...]]:
    """A reader of rows of a public encoder, as unit rows."""

    def read(data: Path) -> tuple[np.ndarray, ...]:
        folder = data / "embeddings" / encoder / name
        x, y, test_x, test_y = (
            np.load(folder / f"{part}.npy") for part in ("train_x", "train_y", "test_x", "test_y")
        )
        x, test_x = (
            rows / np.linalg.norm(rows.astype(np.float32), axis=1, keepdims=True)
            for rows in (x, test_x)
        )
        return x, y.astype(np.int64), test_x, test_y.astype(np.int64)

    return read


def digits(_: Path) -> tuple[np.ndarray, ...]:
    """The pixels of scikit-learn's 1,797 digits, of which the first 1,000 are private."""
    pixels, y = load_digits(return_X_y=True)
    return pixels[:1000] / 16, y[:1000], pixels[1000:] / 16, y[1000:]


def adult(data: Path) -> tuple[np.ndarray, ...]:
    """Adult: numbers divided by a large value of their column, and a 0/1 column per category in the
    training set.
    """
    tables = []
    for part in ("train", "test"):
        with gzip.open(data / f"adult_{part}.csv.gz", "rt", encoding="utf-8", newline="") as file:
            tables.append(list(csv.DictReader(file)))
    target = "income_gt_50k"
    categories = sorted(
        {
            pair
            for row in tables[0]
            for pair in row.items()
            if pair[0] not in (*LARGE, target, "fnlwgt")
        }
    )
    column = {pair: number for number, pair in enumerate(categories, len(LARGE))}
    result = []
    for table in tables:
        x = np.zeros((len(table), len(LARGE) + len(categories)), dtype=np.float32)
        for i, row in enumerate(table):
            x[i, : len(LARGE)] = [float(row[name]) / large for name, large in LARGE.items()]
            for pair in row.items():
                if pair in column:
                    x[i, column[pair]] = 1
        result += [x, np.array([int(row[target]) for row in table])]
    return tuple(result)


FOREST = RandomForestClassifier(n_estimators=20, min_samples_leaf=2)
PROBLEMS: dict[str, tuple[Callable[[Path], tuple[np.ndarray, ...]], int, Any, float]] = {
    "mnist": (pictures("mnist"), TESTED, "linear", 0.9),
    "fashion-mnist": (pictures("fashion_mnist"), TESTED, "linear", 0.75),
    "cifar10": (embeddings("mobilenetv2-in1k-160", "cifar10"), TESTED, "linear", 0.8),
    "adult": (adult, 6281, FOREST, 0.8),
}
"""Reader, number of test records, teacher, and a public guess of a teacher's accuracy."""
MORE: dict[str, tuple[Callable[[Path], tuple[np.ndarray, ...]], int, Any, float]] = {
    "agnews": (embeddings("all-minilm-l6-v2", "agnews"), TESTED, None, 0.8),
    "sst2": (embeddings("all-minilm-l6-v2", "sst2"), 500, None, 0.8),
    "digits": (digits, 300, None, 0.8),
}
"""Smaller problems, for the defaults alone."""
