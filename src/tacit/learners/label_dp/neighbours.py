"""Public rows teach a linear head about each other: near rows mostly have one class.

Votes: if a row and its k nearest had one class, their outputs together would tell it. A head is
fitted to the posterior that this gives each row. Where an output says little, that is far better
than to maximise the likelihood of each output by itself, which has many local optima.
Rounds: the prior of a row's class is a third what the head says of the row, and two thirds the mean
posterior of its nearest rows, which holds their outputs. Its target is the posterior by its own
output. The head that comes nearest to these targets starts the next round. Without the own output,
a row whose output is nearly exact would be taught a class that is less certain than this output
makes it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from tacit.compute.threads import in_threads
from tacit.learners.common.heads import Head
from tacit.learners.label_dp.evidence import Evidence, fitted_head
from tacit.mechanisms.noise import Integers
from tacit.models.rows import Floats

SPACED = 2**14  # rows that stand for all where time must be bounded
NEIGHBOURS = 10
VOTERS = (10, 30, 100)  # nearest rows whose outputs vote
OF_NEIGHBOURS = 2 / 3  # share of their posteriors in a target
RIDGE = 0.1
LEAST = 1e-300  # of a probability, before its logarithm
TOGETHER = 2**23  # inner products that are computed together


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Rows among `positions`, of shape (m, d), and the nearest of each, of shape (m, k), from near
    to far.
    """

    rows: Floats
    positions: Integers
    nearest: Integers

    @classmethod
    def among(cls, rows: Floats) -> Neighbours:
        """The neighbours among at most `SPACED` evenly spaced rows."""
        positions = spaced(len(rows), SPACED)
        few = rows[positions]
        return cls(few, positions, nearest_rows(few, min(max(VOTERS), len(few) - 1)))

    def voted(
        self, evidence: Evidence, about: Head, voters: int, start: Head | None = None
    ) -> Head:
        """The head by the votes of so many nearest rows, beside what `about` says; `evidence` is
        that of all rows.
        """
        known = evidence.among(self.positions)
        values = _own_values(known)
        votes = about.log_probabilities(self.rows) + values + self._sums(values, voters)
        targets = Evidence.of_targets(softmax(votes, axis=1))
        return fitted_head(self.rows, targets, RIDGE, about, start)

    def _sums(self, values: Floats, number: int) -> Floats:
        """Sum the values (m, C) of so many nearest rows of each row, of shape (m, C)."""
        from scipy.sparse import csr_array

        nearest = self.nearest[:, :number]
        ends = np.arange(len(nearest) + 1) * nearest.shape[1]
        graph = csr_array(
            (np.ones(nearest.size), nearest.ravel(), ends), shape=(len(nearest), len(nearest))
        )
        return np.asarray(graph @ values)

    def taught(
        self, head: Head, evidence: Evidence, about: Head, start: Head | None = None
    ) -> Head:
        """The head after a round that teaches another; `evidence` is that of all rows. The fit
        starts from that other head by default.
        """
        log_p, known = head.log_probabilities(self.rows), evidence.among(self.positions)
        posterior = known.posterior(log_p)
        number = min(NEIGHBOURS, self.nearest.shape[1])
        near = self._sums(posterior, number) / number
        prior = (1 - OF_NEIGHBOURS) * np.exp(log_p) + OF_NEIGHBOURS * near
        targets = softmax(np.log(np.maximum(prior, LEAST)) + _own_values(known), axis=1)
        return fitted_head(self.rows, Evidence.of_targets(targets), RIDGE, about, start or head)


def spaced(n: int, most: int) -> NDArray[np.int64]:
    """Return at most so many positions among n, evenly spaced."""
    if n <= most:
        return np.arange(n)
    return np.arange(most) * n // most


def _own_values(known: Evidence) -> Floats:
    """Log likelihoods of the outputs; 0 for targets, which are not likelihoods and cannot be
    multiplied.
    """
    return np.where(known.target[:, None], 0.0, known.values)


def nearest_rows(rows: Floats, k: int) -> NDArray[np.int64]:
    """Positions of the k other rows with the largest inner product with each row, of shape (n,
    k).
    """
    short = rows.astype(np.float32)
    length = max(1, TOGETHER // len(rows))

    def of_part(start: int) -> NDArray[np.int64]:
        products = short[start : start + length] @ short.T
        own = np.arange(len(products))
        products[own, start + own] = -np.inf
        nearest = np.argpartition(products, -k, axis=1)[:, -k:]
        order = np.argsort(-np.take_along_axis(products, nearest, axis=1), axis=1, kind="stable")
        return np.take_along_axis(nearest, order, axis=1)

    return np.concatenate(list(in_threads(of_part, range(0, len(rows), length))))
