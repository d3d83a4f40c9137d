"""Scores of runs on a pair of data sets, and the lower bounds that they prove.

The first runs of each data set choose thresholds; the others are held against them, so that no
bound is chosen by the runs that prove it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence, Set
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.measure.auditing.bounds import Rates, epsilon_of_rates, mu_of_rates
from tacit.models.rows import Floats

# Smaller log ratios, in standard errors, are noise.
_ERRORS = 3.0

# Thresholds that are tried on the first runs.
_THRESHOLDS = 200


# An array, a class and the bytes of a row.
Member = tuple[str, int, bytes]


class Scores(NamedTuple):
    """Scores of runs on the data without the canary, and on the data with it.

    Larger scores speak for the canary. Those of the first `pilot` runs of each choose thresholds.
    """

    without: Floats
    with_canary: Floats
    pilot: int

    def rates(self, bound: Callable[[Rates], float]) -> Rates:
        """Counts of the later runs, at the threshold whose bound is largest on the first runs."""
        without = self.without[: self.pilot]
        with_canary = self.with_canary[: self.pilot]
        levels = np.linspace(0, 1, _THRESHOLDS)
        thresholds = np.unique(np.quantile(np.concatenate([without, with_canary]), levels))

        bounds = [bound(counts(without, with_canary, threshold)) for threshold in thresholds]
        threshold = thresholds[int(np.argmax(bounds))]
        return counts(self.without[self.pilot :], self.with_canary[self.pilot :], threshold)

    def rates_for_epsilon(self, delta: float, error: float) -> Rates:
        """Counts for a bound on epsilon at delta."""
        return self.rates(lambda rates: epsilon_of_rates(rates, delta, error))

    def rates_for_mu(self, error: float) -> Rates:
        """Counts for a bound on mu."""
        return self.rates(lambda rates: mu_of_rates(rates, error))


def counts(without: Floats, with_canary: Floats, threshold: float) -> Rates:
    """Scores at or above a threshold."""
    true_positives = int((with_canary >= threshold).sum())
    false_positives = int((without >= threshold).sum())
    return Rates(true_positives, len(with_canary), false_positives, len(without))


def scores_of_outcomes(
    without: NDArray[np.int64], with_canary: NDArray[np.int64], pilot: int
) -> Scores:
    """Scores of runs whose outcomes are categories, of shape (runs, coordinates).

    The score adds up the log ratio of frequencies of each coordinate in the first runs.
    """
    ratios = np.zeros((2, max(len(without), len(with_canary))))
    for coordinate in range(without.shape[1]):
        table = log_ratios(without[:pilot, coordinate], with_canary[:pilot, coordinate])
        for side, outcomes in enumerate((without, with_canary)):
            values = outcomes[:, coordinate]
            ratios[side, : len(values)] += [table.get(value, 0.0) for value in values.tolist()]
    return Scores(ratios[0, : len(without)], ratios[1, : len(with_canary)], pilot)


def log_ratios(without: NDArray[np.int64], with_canary: NDArray[np.int64]) -> dict[int, float]:
    """Log ratio of the smoothed frequencies of each category; 0 within three standard errors."""
    table = {}
    for category in np.union1d(without, with_canary).tolist():
        n_with = float(np.sum(with_canary == category)) + 0.5
        n_without = float(np.sum(without == category)) + 0.5
        ratio = math.log(n_with / (len(with_canary) + 1) * (len(without) + 1) / n_without)
        if abs(ratio) > _ERRORS * math.sqrt(1 / n_with + 1 / n_without):
            table[category] = ratio
    return table


def members(name: str, array: NDArray[Any]) -> list[Member]:
    """The rows of each class, or its numbers where an array holds whole numbers."""
    width = 1
    if array.dtype.kind == "f" and array.ndim > 1:
        width = array.shape[-1]
    rows = array.reshape(len(array), -1, width)
    return [(name, c, row.tobytes()) for c, of_class in enumerate(rows) for row in of_class]


def presence(every: Sequence[object], runs: Sequence[Set[object]]) -> NDArray[np.int64]:
    """Which members each run released, of shape (runs, members)."""
    return np.array([[member in released for member in every] for released in runs], dtype=np.int64)
