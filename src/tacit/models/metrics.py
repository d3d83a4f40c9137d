"""How well a classifier does, with small classes in view."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError

MINORITY = 0.25
QUANTILES = (0.25, 0.75)


@dataclass(frozen=True)
class Spread:
    """Median and 25 % and 75 % quantiles of a figure over several seeds."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Scores:
    """Accuracy on a test set."""

    accuracy: float
    balanced: float
    """Mean of the accuracy per class, over the classes that the test set holds."""
    interval: tuple[float, float]
    """95 % interval of the balanced accuracy, from its standard error over test rows within classes."""
    per_class: dict[Any, float]
    """nan for classes that the test set does not hold."""
    minority: float | None
    """Balanced accuracy over the smallest of all classes; None without class sizes, or if the test set holds no such
    class."""


def evaluate(
    truth: NDArray[Any], predicted: NDArray[Any], classes: NDArray[Any], sizes: NDArray[np.int64] | None = None
) -> Scores:
    """Score predicted labels (n,) against true labels in `classes`.

    `sizes`, of shape (C,), are training records per class, which are private unless declared.
    """
    unknown = ~np.isin(truth, classes)
    if unknown.any():
        row, share = int(np.argmax(unknown)), f"{unknown.sum()} of {len(truth)} rows"
        fault = f"row {row} has label {truth[[row]].tolist()[0]!r}, not a class of the release ({share})"
        raise InputError(f"{fault}; check that this is the right test set, or drop such rows")
    hits = truth == predicted
    order = np.argsort(classes)
    index = order[np.searchsorted(classes, truth, sorter=order)]
    counts = np.bincount(index, minlength=len(classes))
    present = counts > 0
    with np.errstate(invalid="ignore"):
        shares = np.bincount(index, weights=hits, minlength=len(classes)) / counts
    balanced = float(shares[present].mean())
    smallest = minority(sizes) if sizes is not None else np.array([], dtype=np.int64)
    of_minority = shares[smallest[present[smallest]]]
    deviation = math.sqrt((shares[present] * (1 - shares[present]) / counts[present]).sum()) / present.sum()
    return Scores(
        accuracy=float(hits.mean()),
        balanced=balanced,
        interval=(max(0.0, balanced - 1.96 * deviation), min(1.0, balanced + 1.96 * deviation)),
        per_class=dict(zip(classes.tolist(), shares.tolist(), strict=True)),
        minority=float(of_minority.mean()) if len(of_minority) else None,
    )


def minority(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Positions of the 25 % smallest classes, rounded up; ties by position."""
    return np.argsort(sizes, kind="stable")[: math.ceil(MINORITY * len(sizes))]


def spread(values: Sequence[float]) -> Spread:
    """Median and quantiles of one figure, by linear interpolation between its values over seeds."""
    if not len(values):
        raise InputError("values is empty; pass one figure for each seed")
    low, median, high = np.quantile(np.asarray(values, dtype=np.float64), (QUANTILES[0], 0.5, QUANTILES[1]))
    return Spread(float(median), float(low), float(high))
