"""Classifiers of class indices around scikit-learn's, and checks of records and of kinds of models."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.rows import as_rows as checked_rows
from tacit.errors import InputError
from tacit.learners.common.parameters import whole
from tacit.learners.common.training import Training
from tacit.models.networks import network
from tacit.models.rows import BLOCK_ROWS


class IndexClassifier:
    """A clone of a classifier, fitted to the class indices that occur; where only one occurs, it is predicted for all.

    Parameters
    ----------
    classifier : scikit-learn classifier
        Left as it is.
    X : array-like of shape (n, ...)
        Records; pictures are flattened to rows.
    y : ndarray of shape (n,)
        Class indices.
    seed : sequence of int
        Each `random_state` among the classifier's parameters is derived from it.
    weights : ndarray of shape (n,), optional
        Of the records.
    """

    def __init__(
        self, classifier: Any, X: Any, y: NDArray[Any], seed: list[int], weights: NDArray[np.float64] | None = None
    ) -> None:
        from sklearn.base import clone

        rows = as_rows(X)
        self.width = rows.shape[1]
        self.present, labels = np.unique(y, return_inverse=True)
        self.fitted = None
        if len(self.present) > 1:
            self.fitted = clone(classifier)
            state = int(np.random.default_rng(seed).integers(2**31))
            names = [name for name in self.fitted.get_params() if name.split("__")[-1] == "random_state"]
            given = {} if weights is None else {"sample_weight": weights}
            self.fitted.set_params(**dict.fromkeys(names, state)).fit(rows, labels, **given)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Class index of each record, of shape (n,)."""
        if self.fitted is None:
            return np.full(len(X), self.present[0], dtype=np.int64)
        return np.asarray(self.present[self.fitted.predict(as_rows(X))], dtype=np.int64)

    def probabilities(self, X: Any) -> NDArray[np.float64]:
        """Probability of each class in `present`, of shape (n, present)."""
        if self.fitted is None:
            return np.ones((len(X), 1))
        if not hasattr(self.fitted, "predict_proba"):
            raise InputError(f"{self.fitted} has no predict_proba, which interactive voting needs; choose another")
        return np.asarray(self.fitted.predict_proba(as_rows(X)), dtype=np.float64)


def as_rows(X: Any) -> NDArray[Any]:
    """Records as rows of shape (n, d)."""
    records = np.asarray(X)
    return records.reshape(len(records), -1)


def check_kind(role: str, kind: Any, shape: tuple[int, ...] | None = None, n_classes: int = 2) -> None:
    """Refuse what is neither a scikit-learn classifier nor a network for records of this shape; `role` names it."""
    from sklearn.base import is_classifier

    if isinstance(kind, type):
        raise InputError(f"{role}={kind.__name__} is a class; pass an instance, {kind.__name__}()")
    if not hasattr(kind, "fit"):
        make = network(kind)
        if shape is not None:
            make(shape, n_classes)
    elif not is_classifier(kind):
        raise InputError(f"{role}={kind!r:.60} is no classifier; pass one, such as GaussianNB()")


def check_labels(y: NDArray[Any], records: int, n_classes: int) -> None:
    """Refuse labels that are not one class index for each record."""
    if y.shape != (records,) or y.dtype.kind not in "iu" or not np.all((y >= 0) & (y < n_classes)):
        raise InputError(f"labels must be one class index from 0 to {n_classes - 1} for each of {records} records")


def alike(X: Any, others: Any) -> NDArray[Any]:
    """Other records as an array, if they are of the shape and kind of X."""
    array: NDArray[Any] = np.asarray(others)
    if array.shape[1:] != X.shape[1:] or (array.dtype == np.uint8) != (X.dtype == np.uint8):
        raise InputError(
            f"records of shape {array.shape} and type {array.dtype} do not fit those of shape {X.shape} and type "
            f"{X.dtype}; encode both alike"
        )
    return array


def as_flat(records: Any) -> Any:
    """Pictures as rows; anything else that has a length as it is."""
    records = records if hasattr(records, "__len__") else np.atleast_1d(np.asarray(records))
    shape = getattr(records, "shape", ())
    return np.asarray(records).reshape(len(records), -1) if len(shape) > 2 else records


def shape_of(records: Any, given: Any) -> Any:
    """The shape of one record: that of pictures as they come, else the one given, if any."""
    own = getattr(records, "shape", ())
    return own[1:] if len(own) > 2 else given


def finite_rows(records: Any, name: str, width: int) -> Any:
    """Records as rows of this width, of finite numbers."""
    rows = checked_rows(records, name)
    if rows.shape[1] != width:
        raise InputError(f"{name} has {rows.shape[1]} columns and X {width}; encode both alike")
    if np.dtype(rows.dtype).kind not in "fiub":
        raise InputError(f"{name} has dtype {rows.dtype}; pass numbers")
    for start in range(0, len(rows), BLOCK_ROWS):
        if not np.isfinite(np.asarray(rows[start : start + BLOCK_ROWS])).all():
            raise InputError(f"{name} has a value that is not finite among rows {start} and on; clean it up")
    return rows


def record_shape(shape: Any, width: int) -> tuple[int, ...]:
    """The shape of one record of so many values; (width,) where none is given."""
    if shape is None:
        return (width,)
    if not isinstance(shape, tuple | list):
        raise InputError(f"shape={shape!r:.60} must name the sides of a record, such as (1, 28, 28); correct it")
    sides = tuple(whole("a side of shape", side, 1, 2**31) for side in shape)
    if math.prod(sides) != width:
        raise InputError(f"shape={sides} has {math.prod(sides)} values and a record {width}; correct it")
    return sides


def training_of(given: Any) -> Training:
    """How to train, from nothing, a Training or a dict of its fields."""
    if isinstance(given, Training | None):
        return given or Training()
    try:
        return Training(**given)
    except TypeError as error:
        names = ", ".join(field.name for field in fields(Training))
        raise InputError(f"training={given!r:.60} must be a dict of {names}; correct it") from error
