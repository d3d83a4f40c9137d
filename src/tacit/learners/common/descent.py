"""Gradient descent by Nesterov's method, and the longest learning rate that its noise allows."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tacit.compute.progress import progress
from tacit.errors import InputError
from tacit.models.rows import Floats

# standard deviation that noise may add to a logit; chosen on CIFAR-10
NOISE_IN_LOGIT = 1.2

# variance that sampling adds, for each record of a class; chosen on Banking77
SAMPLING_IN_GRADIENT = 2e-5

# beyond, logits could overflow
DIVERGED = 1e100


def descend(
    gradient: Callable[[Floats], Floats], start: Floats, *, rate: float, steps: int
) -> Floats:
    """Take `steps` steps of `rate` against a (noisy) sum of gradients, by Nesterov's method."""
    theta = start
    lookahead = start
    for step in progress(range(steps), "gradient steps", steps):
        proposal = lookahead - rate * gradient(lookahead)
        # a NaN fails this too
        if not np.all(np.abs(proposal) < DIVERGED):
            raise InputError(
                f"step {step + 1} of {steps} diverged; learn from more records, or pass a smaller"
                " learning_rate or ridge if the method has them"
            )

        momentum = step / (step + 3)
        lookahead = proposal + momentum * (proposal - theta)
        theta = proposal
    return theta


def learning_rate(
    longest: float, *, records: float, n_classes: int, noise: float, steps: int
) -> float:
    """Return the factor of the mean gradient: `longest`, or less for the noise of `descend`.

    Noise of standard deviation `noise` per step adds about rate/records noise steps^1.5/3 to a
    logit. The gradient's sampling error is added to that noise, so that steps stay short if classes
    have few records.
    """
    # The error of sampling is the same in every step, so over `steps` steps it adds up to as much
    # as independent noise of `steps` times its variance.
    sampling_error = math.sqrt(SAMPLING_IN_GRADIENT * steps * records / n_classes)
    noise = math.hypot(noise, sampling_error)
    return min(longest, NOISE_IN_LOGIT * 3 * records / (noise * steps * math.sqrt(steps)))
