"""A source of pictures or texts: its records in a fixed order, their names, and their labels."""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.data.label_lists import LabelLists, separated
from tacit.data.label_sets import Indicators, holds_sets, indicators
from tacit.data.labels import (
    ClassValue,
    LabelKind,
    class_list,
    clean_labels,
    is_missing,
    kind_beside,
    values_of,
)
from tacit.data.persons import stored_ids
from tacit.data.places import ROWS, Places
from tacit.errors import InputError, RowError

Kind = Literal["picture", "text"]
Record = Path | bytes | NDArray[Any] | str | None
"""A picture as a file, as the bytes of one or as pixels; a text; None where there is nothing."""

Faults = dict[int, str]
"""Reasons why records are left out, by position in the source."""

NO_LABEL = "it has no label"
NO_PERSON = "it has no id of a person"

SPLITS = ("train", "test", "validation", "valid", "val", "dev", "training", "testing", "unlabeled")


@dataclass(frozen=True, eq=False)
class Source:
    """Records to encode.

    Parameters
    ----------
    kind : {"picture", "text"}
    names : sequence of str
        What each record is called: a file's path in the source, or "row 3".
    records : callable
        Called with a position, it yields the records from there on, in order.
    stamp : str
        Changes when the source does; made from names, sizes and times, so that nothing large is
        read.
    labels : array of shape (rows,) or None
        Class values; or a matrix of shape (rows, C) where a record may have several, whose columns
        are those of `classes`.
    classes : list or None
        Class values in order, where the source names them.
    classes_declared : bool
        Whether the source states its classes apart from its records, so that they are public.
    left_out : tuple of str
        Files that are no pictures, or have no label where others have one.
    folder : path or None
        The folder that is read, in which no output may lie.
    facts : dict
        Public facts that the store's card keeps.
    persons : array of shape (rows,) or None
        Whose record each is: texts or whole numbers, which are private.
    label_kind : {"value", "index"}
        "index" if the source states that whole numbers as labels are positions in a class list.
    faults : mapping of int to str
        Positions of records without a label or an id, which are to be left out, with the reason.
        They have the label and the id of another record in `labels` and `persons`.
    places : Places
        Places of the records, as messages about labels name them.
    hidden : int
        Which folder of each name is such an id, counted from 1, so that messages leave it out; 0
        for none.
    reopen : callable or None
        Opens the source again in another process, without the ids of a file; `open_source` sets it.
    """

    kind: Kind
    names: Sequence[str]
    records: Callable[[int], Iterator[Record]]
    stamp: str
    labels: NDArray[Any] | None = None
    classes: list[ClassValue] | None = None
    classes_declared: bool = False
    left_out: tuple[str, ...] = ()
    folder: Path | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    persons: NDArray[Any] | None = field(default=None, repr=False)
    hidden: int = 0
    label_kind: LabelKind = "value"
    faults: Mapping[int, str] = field(default_factory=dict, repr=False)
    places: Places = ROWS
    reopen: "Callable[[], Source] | None" = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def several(self) -> bool:
        """Tell whether a record may have any number of labels."""
        return self.labels is not None and self.labels.ndim == 2

    def shown(self, name: str) -> str:
        """The name of a record or of a file that is left out, as messages show it."""
        parts = name.split("/")
        # the last part is the file
        n_folders = len(parts) - 1
        if 0 < self.hidden <= n_folders:
            parts[self.hidden - 1] = "*"
        return "/".join(parts)


class Rows(Sequence[str]):
    """Names of records that have no other: row 0, row 1, ..."""

    def __init__(self, count: int) -> None:
        self.rows = count

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, place: Any) -> Any:
        return f"row {range(self.rows)[place]}"


def stamp(*facts: Any) -> str:
    """Return a short hash of facts about a source."""
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:32]


def file_stamp(path: Path) -> str:
    """Return a hash of a file's size and time."""
    return stamp(facts_of(path.stat()))


def facts_of(status: os.stat_result) -> tuple[int, ...]:
    """Return facts that change when a file does, or another takes its place."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def labels_of(
    values: Any,
    rows: int,
    where: Path | str,
    classes: list[ClassValue] | None = None,
    faults: Faults | None = None,
) -> NDArray[Any]:
    """Check the labels of a table's column or an array; return them, (rows,), or the matrix of
    several labels a record, (rows, C).

    Beside `classes` in the same file they become class values. Records without a label are added
    to `faults`; if that is None, they are refused.
    """
    with _errors_name(where):
        if holds_sets(values):
            return indicators(values, rows, classes).matrix
        values = _filled(values, NO_LABEL, faults)
        labels = clean_labels(values, rows, classes)
        if classes is not None:
            return values_of(labels, classes, kind_beside(classes))
        if labels.dtype.kind == "U":
            # refuse a label that no class can have before anything is encoded
            class_list(np.unique(labels).tolist())
        return labels


def persons_of(
    values: Any, rows: int, where: Path | str, faults: Faults | None = None
) -> NDArray[Any]:
    """Check the ids of persons of a table's column or an array; return them, (rows,).

    Records without an id are added to `faults`; if that is None, they are refused.
    """
    with _errors_name(where):
        return stored_ids(_filled(values, NO_PERSON, faults), rows)


def _filled(values: Any, reason: str, faults: Faults | None) -> Any:
    """Return values with the first that is there in place of missing ones, whose positions are
    added to `faults`.
    """
    if faults is None:
        return values
    entries = np.asarray(values, dtype=object)
    missing = np.array([_is_empty(entry) for entry in entries.ravel().tolist()], dtype=bool)
    if missing.all() or not missing.any():
        return values

    for place in np.flatnonzero(missing).tolist():
        faults.setdefault(place, reason)
    filled = entries.copy()
    filled[missing] = entries[int(missing.argmin())]
    return filled


def _is_empty(entry: Any) -> bool:
    """Tell whether a cell is missing, or a text of white space."""
    return is_missing(entry) or (isinstance(entry, str) and not entry.strip())


def class_values(
    column: Sequence[Any], rows: int, where: Path | str, faults: Faults | None = None
) -> NDArray[Any]:
    """Return the class values of a table's column.

    An empty cell is a missing label, truth values are the texts False and True, and whole numbers
    may be written as text. Records without a label are added to `faults`.
    """
    values = np.array([_class_value(value) for value in column], dtype=object)
    labels = labels_of(values, rows, where, faults=faults)
    if labels.dtype.kind == "U" and numbers(set(labels.tolist())) is not None:
        return labels.astype(np.int64)
    return labels


def table_labels(
    column: Sequence[Any],
    where: Path | str,
    faults: Faults | None = None,
    separator: str | None = None,
) -> tuple[NDArray[Any], list[ClassValue] | None]:
    """Return the labels of a table's column, as `class_values` does, or, of lists or with a
    separator, those of `label_sets` and the classes that they were read off.
    """
    if separator is None and not holds_sets(column):
        return class_values(column, len(column), where, faults), None
    sets = label_sets(column, where, faults, separator)
    return sets.matrix, sets.classes


def label_sets(
    column: Sequence[Any],
    where: Path | str,
    faults: Faults | None = None,
    separator: str | None = None,
    classes: list[ClassValue] | None = None,
    kind: LabelKind = "value",
) -> Indicators:
    """Return the several labels of each record of a table's column: lists, or texts that a
    separator divides. An empty list or text has no label.

    Records whose labels are missing are added to `faults`; if that is None, they are refused.
    """
    values = list(column)
    if faults is not None:
        for place, value in enumerate(values):
            if is_missing(value):
                faults.setdefault(place, NO_LABEL)
                values[place] = [] if separator is None else ""

    with _errors_name(where):
        if separator is None:
            lists = LabelLists.of(values)
        else:
            lists = separated(values, separator)
            if numbers(set(lists.values.tolist())) is not None:
                lists = replace(lists, values=lists.values.astype(np.int64))
        return indicators(lists, len(values), classes, kind)


def _class_value(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value)
    return None if value == "" else value


def numbers(names: Iterable[str]) -> list[int] | None:
    """Return names as whole numbers, if all of them are written as numbers are; None if not."""
    values = []
    for name in names:
        # 18 digits fit 64 bits
        is_decimal = len(name) < 19 and name.removeprefix("-").isdecimal()
        if not is_decimal or str(int(name)) != name:
            return None
        values.append(int(name))
    return values


def named_classes(names: Iterable[Any], where: Path | str) -> list[ClassValue]:
    """Check a class list that a source states, and return it."""
    with _errors_name(where):
        return class_list(names)


@contextmanager
def _errors_name(where: Path | str) -> Iterator[None]:
    """Put the place of an error before its message."""
    try:
        yield
    except RowError as error:
        raise RowError(f"{where}: {error.before}", error.row, error.after) from error
    except (InputError, UnicodeError) as error:
        raise InputError(f"{where}: {error}") from error


def by_index(indexes: Any, classes: Sequence[ClassValue], where: Path | str) -> NDArray[Any]:
    """Return the class values for positions in a class list."""
    indexes = np.asarray(indexes)
    outside = (indexes < 0) | (indexes >= len(classes))
    if outside.any():
        row = int(outside.argmax())
        raise RowError(
            f"{where} ",
            row,
            f" has label {indexes[row]} of {len(classes)} classes; get the file again",
        )
    values: NDArray[Any] = np.asarray(classes)[indexes]
    return values


def empty(where: Path | str, records: str) -> InputError:
    """Return the error for a source without records."""
    return InputError(
        f"{where} holds no {records}; check the path, or choose another split with --split"
    )
