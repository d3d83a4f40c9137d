"""Accuracy of a classifier, with small classes in view.

Both figures are functions of sums over the test set: accuracy is the ratio of right rows to rows,
balanced accuracy the mean of that ratio over the classes. Their intervals are Wilson's
(`intervals.py`), over rows or, with ids, over persons: rows of one person are alike, so an interval
that takes them for independent is too short. The variance is that of the ratio estimator, by Taylor
linearization (Särndal, Swensson & Wretman, Model Assisted Survey Sampling, 1992, sections 5.5 and
5.6): person i adds u_i = sum over classes c of (right_ic - share_c rows_ic) / (C rows_c), and the
variance is P / (P - 1) times the sum of u_i^2 over the P persons.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.persons import person_codes
from tacit.errors import InputError, RowError
from tacit.models.intervals import Interval, interval_of_share

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
    interval: Interval
    """Wilson's 95 % interval of the balanced accuracy, over test rows or persons."""
    accuracy_interval: Interval
    """The same of the accuracy."""
    per_class: dict[Any, float]
    """nan for classes that the test set does not hold."""
    minority: float | None
    """Balanced accuracy over the smallest of all classes; None without class sizes, or if the test
    set holds no such class."""
    persons: int | None = None
    """Number of persons in the test rows, if that is known: intervals are over them."""


def evaluate(
    truth: NDArray[Any],
    predicted: NDArray[Any],
    classes: NDArray[Any],
    sizes: NDArray[np.int64] | None = None,
    persons: NDArray[Any] | None = None,
) -> Scores:
    """Score predicted labels (n,) against true labels in `classes`.

    `sizes`, of shape (C,), are training records per class, which are private unless declared. With
    `persons`, of shape (n,), whose row each is, intervals are over persons.
    """
    unknown = ~np.isin(truth, classes)
    if unknown.any():
        row = int(np.argmax(unknown))
        share = f"{unknown.sum()} of {len(truth)} rows"
        raise RowError(
            "",
            row,
            f" has label {truth[[row]].tolist()[0]!r}, not a class of the release ({share}); check"
            " that this is the right test set, or drop such rows",
        )

    hits = (truth == predicted).astype(np.float64)
    accuracy = float(hits.mean())

    # The position of each row's class, (n,), and the accuracy per class, (C,).
    order = np.argsort(classes)
    index = order[np.searchsorted(classes, truth, sorter=order)]
    counts = np.bincount(index, minlength=len(classes))
    present = counts > 0
    with np.errstate(invalid="ignore"):
        shares = np.bincount(index, weights=hits, minlength=len(classes)) / counts
    balanced = float(shares[present].mean())

    codes = None
    n_persons = None
    if persons is not None:
        codes = person_codes(persons, len(persons))
        n_persons = int(codes.max()) + 1

    # The weight of each row in both figures, and what it adds to their errors, (n,).
    balanced_weights = 1 / (counts[index] * present.sum())
    balanced_parts = (hits - shares[index]) * balanced_weights
    accuracy_weights = np.full(len(hits), 1 / len(hits))
    accuracy_parts = (hits - accuracy) * accuracy_weights

    return Scores(
        accuracy=accuracy,
        balanced=balanced,
        interval=interval_of_share(balanced, balanced_parts, balanced_weights, codes),
        accuracy_interval=interval_of_share(accuracy, accuracy_parts, accuracy_weights, codes),
        persons=n_persons,
        per_class=dict(zip(classes.tolist(), shares.tolist(), strict=True)),
        minority=_minority_accuracy(shares, present, sizes),
    )


def _minority_accuracy(
    shares: NDArray[np.float64], present: NDArray[np.bool_], sizes: NDArray[np.int64] | None
) -> float | None:
    """Mean accuracy of the smallest classes that the test set holds; None if there are none."""
    if sizes is None:
        return None

    smallest = minority(sizes)
    minority_shares = shares[smallest[present[smallest]]]
    if not len(minority_shares):
        return None
    return float(minority_shares.mean())


def area_under_roc(familiar: NDArray[np.float64], foreign: NDArray[np.float64]) -> float:
    """Probability that a foreign row has a larger value than a familiar one; ties count half.

    >>> area_under_roc(np.array([0.0, 1.0]), np.array([1.0, 2.0]))
    0.875
    """
    ordered = np.sort(familiar)
    smaller = np.searchsorted(ordered, foreign, side="left")
    not_larger = np.searchsorted(ordered, foreign, side="right")
    return float((smaller + not_larger).mean() / (2 * len(familiar)))


def minority(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Positions of the 25 % smallest classes, rounded up; ties by position."""
    return np.argsort(sizes, kind="stable")[: math.ceil(MINORITY * len(sizes))]


def spread(values: Sequence[float]) -> Spread:
    """Median and quantiles of one figure, by linear interpolation between its values over seeds."""
    if not len(values):
        raise InputError("values is empty; pass one figure for each seed")

    levels = (QUANTILES[0], 0.5, QUANTILES[1])
    low, median, high = np.quantile(np.asarray(values, dtype=np.float64), levels)
    return Spread(float(median), float(low), float(high))
