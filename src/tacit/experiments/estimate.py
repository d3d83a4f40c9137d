"""What a cell may take before any of its kind has finished: a guess, good to a factor of several."""

from __future__ import annotations

from tacit.experiments.cells import Cell
from tacit.experiments.sources import problem

RATES = {
    "auto": 1.0, "noisy-sum": 0.05, "coinpress": 0.1, "least-squares": 0.1, "gradient-descent": 0.8,
    "global-adapt": 0.8, "projected": 1.0, "feature-covariance": 0.4, "newton": 1.0, "public": 0.1, "pate": 3.0,
    "label-private": 0.5,
}  # fmt: skip
"""Seconds for a million numbers of a training set with ten classes, on one core of 2026, at default parameters."""
LEAST = 0.01


def guess(cell: Cell) -> float:
    """Seconds of a fit and its measurement."""
    whole = problem(cell.source, 1.0, 0)
    millions: float = whole.x.size / cell.imbalance**0.5 / 1e6  # about so much smaller is an imbalanced subset
    rate: float = RATES.get(cell.method, max(RATES.values())) * (len(whole.classes) / 10) ** 0.5
    return LEAST + rate * millions + RATES["noisy-sum"] * float(whole.test_x.size) / 1e6
