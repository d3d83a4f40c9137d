"""The student: a classifier of public records that learns from released labels, and from unanswered records if wanted.

Labels are released already, so what happens here has no privacy cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from tacit.learners.common.models import IndexClassifier, Model, alike, as_rows, check_kind, check_labels
from tacit.learners.common.parameters import flag, real
from tacit.learners.common.training import Training, train
from tacit.learners.pate.classifiers import check_name
from tacit.models.networks import weights
from tacit.models.rows import Floats

NEIGHBOURS = 10
FROM_NEIGHBOURS = 0.9  # share of a label that comes from neighbours; the rest is the released label
COMPONENTS = 50
SCALES, RIDGES = (20.0, 10.0), (1.0, 10.0)  # of cosines to names as logits, and of what is learned beside them
HELD = 0.2  # share of the labels by which scale and ridge are chosen
WRONG = 0.5  # share of wrong labels that the choice allows for


@dataclass(frozen=True)
class Student:
    """What learns from the labels that voting released.

    Parameters
    ----------
    model : scikit-learn classifier, str or callable, optional
        As of `Teachers`. Logistic regressions and networks by name can be released. Linear models are fitted to unit
        rows, about the mean of the unit public rows unless labels are spread.
    training : Training or dict, optional
        How a network is trained, as in `LabelPrivate`.
    semi_supervised : bool, default=False
        Whether it uses public records without an answer too.
    validation : float, default=0.0
        Share of the labels that is kept aside to measure the student by; 0.99 at most.

    Examples
    --------
    >>> import tacit
    >>> tacit.pate.Student(model="mlp", validation=0.1).validation
    0.1
    """

    model: Any = None
    training: Training | dict[str, Any] | None = None
    semi_supervised: bool = False
    validation: float = 0.0

    def __post_init__(self) -> None:
        check_name(self.model)
        Training.of(self.training)
        flag("semi_supervised", self.semi_supervised)
        real("validation", self.validation, 0, 0.99)


def fit_student(
    student: Any,
    X: Any,
    labels: Any,
    *,
    n_classes: int,
    training: Training | None = None,
    validation: float = 0.0,
    unlabelled: Any = None,
    names: Floats | None = None,
    seed: int = 0,
) -> tuple[Model, float | None]:
    """The student of released labels, and the share of the validation labels, as noisy as the others, that it predicts.

    Labels are spread to the `unlabelled` public records over the graph of nearest neighbours [Zhou et al. 2004].
    A logistic regression's ridge is about `names`, unit rows (C, d), if held-out labels are likelier with them.
    """
    X, y = np.asarray(X), np.asarray(labels)
    check_kind("student", student)
    check_labels(y, len(X), n_classes)
    aside = math.floor(real("validation", validation, 0, 0.99) * len(y))
    order = np.random.default_rng(seed).permutation(len(y))
    used, held = np.sort(order[aside:]), order[:aside]
    records, known = X[used], y[used]
    if unlabelled is not None:
        records, known = _spread(records, known, alike(X, unlabelled))
    named = None if names is None else _named_head(records, known, names, 1 / student.C, seed)
    if named is not None:
        model = Model(named, n_classes)
    elif hasattr(student, "fit"):
        model = Model(IndexClassifier(student, records, known, [seed]), n_classes)
    else:
        module: Any = train(student, records, known, n_classes, training or Training(), seed=seed)
        if student == "linear":
            module = tuple(array.astype(np.float64) for array in weights(module).values())
        model = Model(module, n_classes)
    return model, float(np.mean(model.nearest(X[held]) == y[held])) if aside else None


def _named_head(
    X: NDArray[Any], y: NDArray[Any], names: Floats, ridge: float, seed: int
) -> tuple[Floats, Floats] | None:
    """Coefficients and intercepts drawn towards the names, if that makes held-out labels likelier; else None.

    Scale and ridge are those under which a share of the labels is likeliest after a fit to the others.
    """
    order = np.random.default_rng(seed).permutation(len(y))
    held, used = np.split(order, [math.ceil(HELD * len(y))])

    def likelihood(scale: float, ridge: float) -> float:
        coefficients, intercepts = softmax_about(X[used], y[used], scale * names, ridge)
        chances = softmax(X[held] @ coefficients.T + intercepts, axis=1)[np.arange(len(held)), y[held]]
        return float(np.log((1 - WRONG) * chances + WRONG / len(names)).sum())

    drawn = max(product(SCALES, (*RIDGES, ridge)), key=lambda choice: likelihood(*choice))
    if len(held) and likelihood(0.0, ridge) >= likelihood(*drawn):
        return None
    return softmax_about(X, y, drawn[0] * names, drawn[1])


def softmax_about(X: NDArray[Any], y: NDArray[Any], centre: Floats, ridge: float) -> tuple[Floats, Floats]:
    """Softmax regression whose penalty is ridge / 2 |coefficients - centre|^2, and as much on the intercepts."""
    from scipy.optimize import minimize

    rows = np.column_stack([np.asarray(X, dtype=np.float64), np.ones(len(X))])
    start, own = np.column_stack([centre, np.zeros(len(centre))]), (np.arange(len(y)), y)

    def loss(flat: Floats) -> tuple[float, Floats]:
        apart = flat.reshape(start.shape)
        shares = softmax(rows @ (start + apart).T, axis=1)
        value = ridge / 2 * float(np.vdot(apart, apart)) - float(np.log(np.maximum(shares[own], 1e-300)).sum())
        shares[own] -= 1
        return value, (shares.T @ rows + ridge * apart).ravel()

    head = start + minimize(loss, np.zeros(start.size), jac=True, method="L-BFGS-B").x.reshape(start.shape)
    return head[:, :-1].copy(), head[:, -1].copy()


def _spread(X: NDArray[Any], y: NDArray[Any], unlabelled: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """All records that labels reach over the graph of nearest neighbours, and the label that each then has."""
    from sklearn.decomposition import PCA
    from sklearn.semi_supervised import LabelSpreading

    records = np.concatenate([X, unlabelled])
    rows = as_rows(records)
    features = PCA(min(COMPONENTS, *rows.shape), svd_solver="covariance_eigh").fit_transform(rows.astype(np.float32))
    graph = LabelSpreading(kernel="knn", n_neighbors=min(NEIGHBOURS, len(rows)), alpha=FROM_NEIGHBOURS, max_iter=200)
    graph.fit(features, np.concatenate([y, np.full(len(unlabelled), -1)]))
    reached = graph.label_distributions_.any(axis=1)
    return records[reached], graph.transduction_[reached]
