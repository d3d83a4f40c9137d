"""Figures of prediction sets on test rows: coverage and size, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.persons import person_codes
from tacit.models.intervals import Interval, interval_of_mean, interval_of_share


@dataclass(frozen=True)
class SetFigures:
    """Figures of sets on test rows, each with its 95 % interval over rows, or persons.

    Parameters
    ----------
    level : float
        Least coverage that the release promises on average.
    coverage : float
        Share of rows whose set holds the right class.
    coverage_interval : (float, float)
    mean_size : float
        Mean number of classes in a set.
    mean_size_interval : (float, float)
    single : float
        Share of rows whose set has one class.
    """

    level: float
    coverage: float
    coverage_interval: Interval
    mean_size: float
    mean_size_interval: Interval
    single: float


def set_figures(
    members: NDArray[np.bool_],
    labels: NDArray[np.int64],
    level: float,
    persons: NDArray[Any] | None = None,
) -> SetFigures:
    """Score sets (n, C) against the positions of the right classes, (n,).

    With `persons`, of shape (n,), whose row each is, intervals are over persons.
    """
    n_rows, n_classes = members.shape
    codes = None if persons is None else person_codes(persons, n_rows)
    weights = np.full(n_rows, 1 / n_rows)

    hits = members[np.arange(n_rows), labels].astype(np.float64)
    coverage = float(hits.mean())
    coverage_interval = interval_of_share(coverage, (hits - coverage) / n_rows, weights, codes)

    # a size is a mean between 0 and 1 in parts of the number of classes
    sizes = members.sum(axis=1)
    shares = sizes / n_classes
    mean_share = float(shares.mean())
    low, high = interval_of_mean(mean_share, (shares - mean_share) / n_rows, weights, codes)
    return SetFigures(
        level=level,
        coverage=coverage,
        coverage_interval=coverage_interval,
        mean_size=float(sizes.mean()),
        mean_size_interval=(low * n_classes, high * n_classes),
        single=float((sizes == 1).mean()),
    )
