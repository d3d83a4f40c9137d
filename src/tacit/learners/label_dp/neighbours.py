"""Public rows teach a linear head about each other: near rows mostly have one class.

In a round, the classes of a row become a third of what the head says of it, and two thirds of the mean posterior of its
nearest rows, which holds their outputs. The head that comes nearest to these targets starts the next round.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.compute.threads import in_threads
from tacit.learners.label_dp.evidence import Evidence
from tacit.learners.label_dp.heads import SPACED, Floats, Head, fitted_head, spaced
from tacit.mechanisms.noise import Integers

NEIGHBOURS = 10
OF_NEIGHBOURS = 2 / 3  # share of their posteriors in a target
RIDGE = 0.1
ROUNDS = 3
TOGETHER = 2**23  # inner products that are computed together


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Rows among `positions`, of shape (m, d), and the nearest of each, of shape (m, k)."""

    rows: Floats
    positions: Integers
    nearest: Integers

    @classmethod
    def among(cls, rows: Floats) -> Neighbours:
        """The neighbours among at most `SPACED` evenly spaced rows."""
        positions = spaced(len(rows), SPACED)
        few = rows[positions]
        return cls(few, positions, nearest_rows(few, min(NEIGHBOURS, len(few) - 1)))

    def rounds(self, head: Head, evidence: Evidence, about: Head) -> Iterator[Head]:
        """The heads of `ROUNDS` rounds that start from a head; `evidence` is that of all rows."""
        known = evidence.among(self.positions)
        for _ in range(ROUNDS):
            log_p = head.log_probabilities(self.rows)
            posterior = known.posterior(log_p)
            near = sum((posterior[column] for column in self.nearest.T), np.zeros_like(posterior))
            targets = (1 - OF_NEIGHBOURS) * np.exp(log_p) + OF_NEIGHBOURS / self.nearest.shape[1] * near
            head = fitted_head(self.rows, Evidence.of_targets(targets), RIDGE, about, head)
            yield head


def nearest_rows(rows: Floats, k: int) -> NDArray[np.int64]:
    """Positions of the k other rows with the largest inner product with each row, of shape (n, k)."""
    short = rows.astype(np.float32)
    length = max(1, TOGETHER // len(rows))

    def of_part(start: int) -> NDArray[np.int64]:
        products = short[start : start + length] @ short.T
        own = np.arange(len(products))
        products[own, start + own] = -np.inf
        return np.argpartition(products, -k, axis=1)[:, -k:]

    return np.concatenate(list(in_threads(of_part, range(0, len(rows), length))))
