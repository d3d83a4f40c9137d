"""Private records with one label each, as the paid verbs take them: test records, and calibration
records of prediction sets.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.data.labels import class_indices, clean_labels
from tacit.errors import InputError
from tacit.learners.common.validation import plain_labels


class Classifier(Protocol):
    """A fitted classifier of one label a row: a release, or a learner after `fit`."""

    @property
    def classes_(self) -> NDArray[Any]:
        """The class list, of shape (C,)."""

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row, of shape (n,)."""


def label_positions(y: Any, classes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the position of each label in the class list, of shape (n,); an error names the first
    row whose label is not in it.
    """
    labels = np.asarray(plain_labels(y))
    # fractions are classes where the class list has them, and are refused as labels elsewhere
    if classes.dtype.kind != "f":
        labels = clean_labels(labels, len(labels), classes.tolist())
    return class_indices(labels, classes)


def predicts_several(classifier: Any) -> bool:
    """Tell whether a release, or a learner, predicts several labels a row."""
    if getattr(classifier, "several", False):
        return True
    return getattr(classifier, "most_labels", None) is not None


def check_label_of_each(n_rows: int, n_labels: int) -> None:
    """Refuse rows and labels of different numbers."""
    if n_rows != n_labels:
        raise InputError(f"X has {n_rows} rows and y has {n_labels} labels; pass one label a row")
