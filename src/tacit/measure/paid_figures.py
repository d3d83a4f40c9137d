"""Figures that follow from noisy counts of right and wrong records: accuracies and intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError, quoted
from tacit.measure import intervals
from tacit.measure.intervals import Counts, Noise


@dataclass(frozen=True, eq=False)
class Figures:
    """Accuracies that follow from noisy counts of right and wrong records of each class.

    Parameters
    ----------
    classes : ndarray of shape (C,)
    counts : Counts
        Of the classes.
    noise : Noise
        Of each noisy cell.
    """

    classes: NDArray[Any]
    counts: Counts
    noise: Noise

    @property
    def records(self) -> float:
        """Noisy number of records; under a unit per person, of persons by their weight."""
        return float(self.counts.records.sum())

    @property
    def accuracy(self) -> float:
        """Share of right records; nan where noise hides whether there are records."""
        return float(intervals.accuracy(self._total, self.noise)[0])

    @property
    def balanced_accuracy(self) -> float:
        """Mean of the accuracies of all classes; nan where noise hides the size of one."""
        return intervals.balanced_accuracy(self.counts, self.noise)

    @property
    def per_class(self) -> dict[Any, float]:
        """Accuracy of each class; nan where noise hides whether there are records."""
        shares = intervals.accuracy(self.counts, self.noise)
        return dict(zip(self.classes.tolist(), shares.tolist(), strict=True))

    def interval(self, name: str = "balanced_accuracy", level: float = 0.95) -> tuple[float, float]:
        """Return an interval that covers the sampling of the test records and the noise.

        Parameters
        ----------
        name : {"accuracy", "balanced_accuracy", "clear_balanced_accuracy"}
        level : float, default=0.95
            The least probability with which it holds the accuracy on new records of the same kind.
        """
        checked_level(level)
        if name == "accuracy":
            lower, upper = intervals.accuracy_intervals(self._total, self.noise, level)
            return float(lower[0]), float(upper[0])
        if name == "balanced_accuracy":
            return intervals.balanced_interval(self.counts, self.noise, level)
        if name == "clear_balanced_accuracy":
            return intervals.clear_interval(self.counts, self.noise, level)
        raise InputError(
            f"name={quoted(name)} is not one of accuracy, balanced_accuracy,"
            " clear_balanced_accuracy; class_intervals has those of classes"
        )

    def class_intervals(self, level: float = 0.95) -> dict[Any, tuple[float, float]]:
        """Return the interval of the accuracy of each class; (0, 1) where nothing is known."""
        lower, upper = intervals.accuracy_intervals(self.counts, self.noise, checked_level(level))
        ends = zip(lower.tolist(), upper.tolist(), strict=True)
        return dict(zip(self.classes.tolist(), ends, strict=True))

    @property
    def clear_classes(self) -> NDArray[Any]:
        """The classes whose size stands clear of the noise, of shape (at most C,)."""
        return np.asarray(self.classes[intervals.clear(self.counts, self.noise)])

    @property
    def clear_balanced_accuracy(self) -> float:
        """Mean of the accuracies of the clear classes; nan without such classes."""
        chosen = intervals.clear(self.counts, self.noise)
        if not chosen.any():
            return math.nan
        return intervals.balanced_accuracy(self.counts.at(chosen), self.noise)

    @property
    def hidden_classes(self) -> int:
        """Number of classes of which noise hides whether they have records."""
        return sum(math.isnan(share) for share in self.per_class.values())

    @property
    def _total(self) -> Counts:
        return self.counts.total()


@dataclass(frozen=True, eq=False)
class Bin:
    """Records of one bin of confidence: how many, noisy, and how many of them are right."""

    low: float
    high: float
    records: float
    accuracy: float
    interval: tuple[float, float]


def checked_level(level: Any) -> float:
    """Return the level of an interval, between 0 and 1."""
    # a bool is an int
    is_number = isinstance(level, int | float) and not isinstance(level, bool)
    if not is_number or not 0 < level < 1:
        raise InputError(f"level={quoted(level)} must be between 0 and 1; pass for example 0.95")
    return float(level)
