"""Learning from randomized labels, which costs nothing more.

Forward: the likelihood of what came out, sum over classes of f_c(x) Pr[output | c], is maximised [Patrini et al. 2017].
Its gradient is that of a cross-entropy with the model's own posterior as target, which for noisy one-hot labels are the
soft targets of ALIBI [Malek et al. 2021].
Backward: the cross-entropy against an unbiased estimate of the one-hot label, which is refused where there is none.

Models are linear by default, networks by name or factory, or classifiers of scikit-learn: those learn by expectation
maximisation, each record being there once for each class that its output makes likely.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp

from tacit.errors import InputError
from tacit.learners.common.models import IndexClassifier, as_rows
from tacit.learners.common.training import Training, scores, train
from tacit.learners.label_dp.priors import Prior

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
    """What is known of the labels of some records: for a correction, one number for each record and class."""

    correction: str
    values: Floats

    @classmethod
    def of(cls, randomizer: Any, outputs: NDArray[Any], which: Any, correction: str) -> Evidence:
        """From outputs of a randomizer."""
        if correction not in CORRECTIONS:
            raise InputError(f"correction={correction!r} must be 'forward' or 'backward'; leave it out")
        if correction == "forward":
            return cls(correction, randomizer.log_likelihood(outputs, which))
        values = randomizer.unbiased(outputs)  # without bias still, when they add up to 1 as one-hot labels do
        return cls(correction, values + (1 - values.sum(axis=1, keepdims=True)) / values.shape[1])

    def with_prior(self, prior: Prior) -> Evidence:
        """What a prior from labels says is known as well: the classes of a record's cluster."""
        return Evidence(self.correction, self.values + np.log(np.maximum(prior.rows, SURE))[prior.which])


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
    loss = _forward_loss if evidence.correction == "forward" else _backward_loss
    values = evidence.values.astype(np.float32)
    module = train(base, X, values, values.shape[1], training, seed=seed, loss=loss)
    return Model(values.shape[1], module)


def _linear(rows: Floats, evidence: Evidence) -> tuple[Floats, Floats]:
    """Coefficients of shape (n_classes, d) and intercepts, by L-BFGS."""
    from scipy.optimize import minimize

    values, (n, width) = evidence.values, rows.shape
    size = values.shape[1]

    ridge = np.full(width + 1, RIDGE)
    if evidence.correction == "forward":
        ridge[-1] = 0.0  # of the intercept; estimates below 0 may have no minimum without it

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(size, width + 1)
        f = rows @ weights[:, :-1].T + weights[:, -1]
        log_p = log_softmax(f, axis=1)
        if evidence.correction == "forward":
            joint = log_p + values
            each = logsumexp(joint, axis=1, keepdims=True)
            total, slope = -each.sum(), np.exp(log_p) - np.exp(joint - each)
        else:
            total = -(values * log_p).sum()
            slope = np.exp(log_p) * values.sum(axis=1, keepdims=True) - values
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
        weight = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        record, label = np.nonzero(weight >= min(LEAST, 0.5 / values.shape[1]))
        model = IndexClassifier(base, rows[record], label, [seed], weight[record, label])
        if np.all(weight.max(axis=1) > 1 - 1e-9):
            break
        prior = _log_probabilities(model, rows, values.shape[1])
    return Model(values.shape[1], model)


def _log_probabilities(model: Any, records: Any, n_classes: int) -> Floats:
    result = np.full((len(records), n_classes), 1e-12)
    result[:, model.present] = np.maximum(model.probabilities(records), 1e-12)
    return np.asarray(np.log(result))


def _forward_loss(scores: Tensor, log_likelihoods: Tensor) -> Tensor:
    return (scores.logsumexp(dim=1) - (scores + log_likelihoods).logsumexp(dim=1)).sum()


def _backward_loss(scores: Tensor, estimates: Tensor) -> Tensor:
    return -(estimates * scores.log_softmax(dim=1)).sum()
