"""The student: a classifier of public records that learns from released labels, and from unanswered
records if wanted.

Labels are released already, so what happens here has no privacy cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

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
from tacit.models.networks import weights
from tacit.models.rows import Floats

PENALTIES = (10.0, 1.0, 0.1)  # C of logistic regressions that are tried on the labels alone
PENALTY = 1.0  # C where labels are spread
FOLDS = 4  # in which labels are held out to choose among these
# of cosines to names as logits, and of what is learned beside them
SCALES, RIDGES = (20.0, 10.0), (1.0, 10.0)
HELD = 0.2  # share of the labels by which scale and ridge are chosen
WRONG = 0.5  # share of wrong labels that the choice allows for
NEIGHBOURS = 10
FROM_NEIGHBOURS = 0.9  # share of a label that comes from neighbours; the rest is the released label
COMPONENTS = 50


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
        """What it may be; released labels choose."""
        from sklearn.linear_model import LogisticRegression

        if self.model is not None:
            return (Option(model_of(self.model), bool(self.semi_supervised)),)

        def balanced(penalty: float) -> LogisticRegression:
            return LogisticRegression(C=penalty, class_weight="balanced", max_iter=300)

        spread = (Option(balanced(PENALTY), True),)
        alone = tuple(Option(balanced(penalty)) for penalty in PENALTIES)
        if self.semi_supervised is None:
            return spread + alone
        return spread if self.semi_supervised else alone


@dataclass(frozen=True)
class Option:
    """A classifier, and whether labels are spread to the unlabelled records before it is fitted."""

    model: Any
    spread: bool = False


@dataclass(frozen=True, eq=False)
class _Records:
    """Labelled records and class indices, then unlabelled records; `near` joins both."""

    X: NDArray[Any]
    y: NDArray[Any]
    unlabelled: NDArray[Any]
    near: Neighbours | None

    def known_to(
        self, option: Option, learned: NDArray[np.bool_]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Records and labels from which an option learns, given the labels of the records `learned`
        alone.
        """
        if not option.spread or self.near is None:
            return self.X[learned], self.y[learned]
        none = np.full(len(self.unlabelled), -1)
        labels = self.near.spread(np.concatenate([np.where(learned, self.y, -1), none]))
        return np.concatenate([self.X, self.unlabelled])[labels >= 0], labels[labels >= 0]


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
    """The student of released labels, and the share of the validation labels, as noisy as the
    others, that it predicts.

    Of several options it is the one under which held-out labels are likeliest. Labels are spread
    over the graph of nearest neighbours among `rows`, of X and of `unlabelled`, by default among
    these themselves. A logistic regression's ridge is about `names`, unit rows (C, d), if held-out
    labels are likelier with them; labels that were spread would not tell, so names go before
    options that spread.
    """
    if names is not None:
        options = [option for option in options if not option.spread] or options
    X, y = np.asarray(X), np.asarray(labels)
    for option in options:
        check_kind("student", option.model)
    check_labels(y, len(X), n_classes)
    aside = math.floor(real("validation", validation, 0, 0.99) * len(y))
    order = np.random.default_rng(seed).permutation(len(y))
    used, held = np.sort(order[aside:]), order[:aside]
    others = X[:0] if unlabelled is None else alike(X, unlabelled)
    near = None
    if any(option.spread for option in options) and len(used) and len(others):
        of_labelled, of_others = (X, others) if rows is None else rows
        near = Neighbours.of(np.concatenate([of_labelled[used], of_others]))
    given = _Records(X[used], y[used], others, near)
    option = _chosen(options, given, n_classes, training, seed)
    records, known = given.known_to(option, np.ones(len(used), dtype=bool))
    named = None if names is None else _named_head(records, known, names, 1 / option.model.C, seed)
    model = (
        Model(named, n_classes)
        if named is not None
        else _fit(option, records, known, n_classes, training, seed)
    )
    return model, float(np.mean(model.nearest(X[held]) == y[held])) if aside else None


def _chosen(
    options: Sequence[Option], given: _Records, n_classes: int, training: Training | None, seed: int
) -> Option:
    """The option under which held-out labels are likeliest, the share WRONG of which may be of any
    class.
    """
    folds = np.random.default_rng(seed).permutation(len(given.y)) % FOLDS
    if len(options) == 1 or len(folds) < 2 * FOLDS:
        return options[0]

    def likelihood(option: Option) -> float:
        total = 0.0
        for fold in range(FOLDS):
            held = folds == fold
            model = _fit(option, *given.known_to(option, ~held), n_classes, training, seed)
            total += _likelihood(model.probabilities_of(given.X[held]), given.y[held])
        return total

    return max(options, key=likelihood)


def _likelihood(probabilities: Floats, labels: NDArray[Any]) -> float:
    """Log likelihood of noisy labels (n,) under probabilities (n, C)."""
    of_labels = probabilities[np.arange(len(labels)), labels]
    return float(np.log((1 - WRONG) * of_labels + WRONG / probabilities.shape[1]).sum())


def _fit(
    option: Option,
    X: NDArray[Any],
    y: NDArray[Any],
    n_classes: int,
    training: Training | None,
    seed: int,
) -> Model:
    kind = option.model
    if hasattr(kind, "fit"):
        return Model(IndexClassifier(kind, X, y, [seed]), n_classes)
    module: Any = train(kind, X, y, n_classes, training or Training(), seed=seed)
    if kind == "linear":
        module = tuple(array.astype(np.float64) for array in weights(module).values())
    return Model(module, n_classes)


def _named_head(
    X: NDArray[Any], y: NDArray[Any], names: Floats, ridge: float, seed: int
) -> tuple[Floats, Floats] | None:
    """Coefficients and intercepts drawn towards the names, if that makes held-out labels likelier;
    else None.

    Scale and ridge are those under which a share of the labels is likeliest after a fit to the
    others.
    """
    order = np.random.default_rng(seed).permutation(len(y))
    held, used = np.split(order, [math.ceil(HELD * len(y))])

    def likelihood(scale: float, ridge: float) -> float:
        coefficients, intercepts = softmax_about(X[used], y[used], scale * names, ridge)
        return _likelihood(softmax(X[held] @ coefficients.T + intercepts, axis=1), y[held])

    drawn = max(product(SCALES, (*RIDGES, ridge)), key=lambda choice: likelihood(*choice))
    if len(held) and likelihood(0.0, ridge) >= likelihood(*drawn):
        return None
    return softmax_about(X, y, drawn[0] * names, drawn[1])


def softmax_about(
    X: NDArray[Any], y: NDArray[Any], centre: Floats, ridge: float
) -> tuple[Floats, Floats]:
    """Softmax regression whose penalty is ridge / 2 |coefficients - centre|^2, and as much on the
    intercepts.
    """
    from scipy.optimize import minimize

    rows = np.column_stack([np.asarray(X, dtype=np.float64), np.ones(len(X))])
    start, own = np.column_stack([centre, np.zeros(len(centre))]), (np.arange(len(y)), y)

    def loss(flat: Floats) -> tuple[float, Floats]:
        apart = flat.reshape(start.shape)
        shares = softmax(rows @ (start + apart).T, axis=1)
        value = ridge / 2 * float(np.vdot(apart, apart)) - float(
            np.log(np.maximum(shares[own], 1e-300)).sum()
        )
        shares[own] -= 1
        return value, (shares.T @ rows + ridge * apart).ravel()

    head = start + minimize(loss, np.zeros(start.size), jac=True, method="L-BFGS-B").x.reshape(
        start.shape
    )
    return head[:, :-1].copy(), head[:, -1].copy()


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Which records are among the nearest of which, in their principal components: a sparse (n, n)
    graph of 0 and 1.
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
        """The label of each record, of shape (n,), given some; -1 where there is none, and where
        none arrives.
        """
        from sklearn.semi_supervised import LabelSpreading

        spreading = LabelSpreading(
            kernel=lambda *_: self.graph, alpha=FROM_NEIGHBOURS, max_iter=200
        )
        spreading.fit(np.zeros((len(labels), 1)), labels)
        return np.where(spreading.label_distributions_.any(axis=1), spreading.transduction_, -1)
