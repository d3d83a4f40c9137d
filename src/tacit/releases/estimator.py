"""The interface of scikit-learn's fitted classifiers for what predicts and is never fitted.

scikit-learn is imported where it asks, not before: predicting does not need it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import FrozenInstanceError
from numbers import Number
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

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

    @abstractmethod
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Class of each row, of shape (n,)."""

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
        pipeline = (
            "or wrap the release in sklearn.frozen.FrozenEstimator to fit other steps of a pipeline"
        )
        raise ReleaseError(
            f"a release is fitted and cannot be fitted or cross-validated; {remedy}, {pipeline}"
        )

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Share of the rows that are classified as labelled.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows that were not trained on.
        y : array-like of shape (n,)
            Their labels.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows.

        Raises
        ------
        InputError
            If the labels are of another type than the classes (text or numbers), or not one for
            each row.
        """
        labels = np.asarray(y)
        predictions = self.predict(X)

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

        weights = None
        if sample_weight is not None:
            weights = np.asarray(sample_weight, dtype=np.float64)
        return float(np.average(predictions == labels, weights=weights))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return no parameters: there are none."""
        return {}

    def set_params(self, **params: object) -> Self:
        """Return this release; it has no parameters to set.

        Raises
        ------
        InputError
            If any is given.
        """
        if params:
            raise InputError(
                f"a release has no parameter {next(iter(params))!r}; fit a learner with other"
                " parameters"
            )
        return self

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse to change what is set and to replace methods; scikit-learn notes in private
        attributes who fits it.
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
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=False),
            transformer_tags=None,
            classifier_tags=ClassifierTags(),
            regressor_tags=None,
        )


def _kinds(labels: NDArray[Any]) -> set[str]:
    """Name the kinds of labels: text, numbers (true and false among them), or else their types by
    name.
    """
    types: set[type] = {labels.dtype.type}
    if labels.dtype.kind == "O":
        types = set(map(type, labels.ravel()))
    return {_kind(label_type) for label_type in types}


def _kind(label_type: type) -> str:
    """Name the kind of labels of one type."""
    if issubclass(label_type, str):
        return "text"
    if issubclass(label_type, Number | np.bool_):
        return "numbers"
    return label_type.__name__
