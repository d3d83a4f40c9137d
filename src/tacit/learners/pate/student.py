"""The student: a classifier of public records that learns from released labels.

It may also learn from public records that got no answer, to which labels spread over the graph of
nearest neighbours.

Labels are released already, so what happens here has no privacy cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from tacit.learners.common.heads import Head, fit_head
from tacit.learners.common.models import (
    IndexClassifier,
    Model,
    alike,
    as_rows,
    check_kind,
    check_labels,
)
from tacit.learners.common.parameters import flag, real
from tacit.learners.common.training import Training, train
from tacit.learners.pate.teachers import check_name, model_of
from tacit.models.name_length import SCALE_OF_LENGTH, NameLength, likeliest_length
from tacit.models.networks import weights
from tacit.models.rows import Floats

# C of logistic regressions that are tried on the labels alone.
PENALTIES = (10.0, 1.0, 0.1)

# C where labels are spread.
PENALTY = 1.0

# Parts in which labels are held out to choose among options.
FOLDS = 4

# Share of wrong labels that a choice by held-out labels allows for.
WRONG = 0.5

# Class names: ridges of what is learned beside them, and the share of the labels by which the ridge
# is chosen.
RIDGES = (1.0, 10.0)
HELD = 0.2

# Labels that spread: neighbours of a record, principal components in which they are near, and the
# share of a label that comes from neighbours (the rest is the released label).
NEIGHBOURS = 10
COMPONENTS = 50
FROM_NEIGHBOURS = 0.9


@dataclass(frozen=True)
class Student:
    """The model that learns from the labels that voting released.

    Parameters
    ----------
    model : scikit-learn classifier, str or callable, optional
        As in `Teachers`; by default a logistic regression with equal class weights, since noisy
        votes change how frequent classes are. Logistic regressions and named networks can be
        released. Linear models are fitted to unit rows, about the mean of the unit public rows
        unless `semi_supervised` is True.
    training : Training or dict, optional
        How a network is trained, as in `LabelPrivate`.
    semi_supervised : bool, optional
        Whether the student also uses public records without an answer. By default the default model
        does, unless held-out labels are likelier without them under the best of several penalties;
        other models do not.
    validation : float, default=0.0
        Share of the labels that is held out to measure the student; at most 0.99.

    Examples
    --------
    >>> import tacit
    >>> tacit.pate.Student(model="mlp", validation=0.1).validation
    0.1
    """

    model: Any = None
    training: Training | dict[str, Any] | None = None
    semi_supervised: bool | None = None
    validation: float = 0.0

    def __post_init__(self) -> None:
        check_name(self.model)
        Training.of(self.training)
        if self.semi_supervised is not None:
            flag("semi_supervised", self.semi_supervised)
        real("validation", self.validation, 0, 0.99)

    def options(self) -> tuple[Option, ...]:
        """Return what the student may be; released labels choose."""
        from sklearn.linear_model import LogisticRegression

        if self.model is not None:
            return (Option(model_of(self.model), bool(self.semi_supervised)),)

        def balanced(penalty: float) -> LogisticRegression:
            return LogisticRegression(C=penalty, class_weight="balanced", max_iter=300)

        with_unlabelled = (Option(balanced(PENALTY), spread=True),)
        labels_alone = tuple(Option(balanced(penalty)) for penalty in PENALTIES)
        if self.semi_supervised is None:
            return with_unlabelled + labels_alone
        return with_unlabelled if self.semi_supervised else labels_alone


@dataclass(frozen=True)
class Option:
    """A classifier, and whether labels are spread to the unlabelled records before it is fitted."""

    model: Any
    spread: bool = False


@dataclass(frozen=True, eq=False)
class _Records:
    """Labelled records and class indices, then unlabelled records.

    `neighbours` joins the labelled records and, after them, the unlabelled ones; it is None where
    no labels are spread.
    """

    X: NDArray[Any]
    y: NDArray[Any]
    unlabelled: NDArray[Any]
    neighbours: Neighbours | None

    def training_records(
        self, option: Option, rows: NDArray[np.bool_]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return records and labels from which an option learns, given the labels of these rows
        alone.
        """
        if not option.spread or self.neighbours is None:
            return self.X[rows], self.y[rows]
        labels = np.concatenate([np.where(rows, self.y, -1), np.full(len(self.unlabelled), -1)])
        labels = self.neighbours.spread(labels)
        is_labelled = labels >= 0
        return np.concatenate([self.X, self.unlabelled])[is_labelled], labels[is_labelled]


def fit_student(
    options: Sequence[Option],
    X: Any,
    labels: Any,
    *,
    n_classes: int,
    training: Training | None = None,
    validation: float = 0.0,
    unlabelled: Any = None,
    rows: tuple[Any, Any] | None = None,
    names: Floats | None = None,
    seed: int = 0,
) -> tuple[Model, float | None]:
    """Fit the student to released labels; return it, and its accuracy on the validation labels.

    The validation labels are as noisy as the others. Of several options the student is the one
    under which held-out labels are likeliest. Labels are spread over the graph of nearest
    neighbours among `rows`, of X and of `unlabelled`, by default among these themselves. A logistic
    regression's ridge is about `names`, unit rows (C, d), unless the labels contradict them; labels
    that were spread would not tell, so names go before options that spread.
    """
    if names is not None:
        options = [option for option in options if not option.spread] or options
    X = np.asarray(X)
    y = np.asarray(labels)
    for option in options:
        check_kind("student", option.model)
    check_labels(y, len(X), n_classes)

    n_validation = math.floor(real("validation", validation, 0, 0.99) * len(y))
    order = np.random.default_rng(seed).permutation(len(y))
    held_out = order[:n_validation]
    used = np.sort(order[n_validation:])

    others = X[:0] if unlabelled is None else alike(X, unlabelled)
    neighbours = None
    if any(option.spread for option in options) and len(used) and len(others):
        labelled_rows, unlabelled_rows = (X, others) if rows is None else rows
        neighbours = Neighbours.of(np.concatenate([labelled_rows[used], unlabelled_rows]))
    records = _Records(X[used], y[used], others, neighbours)

    option = _likeliest(options, records, n_classes, training, seed)
    training_X, training_y = records.training_records(option, np.ones(len(used), dtype=bool))
    head = None
    if names is not None:
        head = _named_head(training_X, training_y, names, 1 / option.model.C, seed)
    if head is not None:
        model = Model(head, n_classes)
    else:
        model = _fit(option, training_X, training_y, n_classes, training, seed)

    if not n_validation:
        return model, None
    return model, float(np.mean(model.nearest(X[held_out]) == y[held_out]))


def _likeliest(
    options: Sequence[Option],
    records: _Records,
    n_classes: int,
    training: Training | None,
    seed: int,
) -> Option:
    """Return the option under which held-out labels are likeliest, by cross-validation."""
    folds = np.random.default_rng(seed).permutation(len(records.y)) % FOLDS
    if len(options) == 1 or len(folds) < 2 * FOLDS:
        return options[0]

    def likelihood(option: Option) -> float:
        total = 0.0
        for fold in range(FOLDS):
            held = folds == fold
            X, y = records.training_records(option, ~held)
            model = _fit(option, X, y, n_classes, training, seed)
            total += _log_likelihood(model.probabilities_of(records.X[held]), records.y[held])
        return total

    return max(options, key=likelihood)


def _log_likelihood(probabilities: Floats, labels: NDArray[Any]) -> float:
    """Log likelihood of labels (n,), the share WRONG of which may be of any class, under
    probabilities (n, C).
    """
    label_probabilities = probabilities[np.arange(len(labels)), labels]
    n_classes = probabilities.shape[1]
    return float(np.log((1 - WRONG) * label_probabilities + WRONG / n_classes).sum())


def _fit(
    option: Option,
    X: NDArray[Any],
    y: NDArray[Any],
    n_classes: int,
    training: Training | None,
    seed: int,
) -> Model:
    """Fit a classifier of scikit-learn, or train a network."""
    kind = option.model
    if hasattr(kind, "fit"):
        return Model(IndexClassifier(kind, X, y, [seed]), n_classes)
    module: Any = train(kind, X, y, n_classes, training or Training(), seed=seed)
    if kind == "linear":
        # a release holds coefficients and intercepts in place of the network
        module = tuple(array.astype(np.float64) for array in weights(module).values())
    return Model(module, n_classes)


def _named_head(
    X: NDArray[Any], y: NDArray[Any], names: Floats, ridge: float, seed: int
) -> tuple[Floats, Floats] | None:
    """Return coefficients and intercepts drawn towards the names; None if the labels contradict
    the names (`tacit.models.name_length`).

    The ridge is the one under which a share of the labels is likeliest after a fit to the others.
    """
    length = _length_of_names(X, y, names)
    if length.contradicted:
        return None
    centre = SCALE_OF_LENGTH * length.temperature * names

    order = np.random.default_rng(seed).permutation(len(y))
    held, used = np.split(order, [math.ceil(HELD * len(y))])

    def likelihood(ridge: float) -> float:
        coefficients, intercepts = softmax_about(X[used], y[used], centre, ridge)
        return _log_likelihood(softmax(X[held] @ coefficients.T + intercepts, axis=1), y[held])

    return softmax_about(X, y, centre, max((*RIDGES, ridge), key=likelihood))


def _length_of_names(X: NDArray[Any], y: NDArray[Any], names: Floats) -> NameLength:
    """Posterior of the length of the names, by the likelihood of the labels under the names
    alone.
    """
    cosines = X @ names.T

    def log_likelihood(length: float) -> float:
        return _log_likelihood(softmax(SCALE_OF_LENGTH * length * cosines, axis=1), y)

    return likeliest_length(log_likelihood)


def softmax_about(
    X: NDArray[Any], y: NDArray[Any], centre: Floats, ridge: float
) -> tuple[Floats, Floats]:
    """Softmax regression whose penalty is ridge / 2 |coefficients - centre|^2, and as much on the
    intercepts.
    """
    n_classes = len(centre)
    head = fit_head(
        np.asarray(X, dtype=np.float64),
        values=np.eye(n_classes)[y],
        target=np.ones(len(y), dtype=bool),
        about=Head(centre, np.zeros(n_classes)),
        ridge=ridge,
        intercept_ridge=ridge,
    )
    return head.coefficients, head.intercepts


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Nearest neighbours of records in their principal components: a sparse (n, n) graph of 0 and
    1, over which labels spread [Zhou et al. 2004].
    """

    graph: Any

    @classmethod
    def of(cls, records: NDArray[Any]) -> Self:
        """The graph of records, each of which counts among its own nearest."""
        from sklearn.decomposition import PCA
        from sklearn.neighbors import kneighbors_graph

        rows = as_rows(records).astype(np.float32)
        components = min(COMPONENTS, *rows.shape)
        features = PCA(components, svd_solver="covariance_eigh").fit_transform(rows)
        return cls(kneighbors_graph(features, min(NEIGHBOURS, len(rows)), include_self=True))

    def spread(self, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the label of each record, of shape (n,), from the labels of some.

        -1 is no label: of records to spread to, and of those that no label reaches.
        """
        from sklearn.semi_supervised import LabelSpreading

        spreading = LabelSpreading(
            kernel=lambda *_: self.graph, alpha=FROM_NEIGHBOURS, max_iter=200
        )
        # the graph stands for the rows, so these are not read
        spreading.fit(np.zeros((len(labels), 1)), labels)
        is_reached = spreading.label_distributions_.any(axis=1)
        return np.where(is_reached, spreading.transduction_, -1)
