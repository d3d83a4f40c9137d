"""Learning from randomized labels, which has no further privacy cost.

Forward: maximise the likelihood of the outputs, sum over classes of f_c(x) Pr[output | c] [Patrini
et al. 2017]. Its gradient is that of a cross-entropy with the model's posterior as target; for
noisy one-hot labels these are the soft targets of ALIBI [Malek et al. 2021]. Where the labels of a
record's cluster are known as well, the target is the posterior by the cluster's shares instead of
the model's: shares are not evidence on a record beside its features, and a likelihood that uses
them as such drives a model to the cluster's commonest class.
Backward: the cross-entropy against an unbiased estimate of the one-hot label; refused where there
is no such estimate.

Models are linear by default (`structured.py`), networks by name or factory, or scikit-learn
classifiers, which learn by expectation maximisation: a record appears once for each class that its
output makes likely.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.utils.validation import has_fit_parameter

from tacit.compute.libraries.torch import load_torch
from tacit.data.rows import one_line
from tacit.errors import InputError
from tacit.learners.common.models import IndexClassifier, Model, as_rows, check_kind
from tacit.learners.common.training import Training, train
from tacit.learners.label_dp.evidence import Evidence
from tacit.learners.label_dp.structured import structured_head

if TYPE_CHECKING:
    from tacit.compute.libraries.torch import Tensor

Floats = NDArray[np.float64]

CORRECTIONS = ("forward", "backward")
ROUNDS = 5  # of expectation maximisation
LEAST = 0.02  # a class with less weight is left out of a round


def is_linear(base: Any) -> bool:
    """Tell whether a model is linear in unit rows."""
    return base is None or (isinstance(base, str) and base == "linear")


def check_base(base: Any, correction: str, shape: tuple[int, ...], n_classes: int) -> None:
    """Refuse a model that cannot learn from weighted records of this shape under this
    correction.
    """
    if correction not in CORRECTIONS:
        raise InputError(f"correction={correction!r} must be 'forward' or 'backward'; leave it out")
    if not is_linear(base):
        check_kind("base", base, shape, n_classes)
    if not hasattr(base, "fit"):
        return
    if not has_fit_parameter(base, "sample_weight"):
        raise InputError(
            f"base={base!r:.60} takes no sample_weight in fit; choose a classifier that does"
        )
    try:
        getattr(base, "_validate_params", bool)()
    except ValueError as error:
        raise InputError(
            f"base={base!r:.60} is refused by scikit-learn: {one_line(error)}; correct it"
        ) from error
    if not hasattr(base, "predict_proba"):
        raise InputError(f"base={base!r:.60} has no predict_proba; choose a classifier that has")
    if correction == "backward":
        raise InputError(
            "correction='backward' has negative weights, which scikit-learn refuses; use 'forward'"
        )


def learn(
    base: Any,
    X: Any,
    evidence: Evidence,
    training: Training,
    seed: int,
    names: Floats | None = None,
) -> Any:
    """Fit a model, as `Model.fitted` holds it, to records and the evidence on their labels.

    `base=None` is a linear head of unit rows, which also learns from the directions of class names.
    """
    if base is None:
        head = structured_head(np.asarray(X, dtype=np.float64), evidence, names, seed)
        return head.coefficients, head.intercepts
    if hasattr(base, "fit"):
        return _expectation_maximisation(base, X, evidence, seed)
    size = evidence.values.shape[1]
    known = np.column_stack([evidence.values, evidence.target]).astype(np.float32)
    return train(base, X, known, size, training, seed=seed, loss=forward_loss)


def _expectation_maximisation(base: Any, X: Any, evidence: Evidence, seed: int) -> IndexClassifier:
    rows, values = as_rows(X), evidence.values
    prior = np.zeros_like(values)
    for _ in range(ROUNDS):
        joint = prior + values
        weight = np.where(evidence.target[:, None], values, softmax(joint, axis=1))
        record, label = np.nonzero(weight >= min(LEAST, 0.5 / values.shape[1]))
        model = IndexClassifier(base, rows[record], label, [seed], weight[record, label])
        # another round would be the same
        if np.all(evidence.target | (weight.max(axis=1) > 1 - 1e-9)):
            break
        prior = Model(model, values.shape[1]).log_probabilities(rows)
    return model


def forward_loss(scores: Tensor, known: Tensor) -> Tensor:
    """Return the sum over records of minus the log likelihood of their outputs."""
    torch = load_torch()
    values, target = known[:, :-1], known[:, -1] > 0
    log_p = scores.log_softmax(dim=1)
    return -torch.where(
        target, (values * log_p).sum(dim=1), (log_p + values).logsumexp(dim=1)
    ).sum()
