"""The interface of a fitted classifier of scikit-learn, for a class that predicts but cannot be
fitted.

scikit-learn is imported only in the method that scikit-learn calls, since predicting does not need
it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import FrozenInstanceError
from numbers import Number
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.compute.texts import composed_texts
from tacit.errors import InputError, ReleaseError, quoted


class FittedClassifier(ABC):
    """A fitted classifier without parameters and without training code.

    It can be the last step of a fitted pipeline, and `clone` returns it as it is. `fit`, and so
    cross-validation, is refused.
    """

    @property
    @abstractmethod
    def classes(self) -> NDArray[Any]:
        """The class list, of shape (C,)."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of columns of the rows to predict."""

    @property
    @abstractmethod
    def several(self) -> bool:
        """Whether a row may have several labels, none included."""

    @abstractmethod
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Class of each row, of shape (n,); of several labels a row, 0 and 1 of shape (n, K)."""

    @property
    def classes_(self) -> NDArray[Any]:
        """The class list, of shape (C,), under scikit-learn's name."""
        return self.classes

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the rows to predict, under scikit-learn's name."""
        return self.width

    def fit(self, X: object, y: object = None, **fit_params: object) -> NoReturn:
        """Refuse: a release is fitted and holds no training code.

        Raises
        ------
        ReleaseError
            Always.
        """
        remedy = "fit a learner, such as tacit.AutoPrototypes, on data that a budget covers"
        remedy_in_pipeline = (
            "or wrap the release in sklearn.frozen.FrozenEstimator to fit other steps of a pipeline"
        )
        raise ReleaseError(
            "a release is fitted and cannot be fitted or cross-validated;"
            f" {remedy}, {remedy_in_pipeline}"
        )

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Share of the rows that are classified as labelled.

        Of a release of several labels a row (`several`), the share of the rows whose predicted set
        of labels is the true one, as scikit-learn has it.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows that were not trained on.
        y : array-like of shape (n,), or of shape (n, K) or a list of n lists of labels
            Their labels; the latter forms where a row may have several.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows.

        Raises
        ------
        InputError
            If the labels are of another type than the classes (text or numbers), or not one for
            each row.
        """
        weights = None
        if sample_weight is not None:
            weights = np.asarray(sample_weight, dtype=np.float64)
        if self.several:
            return float(np.average(self._matches(X, y), weights=weights))

        labels = composed_texts(np.asarray(y))
        predictions = composed_texts(self.predict(X))

        # A number never equals a text, so that 1 for "1" would count as wrong. The class list is of
        # one kind, as an array; labels may be objects of several kinds.
        label_kinds = _kinds(labels)
        class_kinds = _kinds(self.classes)
        if not label_kinds <= class_kinds:
            fault = (
                f"y holds {' and '.join(sorted(label_kinds))}, and the classes of the release are"
                f" {', '.join(class_kinds)}"
            )
            raise InputError(
                f"{fault}; give labels as in its class list, such as"
                f" {quoted(self.classes[0].item())}"
            )
        if labels.shape != predictions.shape:
            fault = f"y has shape {labels.shape} and must have shape {predictions.shape}"
            raise InputError(f"{fault}; give a label for each row")
        return float(np.average(predictions == labels, weights=weights))

    def _matches(self, X: ArrayLike, y: Any) -> NDArray[np.bool_]:
        """Tell for each row, (n,), whether its predicted set of labels is the true one."""
        # most releases predict without reading labels from data
        from tacit.data.label_sets import label_matrix

        truth = label_matrix(y, self.classes)
        predicted = self.predict(X)
        if truth.shape != predicted.shape:
            fault = f"y has {len(truth)} rows beside {len(predicted)} of X"
            raise InputError(f"{fault}; give the labels of each row")
        return np.asarray((truth == predicted).all(axis=1))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return no parameters: there are none, whether `deep` or not."""
        return {}

    def set_params(self, **params: object) -> Self:
        """Return this release; it has no parameters to set.

        So `release.set_params(**release.get_params())` is the release.

        Raises
        ------
        InputError
            If a parameter is given.
        """
        if params:
            raise InputError(
                f"a release has no parameter {next(iter(params))!r}; fit a learner with other"
                " parameters"
            )
        return self

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse to change an attribute and to replace a method.

        An attribute can be set once, which the constructor does. Private attributes stay free:
        callbacks of scikit-learn set some on each step of a pipeline.
        """
        is_set = name in vars(self)
        is_method = callable(getattr(type(self), name, None))
        if (is_set or is_method) and not name.startswith("_"):
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        """Refuse as `__setattr__` does."""
        if not name.startswith("_"):
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super().__delattr__(name)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> Self:
        # nothing of a release changes, so a copy would serve nobody
        return self

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn asks of an estimator: that this is a classifier."""
        from sklearn.utils import ClassifierTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=False),  # only `fit` would need labels
            transformer_tags=None,
            classifier_tags=ClassifierTags(multi_label=self.several),
            regressor_tags=None,
        )


def _kinds(labels: NDArray[Any]) -> set[str]:
    """Name the kinds of labels: text, numbers (true and false among them), or else their types by
    name.
    """
    types: set[type] = {labels.dtype.type}
    # an array of objects has a type for each entry
    if labels.dtype.kind == "O":
        types = set(map(type, labels.ravel()))
    return {_kind(label_type) for label_type in types}


def _kind(label_type: type) -> str:
    """Name the kind of labels of one type."""
    if issubclass(label_type, str):
        return "text"
    # numpy registers its types of numbers as `Number`, except for bool
    if issubclass(label_type, Number | np.bool_):
        return "numbers"
    return label_type.__name__
