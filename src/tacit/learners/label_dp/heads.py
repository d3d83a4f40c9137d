"""Linear heads: a softmax over classes, fitted to evidence of labels by maximum a posteriori."""

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
# of L-BFGS
ITERATIONS = 500
MEMORY = 20
SLOPE = 0.3  # largest entry of the gradient at the end, in ridges
BLOCK = 2**19  # probabilities that are computed together


@dataclass(frozen=True, eq=False)
class Head:
    """A softmax of coefficients of shape (C, d) and intercepts of shape (C,)."""

    coefficients: Floats
    intercepts: Floats

    def log_probabilities(self, rows: Floats) -> Floats:
        """Compute the log probability of each class for each row, of shape (n, C)."""
        scores = rows @ self.coefficients.T
        scores += self.intercepts
        scores -= scores.max(axis=1, keepdims=True)
        scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
        return np.asarray(scores)

    def scaled(self, factor: float) -> Head:
        """Return the head with all scores multiplied."""
        return Head(factor * self.coefficients, factor * self.intercepts)


def spaced(n: int, most: int) -> NDArray[np.int64]:
    """Return at most so many positions among n, evenly spaced."""
    if n <= most:
        return np.arange(n)
    return np.arange(most) * n // most


def fitted_head(
    rows: Floats, evidence: Evidence, ridge: float, about: Head, start: Head | None = None
) -> Head:
    """Fit the head that minimises its losses and its distance from the head `about`.

    The objective is the sum of losses plus ridge / 2 times the squared distance. The loss of a
    record is minus the log likelihood of its output, or the cross-entropy of its target. Intercepts
    have the ridge `OF_INTERCEPTS`. By L-BFGS, until no entry of the gradient is larger than `SLOPE`
    ridges. Scores are computed in float32, sums over records and steps in float64.
    """
    from scipy.optimize import minimize

    n_classes, width = about.coefficients.shape
    if start is None:
        start = about

    # The minimiser sees distances from `about` as one vector: a row for each class, whose last
    # entry is the intercept in units in which all entries have the same ridge.
    unit = np.sqrt(ridge / OF_INTERCEPTS)

    def head_of(distances: Floats) -> Head:
        table = distances.reshape(n_classes, width + 1)
        coefficients = about.coefficients + table[:, :-1]
        return Head(coefficients, about.intercepts + unit * table[:, -1])

    length = max(1, BLOCK // n_classes)
    slices = (slice(first, first + length) for first in range(0, len(rows), length))
    arrays = (rows.astype(np.float32), evidence.values.astype(np.float32), evidence.target)
    blocks = [tuple(array[part] for array in arrays) for part in slices]

    def objective(distances: Floats) -> tuple[float, Floats]:
        """The objective and its gradient."""
        head = head_of(distances)
        weights = head.coefficients.T.astype(np.float32)
        offsets = head.intercepts.astype(np.float32)

        def block_loss(block: tuple[NDArray[Any], ...]) -> tuple[float, NDArray[Any], Floats]:
            block_rows, values, target = block
            loss, slope = loss_and_slope(block_rows @ weights + offsets, values, target)
            return loss, slope.T @ block_rows, slope.sum(axis=0, dtype=np.float64)

        total = ridge / 2 * float(distances @ distances)
        gradient = ridge * distances.reshape(n_classes, width + 1)
        for loss, coefficient_gradient, intercept_gradient in in_threads(block_loss, blocks):
            total += loss
            gradient[:, :-1] += coefficient_gradient
            gradient[:, -1] += unit * intercept_gradient
        return total, gradient.ravel()

    first = np.column_stack(
        [start.coefficients - about.coefficients, (start.intercepts - about.intercepts) / unit]
    )
    options = {"maxiter": ITERATIONS, "maxcor": MEMORY, "gtol": SLOPE * ridge, "ftol": 0.0}
    result = minimize(objective, first.ravel(), jac=True, method="L-BFGS-B", options=options)
    return head_of(result.x)


def loss_and_slope(
    scores: NDArray[Any], values: NDArray[Any], target: NDArray[np.bool_]
) -> tuple[float, NDArray[Any]]:
    """Compute the sum of losses of some records, and its gradient in their scores (n, C).

    `values` has targets, whose loss is the cross-entropy, in the rows of `target`, and log
    likelihoods of outputs under each class in the others.
    """
    log_p = scores - scores.max(axis=1, keepdims=True)
    p = np.exp(log_p)
    sums = p.sum(axis=1, keepdims=True)
    p /= sums
    log_p -= np.log(sums)
    if target.all():
        p *= values.sum(axis=1, keepdims=True)
        return -float((values * log_p).sum(dtype=np.float64)), p - values

    # an output's likelihood is the sum over classes of p times its likelihood under the class
    joint = log_p + values
    largest = joint.max(axis=1, keepdims=True)
    posterior = np.exp(joint - largest)
    sums = posterior.sum(axis=1, keepdims=True)
    posterior /= sums
    losses = -(largest + np.log(sums))[:, 0]
    if target.any():
        losses[target] = -(values * log_p)[target].sum(axis=1)
        posterior[target] = values[target]
        p[target] *= values[target].sum(axis=1, keepdims=True)
    return float(losses.sum(dtype=np.float64)), p - posterior
