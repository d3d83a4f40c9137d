"""The one rule for ids of persons, from every source: arrays, columns, files and stores.

An id that is written in two ways would be two persons, each with a budget of their own. So ids are
compared as texts in one form:

- white space at both ends is left out, and letters are normalised (Unicode NFC);
- a whole number and its text are one id: 17, "17", 17.0 and "17.0" are the same person;
- leading zeros and exponents stay: "007", "7" and "7e0" are three persons, since merging two
  persons is as wrong as splitting one;
- upper and lower case differ: "P1" and "p1" are two persons. `case_variants` counts such ids for
  the owner.

Refused are missing ids, fractions, and floats from 2^53 on, where several whole numbers share one
float. No error shows an id.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from numbers import Integral
from typing import Any
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from tacit.compute.foreign import of_tensor
from tacit.errors import InputError, RowError


class PersonIdsWarning(UserWarning):
    """Ids may be of one person. The message is private, for the owner alone, and no result keeps
    it.
    """


RULE = "persons must be one id for each record, all text or all whole numbers"

# as a float it may have been 2^53 + 1
FIRST_INEXACT = 2**53

# as programs write it: 007.0 is none
_WHOLE_FLOAT = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0")


def canonical_ids(ids: Any) -> NDArray[Any]:
    """Return ids in the form in which they are compared, of shape (n,): whole numbers, or texts as
    objects.

    Raises
    ------
    InputError
        If they are not all text or all whole numbers, or one is missing, empty, a fraction or a
        float of 2^53 or more. It shows no id.

    Examples
    --------
    >>> canonical_ids([" P1", "17.0", "007", "1e3"]).tolist()
    ['P1', '17', '007', '1e3']
    >>> canonical_ids([17.0, 3.0]).tolist()
    [17, 3]
    """
    values = _values(ids)
    if values.ndim != 1:
        raise InputError(f"persons has {values.ndim} dimensions; {RULE}")
    if values.dtype.kind in "iu":
        return values
    if values.dtype.kind == "f":
        return _canonical_floats(values)
    if values.dtype.kind not in "OUT":
        raise InputError(f"persons has entries of type {values.dtype}; {RULE}, none missing")

    id_list = values.tolist()
    if id_list and isinstance(id_list[0], str):
        return _canonical_texts(id_list)
    return _canonical_numbers(id_list)


def as_texts(ids: NDArray[Any]) -> NDArray[Any]:
    """Return canonical ids as texts, which compares those of a source of numbers with those of a
    source of texts.
    """
    return np.array([str(value) for value in ids.tolist()], dtype=object)


def case_variants(ids: Iterable[str | int]) -> int:
    """Return how many different ids differ from another one only in upper and lower case.

    The number is private: it is for the owner, and belongs in no release, store or result.

    >>> case_variants(["P1", "p1", "p1", "P2"])
    2
    """
    texts = {value for value in ids if isinstance(value, str)}
    sizes = Counter(text.casefold() for text in texts)
    return sum(size for size in sizes.values() if size > 1)


def case_message(ids: NDArray[Any] | None) -> str | None:
    """Return a message to the owner if ids differ only by case; None if no two do, or there are no
    ids.
    """
    if ids is None or ids.dtype.kind in "iu":
        return None
    count = case_variants(ids.tolist())
    if count == 0:
        return None
    return (
        f"{count} person ids differ from another only by case, and each counts as a person; correct"
        " them if not"
    )


def _canonical_texts(texts: list[Any]) -> NDArray[Any]:
    """Return texts in their one form, as objects."""
    _check_types(texts, str)

    # each spelling is normalised once, however many records a person has
    form_of_text = {text: _canonical_text(text) for text in set(texts)}
    forms = [form_of_text[text] for text in texts]
    if "" in form_of_text.values():
        row = forms.index("")
        raise RowError("persons has an empty id (first: ", row, f"); {RULE}, none missing")
    if None in form_of_text.values():
        raise _inexact(forms.index(None))
    return _objects(forms)


def _canonical_text(text: str) -> str | None:
    """Return the text in its one form; None for a float of 2^53 or more."""
    text = text.strip()
    if not text.isascii():
        text = normalize("NFC", text)
    if not text.endswith(".0"):
        return text
    whole = _WHOLE_FLOAT.fullmatch(text)
    if whole is None:
        return text
    digits = whole[1]
    # compared by length first: int() of a very long text is refused by Python
    if len(digits) > 17 or abs(int(digits)) >= FIRST_INEXACT:
        return None
    return str(int(digits))


def _canonical_numbers(values: list[Any]) -> NDArray[Any]:
    """Return whole numbers and floats as integers, as objects."""
    _check_types(values, Integral, float, np.floating)
    numbers: list[int] = []
    for row, value in enumerate(values):
        if isinstance(value, np.floating):
            _check_float(float(value), row, _first_inexact(value.dtype))
        elif isinstance(value, float):
            _check_float(value, row, FIRST_INEXACT)
        numbers.append(int(value))
    return _objects(numbers)


def _canonical_floats(values: NDArray[Any]) -> NDArray[Any]:
    missing = np.isnan(values)
    if missing.any():
        raise _missing(int(missing.argmax()))
    limit = _first_inexact(values.dtype)
    bad = (np.abs(values) >= limit) | (values != np.trunc(values))
    if bad.any():
        row = int(bad.argmax())
        _check_float(float(values[row]), row, limit)
    return values.astype(np.int64)


def _first_inexact(dtype: np.dtype[Any]) -> int:
    """The whole number from which floats of this type skip some: 2^24 for float32."""
    bits = int(np.finfo(dtype).nmant) + 1
    return int(min(2**bits, FIRST_INEXACT))


def _check_float(value: float, row: int, limit: int) -> None:
    if abs(value) >= limit:
        raise _inexact(row, limit)
    if not value.is_integer():
        raise RowError("persons has an id that is a fraction (first: ", row, f"); {RULE}")


def _inexact(row: int, limit: int = FIRST_INEXACT) -> InputError:
    return RowError(
        f"persons has a float of 2^{limit.bit_length() - 1} or more (first: ",
        row,
        "), which may be several ids; give ids as texts or whole numbers, from before they were"
        " floats",
    )


def _missing(row: int) -> InputError:
    fault = "persons has entries that are missing or of several types (first: "
    return RowError(fault, row, f"); {RULE}, none missing")


def _check_types(values: list[Any], *allowed: type) -> None:
    """Refuse a value of another type, such as None or a truth value, and NaN."""
    types = set(map(type, values))
    allowed_types = {
        kind for kind in types if issubclass(kind, allowed) and not issubclass(kind, bool)
    }
    may_have_nan = any(issubclass(kind, float | np.floating) for kind in types)
    if allowed_types == types and not may_have_nan:
        return

    for row, value in enumerate(values):
        is_nan = value != value
        if type(value) not in allowed_types or is_nan:
            raise _missing(row)


def _objects(values: list[Any]) -> NDArray[Any]:
    """Return values as objects: numpy's texts drop trailing zero characters, and its integers have
    64 bits.
    """
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _values(ids: Any) -> NDArray[Any]:
    """Return ids as an array; texts as objects."""
    if hasattr(ids, "to_numpy"):
        # a column of a data frame
        ids = ids.to_numpy()
    ids = of_tensor(ids)
    if isinstance(ids, np.ma.MaskedArray) and np.any(ids.mask):
        raise InputError(f"persons has masked entries; {RULE}, none missing")
    if isinstance(ids, np.ndarray):
        return ids
    has_order = hasattr(ids, "__iter__") and not isinstance(ids, Mapping | Set)
    if not has_order or isinstance(ids, str):
        raise InputError(f"persons is a {type(ids).__name__}; {RULE}")
    values = list(ids)
    if any(isinstance(value, list | tuple | np.ndarray) for value in values):
        raise InputError(f"persons has several dimensions; {RULE}")
    return _objects(values)
