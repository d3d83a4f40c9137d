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
    """A figure over several seeds: its median, and its 25 % and 75 % quantiles."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Scores:
    """Accuracy on a test set.

    Parameters
    ----------
    accuracy : float
        Share of all rows.
    balanced : float
        Mean over the classes that the test set holds.
    interval : tuple of float
        95 % interval of the balanced accuracy, from its standard error over test rows within classes.
    per_class : dict
        Share of each class's rows, nan where the test set holds none.
    minority : float or None
        Balanced accuracy over the smallest classes, all classes being candidates; None without class sizes, or
        where the test set holds none of these classes.
    """

    accuracy: float
    balanced: float
    interval: tuple[float, float]
    per_class: dict[Any, float]
    minority: float | None


def evaluate(
    truth: NDArray[Any], predicted: NDArray[Any], classes: NDArray[Any], sizes: NDArray[np.int64] | None = None
) -> Scores:
    """Score predictions.

    Parameters
    ----------
    truth, predicted : ndarray of shape (n,)
        Labels, each in `classes`.
    classes : ndarray of shape (C,)
    sizes : ndarray of shape (C,), optional
        Training records per class, which are private unless declared; the smallest 25 % of classes, rounded up,
        are the minority.
    """
    unknown = ~np.isin(truth, classes)
    if unknown.any():
        row, share = int(np.argmax(unknown)), f"{unknown.sum()} of {len(truth)} rows"
        raise InputError(
            f"row {row} has label {truth[[row]].tolist()[0]!r}, not a class of the release ({share}); "
            "check that this is the right test set, or drop such rows"
        )
    hits = truth == predicted
    order = np.argsort(classes)
    index = order[np.searchsorted(classes, truth, sorter=order)]
    counts = np.bincount(index, minlength=len(classes))
    present = counts > 0
    with np.errstate(invalid="ignore"):
        shares = np.bincount(index, weights=hits, minlength=len(classes)) / counts
    balanced = float(shares[present].mean())
    deviation = math.sqrt((shares[present] * (1 - shares[present]) / counts[present]).sum()) / present.sum()
    return Scores(
        accuracy=float(hits.mean()),
        balanced=balanced,
        interval=(max(0.0, balanced - 1.96 * deviation), min(1.0, balanced + 1.96 * deviation)),
        per_class=dict(zip(classes.tolist(), shares.tolist(), strict=True)),
        minority=None if sizes is None else _mean_of_present(shares[minority(sizes)]),
    )


def _mean_of_present(shares: NDArray[np.float64]) -> float | None:
    present = shares[~np.isnan(shares)]
    return float(present.mean()) if len(present) else None


def minority(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Positions of the 25 % smallest classes, rounded up; ties by position."""
    return np.argsort(sizes, kind="stable")[: math.ceil(MINORITY * len(sizes))]


def spread(values: Sequence[float]) -> Spread:
    """Median and quantiles of one figure, by linear interpolation between its values over seeds."""
    if not len(values):
        raise InputError("values is empty; pass one figure for each seed")
    low, median, high = np.quantile(np.asarray(values, dtype=np.float64), (QUANTILES[0], 0.5, QUANTILES[1]))
    return Spread(float(median), float(low), float(high))
