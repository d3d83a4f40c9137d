"""Sums over records with Gaussian noise; exact where the noise multiplier is 0, as under an infinite budget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.progress import progress
from tacit.mechanisms import gaussian, outer_products
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.models.rows import Floats, row_parts

Blocks = Iterable[tuple[Any, Integers]]
"""Rows of shape (b, width), floats or `IntegerRows`, and their class indices, of shape (b,)."""


def pieces(rows: NDArray[Any], labels: Integers, label: str) -> Iterator[tuple[NDArray[Any], Integers]]:
    """Yield blocks of rows, in their type, with their labels; report progress under `label`."""
    parts = [(rows[part], labels[part]) for part in row_parts(rows)]
    return progress(parts, label, len(parts))


def blocks(rows: NDArray[Any], labels: Integers, label: str) -> Iterator[tuple[Floats, Integers]]:
    """`pieces` in float64."""
    for piece, piece_labels in pieces(rows, labels, label):
        yield np.ascontiguousarray(piece, dtype=np.float64), piece_labels


def class_sums(
    blocks: Blocks, *, n_classes: int, width: int, multiplier: float, noise: NoiseSource, unit_rows: bool = False
) -> Floats:
    """Sum of each class's rows, of shape (n_classes, width): `gaussian.event(multiplier)`.

    With noise, rows are clipped to norm 1, or made unit if `unit_rows`; without noise, they are added as they are.
    """
    if multiplier > 0:
        return gaussian.noisy_class_sums(
            blocks, n_classes=n_classes, width=width, noise_multiplier=multiplier, noise=noise, unit_rows=unit_rows
        )
    sums = np.zeros((n_classes, width))
    for rows, labels in blocks:
        np.add.at(sums, labels, rows)
    return sums


def class_counts(blocks: Blocks, *, n_classes: int, multiplier: float, noise: NoiseSource) -> Floats:
    """Number of records of each class, of shape (n_classes,): `gaussian.event(multiplier)`. Rows are not read."""
    ones = ((np.ones((len(labels), 1)), labels) for _, labels in blocks)
    return class_sums(ones, n_classes=n_classes, width=1, multiplier=multiplier, noise=noise)[:, 0]


def second_moments(blocks: Blocks, *, width: int, multiplier: float, noise: NoiseSource) -> Floats:
    """Sum of x x' over all rows x, of shape (width, width): `outer_products.event(multiplier)`."""
    rows = (rows for rows, _ in blocks)
    if multiplier > 0:
        return outer_products.noisy_second_moments(rows, width=width, noise_multiplier=multiplier, noise=noise)
    moments = np.zeros((width, width))
    for block in rows:
        moments += block.T @ block
    return moments


def class_second_moments(
    blocks: Blocks, *, n_classes: int, width: int, multiplier: float, noise: NoiseSource
) -> Floats:
    """`second_moments` of each class, of shape (n_classes, width, width): `outer_products.class_event(multiplier)`."""
    if multiplier > 0:
        return outer_products.noisy_class_second_moments(
            blocks, n_classes=n_classes, width=width, noise_multiplier=multiplier, noise=noise
        )
    moments = np.zeros((n_classes, width, width))
    for rows, labels in blocks:
        for c in np.unique(labels):
            moments[c] += rows[labels == c].T @ rows[labels == c]
    return moments
