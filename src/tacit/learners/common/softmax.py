"""What learners by softmax cross-entropy share: exact logits, residuals, class counts and balance, descent."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tacit.compute.progress import progress
from tacit.errors import InputError
from tacit.learners.common.rows import Floats
from tacit.mechanisms import gaussian
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.mechanisms.outer_products import NORM, Rounded

NOISE_IN_LOGIT = 1.2  # standard deviation that noise may add to a logit; chosen on CIFAR-10
FARTHEST = 1e100  # beyond, a descent has diverged, and logits could overflow
SAMPLING = 2e-5  # variance that sampling adds to a gradient, for each record of a class; chosen on Banking77

Exact = list[tuple[Floats, Integers]]
"""Blocks of rows and their classes, for the non-private form."""

Parts = list[tuple[Rounded, Integers]]
"""Blocks of rows as whole numbers and their classes."""

Blocks = Sequence[tuple[Floats | Rounded, Integers]]
"""Either of them."""


def logits(rows: Rounded, head: Floats) -> Floats:
    """Rows times a head of shape (C, d), of shape (b, C), each row by its own values alone.

    The head is scaled by a power of two to whole numbers of norm below 2^35. Products with rows of norm 2^18
    at most, and their partial sums, are then whole numbers up to 2^53: exact, in any order and block shape.
    """
    size = math.frexp(float(np.abs(head).max(initial=0.0)))[1]  # of the entries, lest their squares overflow
    longest = float(np.linalg.norm(np.ldexp(head, -size), axis=1).max(initial=0.0))
    power = 34 - math.frexp(longest)[1] - size
    whole = rows.values.astype(np.float64) @ np.ascontiguousarray(np.rint(np.ldexp(head, power)).T)
    result: Floats = np.ldexp(whole, -power) / NORM
    return result


def residuals(rows: Rounded, labels: Integers, head: Floats, offsets: Floats) -> Floats:
    """Softmax of the logits plus offsets, less the one-hot label, of shape (b, C), each row by its own values alone."""
    return _less_one_hot(_softmax(logits(rows, head) + offsets), labels)


def exact_gradient(head: Floats, offsets: Floats, parts: Exact) -> Floats:
    """Sum of the gradients in float64; not private."""
    total = np.zeros_like(head)
    for rows, labels in parts:
        total += _less_one_hot(_softmax(rows @ head.T + offsets), labels).T @ rows
    return total


def exact_counts(parts: Blocks, n_classes: int) -> Floats:
    """Number of records per class; not private."""
    found = [np.bincount(own, minlength=n_classes) for _, own in parts]
    result: Floats = np.sum(found, axis=0, initial=0.0) + np.zeros(n_classes)
    return result


def noisy_counts(parts: Blocks, n_classes: int, multiplier: float, noise: NoiseSource) -> Floats:
    """Number of records per class with Gaussian noise: `gaussian.event(multiplier)`."""
    ones = ((np.ones((len(own), 1)), own) for _, own in parts)
    return gaussian.noisy_class_sums(ones, n_classes=n_classes, width=1, noise_multiplier=multiplier, noise=noise)[:, 0]


def log_shares(counts: Floats, uncertainty: float) -> Floats:
    """Log shares of the classes, none taken for smaller than noise: beside the logits they balance the classes."""
    shares = np.maximum(counts, 0.0) + uncertainty
    result: Floats = np.log(shares / shares.mean())
    return result


def descend(gradient: Callable[[Floats], Floats], start: Floats, *, rate: float, steps: int) -> Floats:
    """Nesterov's method: `steps` steps of `rate` against a (noisy) sum of gradients."""
    theta = ahead = start
    for step in progress(range(steps), "gradient steps", steps):
        moved = ahead - rate * gradient(ahead)
        if not np.all(np.abs(moved) < FARTHEST):
            raise InputError(f"step {step + 1} of {steps} diverged; pass a smaller learning_rate or ridge")
        ahead = moved + step / (step + 3) * (moved - theta)
        theta = moved
    return theta


def learning_rate(longest: float, *, records: float, n_classes: int, noise: float, steps: int) -> float:
    """Factor of the mean gradient: at most `longest`, and short enough for the noise of `steps` steps of `descend`.

    Noise of this standard deviation per step adds about rate/records noise steps^1.5/3 to a logit. Sampling counts as
    noise of its own, so that without noise steps are not longer than a few records per class can direct.
    """
    noise = math.hypot(noise, math.sqrt(SAMPLING * steps * records / n_classes))
    return min(longest, NOISE_IN_LOGIT * 3 * records / (noise * steps * math.sqrt(steps)))


def _softmax(logits: Floats) -> Floats:
    logits -= logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=1, keepdims=True)
    return logits


def _less_one_hot(shares: Floats, labels: Integers) -> Floats:
    shares[np.arange(len(labels)), labels] -= 1.0
    return shares
