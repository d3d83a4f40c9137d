"""Learning from randomized labels, which costs nothing more.

Forward: the likelihood of what came out, sum over classes of f_c(x) Pr[output | c], is maximised [Patrini et al. 2017].
Its gradient is that of a cross-entropy with the model's own posterior as target, which for noisy one-hot labels are the
soft targets of ALIBI [Malek et al. 2021]. Where the labels of a record's cluster are known as well, the target is the
posterior by the cluster's shares instead of the model's: shares are not evidence on one record beside its features, and
a likelihood that takes them so drives a model to the cluster's commonest class.
Backward: the cross-entropy against an unbiased estimate of the one-hot label, which is refused where there is none.

Models are linear by default, networks by name or factory, or classifiers of scikit-learn: those learn by expectation
maximisation, each record being there once for each class that its output makes likely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp, softmax

from tacit.errors import InputError
from tacit.learners.common.models import IndexClassifier, as_rows
from tacit.learners.common.training import Training, train
from tacit.learners.label_dp.priors import Prior
from tacit.models.networks import scores

if TYPE_CHECKING:
    from torch import Tensor

Floats = NDArray[np.float64]

CORRECTIONS = ("forward", "backward")
RIDGE = 1.0  # times the square of the weights over two, beside the sum of losses
ITERATIONS = 200
ROUNDS = 5  # of expectation maximisation
SURE = 1e-3  # a prior rules out no class
LEAST = 0.02  # a class with less weight is left out of a round


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is known of the labels of some records: one number for each record and class.

    In rows that are targets, the weights of classes in a cross-entropy; in others, log likelihoods.
    """

    values: Floats
    target: NDArray[np.bool_]

    @classmethod
    def of(cls, randomizer: Any, outputs: NDArray[Any], which: Any, correction: str) -> Evidence:
        """From outputs of a randomizer."""
        if correction not in CORRECTIONS:
            raise InputError(f"correction={correction!r} must be 'forward' or 'backward'; leave it out")
        if correction == "forward":
            values = randomizer.log_likelihood(outputs, which)
            return cls(values, np.zeros(len(values), dtype=bool))
        values = randomizer.unbiased(outputs)  # without bias still, when they add up to 1 as one-hot labels do
        values = values + (1 - values.sum(axis=1, keepdims=True)) / values.shape[1]
        return cls(values, np.ones(len(values), dtype=bool))

    def with_prior(self, prior: Prior) -> Evidence:
        """The posterior of each label, where a prior from labels is known as well: the shares of a record's cluster."""
        posterior = softmax(self.values + np.log(np.maximum(prior.rows, SURE))[prior.which], axis=1)
        return Evidence(np.asarray(posterior), np.ones(len(posterior), dtype=bool))

    def among(self, rows: NDArray[np.bool_]) -> Evidence:
        """That of some of the records."""
        return Evidence(self.values[rows], self.target[rows])

    @classmethod
    def joined(cls, parts: Sequence[Evidence]) -> Evidence:
        """That of all records of the parts."""
        return cls(np.concatenate([part.values for part in parts]), np.concatenate([part.target for part in parts]))


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted model: a network, an IndexClassifier, or linear weights alone."""

    n_classes: int
    fitted: Any
    linear: tuple[Floats, Floats] | None = None

    def log_probabilities(self, records: Any) -> Floats:
        """Of shape (n, n_classes)."""
        if self.linear is not None:
            return np.asarray(log_softmax(records @ self.linear[0].T + self.linear[1], axis=1))
        if isinstance(self.fitted, IndexClassifier):
            return _log_probabilities(self.fitted, records, self.n_classes)
        return np.asarray(log_softmax(scores(self.fitted, records).astype(np.float64), axis=1))


def learn(base: Any, X: Any, evidence: Evidence, training: Training, seed: int) -> Model:
    """Fit a model to records and what is known of their labels.

    Parameters
    ----------
    base : None, str, callable or scikit-learn classifier
        Linear, a network of `NETWORKS`, a factory of networks, or a classifier with `predict_proba` whose `fit` takes
        `sample_weight`.
    X : array of shape (n, ...)
    evidence : Evidence
    training : Training
        For networks.
    seed : int
    """
    if base is None:
        return Model(evidence.values.shape[1], None, _linear(np.asarray(X, dtype=np.float64), evidence))
    if hasattr(base, "fit"):
        return _expectation_maximisation(base, X, evidence, seed)
    size = evidence.values.shape[1]
    known = np.column_stack([evidence.values, evidence.target]).astype(np.float32)
    return Model(size, train(base, X, known, size, training, seed=seed, loss=_loss))


def _linear(rows: Floats, evidence: Evidence) -> tuple[Floats, Floats]:
    """Coefficients of shape (n_classes, d) and intercepts, by L-BFGS."""
    from scipy.optimize import minimize

    values, target, (n, width) = evidence.values, evidence.target[:, None], rows.shape
    size = values.shape[1]

    ridge = np.full(width + 1, RIDGE)
    if np.all(values[evidence.target] >= 0):
        ridge[-1] = 0.0  # of the intercept; estimates below 0 may have no minimum without it

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(size, width + 1)
        f = rows @ weights[:, :-1].T + weights[:, -1]
        log_p = log_softmax(f, axis=1)
        joint = log_p + values
        each = logsumexp(joint, axis=1, keepdims=True)
        total = -np.where(target, (values * log_p).sum(axis=1, keepdims=True), each).sum()
        aim = np.where(target, values, np.exp(joint - each))
        slope = np.exp(log_p) * aim.sum(axis=1, keepdims=True) - aim
        gradient = np.concatenate([slope.T @ rows, slope.sum(axis=0)[:, None]], axis=1) + ridge * weights
        return float(total + (ridge / 2 * np.square(weights)).sum()) / n, gradient.ravel() / n

    start = np.zeros(size * (width + 1))
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": ITERATIONS})
    weights = found.x.reshape(size, width + 1)
    return weights[:, :-1], weights[:, -1]


def _expectation_maximisation(base: Any, X: Any, evidence: Evidence, seed: int) -> Model:
    rows, values = as_rows(X), evidence.values
    model, prior = None, np.zeros_like(values)
    for _ in range(ROUNDS):
        joint = prior + values
        weight = np.where(evidence.target[:, None], values, softmax(joint, axis=1))
        record, label = np.nonzero(weight >= min(LEAST, 0.5 / values.shape[1]))
        model = IndexClassifier(base, rows[record], label, [seed], weight[record, label])
        if np.all(evidence.target | (weight.max(axis=1) > 1 - 1e-9)):  # another round would be the same
            break
        prior = _log_probabilities(model, rows, values.shape[1])
    return Model(values.shape[1], model)


def _log_probabilities(model: Any, records: Any, n_classes: int) -> Floats:
    result = np.full((len(records), n_classes), 1e-12)
    result[:, model.present] = np.maximum(model.probabilities(records), 1e-12)
    return np.asarray(np.log(result))


def _loss(scores: Tensor, known: Tensor) -> Tensor:
    import torch

    values, target = known[:, :-1], known[:, -1] > 0
    log_p = scores.log_softmax(dim=1)
    return -torch.where(target, (values * log_p).sum(dim=1), (log_p + values).logsumexp(dim=1)).sum()
