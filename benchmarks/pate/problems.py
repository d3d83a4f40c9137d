"""The problems of the table: private records for teachers, public records to query, and test records.

The private records are the official training set. The official test set is split by position: most of it is queried,
and the rest is used for testing. The features of a record depend on that record alone.
"""

import csv
import gzip
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter
from sklearn.ensemble import RandomForestClassifier

import tacit

TESTED = 1000
DIRECTIONS, BLUR, STEP = 8, 2.5, 4
LARGE = {"age": 100, "education_num": 16, "capital_gain": 1e5, "capital_loss": 5e3, "hours_per_week": 100}


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
    _, n_test, teacher, expected = PROBLEMS[name]
    x, y, test_x, test_y = whole(data, name)
    parts = tacit.split(len(test_y), n_private=1, n_public=len(test_y) - n_test - 1, n_test=n_test, seed=seed)
    asked, tested = np.concatenate([parts.private, parts.public]), parts.test
    return Problem(
        x, y, test_x[asked], test_y[asked], test_x[tested], test_y[tested], int(y.max()) + 1, teacher, expected
    )


@lru_cache(maxsize=1)
def whole(data: Path, name: str) -> tuple[np.ndarray, ...]:
    """The data set: rows and class indices of its training set, then of its test set."""
    return PROBLEMS[name][0](data)


def pictures(name: str) -> Callable[[Path], tuple[np.ndarray, ...]]:
    """A reader of images as smoothed maps of edge directions, 392 columns."""

    def read(data: Path) -> tuple[np.ndarray, ...]:
        with np.load(data / f"{name}.npz") as file:
            return (
                edges(file["train_x"]), file["train_y"].astype(np.int64),
                edges(file["test_x"]), file["test_y"].astype(np.int64),
            )  # fmt: skip

    return read


def edges(grey: np.ndarray) -> np.ndarray:
    """The strength of edges in each of 8 directions around each point of a grid, as unit rows."""
    blocks = []
    for start in range(0, len(grey), 2000):
        smooth = gaussian_filter(grey[start : start + 2000].astype(np.float32) / 255, (0, 0.7, 0.7))
        down, right = np.gradient(smooth, axis=(1, 2))
        strength, turn = np.hypot(down, right), np.arctan2(down, right) % (2 * np.pi) * DIRECTIONS / (2 * np.pi)
        maps = []
        for direction in range(DIRECTIONS):
            apart = np.abs(turn - direction)
            share = np.clip(1 - np.minimum(apart, DIRECTIONS - apart), 0, None)
            maps.append(gaussian_filter(strength * share, (0, BLUR, BLUR))[:, 2::STEP, 2::STEP])
        rows = np.sqrt(np.stack(maps, axis=-1).reshape(len(smooth), -1))
        blocks.append(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12))
    return np.concatenate(blocks)


def embeddings(data: Path) -> tuple[np.ndarray, ...]:
    """CIFAR-10 through MobileNetV2, as unit rows."""
    folder = data / "embeddings" / "mobilenetv2-in1k-160" / "cifar10"
    x, y, test_x, test_y = (np.load(folder / f"{part}.npy") for part in ("train_x", "train_y", "test_x", "test_y"))
    x, test_x = (rows / np.linalg.norm(rows.astype(np.float32), axis=1, keepdims=True) for rows in (x, test_x))
    return x, y.astype(np.int64), test_x, test_y.astype(np.int64)


def adult(data: Path) -> tuple[np.ndarray, ...]:
    """Adult: numbers divided by a large value of their column, and a 0/1 column per category in the training set."""
    tables = []
    for part in ("train", "test"):
        with gzip.open(data / f"adult_{part}.csv.gz", "rt", encoding="utf-8", newline="") as file:
            tables.append(list(csv.DictReader(file)))
    target = "income_gt_50k"
    categories = sorted(
        {pair for row in tables[0] for pair in row.items() if pair[0] not in (*LARGE, target, "fnlwgt")}
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
    "cifar10": (embeddings, TESTED, "linear", 0.8),
    "adult": (adult, 6281, FOREST, 0.8),
}
"""Reader, number of test records, teacher, and a public guess of a teacher's accuracy."""
