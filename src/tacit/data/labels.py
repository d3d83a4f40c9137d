"""Labels and the list of classes they belong to.

A class value is a whole number or a string. Labels are stored as indexes into the class list. The
list is a public fact if it was declared, and a fact about private records if it was derived from
them.

Labels and classes are compared as texts in Unicode NFC: 1 is the class "1", and neither "01" nor
"1.0". Whole numbers are positions in the class list only where their source says so (a card, a
`ClassLabel`, the owner's `labels="index"`).
"""

import re
from collections import Counter
from collections.abc import Iterable
from datetime import date, time, timedelta
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.compute.texts import BLOCK, code_points, composed, composed_texts, nfc
from tacit.errors import InputError, RowError, quoted

ClassValue = int | str
LabelKind = Literal["value", "index"]
"""Meaning of whole numbers as labels: class values, or positions in the class list from 0."""
MOST_CLASSES = 1_000_000
MOST_LETTERS = 500

DATES = (
    "labels are dates or times, which are no classes; name another column of labels, or make texts"
    " of a few declared periods of them, such as 2024 and 2025"
)

# several labels of a record
SETS = (list, tuple, set, frozenset, np.ndarray)

# what people write between several labels of a record
SEPARATORS = ("|", ";", ",", "/")

# a whole number in the one spelling that Python gives it, so that equal numbers are equal texts
WHOLE_NUMBER = re.compile(r"0|-?[1-9]\d{0,17}", re.ASCII)


def clean_labels(y: Any, rows: int, classes: list[ClassValue] | None = None) -> NDArray[Any]:
    """Return labels as a 1-D array of int64 or strings.

    Truth values are 0 and 1, or the texts False and True beside `classes` that are texts. Missing,
    mixed or fractional labels are refused by row.
    """
    labels = _one_dimensional(y, rows)
    # kinds of numpy: b truth values, i and u integers, f floats, U and T text, S bytes, O objects
    if labels.dtype.kind == "T":
        # texts of any length (`StringDType`), of which some may be missing
        labels = labels.astype(object)
    if labels.dtype.kind == "O":
        labels = _from_objects(labels)

    if labels.dtype.kind == "S":
        try:
            labels = np.char.decode(labels, "utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                "labels are bytes that are not UTF-8; give texts or whole numbers"
            ) from error
    if labels.dtype.kind == "U":
        invalid = _invalid_texts(labels)
        _refuse_first(invalid, "has a label that is not valid text", "drop or correct it")
        return composed(labels)
    if labels.dtype.kind == "b" and classes is not None and isinstance(classes[0], str):
        # 0 and 1 could be taken for positions
        return truth_texts(labels)
    if labels.dtype.kind in "mM":
        raise InputError(DATES)
    if labels.dtype.kind not in "biuf":
        raise InputError(f"labels have dtype {labels.dtype}; give whole numbers or strings")

    if labels.dtype.kind == "f":
        missing = ~np.isfinite(labels)
        _refuse_first(missing, "has no finite label (missing value)", "drop that row or label it")
        fractional = labels != np.rint(labels)
        _refuse_first(fractional, "has a fractional label", "give whole numbers or strings")
    if labels.dtype.kind in "fu":
        too_large = labels > np.iinfo(np.int64).max
        _refuse_first(too_large, "has a label beyond 64 bits", "give smaller numbers, or strings")
    return labels.astype(np.int64)


def class_list(classes: int | Iterable[Any]) -> list[ClassValue]:
    """Return the class values of a declaration: a count N means 0..N-1, else whole numbers or
    strings, each once.
    """
    values = _declared_values(classes)
    if len(values) > MOST_CLASSES:
        raise InputError(
            f"classes has {len(values)} values, more than {MOST_CLASSES}; declare the classes"
            " there are"
        )
    if not values:
        raise InputError("classes is empty; declare at least one class, for example classes=10")

    class_values: list[ClassValue]
    if all(isinstance(value, str) for value in values):
        class_values = [str(value) for value in values]
    elif all(isinstance(value, int | np.integer) for value in values):
        class_values = [int(value) for value in values]
    else:
        raise InputError(
            f"classes={values!r:.80} mixes types; give only strings, or only whole numbers"
        )
    for value in class_values:
        _check_class(value)
    names = [nfc(value) for value in class_values]
    if len(set(names)) < len(names):
        repeated, _ = Counter(names).most_common(1)[0]
        raise InputError(
            f"class {quoted(repeated)} is listed twice in classes; name each class once"
        )
    return class_values


def listed_classes(classes: int | Iterable[Any]) -> NDArray[Any]:
    """Return the class values of a declaration as an array, (C,), texts in Unicode NFC."""
    values: NDArray[Any] = composed_texts(np.asarray(class_list(classes)))
    return values


def _declared_values(classes: int | Iterable[Any]) -> list[Any]:
    """Return the values of a declaration, not yet checked."""
    if isinstance(classes, set | frozenset):
        raise InputError("classes is a set, whose order is not defined; pass a list")
    if isinstance(classes, str | bytes) or not isinstance(classes, int | np.integer | Iterable):
        raise InputError(
            f"classes={classes!r:.80} is not a class list; give a list of names, or a count such"
            " as 10"
        )
    if not isinstance(classes, int | np.integer):
        return list(classes)
    if classes > MOST_CLASSES:
        raise InputError(
            f"classes={classes!r:.80} is more than {MOST_CLASSES}; declare the classes there are"
        )
    return list(range(classes))


def _check_class(value: ClassValue) -> None:
    if isinstance(value, str):
        if not value.isprintable() or not 0 < len(value) <= MOST_LETTERS:
            raise InputError(
                f"class {value!r:.80} must be 1 to {MOST_LETTERS} printable letters; rename it"
            )
    elif abs(value) >= 2**63:
        raise InputError(f"class {value!r:.80} exceeds 64 bits; give smaller numbers, or strings")


def class_indices(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the position of each label in the class list; an error names the first row whose label
    is not in it.
    """
    order = np.argsort(classes, kind="stable")
    try:
        places = np.searchsorted(classes[order], labels).clip(max=len(classes) - 1)
        indices: NDArray[np.int64] = order[places].astype(np.int64)
        outside = classes[indices] != labels
    except TypeError:
        # texts and numbers cannot be compared, so no label is a class
        outside = np.ones(len(labels), dtype=bool)

    if np.any(outside):
        row = int(np.argmax(outside))
        label = quoted(labels[[row]].tolist()[0])
        fault = f"label {label}, which is not among the {len(classes)} declared classes"
        remedy = "add it to classes, or drop the row"
        if labels.dtype.kind in "iu" and classes.dtype.kind == "U":
            # such as positions in the class list, or numbers whose texts are classes
            remedy = (
                "pass the names (store.labels, or np.asarray(classes)[y] if y are positions), or"
                " list the numbers themselves as classes; VotingClassifier and the like number the"
                f" classes, so give their learners classes={len(classes)}"
            )
        raise RowError("", row, f" has {fault}; {remedy}")
    return indices


def truth_texts(values: NDArray[np.bool_]) -> NDArray[np.str_]:
    """Return truth values as the texts False and True."""
    return np.where(values, "True", "False")


def label_kind(labels: str) -> LabelKind:
    """Return the meaning of whole numbers as labels, checked."""
    if labels == "value":
        return "value"
    if labels == "index":
        return "index"
    raise InputError(f"labels={labels!r:.80} is not one of value, index; pass one of them")


def kind_beside(classes: list[Any] | None) -> LabelKind:
    """Return the meaning of whole numbers in a file that lists its classes: positions in a list of
    names, else values.
    """
    if classes is None or any(WHOLE_NUMBER.fullmatch(str(value)) for value in classes):
        return "value"
    return "index"


def encode_labels(
    labels: NDArray[Any], classes: list[ClassValue], kind: LabelKind = "value"
) -> NDArray[np.int64]:
    """Return indexes of clean `labels` in `classes`.

    Labels are compared with classes as texts. Of the kind "index", whole numbers are indexes
    already, unless the classes are whole numbers, which they are compared with.
    """
    values = np.asarray(classes)
    labels_are_numbers = labels.dtype.kind == "i"
    if kind == "index" and labels_are_numbers and values.dtype.kind == "U":
        _refuse_unlisted((labels < 0) | (labels >= len(classes)), labels, classes)
        return labels

    compared = labels
    if values.dtype.kind == "U":
        values = composed(values)
    if labels.dtype.kind != values.dtype.kind:
        compared = labels.astype(np.str_)
        values = values.astype(np.str_)
    order = np.argsort(values)
    places = np.searchsorted(values, compared, sorter=order).clip(max=len(values) - 1)
    indexes: NDArray[np.int64] = order[places].astype(np.int64)
    unlisted = values[indexes] != compared
    if labels_are_numbers:
        _refuse_numbers_beside_names(unlisted, labels, classes)
    _refuse_unlisted(unlisted, labels, classes)
    return indexes


def values_of(
    labels: NDArray[Any], classes: int | Iterable[Any], kind: LabelKind = "value"
) -> NDArray[Any]:
    """Return clean `labels` as values of a declared class list, by the rule of `encode_labels`."""
    listed = class_list(classes)
    return decode_labels(encode_labels(labels, listed, kind), listed)


def decode_labels(indexes: NDArray[Any], classes: list[ClassValue] | None) -> NDArray[Any]:
    """Return the class values that `indexes` stand for; without a class list they are the values
    themselves.
    """
    if classes is None:
        return indexes
    labels: NDArray[Any] = np.asarray(classes)[indexes]
    return labels


def _one_dimensional(y: Any, rows: int) -> NDArray[Any]:
    """Return labels as an array of shape (rows,); those of a list as objects."""
    try:
        if hasattr(y, "__array__"):
            labels = np.asarray(y)
        else:
            # without dtype=object numpy would turn a list of strings and NaN into strings
            labels = np.array(list(y), dtype=object)
    except (TypeError, ValueError) as error:
        raise InputError(
            "labels cannot be read as one array; give one whole number or string per row"
        ) from error
    if labels.ndim != 1 or len(labels) != rows:
        raise InputError(
            f"labels have shape {labels.shape} beside {rows} rows; give exactly one label per row"
        )
    return labels


def _from_objects(labels: NDArray[Any]) -> NDArray[Any]:
    """Return objects as texts or as numbers, whichever the first is; all must be of one type."""
    values = labels.tolist()
    missing = np.array([is_missing(value) for value in values])
    _refuse_first(missing, "has no label (missing value)", "drop or label it")

    are_sets = np.array([isinstance(value, SETS) for value in values])
    _refuse_first(are_sets, "has a list of labels", "give one label per row here")
    if isinstance(values[0], date | time | timedelta):
        raise InputError(DATES)
    kind = str if isinstance(values[0], str) else Real
    is_other_type = np.array([not isinstance(value, kind) for value in values])
    fault = "has a label of another type than the rest"
    _refuse_first(is_other_type, fault, "give only strings, or only whole numbers")
    return np.array(values)


def is_missing(value: Any) -> bool:
    """Tell whether a label is None, NaN, or the missing value of pandas."""
    is_nan = isinstance(value, Real) and bool(value != value)

    # by its name: comparing pandas.NA with anything gives no truth value
    is_pandas_na = type(value).__name__ == "NAType"
    return value is None or is_nan or is_pandas_na


def _invalid_texts(labels: NDArray[Any]) -> NDArray[Any]:
    """Mark texts that cannot be written: they hold half of a surrogate pair, or what is no code
    point.
    """
    invalid = np.zeros(len(labels), bool)
    for start in range(0, len(labels), BLOCK):
        codes = code_points(labels[start : start + BLOCK])
        is_half_pair = (codes >= 0xD800) & (codes <= 0xDFFF)
        is_no_code_point = codes > 0x10FFFF
        invalid[start : start + BLOCK] = (is_half_pair | is_no_code_point).any(axis=1)
    return invalid


def _refuse_first(bad: NDArray[Any], fault: str, remedy: str) -> None:
    """Refuse the labels if one is bad; the error names the row of the first."""
    if bad.any():
        raise RowError("", int(bad.argmax()), f" {fault}; {remedy}")


def _refuse_numbers_beside_names(
    bad: NDArray[Any], labels: NDArray[Any], classes: list[ClassValue]
) -> None:
    """Refuse whole numbers, one of which is not in the class list, beside classes with names."""
    if not bad.any() or all(WHOLE_NUMBER.fullmatch(str(value)) for value in classes):
        return
    row = int(bad.argmax())
    raise RowError(
        "",
        row,
        f" has the whole number {labels[row]} as label beside class names"
        f' ({_examples(classes)}); pass labels="index" (--labels index) if such labels are'
        " positions in that list from 0, else list the numbers themselves as classes",
    )


def _examples(classes: list[ClassValue]) -> str:
    """Return the first five classes as text."""
    examples = ", ".join(f"{value!s:.40}" for value in classes[:5])
    if len(classes) > 5:
        examples += ", ..."
    return examples


def _refuse_unlisted(bad: NDArray[Any], labels: NDArray[Any], classes: list[ClassValue]) -> None:
    """Refuse the labels if one is not in the class list; the error names the first."""
    if not bad.any():
        return
    row = int(bad.argmax())
    label = labels[row].item()
    remedy = (
        "correct that row, or complete the list from public knowledge (a code book, a form), not"
        " from the labels"
    )
    separator = _separator_of(label, classes)
    if separator is not None:
        remedy = (
            f'name what separates several labels with --label-separator "{separator}", or'
            " pass a list of labels for each record"
        )
    raise RowError(
        "",
        row,
        f" has label {quoted(label)}, not one of the {len(classes)} classes"
        f" ({_examples(classes)}); {remedy}",
    )


def _separator_of(label: Any, classes: list[ClassValue]) -> str | None:
    """Return what separates several classes in a text; None for another label."""
    names = {str(value) for value in classes}
    for separator in SEPARATORS:
        labels = [part.strip() for part in str(label).split(separator)]
        if len(labels) > 1 and names.issuperset(labels):
            return separator
    return None
