"""Results of a paid evaluation: noisy tables, and the figures and intervals that follow from them.

A table counts the test records by group, class and outcome (`evaluating.py`). Whatever follows from
the noisy counts is post-processing, and costs nothing more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError, quoted
from tacit.measure import intervals
from tacit.measure.intervals import Counts, Floats, Noise
from tacit.privacy.guarantee import Guarantee

CONFIDENCE_EDGES = np.linspace(0, 1, 11)
"""Public edges of the bins of confidence."""

SEEDED = "Not for release: research noise is seeded."

ABOUT_TEST_RECORDS = (
    "The figures are about the test records, and so is this guarantee. Another one covers the"
    " records that the classifier was trained on; for someone among both, the costs add up."
)


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


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Result of `evaluate`: noisy tables, and all that follows from them.

    Parameters
    ----------
    classes : ndarray of shape (C,)
    group_names : tuple of str
        Declared groups, and last that of all others; one name without groups.
    tables : dict of str to ndarray
        The noisy tables, by kind, of shape (groups, C, outcomes ...); the first gives the figures.
    cell_noise : Noise
        Of each cell of each table.
    guarantee_ : Guarantee
        What the tables cost the test records.
    noise : str
        The source of noise.
    """

    classes: NDArray[Any]
    group_names: tuple[str, ...]
    tables: Mapping[str, Floats]
    cell_noise: Noise
    guarantee_: Guarantee
    noise: str

    @property
    def overall(self) -> Figures:
        """Figures of all records."""
        return self._figures(slice(None))

    @property
    def groups(self) -> dict[str, Figures]:
        """Figures of each declared group, and of all others; empty without groups."""
        if len(self.group_names) == 1:
            return {}
        return {name: self._figures([i]) for i, name in enumerate(self.group_names)}

    @property
    def accuracy(self) -> float:
        """Share of right records, or of persons' weights."""
        return self.overall.accuracy

    @property
    def balanced_accuracy(self) -> float:
        """Mean of the accuracies of all classes."""
        return self.overall.balanced_accuracy

    @property
    def per_class(self) -> dict[Any, float]:
        """Accuracy of each class; nan where noise hides whether there are records."""
        return self.overall.per_class

    def interval(self, name: str = "balanced_accuracy", level: float = 0.95) -> tuple[float, float]:
        """Return the interval of a figure of all records; see `Figures.interval`."""
        return self.overall.interval(name, level)

    @property
    def confusion(self) -> Floats:
        """Noisy number of records of each class (row) by predicted class, of shape (C, C).

        Raises
        ------
        InputError
            Without a table of predicted classes.
        """
        return np.asarray(self._table("predicted").sum(axis=0))

    @property
    def calibration(self) -> list[Bin]:
        """Accuracy in each bin of the probability that the predicted class was given.

        Raises
        ------
        InputError
            Without a table of confidence.
        """
        table = self._table("confidence").sum(axis=(0, 1))
        n_cells = len(self.group_names) * len(self.classes)
        counts = Counts.of(table[0], table[1], n_cells, n_cells)
        shares = intervals.accuracy(counts, self.cell_noise)
        lower, upper = intervals.accuracy_intervals(counts, self.cell_noise, 0.95)
        columns = (
            CONFIDENCE_EDGES[:-1], CONFIDENCE_EDGES[1:], counts.records, shares, lower, upper,
        )  # fmt: skip
        bins = []
        for low, high, records, share, *ends in np.column_stack(columns).tolist():
            bins.append(Bin(low, high, records, share, (ends[0], ends[1])))
        return bins

    def statement(self) -> str:
        """Return the guarantee of the test records in words."""
        price = self.guarantee_.statement(opening="These figures hide")
        statement = f"{price}\n{ABOUT_TEST_RECORDS}"
        if self.noise == "research":
            statement = f"{statement}\n{SEEDED}"
        return statement

    def _table(self, kind: str) -> Floats:
        if kind not in self.tables:
            raise InputError(
                f"there is no table {kind!r} among {', '.join(self.tables)}; pass"
                f" tables=[..., {kind!r}], which is paid for"
            )
        return self.tables[kind]

    def _figures(self, groups: Any) -> Figures:
        """Return the figures of the groups at these places, by the first table."""
        kind, of_all_groups = next(iter(self.tables.items()))
        of_groups = of_all_groups[groups]
        n_groups = len(of_groups)
        n_classes = len(self.classes)

        # each number is the sum of so many noisy cells
        table = of_groups.sum(axis=0)
        if kind == "predicted":
            right = np.diagonal(table)
            wrong = table.sum(axis=1) - right
            counts = Counts.of(right, wrong, n_groups, n_groups * (n_classes - 1))
        else:
            # of right and wrong, by bin of confidence where there are bins
            table = table.reshape(n_classes, 2, -1)
            n_cells = n_groups * table.shape[2]
            sums = table.sum(axis=2)
            counts = Counts.of(sums[:, 0], sums[:, 1], n_cells, n_cells)
        return Figures(self.classes, counts, self.cell_noise)


def checked_level(level: Any) -> float:
    """Return the level of an interval, between 0 and 1."""
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
        raise InputError(f"level={quoted(level)} must be between 0 and 1; pass for example 0.95")
    return float(level)
