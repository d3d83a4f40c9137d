"""Softmax cross-entropy of linear heads: exact logits, residuals and sums of gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tacit.compute.threads import in_threads
from tacit.mechanisms import outer_products
from tacit.mechanisms.blocks import Block
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.mechanisms.outer_products import NORM, IntegerRows
from tacit.models.rows import Floats
from tacit.privacy.sensitivity import ROOT_TWO
from tacit.privacy.unit import Unit

UNCLIPPED = math.sqrt(2)
"""A clip norm that shortens no gradient of a unit row."""

Blocks = Sequence[Block]
"""Unit rows and their classes, with the ends of persons or without.

Rows are `IntegerRows`, so that sums can be private, or floats without noise.
"""

Offsets = Floats | list[Floats]
"""Added to the logits: of shape (C,) for all records, or a list with an array of shape (b, C) for
each block.
"""


def logits(rows: IntegerRows | Floats, head: Floats) -> Floats:
    """Rows times a head of shape (C, d), of shape (b, C); if rows are `IntegerRows`, each row by
    its own values alone.

    The head is scaled by a power of two to whole numbers of norm below 2^35. Products with rows of
    norm 2^18 at most, and their partial sums, are then whole numbers up to 2^53: exact, in any
    order and block shape.
    """
    if not isinstance(rows, IntegerRows):
        return rows @ head.T
    whole, unit = _whole_head(head)
    result: Floats = rows.values.astype(np.float64) @ whole.T
    result *= unit
    return result


def _whole_head(head: Floats) -> tuple[Floats, float]:
    """A head in whole numbers of norm below 2^35, and the power of two that turns its products into
    logits.
    """
    # of the entries, lest their squares overflow
    size = math.frexp(float(np.abs(head).max(initial=0.0)))[1]
    longest = float(np.linalg.norm(np.ldexp(head, -size), axis=1).max(initial=0.0))
    power = min(34 - math.frexp(longest)[1] - size, 1000)  # so that 2^-power is a normal number
    return np.rint(np.ldexp(head, power)), math.ldexp(1 / NORM, -power)


@dataclass(frozen=True)
class Residuals:
    """Softmax of logits plus offsets, less the one-hot label: left rows of gradients, in units of
    the clip norm.

    Parameters
    ----------
    labels : array of shape (b,)
    offsets : array of shape (b, C) or (1, C)
    head : array of shape (C, d)
        Multiplied with right rows. If both are whole numbers as in `logits`, each residual is a
        function of its own row, label and offsets alone, to the last bit: compiled loops go through
        a row in an order that only its length decides, and numpy computes each exponential by
        itself.
    unit : float
        Multiplied with these products.
    clip : float
    """

    labels: Integers
    offsets: Floats
    head: Floats
    unit: float
    clip: float

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, part: slice) -> Residuals:
        offsets = self.offsets[part] if len(self.offsets) == len(self.labels) else self.offsets
        return replace(self, labels=self.labels[part], offsets=offsets)

    def of(self, right: Floats) -> Floats:
        """Residuals of right rows (b, d), of shape (b, C)."""
        from tacit.mechanisms.kernels import below_largest

        shares: Floats = right @ self.head.T
        below_largest(shares, self.unit, self.offsets)
        np.exp(shares, out=shares)
        self._subtract(shares)
        if self.clip != 1:
            shares /= self.clip
        return shares

    def _subtract(self, weights: Floats) -> None:
        """Divide weights (b, C) by the sum of their row, and subtract the label, in place."""
        from tacit.mechanisms.kernels import shares_less_one_hot

        shares_less_one_hot(weights, self.labels)


ResidualKind = Callable[..., Residuals]
"""From labels, offsets, head, unit and clip norm, in this order, to residuals."""


def residuals(
    rows: IntegerRows | Floats,
    labels: Integers,
    head: Floats,
    offsets: Floats,
    kind: ResidualKind = Residuals,
) -> Floats:
    """Softmax of the logits plus offsets, less the one-hot label, of shape (b, C); each row as
    `logits` has it.

    `kind` makes the residuals, if the loss is another.
    """
    whole, unit = _whole_head(head) if isinstance(rows, IntegerRows) else (head, 1.0)
    right = rows.values.astype(np.float64) if isinstance(rows, IntegerRows) else rows
    return kind(labels, np.atleast_2d(offsets), whole, unit, 1.0).of(right)


def clip_norm_under(unit: Unit, clip: float) -> float:
    """Return the clip norm to use: a changed label moves gradients by sqrt(2) at most, however
    little they are clipped.

    From sqrt(1/2) on, a longer clip norm costs no more noise under change-label, and sqrt(2)
    shortens no gradient.

    >>> clip_norm_under(Unit.CHANGE_LABEL, 1.0) == UNCLIPPED, clip_norm_under(Unit.ADD_REMOVE, 1.0)
    (True, 1.0)
    """
    if unit is Unit.CHANGE_LABEL and clip >= math.sqrt(0.5):
        return UNCLIPPED
    return clip


def gradient_sensitivity(unit: Unit, clip: float, n_classes: int) -> float:
    """Return by how much the sum of clipped gradients moves under `unit`, in units of the clip
    norm.

    Another label changes two entries of a residual, by 1 each; clipping lengthens no difference.
    """
    if unit is Unit.CHANGE_LABEL:
        return outer_products.moved_by_left_rows(ROOT_TWO / clip, n_classes)
    return outer_products.PRODUCTS.under(unit)


def noisy_gradient(
    head: Floats,
    offsets: Offsets,
    blocks: Blocks,
    *,
    clip: float,
    multiplier: float,
    noise: NoiseSource,
    kind: ResidualKind = Residuals,
) -> Floats:
    """Sum of the gradients of records, or persons, each clipped to norm `clip`, with Gaussian
    noise.

    `kind` makes the residuals, which say what the loss is. It costs
    `outer_products.event(multiplier)`. For multiplier 0, nothing is clipped and no noise is added.
    """
    of_blocks = offsets if isinstance(offsets, list) else [np.atleast_2d(offsets)] * len(blocks)
    pairs = zip(blocks, of_blocks, strict=True)
    if multiplier == 0:
        products = in_threads(
            lambda pair: residuals(*pair[0][:2], head, pair[1], kind).T @ pair[0].rows, pairs
        )
        return sum(products, np.zeros_like(head))
    whole, unit = _whole_head(head)
    lefts = (
        Block(kind(labels, added, whole, unit, clip), rows, ends)
        for (rows, labels, ends), added in pairs
    )
    total = outer_products.noisy_products(
        lefts, shape=head.shape, noise_multiplier=multiplier, noise=noise
    )
    return total * clip
