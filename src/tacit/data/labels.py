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

# labels that are checked together
BLOCK = 1 << 16


def clean_labels(y: Any, rows: int) -> NDArray[Any]:
    """Return labels as a 1-D array of int64 or strings.

    Missing, mixed or fractional labels are refused by row.
    """
    labels = _one_dimensional(y, rows)
    if labels.dtype.kind == "O":
        labels = _from_objects(labels)

    # kinds of numpy: b truth values, i and u integers, f floats, U text, S bytes
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
        return labels
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
    if len(set(class_values)) < len(class_values):
        repeated, _ = Counter(class_values).most_common(1)[0]
        raise InputError(
            f"class {quoted(repeated)} is listed twice in classes; name each class once"
        )
    return class_values


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
            # such as positions in the class list
            remedy = "pass the names (store.labels)"
        raise InputError(f"row {row} has {fault}; {remedy}")
    return indices


def encode_labels(labels: NDArray[Any], classes: list[ClassValue]) -> NDArray[np.int64]:
    """Return indexes of clean `labels` in `classes`; whole numbers beside class names are taken as
    indexes already.
    """
    classes_are_texts = isinstance(classes[0], str)
    labels_are_texts = labels.dtype.kind == "U"
    if classes_are_texts and labels.dtype.kind == "i":
        _refuse_unlisted((labels < 0) | (labels >= len(classes)), labels, classes)
        return labels
    if labels_are_texts != classes_are_texts:
        _refuse_unlisted(np.ones(len(labels), bool), labels, classes)

    values = np.asarray(classes)
    order = np.argsort(values)
    places = np.searchsorted(values, labels, sorter=order).clip(max=len(values) - 1)
    indexes: NDArray[np.int64] = order[places].astype(np.int64)
    _refuse_unlisted(values[indexes] != labels, labels, classes)
    return indexes


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
    missing = np.array([_is_missing(value) for value in values])
    _refuse_first(missing, "has no label (missing value)", "drop or label it")

    kind = str if isinstance(values[0], str) else Real
    is_other_type = np.array([not isinstance(value, kind) for value in values])
    fault = "has a label of another type than the rest"
    _refuse_first(is_other_type, fault, "give only strings, or only whole numbers")
    return np.array(values)


def _is_missing(value: Any) -> bool:
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
    code_type = np.dtype(np.uint32).newbyteorder(labels.dtype.byteorder)
    for start in range(0, len(labels), BLOCK):
        block = np.ascontiguousarray(labels[start : start + BLOCK])

        # numpy holds a text as one code of 32 bits for each letter, (labels, letters)
        codes = block.view(code_type).reshape(len(block), -1)
        is_half_pair = (codes >= 0xD800) & (codes <= 0xDFFF)
        is_no_code_point = codes > 0x10FFFF
        invalid[start : start + BLOCK] = (is_half_pair | is_no_code_point).any(axis=1)
    return invalid


def _refuse_first(bad: NDArray[Any], fault: str, remedy: str) -> None:
    """Refuse the labels if one is bad; the error names the row of the first."""
    if bad.any():
        raise InputError(f"row {int(bad.argmax())} {fault}; {remedy}")


def _refuse_unlisted(bad: NDArray[Any], labels: NDArray[Any], classes: list[ClassValue]) -> None:
    """Refuse the labels if one is not in the class list; the error names the first."""
    if not bad.any():
        return
    row = int(bad.argmax())
    label = quoted(labels[row].item())
    examples = ", ".join(f"{value!s:.40}" for value in classes[:5])
    if len(classes) > 5:
        examples += ", ..."
    raise InputError(
        f"row {row} has label {label}, not one of the {len(classes)} classes ({examples}); correct"
        " that row, or complete the list from public knowledge (a code book, a form), not from the"
        " labels"
    )
