"""Rows of class names: public rows, one or several of each class, in the space of the private rows.

They are the rows of a store of their own, labelled by class, or a store of records carries them
beside its records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.imports import Data
from tacit.data.labels import ClassValue
from tacit.errors import InputError, quoted

ENCODER = "encoder"


@dataclass(frozen=True, eq=False)
class ClassNames:
    """The rows of each class, (k, d), in the order of the class list, and public facts about them.

    The facts are JSON: `name` and `hash` of the data that the rows are from, the card of the
    `encoder`, `templates`, and the public data `through` which other classes' names were placed.
    """

    rows: list[NDArray[Any]]
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Number of rows of all classes."""
        return sum(len(rows) for rows in self.rows)


def names_of(
    data: Data, classes: Sequence[ClassValue], where: str, *, declared: bool = True
) -> ClassNames:
    """Return the rows of data that hold class names, by the labels of these rows; without labels by
    their order.

    Labels that are whole numbers without class names count as positions in a class list of texts.

    Parameters
    ----------
    data : EmbeddingStore or Arrays
        Of rows of class names.
    classes : sequence
        The class list of the records.
    where : str
        What to call the data in messages.
    declared : bool
        Whether the class list is declared; rows without labels need that, since their order is that
        of the list.

    Raises
    ------
    InputError
        If a label is not in the class list, or a class has no row.
    """
    if data.labels is None:
        if not declared:
            fault = f"{where} has no labels, and rows without labels follow a declared class list"
            raise InputError(f"{fault}; label the rows, or declare the list (--classes FILE)")
        if len(data.x) != len(classes):
            fault = (
                f"{where} has {len(data.x)} rows without labels and the class list {len(classes)}"
                " classes"
            )
            raise InputError(
                f"{fault}; give one row for each class in their order, or label the rows"
            )

        # (classes, 1, width): each class has one row
        rows = np.asarray(data.x)[:, None]
        return ClassNames(list(rows), _facts(data))

    if data.several:
        raise InputError(
            f"{where} has several labels a record, and a row of class names stands for one class;"
            " give rows of one class each"
        )

    # whole numbers beside a class list of texts are positions in that list
    label_values: Sequence[ClassValue] = classes
    labels_are_numbers = data.classes is None and data.labels.dtype.kind != "U"
    if labels_are_numbers and isinstance(classes[0], str):
        label_values = range(len(classes))

    # sort the rows by class, and cut them where the next class begins
    values, indexes = np.unique(data.labels, return_inverse=True)
    sorted_rows = data.x[np.argsort(indexes, kind="stable")]
    ends = np.cumsum(np.bincount(indexes))
    rows_of_values = np.split(sorted_rows, ends[:-1])
    rows_by_value = dict(zip(values.tolist(), rows_of_values, strict=True))
    return ClassNames(_in_order(rows_by_value, label_values, where), _facts(data))


def carried_names(data: Data, classes: Sequence[ClassValue], where: str) -> ClassNames | None:
    """Return the rows of class names that a store carries, in the order of another class list; None
    if it carries none.
    """
    if data.names is None or data.classes is None:
        return None
    rows_by_value = dict(zip(data.classes, data.names, strict=True))
    return ClassNames(_in_order(rows_by_value, classes, where), data.names_card)


def check_through(names: ClassNames, private: Data, where: str) -> None:
    """Refuse names that were made through the private records as if these were public."""
    through = names.facts.get("through")
    if not isinstance(through, dict):
        return
    if through.get("hash") == private.content_hash or through.get("name") == private.identity:
        fault = f"{where} was made through the private data"
        raise InputError(
            f"{fault}; make it through public labelled rows (tacit encode --texts --through STORE)"
        )


def _in_order(
    rows_by_value: Mapping[ClassValue, NDArray[Any]], classes: Sequence[ClassValue], where: str
) -> list[NDArray[Any]]:
    """Return the rows of each class in the order of a class list, which must have the same
    classes.
    """
    class_set = set(classes)
    unknown = [value for value in rows_by_value if value not in class_set]
    if unknown:
        fault = (
            f"{where} has rows of class {quoted(unknown[0])}, which is not in the class list of the"
            " records"
        )
        remedy = "name the classes as that list does"
        matches = get_close_matches(str(unknown[0]), map(str, classes), 1)
        if matches:
            remedy += f" (is {quoted(matches[0])} meant?)"
        raise InputError(f"{fault}; {remedy}")

    absent = [value for value in classes if value not in rows_by_value]
    if absent:
        fault = f"{where} has no row of class {quoted(absent[0])}"
        raise InputError(f"{fault}; give one row or more for each class of the class list")
    return [rows_by_value[value] for value in classes]


def _facts(data: Data) -> dict[str, Any]:
    """Return public facts about data whose rows are those of class names."""
    facts = {"name": data.identity, "hash": data.content_hash}
    if ENCODER in data.card:
        facts[ENCODER] = data.card[ENCODER]

    # what `tacit.encoding.names` states of the rows; it takes precedence
    names_card = data.card.get("names")
    if isinstance(names_card, dict):
        facts.update(names_card)
    return facts
