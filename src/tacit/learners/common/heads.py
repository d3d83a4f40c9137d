"""Softmax heads, fitted by maximum a posteriori about another head.

The head has coefficients W of shape (C, d) and intercepts b of shape (C,). It minimises

    sum_i loss_i(W x_i + b) + ridge / 2 |W - W_0|^2 + intercept_ridge / 2 |b - b_0|^2,

where W_0 and b_0 are the head `about`. What is known of the label of a record is one of two:

- a target, a distribution over the classes: the loss is the cross-entropy of its softmax;
- log likelihoods of an observation under each class: the loss is minus the log likelihood of the
  observation, -log sum_c p_c exp(value_c).

With targets the objective is strictly convex: the start decides how many steps a fit takes, and not
where it ends. Where many heads are compared, each starts from the one before it, from strong to
weak ridges. With observations there can be several minima, and a fit ends in one near its start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.threads import in_threads
from tacit.models.rows import Floats

BLOCK = 2**19  # probabilities that are computed together

# Of L-BFGS: the most steps, and pairs of steps and changes of the gradient that it remembers.
STEPS = 500
MEMORY = 10

# Steps over which the objective must fall by the tolerance, else the fit ends.
LEVEL = 3


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


def fit_head(
    rows: NDArray[Any],
    values: Floats,
    target: NDArray[np.bool_],
    about: Head,
    *,
    ridge: float,
    intercept_ridge: float,
    start: Head | None = None,
    tolerance: float = 1e-9,
) -> Head:
    """Fit a head about the head `about`; the module says what it minimises.

    Parameters
    ----------
    rows : array of shape (n, d)
        Scores are computed in its type, float32 or float64; sums over records and steps always in
        float64.
    values : array of shape (n, C)
        Targets in the rows of `target`, log likelihoods in the others.
    target : bool array of shape (n,)
    about : Head
    ridge, intercept_ridge : float
        Above 0.
    start : Head, optional
        By default `about`. A head that was fitted to similar values saves steps.
    tolerance : float, default=1e-9
        The fit ends when `LEVEL` steps have lowered the objective by less than so many nats a
        record.
    """
    from scipy.optimize import OptimizeResult, minimize

    n_records = max(1, len(rows))
    n_classes, width = about.coefficients.shape
    if start is None:
        start = about

    # The minimiser sees distances from `about` as one vector: a row for each class, whose last
    # entry is the intercept in units in which all entries have the same ridge.
    unit = np.sqrt(ridge / intercept_ridge)

    def head_of(distances: Floats) -> Head:
        table = distances.reshape(n_classes, width + 1)
        coefficients = about.coefficients + table[:, :-1]
        return Head(coefficients, about.intercepts + unit * table[:, -1])

    length = max(1, BLOCK // n_classes)
    slices = (slice(first, first + length) for first in range(0, len(rows), length))
    arrays = (rows, values.astype(rows.dtype), target)
    blocks = [tuple(array[part] for array in arrays) for part in slices]

    def objective(distances: Floats) -> tuple[float, Floats]:
        """The objective and its gradient, for each record."""
        head = head_of(distances)
        weights = head.coefficients.T.astype(rows.dtype)
        offsets = head.intercepts.astype(rows.dtype)

        def block_loss(block: tuple[NDArray[Any], ...]) -> tuple[float, NDArray[Any], Floats]:
            block_rows, block_values, block_target = block
            scores = block_rows @ weights + offsets
            loss, slope = loss_and_slope(scores, block_values, block_target)
            return loss, slope.T @ block_rows, slope.sum(axis=0, dtype=np.float64)

        total = ridge / 2 * float(distances @ distances)
        gradient = ridge * distances.reshape(n_classes, width + 1)
        for loss, coefficient_gradient, intercept_gradient in in_threads(block_loss, blocks):
            total += loss
            gradient[:, :-1] += coefficient_gradient
            gradient[:, -1] += unit * intercept_gradient
        return total / n_records, gradient.ravel() / n_records

    first = np.column_stack(
        [start.coefficients - about.coefficients, (start.intercepts - about.intercepts) / unit]
    )
    # The first step of L-BFGS has length 1, whatever the function: its fall says little.
    objectives: list[float] = []

    def stop_when_level(intermediate_result: OptimizeResult) -> None:
        objectives.append(float(intermediate_result.fun))
        if len(objectives) > LEVEL and objectives[-1 - LEVEL] - objectives[-1] < tolerance:
            raise StopIteration

    result = minimize(
        objective,
        first.ravel(),
        jac=True,
        method="L-BFGS-B",
        callback=stop_when_level,
        options={"maxiter": STEPS, "maxcor": MEMORY, "ftol": 0.0, "gtol": 0.0},
    )
    return head_of(result.x)


def loss_and_slope(
    scores: NDArray[Any], values: NDArray[Any], target: NDArray[np.bool_]
) -> tuple[float, NDArray[Any]]:
    """Compute the sum of losses of some records, and its gradient in their scores (n, C).

    `values` has targets in the rows of `target`, and log likelihoods in the others.
    """
    log_p = scores - scores.max(axis=1, keepdims=True)
    p = np.exp(log_p)
    sums = p.sum(axis=1, keepdims=True)
    p /= sums
    log_p -= np.log(sums)
    if target.all():
        # Estimates of one-hot labels may add up to less or more than 1.
        p *= values.sum(axis=1, keepdims=True)
        return -float((values * log_p).sum(dtype=np.float64)), p - values

    # An observation's likelihood is the sum over classes of p times its likelihood under the class.
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
