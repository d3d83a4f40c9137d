"""Gradient descent by Nesterov's method, and the longest learning rate that its noise allows."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tacit.compute.progress import progress
from tacit.errors import InputError
from tacit.models.rows import Floats

# Standard deviation that the noise of all steps may add to a logit; chosen on CIFAR-10.
NOISE_IN_LOGIT = 1.2

# Variance of a class's sum of gradients over random samples of records, divided by its number of
# records; chosen on Banking77.
SAMPLING_IN_GRADIENT = 2e-5

# Size of a parameter beyond which logits could overflow.
DIVERGED = 1e100


def descend(
    gradient: Callable[[Floats], Floats], start: Floats, *, rate: float, steps: int
) -> Floats:
    """Take `steps` steps against a (noisy) sum of gradients, by Nesterov's method.

    A step is `rate` times the sum over all records; a `learning_rate` divided by the number of
    records is such a rate.
    """
    # parameters after each step, and the point ahead of them at which the gradient is taken
    theta = start
    lookahead = start
    for step in progress(range(steps), "gradient steps", steps):
        proposal = lookahead - rate * gradient(lookahead)
        # negated, since a NaN fails every comparison
        if not np.all(np.abs(proposal) < DIVERGED):
            raise InputError(
                f"step {step + 1} of {steps} diverged; learn from more records, or pass a smaller"
                " learning_rate or ridge if the method has them"
            )

        # Nesterov's momentum for convex functions: none at first, then ever closer to 1
        momentum = step / (step + 3)
        lookahead = proposal + momentum * (proposal - theta)
        theta = proposal
    return theta


def learning_rate(
    longest: float, *, records: float, n_classes: int, noise: float, steps: int
) -> float:
    """Return the factor of the mean gradient: `longest`, or less for the noise of `descend`.

    Noise of standard deviation `noise` per step adds at most rate/records noise steps^1.5/3 to a
    logit. The gradient's sampling error is added to that noise, so that steps stay short if classes
    have few records.
    """
    # Why steps^1.5/3: where the loss is flat, momentum carries the noise of step j on to at most
    # (j + 2)/2 times its length. So independent noises add up to at most about
    # sqrt(sum_j ((j + 2)/2)^2), which is about sqrt(steps^3/12).

    # The error of sampling is the same in every step, so over `steps` steps it adds up to as much
    # as independent noise of `steps` times its variance.
    sampling_error = math.sqrt(SAMPLING_IN_GRADIENT * steps * records / n_classes)
    noise_per_step = math.hypot(noise, sampling_error)

    # the rate at which the noise in a logit is NOISE_IN_LOGIT
    noisiest = NOISE_IN_LOGIT * 3 * records / (noise_per_step * steps * math.sqrt(steps))
    return min(longest, noisiest)
