"""Checks of parameters, so that a wrong type is a message and not a traceback."""

from numbers import Integral, Real
from typing import Any

from tacit.data.rows import as_rows
from tacit.errors import InputError


def real(name: str, value: Any, low: float, high: float) -> float:
    """`value` as a float, if it is a number in [low, high].

    Raises
    ------
    InputError
        If it is anything else, NaN included.
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not low <= float(value) <= high:
        raise InputError(f"{name}={value!r} must be a number from {low:g} to {high:g}; correct it, or leave it out")
    return float(value)


def whole(name: str, value: Any, low: int, high: int) -> int:
    """`value` as an int, if it is a whole number in [low, high].

    Raises
    ------
    InputError
        If it is anything else.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or not low <= int(value) <= high:
        raise InputError(f"{name}={value!r} must be a whole number from {low} to {high}; correct it, or leave it out")
    return int(value)


def public_rows(public: Any, width: int) -> Any:
    """`public` as rows of shape (m, width), not copied where it is an array of any kind."""
    rows = as_rows(public, "public")
    if rows.shape[1] != width:
        raise InputError(f"public has shape {rows.shape} and the private rows {width} columns; encode both alike")
    return rows
