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
TEACHERS = 10  # nearest rows that teach a row
VOTERS = (10, 30, 100)  # nearest rows whose outputs vote
# Share of the teachers' mean posterior in the prior of a row; the head has the rest.
NEIGHBOURS_SHARE = 2 / 3
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
        spaced_rows = rows[positions]
        n_nearest = min(max(VOTERS), len(positions) - 1)
        return cls(spaced_rows, positions, nearest_rows(spaced_rows, n_nearest))

    def voted(
        self, evidence: Evidence, about: Head, voters: int, start: Head | None = None
    ) -> Head:
        """The head by the votes of so many nearest rows, beside what `about` says; `evidence` is
        that of all rows.
        """
        values = _log_likelihoods(evidence.among(self.positions))
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
        evidence = evidence.among(self.positions)
        log_p = head.log_probabilities(self.rows)

        # The prior of each row, (m, C): what the head and its neighbours say.
        n_teachers = min(TEACHERS, self.nearest.shape[1])
        posterior = evidence.posterior(log_p)
        mean_posterior = self._sums(posterior, n_teachers) / n_teachers
        prior = (1 - NEIGHBOURS_SHARE) * np.exp(log_p) + NEIGHBOURS_SHARE * mean_posterior

        # The output of the row makes it a posterior.
        log_prior = np.log(np.maximum(prior, LEAST))
        targets = softmax(log_prior + _log_likelihoods(evidence), axis=1)
        return fitted_head(self.rows, Evidence.of_targets(targets), RIDGE, about, start or head)


def spaced(n: int, most: int) -> NDArray[np.int64]:
    """Return at most so many positions among n, evenly spaced."""
    if n <= most:
        return np.arange(n)
    return np.arange(most) * n // most


def _log_likelihoods(evidence: Evidence) -> Floats:
    """Log likelihoods of the outputs; 0 for targets, which are not likelihoods and cannot be
    multiplied.
    """
    return np.where(evidence.target[:, None], 0.0, evidence.values)


def nearest_rows(rows: Floats, k: int) -> NDArray[np.int64]:
    """Find the k other rows with the largest inner product with each row: positions, (n, k)."""
    short_rows = rows.astype(np.float32)
    length = max(1, TOGETHER // len(rows))

    def nearest_of_part(start: int) -> NDArray[np.int64]:
        products = short_rows[start : start + length] @ short_rows.T
        positions = np.arange(len(products))
        products[positions, start + positions] = -np.inf

        nearest = np.argpartition(products, -k, axis=1)[:, -k:]
        order = np.argsort(-np.take_along_axis(products, nearest, axis=1), axis=1, kind="stable")
        return np.take_along_axis(nearest, order, axis=1)

    return np.concatenate(list(in_threads(nearest_of_part, range(0, len(rows), length))))
