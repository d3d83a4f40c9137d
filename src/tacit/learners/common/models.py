"""Any classifier over rows or pictures: what `PATE`, `LabelPrivate` and `DPSGD` share.

A model is a linear head, a torch network or a scikit-learn classifier. This file says how a model
sees records, how it predicts and what of it is released, and checks records and kinds of models.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import log_softmax

from tacit.compute.foreign import of_tensor
from tacit.data.rows import as_rows as checked_rows
from tacit.data.rows import numeric_array, one_line, refuse_sparse
from tacit.errors import InputError
from tacit.learners.common.base import FLOATS, PrivateClassifier
from tacit.learners.common.parameters import whole
from tacit.mechanisms.noise import Integers
from tacit.models.decisions import LinearHead, NetworkHead
from tacit.models.networks import Factory, network, scores, weights
from tacit.models.probabilities import Probabilities
from tacit.models.released import Released
from tacit.models.rows import BLOCK_ROWS, Floats, centre_array, normalisation, unit_rows_about

# A scikit-learn classifier may give a class the probability zero, whose logarithm is not finite.
LEAST_PROBABILITY = 1e-12

# intercept of a class that no label names: no record is predicted to be of it
NEVER = -1e6

# public records to which a classifier is fitted to see whether it can be
TRIED = 50


@dataclass(frozen=True, eq=False)
class View:
    """Form in which a model reads rows of shape (n, d).

    If `unit`, these are unit rows about `centre`; otherwise rows are reshaped to records of
    `shape`. `scale` is 255 for networks that were trained on bytes: rows of other types are divided
    by it.
    """

    shape: tuple[int, ...]
    unit: bool = False
    centre: Floats | None = None
    scale: float = 1.0

    def __call__(self, rows: Any) -> NDArray[Any]:
        """Return the records."""
        records: NDArray[Any] = np.asarray(rows)
        if self.unit:
            return unit_rows_about(records, self.centre)

        # Networks divide bytes by 255 themselves.
        is_bytes = records.dtype == np.uint8
        if self.scale != 1 and not is_bytes:
            records = records / self.scale
        return records.reshape(-1, *self.shape)


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted classifier of class indices.

    `fitted` is a network, an `IndexClassifier`, or the coefficients and intercepts of a linear
    head. Without a `view` the model takes records and not rows.
    """

    fitted: Any
    n_classes: int
    view: View | None = None

    def log_probabilities(self, rows: Any) -> Floats:
        """Return the log probability of each class for each row, of shape (n, n_classes)."""
        records = self._records(rows)
        if isinstance(self.fitted, tuple):
            coefficients, intercepts = self.fitted
            logits = as_rows(records) @ coefficients.T + intercepts
            return np.asarray(log_softmax(logits, axis=1))

        if isinstance(self.fitted, IndexClassifier):
            # A class that no label named has the least probability.
            probabilities = np.full((len(records), self.n_classes), LEAST_PROBABILITY)
            probabilities[:, self.fitted.present] = np.maximum(
                self.fitted.probabilities(records), LEAST_PROBABILITY
            )
            return np.asarray(np.log(probabilities))

        logits = scores(self.fitted, records).astype(np.float64)
        return np.asarray(log_softmax(logits, axis=1))

    def similarities(self, rows: Any) -> Floats:
        """Return the log probabilities."""
        return self.log_probabilities(rows)

    def nearest(self, rows: Any) -> Integers:
        """Return the class index of each row, of shape (n,)."""
        if isinstance(self.fitted, IndexClassifier):
            # Some scikit-learn classifiers predict without probabilities.
            return self.fitted.predict(self._records(rows))
        return np.asarray(np.argmax(self.log_probabilities(rows), axis=1))

    def probabilities_of(self, rows: Any) -> Floats:
        """Return the probability of each class for each row, of shape (n, n_classes)."""
        return Probabilities(1.0).of(self.log_probabilities(rows), self.nearest(rows))

    def head(self) -> tuple[Floats, Floats] | None:
        """Return coefficients and intercepts, if the model is linear.

        Linear models are heads and scikit-learn's LogisticRegression. A class that no label named
        has an intercept of minus a million.
        """
        from sklearn.linear_model import LogisticRegression

        if isinstance(self.fitted, tuple):
            return self.fitted
        if not isinstance(self.fitted, IndexClassifier):
            return None
        if not isinstance(self.fitted.kind, LogisticRegression):
            return None

        present = self.fitted.present
        coefficients = np.zeros((self.n_classes, self.fitted.width))
        intercepts = np.full(self.n_classes, NEVER)
        intercepts[present] = 0

        # A single class has no fitted regression.
        regression = self.fitted.fitted
        if regression is not None:
            # For two classes scikit-learn holds one row of coefficients, that of the second class.
            with_coefficients = present[-len(regression.coef_) :]
            coefficients[with_coefficients] = regression.coef_
            intercepts[with_coefficients] = regression.intercept_
        return coefficients, intercepts

    def released(self, kind: Any, source: str, facts: dict[str, Any]) -> Released | Model:
        """Return the contents of a release, or the model itself if there is no form for it.

        Networks are released if `kind` is their name in `NETWORKS`; `source` names what the model
        learned from.
        """
        view = self.view
        head = self.head()
        if view is not None and view.unit and head is not None:
            coefficients, intercepts = head
            arrays = {"coefficients": coefficients, "intercepts": intercepts}
            arrays |= centre_array(view.centre)
            facts = facts | {"normalisation": normalisation(view.centre)}
            title = f"linear classifier that learned from {source}"
            return Released(title, arrays, LinearHead(), facts)

        if view is not None and isinstance(kind, str):
            decision = NetworkHead(kind, view.shape, view.scale)
            title = f"network that learned from {source}"
            return Released(title, weights(self.fitted), decision, facts)
        return self

    def _records(self, rows: Any) -> Any:
        return rows if self.view is None else self.view(rows)


class IndexClassifier:
    """A clone of a scikit-learn classifier, fitted to the class indices that occur.

    A single class is predicted for all records. Pictures are flattened to rows. Each `random_state`
    among the classifier's parameters is derived from `seed`.
    """

    def __init__(
        self,
        classifier: Any,
        X: Any,
        y: NDArray[Any],
        seed: list[int],
        weights: NDArray[np.float64] | None = None,
    ) -> None:
        rows = _wide_rows(X)
        self.kind = classifier
        self.width = rows.shape[1]
        # class indices that occur, and the label of each record as a position among them
        self.present, labels = np.unique(y, return_inverse=True)

        self.fitted = None
        if len(self.present) > 1:
            self.fitted = _seeded_clone(classifier, seed)
            weights_if_any = {} if weights is None else {"sample_weight": weights}
            with _faults(classifier):
                self.fitted.fit(rows, labels, **weights_if_any)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the class index of each record, of shape (n,)."""
        if self.fitted is None:
            return np.full(len(X), self.present[0], dtype=np.int64)
        with _faults(self.kind):
            labels = self.fitted.predict(_wide_rows(X))
            return np.asarray(self.present[labels], dtype=np.int64)

    def probabilities(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class in `present`, of shape (n, present)."""
        if self.fitted is None:
            return np.ones((len(X), 1))
        if not hasattr(self.fitted, "predict_proba"):
            raise InputError(
                f"{self.fitted} has no predict_proba, so no scores; choose another classifier"
            )
        with _faults(self.kind):
            return np.asarray(self.fitted.predict_proba(_wide_rows(X)), dtype=np.float64)


def _seeded_clone(classifier: Any, seed: list[int]) -> Any:
    """Clone a scikit-learn classifier, with one state for all its random numbers."""
    from sklearn.base import clone

    clone_of_classifier = clone(classifier)
    state = int(np.random.default_rng(seed).integers(2**31))
    # The classifier of a pipeline or a search has a nested parameter, such as svc__random_state.
    names = [
        name for name in clone_of_classifier.get_params() if name.split("__")[-1] == "random_state"
    ]
    with _faults(classifier):
        clone_of_classifier.set_params(**dict.fromkeys(names, state))
    return clone_of_classifier


@contextmanager
def _faults(classifier: Any) -> Iterator[None]:
    """Turn what a classifier raises for records or settings that it does not take into one line."""
    try:
        yield
    except (TypeError, ValueError) as error:
        fault = f"{classifier!r:.60} does not take these records or settings ({one_line(error)})"
        raise InputError(f"{fault}; correct them, or choose another classifier") from error


class ModelClassifier(PrivateClassifier):
    """A learner of any model over rows or pictures; `fit` and `predict` take both."""

    shape: tuple[int, ...] | None

    trains_logits = True
    budget_kinds: ClassVar[tuple[str, ...]] = ("zcdp", "approx")

    _dtypes: ClassVar[list[Any]] = [*FLOATS, np.uint8]

    def fit(self, X: Any, y: Any, persons: Any = None, **others: Any) -> Self:
        """Learn from private labels, and from X, which is private too except for `LabelPrivate`.

        Parameters
        ----------
        X : array-like of shape (n, d) or (n, channels, height, width)
            Finite. Pictures may be uint8.
        y : array-like of shape (n,)
            Labels, each in `classes`.
        persons : array-like of shape (n,), optional
            As in `tacit.NoisySumPrototypes.fit`.
        others
            Refused, as in `tacit.NoisySumPrototypes.fit`.

        Returns
        -------
        self

        Raises
        ------
        InputError, BudgetError
            If something is out of range; nothing is charged or learned then.
        LedgerError
            If the promise would overdraw the ledger; nothing is learned then.
        """
        return self._learn(as_flat(X), y, persons, others, shape=shape_of(X, self.shape))

    def _released(
        self, model: Model, kind: Any, source: str, facts: dict[str, Any]
    ) -> Released | Model:
        """Return `Model.released`; a linear model's weights become attributes."""
        released = model.released(kind, source, facts)
        if isinstance(released, Released) and "coefficients" in released.arrays:
            self.coefficients_ = released.arrays["coefficients"]
            self.intercepts_ = released.arrays["intercepts"]
        return released

    def _rows(self, X: Any) -> Any:
        return super()._rows(as_flat(X))


def as_rows(X: Any) -> NDArray[Any]:
    """Return records as rows of shape (n, d)."""
    records = np.asarray(X)
    return records.reshape(len(records), -1)


def _wide_rows(X: Any) -> NDArray[Any]:
    """Return records as rows, float16 as float64: variances of some classifiers would underflow."""
    rows = as_rows(X)
    if rows.dtype == np.float16:
        rows = rows.astype(np.float64)
    return rows


def check_kind(
    role: str, kind: Any, shape: tuple[int, ...] | None = None, n_classes: int = 2
) -> None:
    """Refuse a `role` that is neither a scikit-learn classifier nor a network for these records.

    Without a `shape` a network is not built.
    """
    from sklearn.base import is_classifier

    if isinstance(kind, type):
        raise InputError(f"{role}={kind.__name__} is a class; pass an instance, {kind.__name__}()")

    if not hasattr(kind, "fit"):
        factory = network(kind)
        if shape is not None:
            _check_network(role, factory, shape, n_classes)
    elif not is_classifier(kind):
        raise InputError(f"{role}={kind!r:.60} is not a classifier; pass one, such as GaussianNB()")


def _check_network(role: str, factory: Factory, shape: tuple[int, ...], n_classes: int) -> None:
    remedy = "pass a function from (shape, n_classes) to a torch module"
    try:
        module = factory(shape, n_classes)
    except TypeError as error:
        fault = f"{role}={factory!r:.60} makes no network ({one_line(error)})"
        raise InputError(f"{fault}; {remedy}") from error
    if not hasattr(module, "state_dict"):
        fault = f"{role}={factory!r:.60} makes a {type(module).__name__} and not a network"
        raise InputError(f"{fault}; {remedy}")


def check_learns(classifier: Any, records: NDArray[Any]) -> None:
    """Refuse a scikit-learn classifier that cannot be fitted to some of these public records.

    Their labels are made up: the private ones are not looked at.
    """
    if hasattr(classifier, "fit"):
        sample = records[:TRIED]
        labels = np.arange(len(sample)) % 2
        IndexClassifier(classifier, sample, labels, [0])


def has_release(kind: Any) -> bool:
    """Tell whether a release can hold such models: networks by name, and logistic regressions."""
    from sklearn.linear_model import LogisticRegression

    return isinstance(kind, str | LogisticRegression)


def check_labels(y: NDArray[Any], records: int, n_classes: int) -> None:
    """Refuse labels that are not one class index for each record."""
    one_integer_each = y.shape == (records,) and y.dtype.kind in "iu"
    if not one_integer_each or not np.all((y >= 0) & (y < n_classes)):
        raise InputError(
            f"labels must be one class index from 0 to {n_classes - 1} for each of {records}"
            " records"
        )


def alike(X: Any, others: Any) -> NDArray[Any]:
    """Return other records as an array, if they are of the shape and kind of X."""
    array: NDArray[Any] = np.asarray(others)
    same_shape = array.shape[1:] == X.shape[1:]
    both_bytes_or_neither = (array.dtype == np.uint8) == (X.dtype == np.uint8)
    if not same_shape or not both_bytes_or_neither:
        fault = f"records of shape {array.shape} and type {array.dtype}"
        raise InputError(
            f"{fault} do not fit those of shape {X.shape} and type {X.dtype}; encode both the"
            " same way"
        )
    return array


def as_flat(records: Any, name: str = "X") -> Any:
    """Return pictures as rows, and other records unchanged."""
    refuse_sparse(records, name)
    records = of_tensor(records)
    if not hasattr(records, "__len__"):
        records = np.atleast_1d(np.asarray(records))

    if not _are_pictures(records):
        return records
    return np.asarray(records).reshape(len(records), -1)


def shape_of(records: Any, declared: Any) -> Any:
    """Return the shape of one record: that of pictures, else `declared`."""
    return records.shape[1:] if _are_pictures(records) else declared


def _are_pictures(records: Any) -> bool:
    """Tell whether records have more axes than rows have."""
    return len(getattr(records, "shape", ())) > 2


def finite_rows(records: Any, name: str, width: int) -> Any:
    """Return records as rows of this width, of finite numbers.

    Tensors and data frames become arrays.
    """
    records = of_tensor(records)
    has_numpy_dtype = isinstance(getattr(records, "dtype", None), np.dtype)
    is_data_frame = hasattr(records, "shape") and not has_numpy_dtype and not issparse(records)
    if is_data_frame:
        records = numeric_array(records, name)

    rows = checked_rows(as_flat(records, name), name)
    if rows.shape[1] != width:
        raise InputError(
            f"{name} has {rows.shape[1]} columns and X {width}; encode both the same way"
        )
    if np.dtype(rows.dtype).kind not in "fiub":
        raise InputError(f"{name} has dtype {rows.dtype}; pass numbers")

    # by blocks, since rows may be a file on disk
    for start in range(0, len(rows), BLOCK_ROWS):
        if not np.isfinite(np.asarray(rows[start : start + BLOCK_ROWS])).all():
            raise InputError(
                f"{name} has a value that is not finite among rows {start} and on; clean it up"
            )
    return rows


def record_shape(shape: Any, width: int) -> tuple[int, ...]:
    """Return the shape of one record of so many values, by default (width,)."""
    if shape is None:
        return (width,)
    if not isinstance(shape, tuple | list):
        raise InputError(
            f"shape={shape!r:.60} must name the sides of a record, such as (1, 28, 28); correct it"
        )

    sides = tuple(whole("a side of shape", side, 1, 2**31) for side in shape)
    if math.prod(sides) != width:
        raise InputError(
            f"shape={sides} has {math.prod(sides)} values and a record {width}; correct it"
        )
    return sides
