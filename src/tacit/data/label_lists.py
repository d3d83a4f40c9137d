"""Labels of records one after another, as files hold several labels a record."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.labels import SETS, is_missing
from tacit.errors import InputError, RowError


@dataclass(frozen=True, eq=False)
class LabelLists:
    """Labels of n records one after another, as files hold them.

    Attributes
    ----------
    values : array of shape (labels,)
        Not yet checked.
    sizes : int64 array of shape (n,)
        Number of labels of each record.
    """

    values: Any
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, sets: Iterable[Any]) -> "LabelLists":
        """Return the labels of lists, tuples, sets or arrays; a record without one is refused."""
        values: list[Any] = []
        sizes = []
        for row, labels in enumerate(sets):
            if not is_set(labels):
                fault = "has a label of another type than the rest"
                remedy = "give a list of labels for each record, an empty one for none"
                if is_missing(labels):
                    fault = "has no labels (missing value)"
                    remedy = "drop that row, or give an empty list if it has none"
                raise RowError("", row, f" {fault}; {remedy}")
            entries = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
            values += entries
            sizes.append(len(entries))
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return cls(array, np.array(sizes, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def records(self) -> NDArray[np.int64]:
        """The record of each value, (labels,)."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)


def separated(texts: Iterable[str | None], separator: str) -> LabelLists:
    """Return the labels of texts such as "joy|love", without white space at their ends.

    An empty text has no label, and a missing one is refused.
    """
    values: list[str] = []
    sizes = []
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            fault = "has no text of labels"
            remedy = "drop that row, or give an empty text if it has none"
            raise RowError("", row, f" {fault}; {remedy}")
        labels = []
        if text.strip():
            labels = [label.strip() for label in text.split(separator)]
        if "" in labels:
            raise RowError(
                "", row, f" has an empty label beside the separator {separator!r}; correct it"
            )
        values += labels
        sizes.append(len(labels))
    return LabelLists(np.array(values, dtype=np.str_), np.array(sizes, dtype=np.int64))


def checked_separator(separator: str) -> str:
    """Return what separates the labels of a text, which cannot be empty or white space."""
    if not separator.strip():
        raise InputError(
            f"label_separator={separator!r} is empty or white space; give the characters between"
            ' labels, such as "|"'
        )
    return separator


def is_set(labels: Any) -> bool:
    """Tell whether an entry is a list, tuple, set or array of labels, and no label."""
    return isinstance(labels, SETS)
