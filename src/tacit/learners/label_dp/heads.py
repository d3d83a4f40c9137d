"""Linear heads: a softmax over classes, fitted to what is known of labels by maximum a
posteriori.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.threads import in_threads
from tacit.learners.label_dp.evidence import Evidence

Floats = NDArray[np.float64]

# ridge of the intercepts: few outputs say little about the shares of many classes
OF_INTERCEPTS = 10.0
SPACED = 2**14  # rows that stand for all where time must be bounded
ITERATIONS, MEMORY = 500, 20  # of L-BFGS
SLOPE = 0.3  # largest entry of the gradient at the end, in ridges
BLOCK = 2**19  # probabilities that are computed together


@dataclass(frozen=True, eq=False)
class Head:
    """A softmax of coefficients of shape (C, d) and intercepts of shape (C,)."""

    coefficients: Floats
    intercepts: Floats

    def log_probabilities(self, rows: Floats) -> Floats:
        """Log probability of each class for each row, of shape (n, C)."""
        scores = rows @ self.coefficients.T
        scores += self.intercepts
        scores -= scores.max(axis=1, keepdims=True)
        scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
        return np.asarray(scores)

    def scaled(self, factor: float) -> Head:
        """The head with all scores multiplied."""
        return Head(factor * self.coefficients, factor * self.intercepts)


def spaced(n: int, most: int) -> NDArray[np.int64]:
    """At most so many positions among n, evenly spaced."""
    return np.arange(n) if n <= most else np.arange(most) * n // most


def fitted_head(
    rows: Floats, evidence: Evidence, ridge: float, about: Head, start: Head | None = None
) -> Head:
    """The head that minimises the sum of losses and ridge / 2 times its squared distance from the
    head `about`.

    The loss of a record is minus the log likelihood of its output, or the cross-entropy of its
    target. Intercepts have the ridge `OF_INTERCEPTS`. By L-BFGS, until no entry of the gradient is
    larger than `SLOPE` ridges. Scores are computed in float32, sums over records and steps in
    float64.
    """
    from scipy.optimize import minimize

    (n_classes, width), start = about.coefficients.shape, start or about
    unit = np.sqrt(ridge / OF_INTERCEPTS)  # of intercepts, so that one ridge is that of all

    def head(flat: Floats) -> Head:
        away = flat.reshape(n_classes, width + 1)
        return Head(about.coefficients + away[:, :-1], about.intercepts + unit * away[:, -1])

    length = max(1, BLOCK // n_classes)
    slices = (slice(first, first + length) for first in range(0, len(rows), length))
    short = (rows.astype(np.float32), evidence.values.astype(np.float32), evidence.target)
    parts = [tuple(array[part] for array in short) for part in slices]

    def loss(flat: Floats) -> tuple[float, Floats]:
        now = head(flat)
        weights, offsets = now.coefficients.T.astype(np.float32), now.intercepts.astype(np.float32)

        def of_part(part: tuple[NDArray[Any], ...]) -> tuple[float, NDArray[Any], Floats]:
            few, values, target = part
            total, slope = loss_and_slope(few @ weights + offsets, values, target)
            return total, slope.T @ few, slope.sum(axis=0, dtype=np.float64)

        total, slope = ridge / 2 * float(flat @ flat), ridge * flat.reshape(n_classes, width + 1)
        for of_rows, by_column, by_class in in_threads(of_part, parts):
            total += of_rows
            slope[:, :-1] += by_column
            slope[:, -1] += unit * by_class
        return total, slope.ravel()

    first = np.column_stack(
        [start.coefficients - about.coefficients, (start.intercepts - about.intercepts) / unit]
    )
    options = {"maxiter": ITERATIONS, "maxcor": MEMORY, "gtol": SLOPE * ridge, "ftol": 0.0}
    return head(minimize(loss, first.ravel(), jac=True, method="L-BFGS-B", options=options).x)


def loss_and_slope(
    scores: NDArray[Any], values: NDArray[Any], target: NDArray[np.bool_]
) -> tuple[float, NDArray[Any]]:
    """The sum of losses of some records, and its gradient in their scores, of shape (n, C)."""
    log_p = scores - scores.max(axis=1, keepdims=True)
    p = np.exp(log_p)
    sums = p.sum(axis=1, keepdims=True)
    p /= sums
    log_p -= np.log(sums)
    if target.all():
        p *= values.sum(axis=1, keepdims=True)
        return -float((values * log_p).sum(dtype=np.float64)), p - values
    joint = log_p + values
    largest = joint.max(axis=1, keepdims=True)
    posterior = np.exp(joint - largest)
    sums = posterior.sum(axis=1, keepdims=True)
    posterior /= sums
    of_each = -(largest + np.log(sums))[:, 0]
    if target.any():
        of_each[target] = -(values * log_p)[target].sum(axis=1)
        posterior[target] = values[target]
        p[target] *= values[target].sum(axis=1, keepdims=True)
    return float(of_each.sum(dtype=np.float64)), p - posterior
