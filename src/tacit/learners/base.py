"""What every learner promises.

A learner is a scikit-learn classifier that states its guarantee from its parameters alone
(`promise()`), before it sees data; after `fit`, `guarantee_` is that promise. A new learner fills in three
methods: `_event` (what a fit costs), `_fit` (the work) and `_release` (what leaves).
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from tacit.data.labels import class_list
from tacit.errors import InputError, InputTypeError, PrivacyLeakWarning
from tacit.mechanisms.noise import NoiseSource, noise_source
from tacit.mechanisms.rounding import check_width
from tacit.models.released import Released
from tacit.models.rows import check_finite
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event
from tacit.privacy.guarantee import THIS_RUN, Guarantee
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit

DEFAULT_BUDGET = "rho=0.5"
_FLOATS = [np.float64, np.float32, np.float16]  # kept as they are; anything else becomes float64 before it is checked


class PrivateClassifier(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn has no types
    """Base of all learners; see the module's docstring for what a new one fills in."""

    budget: Budget | str
    classes: Any
    noise: str
    random_state: Any
    unit: Unit | str
    ledger: Ledger | None

    own_unit: ClassVar[Unit] = Unit.ADD_REMOVE
    """The unit in which the work is priced."""

    estimates: ClassVar[str] = ""
    """What `prototypes_` are, for a picture: "means" of rows, "unit means" of unit rows, "directions" of these, or
    chosen "rows"; empty if they lie in no space of rows."""

    no_release: ClassVar[str] = "decides by a model that a release cannot hold; choose another"
    """Why `_release` returns None, and the remedy."""

    _dtypes: ClassVar[list[Any]] = _FLOATS

    @abstractmethod
    def _event(self) -> Event:
        """What one fit costs under the learner's own unit, from the parameters alone."""

    @abstractmethod
    def _fit(self, X: NDArray[Any], labels: NDArray[np.int64], noise: NoiseSource) -> None:
        """Learn from rows X of shape (n, d) and class indices of shape (n,)."""

    @abstractmethod
    def _release(self) -> Released | None:
        """What a release may hold; None if there is no form for it."""

    def _spent(self, promise: Guarantee) -> Guarantee:
        """What the fit cost: the promise, except where the work ends when a budget is reached."""
        return promise

    def _unprotected(self) -> tuple[str, ...]:
        """Quantities about the private data that the promise does not cover, beyond the class list."""
        return ()

    def _check(self, width: int) -> None:
        """Check the parameters against the number of columns, before anything is charged."""

    def _check_data(self, X: NDArray[Any], labels: NDArray[np.int64]) -> None:
        """Check what only the data tell, before anything is charged."""

    def _charge(self, promise: Guarantee, ledger: Ledger) -> None:
        """Charge the promise, before any noise is drawn."""
        ledger.charge(promise, what=f"{type(self).__name__} fit")

    def _guarantee(self) -> Guarantee:
        """What one fit promises under the learner's own unit, from the parameters alone."""
        return Guarantee(self.own_unit, self._event(), self._unprotected())

    def promise(self) -> Guarantee:
        """State what `fit` will cost, from public facts alone.

        Returns
        -------
        Guarantee
            Equal to `guarantee_` after `fit`.
        """
        if not isinstance(self.ledger, Ledger | None):
            raise InputError(f"ledger={self.ledger!r} must be a Ledger; pass tacit.Ledger.beside(store, identity)")
        if not isinstance(self.unit, str):
            raise InputError(f"unit={shortened(self.unit)} must be text; pass for example unit='add-remove'")
        leaks = ("class list (read off the private labels)",) if self.classes is None else ()
        scope = THIS_RUN if self.ledger is None else f"this run, charged to the ledger of {self.ledger.identity!r}"
        own = self._guarantee()
        return replace(own, unprotected=leaks + own.unprotected, scope=scope).to(self.unit)

    def check(self, n: int, width: int, **given: Any) -> None:
        """Check what `fit` checks before it reads a record: all but the records themselves.

        Parameters
        ----------
        n, width : int
            Number of records and of columns to come. The classes must be declared.
        **given
            Further arguments of `fit`.

        Raises
        ------
        InputError, BudgetError
            If a parameter or the public rows do not fit records of this shape.
        """
        for name, value in (("n", n), ("width", width)):
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise InputError(f"{name}={value!r} must be a whole number, 1 or more; correct it")
        self.promise()
        worker = copy(self)
        worker.__dict__.update(worker._arguments(np.broadcast_to(np.zeros(1), (n, width)), **given))
        worker.classes_ = np.asarray(class_list(self.classes))
        check_width(width)
        worker._check(width)

    def _arguments(self, X: Any) -> dict[str, Any]:
        """What `fit` notes of its arguments, as attributes for `_check` and `_fit`; of X the shape alone."""
        return {}

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from private records.

        Parameters
        ----------
        X : array-like of shape (n, d)
            One embedding per record; finite. A row of zeros contributes nothing.
        y : array-like of shape (n,)
            Labels, each in `classes`.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If a label is not in `classes` or a parameter does not fit the data.
        LedgerError
            If the promise would overdraw the ledger; nothing is learned then.
        """
        return self._learn(X, y)

    def _learn(self, X: Any, y: Any, **given: Any) -> Self:
        """What `fit` does, for every learner.

        The work is done on a copy, on which further arguments of `fit` are set as attributes. The learned state moves
        to this object when it is complete: no guarantee covers what an interrupted or failed fit has learned so far.
        """
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        worker = copy(self)
        worker.__dict__.update(given)
        worker._work(X, y)
        self.__dict__.update({name: value for name, value in vars(worker).items() if name.endswith("_")})
        return self

    def _work(self, X: Any, y: Any) -> None:
        """Check, charge and learn."""
        promise = self.promise()
        with _one_line():
            X, y = validate_data(self, X, y, dtype=self._dtypes, ensure_all_finite=False)
            y = np.array(y.tolist()) if y.dtype == object else y
            check_classification_targets(y)
        check_finite(X)
        self.classes_ = self._class_list(y)
        labels = class_indices(y, self.classes_)
        check_width(X.shape[1])
        self._check(X.shape[1])
        self._check_data(X, labels)
        noise = noise_source(self.noise, self.random_state)
        if self.ledger is not None:
            self._charge(promise, self.ledger)
        self._fit(X, labels, noise)
        self.noise_ = self.noise
        released = self._release()  # as fitted: later changes of parameters and attributes do not reach it
        self.released_ = released and replace(
            released, arrays={name: np.array(array) for name, array in released.arrays.items()}
        )
        self.guarantee_ = promise
        self.spent_ = self._spent(promise)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Nearness of each row to each class, of shape (n, C); (n,) for two classes, as scikit-learn has it."""
        scores = self._similarities(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Class of each row.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n,)
        """
        released = getattr(self, "released_", None)
        if released is None:
            nearest = np.argmax(self._similarities(X), axis=1)
        else:
            nearest = released.decision.nearest(released.arrays, self._rows(X))
        return np.asarray(self.classes_[nearest])

    def _similarities(self, X: Any) -> NDArray[np.float64]:
        rows, released = self._rows(X), self.released_
        if released is None:
            raise InputError(f"{type(self).__name__} with this student has no scores; call predict")
        return released.decision.similarities(released.arrays, rows)

    def _rows(self, X: Any) -> NDArray[Any]:
        """Rows to predict, checked."""
        check_is_fitted(self)
        with _one_line():
            rows: NDArray[Any] = validate_data(self, X, reset=False, dtype=self._dtypes, ensure_all_finite=False)
        check_finite(rows)
        return rows

    def _class_list(self, y: NDArray[Any]) -> NDArray[Any]:
        if self.classes is not None:
            return np.asarray(class_list(self.classes))
        warnings.warn(
            "the class list is read off the private labels, which shows which labels occur; pass classes=[...]",
            PrivacyLeakWarning,
            stacklevel=5,  # where `fit` was called
        )
        return np.unique(y)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "guarantee_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # at the default budget, on the few records of the checks
        tags.non_deterministic = self.noise == "secure"
        return tags


@contextmanager
def _one_line() -> Iterator[None]:
    """Turn what scikit-learn says of bad arrays into one line that shows no value of theirs."""
    try:
        yield
    except (TypeError, ValueError) as error:
        said = next(iter(str(error).splitlines()), "").rstrip(":. ")
        if "could not convert" in said or "invalid literal" in said:
            said = "X has an entry that is not a number"
        if "2D array" in said:
            said += ". Reshape your data"
        kind = InputTypeError if isinstance(error, TypeError) else InputError
        raise kind(f"{said}; pass X as finite numbers of shape (n, d) and y as n labels") from None


def shortened(value: Any) -> str:
    """A value on one line, for a message."""
    return f"{' '.join(repr(value).split()):.60}"


def class_indices(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """Position of each label in the class list; a label outside it is an error that names the first such row."""
    order = np.argsort(classes, kind="stable")
    try:
        found = np.searchsorted(classes[order], y)
        indices = order[np.minimum(found, len(classes) - 1)]
        outside = classes[indices] != y
    except TypeError:
        outside = np.ones(len(y), dtype=bool)
    if np.any(outside):
        row = int(np.argmax(outside))
        by_position = y.dtype.kind in "iu" and classes.dtype.kind == "U"
        remedy = "pass the names (store.labels)" if by_position else "add it to classes, or drop the row"
        raise InputError(
            f"row {row} has label {y[[row]].tolist()[0]!r}, which is not among the {len(classes)} declared classes; "
            f"{remedy}"
        )
    return indices.astype(np.int64)
