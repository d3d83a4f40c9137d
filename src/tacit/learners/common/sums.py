"""Sums over records with Gaussian noise.

They are exact where the noise multiplier is 0, as under an infinite budget.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from tacit.compute.progress import progress
from tacit.learners.common.base import Prepared
from tacit.mechanisms import gaussian, outer_products
from tacit.mechanisms.blocks import Block, Picked
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.models.rows import Floats, block_rows, row_parts

Blocks = Iterable[Block]
"""Rows of shape (b, width), floats or `IntegerRows`, and their class indices, of shape (b,).

Under a unit per person, blocks also hold the end of each person's rows.
"""


def pieces(records: Prepared, label: str) -> Iterator[Block]:
    """Yield blocks of rows, in their type, with their labels and persons.

    Progress is reported under `label`.
    """
    X = records.X
    labels = records.labels
    persons = records.persons
    if persons is None:
        parts = row_parts(X)
        record_blocks = (Block(X[part], labels[part]) for part in parts)
        return progress(record_blocks, label, len(parts))

    # Kernels read rows of such an array in place, where the rows of a person are not adjacent.
    readable = isinstance(X, np.ndarray) and X.dtype.kind == "f" and X.flags.c_contiguous

    def block_of_persons(positions: Any, ends: Integers) -> Block:
        scattered = not isinstance(positions, slice)
        if scattered and readable:
            return Block(Picked(X, positions), labels[positions], ends)
        return Block(X[positions], labels[positions], ends)

    person_blocks = (
        block_of_persons(positions, ends) for positions, ends in persons.parts(block_rows(X))
    )
    return progress(person_blocks, label, len(persons), lambda block: len(block.rows))


def blocks(records: Prepared, label: str) -> Iterator[Block]:
    """Yield `pieces` in float64."""
    for rows, labels, ends in pieces(records, label):
        yield Block(np.ascontiguousarray(rows, dtype=np.float64), labels, ends)


def class_sums(
    blocks: Blocks,
    *,
    n_classes: int,
    width: int,
    multiplier: float,
    noise: NoiseSource,
    unit_rows: bool = False,
) -> Floats:
    """Sum the rows of each class, of shape (n_classes, width): `gaussian.event(multiplier)`.

    With noise, rows are clipped to norm 1, or made unit if `unit_rows`; without noise, they are
    added as they are.
    """
    if multiplier > 0:
        return gaussian.noisy_class_sums(
            blocks,
            n_classes=n_classes,
            width=width,
            noise_multiplier=multiplier,
            noise=noise,
            unit_rows=unit_rows,
        )

    sums = np.zeros((n_classes, width))
    for rows, labels, _ in blocks:
        np.add.at(sums, labels, rows)
    return sums


def class_counts(
    blocks: Blocks, *, n_classes: int, multiplier: float, noise: NoiseSource
) -> Floats:
    """Count the records of each class, of shape (n_classes,): `gaussian.event(multiplier)`.

    Rows are not read. Under a unit per person it is the total weight of each class: a person's
    counts, a vector of shape (n_classes,), are scaled down to norm 1.
    """
    ones = (Block(np.ones((len(labels), 1)), labels, ends) for _, labels, ends in blocks)
    sums = class_sums(ones, n_classes=n_classes, width=1, multiplier=multiplier, noise=noise)
    return sums[:, 0]


def second_moments(
    blocks: Blocks,
    *,
    width: int,
    multiplier: float,
    noise: NoiseSource,
    rows_are_public: bool = False,
) -> Floats:
    """Sum x x' over all rows x, of shape (width, width): `outer_products.event(multiplier)`.

    Where rows are public, they and persons are bounded as with noise, so that other sums have the
    same weights.
    """
    if rows_are_public:
        return outer_products.bounded_second_moments(blocks, width=width)
    if multiplier > 0:
        return outer_products.noisy_second_moments(
            blocks, width=width, noise_multiplier=multiplier, noise=noise
        )

    moments = np.zeros((width, width))
    for rows, _, _ in blocks:
        moments += rows.T @ rows
    return moments


def class_second_moments(
    blocks: Blocks, *, n_classes: int, width: int, multiplier: float, noise: NoiseSource
) -> Floats:
    """Sum x x' over the rows x of each class, of shape (n_classes, width, width).

    Its event is `outer_products.class_event(multiplier)`.
    """
    if multiplier > 0:
        return outer_products.noisy_class_second_moments(
            blocks, n_classes=n_classes, width=width, noise_multiplier=multiplier, noise=noise
        )

    moments = np.zeros((n_classes, width, width))
    for rows, labels, _ in blocks:
        for c in np.unique(labels):
            rows_of_class = rows[labels == c]
            moments[c] += rows_of_class.T @ rows_of_class
    return moments
