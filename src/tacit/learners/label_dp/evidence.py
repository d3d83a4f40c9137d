"""Evidence of randomized labels: their outputs' likelihood under each class, or targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from tacit.learners.common.heads import Head, fit_head
from tacit.learners.label_dp.priors import Prior
from tacit.mechanisms.noise import Integers
from tacit.models.posterior import log_sum

Floats = NDArray[np.float64]

SURE = 1e-3  # least probability of a class under a prior: none is ruled out

# Ridge of the intercepts of heads: few outputs say little about the shares of many classes.
INTERCEPT_RIDGE = 10.0

# Nats a record, by which the last step of a fit lowers its objective. Held-out outputs do not tell
# heads apart that are nearer to each other, and the means of heads that result are no worse.
TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence of some labels, of shape (n, classes): weights in a cross-entropy in rows that
    are targets, else log likelihoods.
    """

    values: Floats
    target: NDArray[np.bool_]

    @classmethod
    def of(cls, randomizer: Any, outputs: NDArray[Any], which: Any, correction: str) -> Evidence:
        """The evidence in outputs of a randomizer."""
        if correction == "forward":
            values = randomizer.log_likelihood(outputs, which)
            return cls(values, np.zeros(len(values), dtype=bool))

        # still unbiased when shifted to add up to 1, as one-hot labels do
        values = randomizer.unbiased(outputs)
        values = values + (1 - values.sum(axis=1, keepdims=True)) / values.shape[1]
        return cls.of_targets(values)

    @classmethod
    def of_targets(cls, values: Floats) -> Evidence:
        """Targets, of shape (n, classes)."""
        return cls(values, np.ones(len(values), dtype=bool))

    @classmethod
    def joined(cls, parts: Sequence[Evidence]) -> Evidence:
        """The evidence on all records of the parts."""
        return cls(
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.target for part in parts]),
        )

    @property
    def proper(self) -> bool:
        """True if targets are probabilities; unbiased estimates may be negative."""
        return bool(np.all(self.values[self.target] >= 0))

    def with_prior(self, prior: Prior) -> Evidence:
        """The posterior of each label under a prior from labels: the shares of a record's
        cluster.
        """
        log_prior = np.log(np.maximum(prior.rows, SURE))[prior.which]
        return Evidence.of_targets(np.asarray(softmax(self.values + log_prior, axis=1)))

    def among(self, rows: Integers | NDArray[np.bool_]) -> Evidence:
        """The evidence on some of the records."""
        return Evidence(self.values[rows], self.target[rows])

    def without(self, rows: Integers) -> Evidence:
        """The same records, with nothing known of some: every class is as likely."""
        values = self.values.copy()
        target = self.target.copy()
        values[rows] = 0.0
        target[rows] = False
        return Evidence(values, target)

    def likelihoods(self) -> Floats:
        """Likelihood of each output under each class, divided by the largest; targets as if they
        were logarithms.
        """
        return np.asarray(np.exp(self.values - self.values.max(axis=1, keepdims=True)))

    def posterior(self, log_prior: Floats) -> Floats:
        """Probability of each class under a prior of each record; targets are what they are."""
        return np.where(self.target[:, None], self.values, softmax(log_prior + self.values, axis=1))

    def mean_likelihood(self, log_prior: Floats) -> float:
        """Mean log probability of the outputs under a prior of each record, or minus the
        cross-entropy of targets.
        """
        if not len(log_prior):
            return 0.0

        output_likelihoods = log_sum(log_prior + self.values)
        target_likelihoods = (self.values * log_prior).sum(axis=1)
        return float(np.where(self.target, target_likelihoods, output_likelihoods).mean())


def fitted_head(
    rows: Floats, evidence: Evidence, ridge: float, about: Head, start: Head | None = None
) -> Head:
    """Fit a head about another to the evidence on the labels of rows (n, d), in float32."""
    return fit_head(
        rows.astype(np.float32),
        evidence.values,
        evidence.target,
        about,
        ridge=ridge,
        intercept_ridge=INTERCEPT_RIDGE,
        start=start,
        tolerance=TOLERANCE,
    )
