"""Cells of a table as numbers, texts or times.

Each cell is read by itself, so that one record decides nothing about the row of another. A cell is
missing if it is None, NaN, NaT, an empty text, or one of the texts that the schema declares for
missing values.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Collection
from datetime import date, datetime
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError, quoted

Floats = NDArray[np.float64]
Times = NDArray[np.datetime64]

SECONDS = "datetime64[s]"
NEVER = np.datetime64("NaT", "s")

# types whose equal values have one reading
READ_ONCE = (str, bytes, int, float, bool)


class _Unreadable:
    """The reading of a cell that is there and has another form than the column."""


UNREADABLE = _Unreadable()


def plain_text(value: Any) -> str:
    """Return a value as the text by which levels are compared: without white space at the ends, in
    Unicode NFC, and 3.0 as 3.
    """
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value.strip())
    if isinstance(value, bytes):
        return plain_text(value.decode("utf-8", "replace"))
    is_number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if is_number and nearest_float(value).is_integer():
        return str(int(value))
    # Python writes no number of more than 4300 digits
    if isinstance(value, int) and math.isinf(nearest_float(value)):
        return str(nearest_float(value))
    return str(value)


def nearest_float(value: Any) -> float:
    """Return a number as float64; one beyond its range is infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def is_missing(value: Any, missing: Collection[str]) -> bool:
    """Tell whether a cell has no value."""
    if value is None or value is np.ma.masked:
        return True
    if isinstance(value, str | bytes):
        text = plain_text(value)
        return not text or text in missing
    # NaN and NaT differ from themselves; pandas.NA is compared to nothing
    return type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def texts(values: NDArray[Any], missing: Collection[str]) -> NDArray[Any]:
    """Return cells as texts, of shape (n,); None where a value is missing."""

    def read(value: Any) -> str | None:
        return None if is_missing(value, missing) else plain_text(value)

    return _read_each(values, read)


def numbers(values: NDArray[Any], missing: Collection[str]) -> tuple[Floats, int]:
    """Return cells as numbers, of shape (n,), and how many are no numbers; NaN stands for those and
    for missing ones.
    """
    if values.dtype.kind in "biuf":
        return values.astype(np.float64), 0

    def read(value: Any) -> Any:
        if is_missing(value, missing):
            return np.nan
        if isinstance(value, Real):
            return nearest_float(value)
        if not isinstance(value, str | bytes | Decimal):
            return UNREADABLE
        text = plain_text(value)
        # Python reads 1_000 as a number, and no other program does
        if "_" in text:
            return UNREADABLE
        try:
            return float(text)
        except ValueError:
            return UNREADABLE

    read_values = _read_each(values, read)
    unreadable = _unreadable(read_values)
    read_values[unreadable] = np.nan
    return read_values.astype(np.float64), int(unreadable.sum())


def times(values: NDArray[Any], missing: Collection[str], form: str | None) -> tuple[Times, int]:
    """Return cells as times of shape (n,), to the second, and how many are none; NaT stands for
    those and for missing ones.

    Texts are in ISO 8601, or in the `form` of `datetime.strptime`. A time zone is left out: the
    clock time counts.
    """
    if values.dtype.kind == "M":
        return values.astype(SECONDS), 0

    def read(value: Any) -> Any:
        if is_missing(value, missing):
            return NEVER
        if isinstance(value, np.datetime64):
            return value.astype(SECONDS)
        if isinstance(value, str | bytes):
            value = _time_of_text(plain_text(value), form)
        if isinstance(value, datetime):
            return np.datetime64(value.replace(tzinfo=None), "s")
        if isinstance(value, date):
            return np.datetime64(value, "s")
        return UNREADABLE

    read_values = _read_each(values, read)
    unreadable = _unreadable(read_values)
    read_values[unreadable] = NEVER
    return read_values.astype(SECONDS), int(unreadable.sum())


def _unreadable(results: NDArray[Any]) -> NDArray[np.bool_]:
    """Mark the cells that could not be read."""
    return np.array([result is UNREADABLE for result in results], dtype=bool)


def _time_of_text(text: str, form: str | None) -> datetime | None:
    """Read a text as a time; None if it is none."""
    try:
        if form is not None:
            return datetime.strptime(text, form)
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _read_each(values: NDArray[Any], read: Callable[[Any], Any]) -> NDArray[Any]:
    """Read each cell, equal texts and numbers once; an array of objects of shape (n,)."""
    results = np.empty(len(values), dtype=object)
    # the type belongs to the key, since True and 1 are equal
    cache: dict[tuple[type, Any], Any] = {}
    # datetime64 stays, since `tolist` makes nanoseconds whole numbers
    cells = values if values.dtype.kind == "M" else values.tolist()
    for place, value in enumerate(cells):
        try:
            hash(value)
        except TypeError as error:
            # lists and dicts have no hash
            fault = f"a cell is of type {quoted(type(value).__name__)}"
            raise InputError(f"{fault}; give a text, a number or a date in each") from error

        # Equal cells of other types may be read differently: decimals 1.5 and 1.50, or times of
        # two zones. A record would then decide about another one.
        if type(value) not in READ_ONCE:
            results[place] = read(value)
            continue
        key = (type(value), value)
        if key not in cache:
            cache[key] = read(value)
        results[place] = cache[key]
    return results
