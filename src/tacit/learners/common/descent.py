"""Gradient descent by Nesterov's method, and the longest learning rate that its noise allows."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tacit.compute.progress import progress
from tacit.errors import InputError
from tacit.models.rows import Floats

NOISE_IN_LOGIT = 1.2  # standard deviation that noise may add to a logit; chosen on CIFAR-10
# variance that sampling adds, for each record of a class; chosen on Banking77
SAMPLING_IN_GRADIENT = 2e-5
DIVERGED = 1e100  # beyond, logits could overflow


def descend(
    gradient: Callable[[Floats], Floats], start: Floats, *, rate: float, steps: int
) -> Floats:
    """Nesterov's method: `steps` steps of `rate` against a (noisy) sum of gradients."""
    theta = ahead = start
    for step in progress(range(steps), "gradient steps", steps):
        moved = ahead - rate * gradient(ahead)
        if not np.all(np.abs(moved) < DIVERGED):
            raise InputError(
                f"step {step + 1} of {steps} diverged; learn from more records, or pass a smaller"
                " learning_rate or ridge if the method has them"
            )
        ahead = moved + step / (step + 3) * (moved - theta)
        theta = moved
    return theta


def learning_rate(
    longest: float, *, records: float, n_classes: int, noise: float, steps: int
) -> float:
    """Factor of the mean gradient: `longest`, or less for the noise of `steps` steps of `descend`.

    Noise of standard deviation `noise` per step adds about rate/records noise steps^1.5/3 to a
    logit. The gradient's sampling error is added to that noise, so that steps stay short if classes
    have few records.
    """
    noise = math.hypot(noise, math.sqrt(SAMPLING_IN_GRADIENT * steps * records / n_classes))
    return min(longest, NOISE_IN_LOGIT * 3 * records / (noise * steps * math.sqrt(steps)))
