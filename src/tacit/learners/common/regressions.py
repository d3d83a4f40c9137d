"""Softmax regressions of many parts of the records, side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tacit.compute.libraries.torch import load_torch

if TYPE_CHECKING:
    from tacit.compute.libraries.torch import Tensor

POWER_STEPS = 10
LEAST_EIGENVALUE = 1e-12  # of records that are all alike


def softmax_regressions(
    parts: Sequence[tuple[Tensor, Tensor]],
    n_classes: int,
    *,
    steps: int,
    weight_decay: float,
    rngs: Sequence[np.random.Generator],
) -> tuple[Tensor, Tensor]:
    """Minimise each part's mean cross-entropy plus weight_decay / 2 times the squared norm of the
    weights.

    Returns coefficients of shape (parts, n_classes, d) and intercepts of shape (parts, n_classes).
    Nesterov's accelerated gradient from zero, on all records of a part at once, about their mean. A
    part's rate follows from its largest second moment, since the Hessian of the cross-entropy is at
    most half the second moments (Boehning 1992); the search for it starts at a vector of the part's
    `rng`. Where records are fewer than twice the columns, the same steps are taken on multipliers
    of the records through their Gram matrix.
    """
    torch = load_torch()
    x = torch.nn.utils.rnn.pad_sequence([rows for rows, _ in parts], batch_first=True)
    y = torch.nn.utils.rnn.pad_sequence([labels for _, labels in parts], batch_first=True)
    sizes = torch.tensor([len(rows) for rows, _ in parts], device=x.device)[:, None, None]
    # 0 for the padding; (parts, 1, n)
    weights = (torch.arange(x.shape[1], device=x.device) < sizes) / sizes
    means = weights @ x
    x = (x - means) * (weights > 0).mT
    gram = x @ x.mT if x.shape[1] < 2 * x.shape[2] else None

    width = x.shape[2] if gram is None else x.shape[1]
    starts = np.stack([rng.standard_normal((1, width), dtype=np.float32) for rng in rngs])
    vectors = torch.from_numpy(starts).to(x.device)
    for _ in range(POWER_STEPS):
        vectors = vectors @ x.mT @ x if gram is None else vectors @ gram
        largest = torch.linalg.vector_norm(vectors, dim=2, keepdim=True).clamp(min=LEAST_EIGENVALUE)
        vectors = vectors / largest
    # a column as large as the rows are in their largest direction
    constant = torch.sqrt(largest / sizes)

    if gram is None:
        x = torch.cat([x, constant.expand(-1, x.shape[1], 1)], dim=2)
    matrix = x.mT if gram is None else gram + constant**2
    targets = torch.nn.functional.one_hot(y, n_classes).mT.to(x.dtype)
    rates = 1 / (largest / sizes / 2 + weight_decay)
    theta = ahead = torch.zeros(len(x), n_classes, matrix.shape[1], device=x.device)
    momentum = 1.0
    for _ in range(steps):
        residuals = (torch.softmax(ahead @ matrix, dim=1) - targets) * weights
        gradient = (residuals @ x if gram is None else residuals) + weight_decay * ahead
        before, theta = theta, ahead - rates * gradient
        earlier, momentum = momentum, (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = theta + (earlier - 1) / momentum * (theta - before)

    if gram is None:
        coefficients, offsets = theta[..., :-1], theta[..., -1:] * constant
    else:
        coefficients, offsets = theta @ x, theta.sum(dim=2, keepdim=True) * constant**2
    return coefficients, (offsets - coefficients @ means.mT)[..., 0]
