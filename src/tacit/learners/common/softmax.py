"""Softmax cross-entropy of linear heads: exact logits, residuals and sums of gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.mechanisms import outer_products
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.mechanisms.outer_products import NORM, IntegerRows
from tacit.models.rows import Floats

Blocks = Sequence[tuple[Any, Integers]]
"""Unit rows and their classes; rows are `IntegerRows`, so that sums can be private, or floats without noise."""

Offsets = Floats | list[Floats]
"""Added to the logits: of shape (C,) for all records, or a list with an array of shape (b, C) for each block."""


def logits(rows: IntegerRows | Floats, head: Floats) -> Floats:
    """Rows times a head of shape (C, d), of shape (b, C); if rows are `IntegerRows`, each row by its own values alone.

    The head is scaled by a power of two to whole numbers of norm below 2^35. Products with rows of norm 2^18
    at most, and their partial sums, are then whole numbers up to 2^53: exact, in any order and block shape.
    """
    if not isinstance(rows, IntegerRows):
        return rows @ head.T
    size = math.frexp(float(np.abs(head).max(initial=0.0)))[1]  # of the entries, lest their squares overflow
    longest = float(np.linalg.norm(np.ldexp(head, -size), axis=1).max(initial=0.0))
    power = 34 - math.frexp(longest)[1] - size
    whole = rows.values.astype(np.float64) @ np.ascontiguousarray(np.rint(np.ldexp(head, power)).T)
    result: Floats = np.ldexp(whole, -power) / NORM
    return result


def residuals(rows: IntegerRows | Floats, labels: Integers, head: Floats, offsets: Floats) -> Floats:
    """Softmax of the logits plus offsets, less the one-hot label, of shape (b, C); each row as `logits` has it."""
    shares = logits(rows, head) + offsets
    shares -= shares.max(axis=1, keepdims=True)
    np.exp(shares, out=shares)
    shares /= shares.sum(axis=1, keepdims=True)
    shares[np.arange(len(labels)), labels] -= 1.0
    return shares


def noisy_gradient(
    head: Floats, offsets: Offsets, blocks: Blocks, *, clip: float, multiplier: float, noise: NoiseSource
) -> Floats:
    """Sum of the records' gradients, each clipped to norm `clip`, with Gaussian noise.

    It costs `outer_products.event(multiplier)`. For multiplier 0, nothing is clipped and no noise is added.
    """
    of_blocks = offsets if isinstance(offsets, list) else [offsets] * len(blocks)
    pairs = zip(blocks, of_blocks, strict=True)
    products = ((residuals(rows, labels, head, added), rows) for (rows, labels), added in pairs)
    if multiplier == 0:
        total: Floats = sum((left.T @ rows for left, rows in products), np.zeros_like(head))
        return total
    scaled = ((left / clip, rows) for left, rows in products)
    total = outer_products.noisy_products(scaled, shape=head.shape, noise_multiplier=multiplier, noise=noise)
    return total * clip
