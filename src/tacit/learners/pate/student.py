"""The student: a classifier of public records that learns from released labels, and from unanswered records if wanted.

Labels are released already, so what happens here costs no privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from tacit.learners.common.models import IndexClassifier, alike, as_rows, check_kind, check_labels
from tacit.learners.common.parameters import real
from tacit.learners.common.training import Training, train
from tacit.learners.pate.consistency import train_consistent
from tacit.models.networks import predict, scores, weights
from tacit.models.rows import Floats

NEIGHBOURS = 10
FROM_NEIGHBOURS = 0.9  # share of a label that comes from neighbours; the rest is as given
COMPONENTS = 50
NEVER = -1e6  # intercept of a class that no label names

Head = tuple[Floats, Floats]


@dataclass(frozen=True, eq=False)
class Student:
    """A fitted student.

    Attributes
    ----------
    model : IndexClassifier or torch.nn.Module
    validation_accuracy : float or None
        Share of the labels kept aside that it predicts; those are as noisy as the others.
    """

    model: Any
    validation_accuracy: float | None
    n_classes: int
    _head: Head | None

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Class index of each record, of shape (n,)."""
        return _predict(self.model, X)

    def scores(self, X: Any) -> Floats:
        """How likely the student finds each class for each record, of shape (n, n_classes); rows add up to 1."""
        return _probabilities(self.model, X, self.n_classes)

    def head(self) -> Head | None:
        """Coefficients of shape (n_classes, d) and intercepts of shape (n_classes,), if the student is linear.

        It predicts the class of the largest of rows times coefficients plus intercepts. Linear are the network "linear"
        and scikit-learn's LogisticRegression, where a class that no label names has an intercept of minus a million.
        """
        return self._head


def fit_student(
    student: Any,
    X: Any,
    labels: Any,
    *,
    n_classes: int,
    training: Training | None = None,
    validation: float = 0.0,
    unlabelled: Any = None,
    seed: int = 0,
) -> Student:
    """Fit a student to released labels.

    Parameters
    ----------
    student : scikit-learn classifier, str or callable
        A classifier to clone, the name of a network in `NETWORKS`, or a factory of networks.
    X : array-like of shape (n, d) or (n, channels, height, width)
        Public records with a label.
    labels : array-like of shape (n,)
        Their class indices, each in [0, n_classes); some may be wrong.
    n_classes : int
    training : Training, optional
        How a network is trained, `Training()` by default; scikit-learn classifiers have no use for it.
    validation : float, default=0.0
        Share of the labels, rounded down, that is kept aside to measure the student by; 0.99 at most.
    unlabelled : array-like of shape (m, ...), optional
        Public records without a label, to learn from as well. Networks do so by consistency (`train_consistent`); for
        linear and other classifiers, labels are spread to them over the graph of nearest neighbours (Zhou et al. 2004).
    seed : int, default=0

    Returns
    -------
    Student

    Raises
    ------
    InputError
        If shapes do not fit or a label is out of range.
    """
    X, y = np.asarray(X), np.asarray(labels)
    check_kind("student", student)
    check_labels(y, len(X), n_classes)
    more = None if unlabelled is None else alike(X, unlabelled)
    aside = math.floor(real("validation", validation, 0, 0.99) * len(y))
    order = np.random.default_rng(seed).permutation(len(y))
    kept, held = np.sort(order[aside:]), order[:aside]
    model = _fit(student, X[kept], y[kept], more, n_classes, training or Training(), seed)
    accuracy = float(np.mean(_predict(model, X[held]) == y[held])) if aside else None
    return Student(model, accuracy, n_classes, _head(student, model, n_classes))


def _fit(
    student: Any,
    X: NDArray[Any],
    y: NDArray[Any],
    unlabelled: NDArray[Any] | None,
    n_classes: int,
    training: Training,
    seed: int,
) -> Any:
    if hasattr(student, "fit"):
        X, y = (X, y) if unlabelled is None else _spread(as_rows(X), y, as_rows(unlabelled))
        return IndexClassifier(student, X, y, [seed])
    if student == "linear" and unlabelled is not None:  # consistency asks for more than a linear score can give
        X, y = _spread(as_rows(X), y, as_rows(unlabelled))
        unlabelled = None
    if unlabelled is None:
        return train(student, X, y, n_classes, training, seed=seed)
    return train_consistent(student, X, y, unlabelled, n_classes, training, seed=seed)


def _spread(X: NDArray[Any], y: NDArray[Any], unlabelled: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """All rows that labels reach over the graph of nearest neighbours, and the label that each then has."""
    from sklearn.decomposition import PCA
    from sklearn.semi_supervised import LabelSpreading

    rows = np.concatenate([X, unlabelled])
    features = PCA(min(COMPONENTS, *rows.shape), svd_solver="covariance_eigh").fit_transform(rows.astype(np.float32))
    graph = LabelSpreading(kernel="knn", n_neighbors=min(NEIGHBOURS, len(rows)), alpha=FROM_NEIGHBOURS, max_iter=200)
    graph.fit(features, np.concatenate([y, np.full(len(unlabelled), -1)]))
    reached = graph.label_distributions_.any(axis=1)
    return rows[reached], graph.transduction_[reached]


def _predict(model: Any, X: Any) -> NDArray[np.int64]:
    return model.predict(X) if isinstance(model, IndexClassifier) else predict(model, X)


def _probabilities(model: Any, X: Any, n_classes: int) -> Floats:
    if not isinstance(model, IndexClassifier):
        return np.asarray(softmax(scores(model, X).astype(np.float64), axis=1))
    result = np.zeros((len(X), n_classes))
    result[:, model.present] = model.probabilities(X)
    return result


def _head(student: Any, model: Any, n_classes: int) -> Head | None:
    from sklearn.linear_model import LogisticRegression

    if isinstance(student, str) and student == "linear":
        coefficients, intercepts = (array.astype(np.float64) for array in weights(model).values())
        return coefficients, intercepts
    if not isinstance(student, LogisticRegression):
        return None
    given, fitted = model.present, model.fitted
    coefficients, intercepts = np.zeros((n_classes, model.width)), np.full(n_classes, NEVER)
    intercepts[given] = 0
    if fitted is not None:  # two classes have one row, for the second
        given = given[-len(fitted.coef_) :]
        coefficients[given], intercepts[given] = fitted.coef_, fitted.intercept_
    return coefficients, intercepts
