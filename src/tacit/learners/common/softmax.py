"""What learners by softmax cross-entropy share: exact logits, residuals, sums of gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tacit.learners.common.rows import Floats
from tacit.mechanisms import outer_products
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.mechanisms.outer_products import NORM, IntegerRows

Exact = list[tuple[Floats, Integers]]
"""Blocks of rows and their classes, for the non-private form."""

Parts = list[tuple[IntegerRows, Integers]]
"""Blocks of rows as whole numbers and their classes."""

Blocks = Sequence[tuple[Floats | IntegerRows, Integers]]
"""Either of them."""

Offsets = Floats | list[Floats]
"""What is added to the logits: of shape (C,) for all records, or a list of one of shape (b, C) for each block."""


def logits(rows: IntegerRows, head: Floats) -> Floats:
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


def residuals(rows: IntegerRows, labels: Integers, head: Floats, offsets: Floats) -> Floats:
    """Softmax of the logits plus offsets, less the one-hot label, of shape (b, C), each row by its own values alone."""
    return _less_one_hot(_softmax(logits(rows, head) + offsets), labels)


def exact_gradient(head: Floats, offsets: Offsets, parts: Exact) -> Floats:
    """Sum of the gradients in float64; not private."""
    total = np.zeros_like(head)
    for (rows, labels), beside in zip(parts, _per_block(offsets, len(parts)), strict=True):
        total += _less_one_hot(_softmax(rows @ head.T + beside), labels).T @ rows
    return total


def noisy_gradient(
    head: Floats, offsets: Offsets, parts: Parts, *, clip: float, multiplier: float, noise: NoiseSource
) -> Floats:
    """Sum of the gradients, each clipped to norm `clip`, with Gaussian noise: `outer_products.event(multiplier)`."""
    pieces = zip(parts, _per_block(offsets, len(parts)), strict=True)
    blocks = ((residuals(rows, labels, head, beside) / clip, rows) for (rows, labels), beside in pieces)
    total = outer_products.noisy_products(blocks, shape=head.shape, noise_multiplier=multiplier, noise=noise)
    return total * clip


def _per_block(offsets: Offsets, n_blocks: int) -> list[Floats]:
    return offsets if isinstance(offsets, list) else [offsets] * n_blocks


def _softmax(logits: Floats) -> Floats:
    logits -= logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=1, keepdims=True)
    return logits


def _less_one_hot(shares: Floats, labels: Integers) -> Floats:
    shares[np.arange(len(labels)), labels] -= 1.0
    return shares
