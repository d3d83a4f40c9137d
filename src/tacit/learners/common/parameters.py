"""Checks of numeric parameters, so that a wrong type is a message and not a traceback."""

from numbers import Integral, Real
from typing import Any

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
