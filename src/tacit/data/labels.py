"""Labels and the list of classes they belong to.

A class value is a whole number or a string. Labels are stored as indexes into the class list. The
list is a public fact if it was declared, and a fact about private records if it was derived from
them.
"""

from collections import Counter
from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError, quoted

ClassValue = int | str
MOST_CLASSES = 1_000_000
MOST_LETTERS = 500
BLOCK = 1 << 16  # labels that are checked together


def clean_labels(y: Any, rows: int) -> NDArray[Any]:
    """`y` as a 1-D array of int64 or strings; missing, mixed or fractional labels are refused by
    row.
    """
    try:  # numpy would turn a list of strings and NaN into strings
        labels = np.asarray(y) if hasattr(y, "__array__") else np.array(list(y), dtype=object)
    except (TypeError, ValueError) as error:
        raise InputError(
            "labels cannot be read as one array; give one whole number or string per row"
        ) from error
    if labels.ndim != 1 or len(labels) != rows:
        raise InputError(
            f"labels have shape {labels.shape} beside {rows} rows; give exactly one label per row"
        )
    if labels.dtype.kind == "O":
        labels = _from_objects(labels)
    if labels.dtype.kind == "f":
        _refuse_first(
            ~np.isfinite(labels), "has no finite label (missing value)", "drop that row or label it"
        )
        _refuse_first(
            labels != np.rint(labels), "has a fractional label", "give whole numbers or strings"
        )
    if labels.dtype.kind in "fu":
        _refuse_first(
            labels > np.iinfo(np.int64).max,
            "has a label beyond 64 bits",
            "give smaller numbers, or strings",
        )
    if labels.dtype.kind == "S":
        try:
            labels = np.char.decode(labels, "utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                "labels are bytes that are not UTF-8; give texts or whole numbers"
            ) from error
    if labels.dtype.kind == "U":
        _refuse_first(
            _half_pairs(labels), "has a label that is not valid text", "drop or correct it"
        )
        return labels
    if labels.dtype.kind not in "biuf":
        raise InputError(f"labels have dtype {labels.dtype}; give whole numbers or strings")
    return labels.astype(np.int64)


def class_list(classes: int | Iterable[Any]) -> list[ClassValue]:
    """The class values of a declaration: a count N means 0..N-1, else whole numbers or strings,
    each once.
    """
    if isinstance(classes, set | frozenset):
        raise InputError("classes is a set, whose order is not defined; pass a list")
    if isinstance(classes, str | bytes) or not isinstance(classes, int | np.integer | Iterable):
        raise InputError(
            f"classes={classes!r:.80} is not a class list; give a list of names, or a count such"
            " as 10"
        )
    if isinstance(classes, int | np.integer):
        if classes > MOST_CLASSES:
            raise InputError(
                f"classes={classes!r:.80} is more than {MOST_CLASSES}; declare the classes"
                " there are"
            )
        classes = range(classes)
    values = list(classes)
    if len(values) > MOST_CLASSES:
        raise InputError(
            f"classes has {len(values)} values, more than {MOST_CLASSES}; declare the classes"
            " there are"
        )
    if not values:
        raise InputError("classes is empty; declare at least one class, for example classes=10")
    if all(isinstance(value, str) for value in values):
        listed: list[ClassValue] = [str(value) for value in values]
    elif all(isinstance(value, int | np.integer) for value in values):
        listed = [int(value) for value in values]
    else:
        raise InputError(
            f"classes={values!r:.80} mixes types; give only strings, or only whole numbers"
        )
    for value in listed:
        if isinstance(value, str) and not (value.isprintable() and 0 < len(value) <= MOST_LETTERS):
            raise InputError(
                f"class {value!r:.80} must be 1 to {MOST_LETTERS} printable letters; rename it"
            )
        if isinstance(value, int) and abs(value) >= 2**63:
            raise InputError(
                f"class {value!r:.80} exceeds 64 bits; give smaller numbers, or strings"
            )
    if len(set(listed)) < len(listed):
        twice = Counter(listed).most_common(1)[0][0]
        raise InputError(f"class {quoted(twice)} is listed twice in classes; name each class once")
    return listed


def class_indices(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """Position of each label in the class list; an error names the first row whose label is not in
    it.
    """
    order = np.argsort(classes, kind="stable")
    try:
        place = np.searchsorted(classes[order], labels).clip(max=len(classes) - 1)
        indices: NDArray[np.int64] = order[place].astype(np.int64)
        outside = classes[indices] != labels
    except TypeError:
        outside = np.ones(len(labels), dtype=bool)
    if np.any(outside):
        row = int(np.argmax(outside))
        by_position = labels.dtype.kind in "iu" and classes.dtype.kind == "U"
        remedy = (
            "pass the names (store.labels)" if by_position else "add it to classes, or drop the row"
        )
        label = quoted(labels[[row]].tolist()[0])
        fault = f"label {label}, which is not among the {len(classes)} declared classes"
        raise InputError(f"row {row} has {fault}; {remedy}")
    return indices


def encode_labels(labels: NDArray[Any], classes: list[ClassValue]) -> NDArray[np.int64]:
    """Indexes of clean `labels` in `classes`; whole numbers beside class names are taken as indexes
    already.
    """
    named = isinstance(classes[0], str)
    if labels.dtype.kind == "i" and named:
        _refuse_unlisted((labels < 0) | (labels >= len(classes)), labels, classes)
        return labels
    if (labels.dtype.kind == "U") != named:
        _refuse_unlisted(np.ones(len(labels), bool), labels, classes)
    values = np.asarray(classes)
    order = np.argsort(values)
    place = np.searchsorted(values, labels, sorter=order).clip(max=len(values) - 1)
    indexes: NDArray[np.int64] = order[place].astype(np.int64)
    _refuse_unlisted(values[indexes] != labels, labels, classes)
    return indexes


def decode_labels(indexes: NDArray[Any], classes: list[ClassValue] | None) -> NDArray[Any]:
    """The class values that `indexes` stand for; without a class list they are the values
    themselves.
    """
    return indexes if classes is None else np.asarray(classes)[indexes]


def _from_objects(labels: NDArray[Any]) -> NDArray[Any]:
    values = labels.tolist()
    absent = np.array([_is_missing(value) for value in values])
    _refuse_first(absent, "has no label (missing value)", "drop or label it")
    kind = str if isinstance(values[0], str) else Real
    other = np.array([not isinstance(value, kind) for value in values])
    _refuse_first(
        other,
        "has a label of another type than the rest",
        "give only strings, or only whole numbers",
    )
    return np.array(values)


def _half_pairs(labels: NDArray[Any]) -> NDArray[Any]:
    """Which texts hold half of a surrogate pair, or what is no code point, and so cannot be
    written.
    """
    bad = np.zeros(len(labels), bool)
    for start in range(0, len(labels), BLOCK):
        block = np.ascontiguousarray(labels[start : start + BLOCK])
        codes = block.view(np.dtype(np.uint32).newbyteorder(labels.dtype.byteorder)).reshape(
            len(block), -1
        )
        bad[start : start + BLOCK] = (
            ((codes >= 0xD800) & (codes <= 0xDFFF)) | (codes > 0x10FFFF)
        ).any(axis=1)
    return bad


def _is_missing(value: Any) -> bool:
    nan = isinstance(value, Real) and bool(value != value)
    return value is None or nan or type(value).__name__ == "NAType"  # pandas.NA has no truth value


def _refuse_first(bad: NDArray[Any], fault: str, remedy: str) -> None:
    if bad.any():
        raise InputError(f"row {int(bad.argmax())} {fault}; {remedy}")


def _refuse_unlisted(bad: NDArray[Any], labels: NDArray[Any], classes: list[ClassValue]) -> None:
    if bad.any():
        row = int(bad.argmax())
        shown = ", ".join(f"{value!s:.40}" for value in classes[:5]) + (
            ", ..." if len(classes) > 5 else ""
        )
        raise InputError(
            f"row {row} has label {quoted(labels[row].item())}, not one of the {len(classes)}"
            f" classes ({shown}); correct that row, or complete the list from public knowledge (a"
            " code book, a form), not from the labels"
        )
