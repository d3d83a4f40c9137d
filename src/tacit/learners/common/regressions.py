"""Softmax regressions of many parts of the records, side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tacit.compute.libraries.torch import load_torch

if TYPE_CHECKING:
    from tacit.compute.libraries.torch import Tensor

POWER_STEPS = 10
# of records that are all the same
LEAST_EIGENVALUE = 1e-12


def softmax_regressions(
    parts: Sequence[tuple[Tensor, Tensor]],
    n_classes: int,
    *,
    steps: int,
    weight_decay: float,
    rngs: Sequence[np.random.Generator],
) -> tuple[Tensor, Tensor]:
    """Fit a softmax regression to each part of the records.

    It minimises the mean cross-entropy of the part plus weight_decay / 2 times the squared norm of
    the weights, by Nesterov's accelerated gradient from zero, on all records of a part at once,
    about their mean.

    Parameters
    ----------
    parts : sequence of (Tensor of shape (n, d), Tensor of shape (n,))
        Rows and class indices; n may differ from part to part.
    n_classes : int
        Number of classes.
    steps : int
        Number of gradient steps.
    weight_decay : float
        Above 0.
    rngs : sequence of Generator
        One for each part, from which the search for its rate starts.

    Returns
    -------
    Tensor of shape (parts, n_classes, d)
        Coefficients.
    Tensor of shape (parts, n_classes)
        Intercepts.

    Notes
    -----
    The rate of a part follows from its largest second moment, since the Hessian of the
    cross-entropy is at most half the second moments (Boehning 1992). Where records are fewer than
    twice the columns, the same steps are taken on multipliers of the records, through their Gram
    matrix: the weights are always a sum of rows.
    """
    torch = load_torch()
    x, y, sizes = _padded(parts)
    # the weight of each record in the mean, and 0 for the padding; (parts, 1, n)
    weights = (torch.arange(x.shape[1], device=x.device) < sizes) / sizes
    means = weights @ x
    x = (x - means) * (weights > 0).mT

    # on multipliers of the records, where these are few
    gram = None
    if x.shape[1] < 2 * x.shape[2]:
        gram = x @ x.mT
    largest = _largest_eigenvalues(x, gram, rngs)
    rates = 1 / (largest / sizes / 2 + weight_decay)

    # the intercept is the weight of a constant column, which is as large as the rows are in their
    # largest direction, so that one rate serves all weights
    constant = torch.sqrt(largest / sizes)
    if gram is None:
        x = torch.cat([x, constant.expand(-1, x.shape[1], 1)], dim=2)
        matrix = x.mT
    else:
        matrix = gram + constant**2

    def gradient(theta: Tensor) -> Tensor:
        residuals = (torch.softmax(theta @ matrix, dim=1) - targets) * weights
        if gram is None:
            residuals = residuals @ x
        return residuals + weight_decay * theta

    targets = torch.nn.functional.one_hot(y, n_classes).mT.to(x.dtype)
    start = torch.zeros(len(x), n_classes, matrix.shape[1], device=x.device)
    theta = _accelerated_descent(gradient, start, rates, steps)

    coefficients, offsets = _weights_of_columns(theta, x, constant, is_multipliers=gram is not None)
    # of rows before they were centred
    intercepts = (offsets - coefficients @ means.mT)[..., 0]
    return coefficients, intercepts


def _accelerated_descent(
    gradient: Callable[[Tensor], Tensor], start: Tensor, rates: Tensor, steps: int
) -> Tensor:
    """Take steps of Nesterov's accelerated gradient, with the momentum of Beck and Teboulle."""
    theta = start
    lookahead = start
    momentum = 1.0
    for _ in range(steps):
        previous = theta
        theta = lookahead - rates * gradient(lookahead)
        next_momentum = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        lookahead = theta + (momentum - 1) / next_momentum * (theta - previous)
        momentum = next_momentum
    return theta


def _weights_of_columns(
    theta: Tensor, x: Tensor, constant: Tensor, *, is_multipliers: bool
) -> tuple[Tensor, Tensor]:
    """Return coefficients (parts, n_classes, d), and offsets (parts, n_classes, 1).

    `theta` holds multipliers of the records if `is_multipliers`, else weights of the columns and of
    the constant.
    """
    if is_multipliers:
        return theta @ x, theta.sum(dim=2, keepdim=True) * constant**2
    return theta[..., :-1], theta[..., -1:] * constant


def _padded(parts: Sequence[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor]:
    """Stack parts of different sizes, padded by zeros.

    Returns rows (parts, n, d), labels (parts, n) and sizes (parts, 1, 1).
    """
    torch = load_torch()
    x = torch.nn.utils.rnn.pad_sequence([rows for rows, _ in parts], batch_first=True)
    y = torch.nn.utils.rnn.pad_sequence([labels for _, labels in parts], batch_first=True)
    sizes = torch.tensor([len(rows) for rows, _ in parts], device=x.device)
    return x, y, sizes[:, None, None]


def _largest_eigenvalues(
    x: Tensor, gram: Tensor | None, rngs: Sequence[np.random.Generator]
) -> Tensor:
    """Find the largest eigenvalue of each part's moments x.T x, (parts, 1, 1), by power iteration.

    It is also the largest of the Gram matrix x x.T, where there is one.
    """
    torch = load_torch()
    width = x.shape[2] if gram is None else x.shape[1]
    starts = np.stack([rng.standard_normal((1, width), dtype=np.float32) for rng in rngs])
    vectors = torch.from_numpy(starts).to(x.device)
    for _ in range(POWER_STEPS):
        vectors = vectors @ x.mT @ x if gram is None else vectors @ gram
        largest = torch.linalg.vector_norm(vectors, dim=2, keepdim=True).clamp(min=LEAST_EIGENVALUE)
        vectors = vectors / largest
    return largest
