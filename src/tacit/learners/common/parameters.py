"""Checks of parameters, so that a wrong type is a message and not a traceback."""

from numbers import Integral, Real
from typing import Any

import numpy as np

from tacit.data.rows import as_rows, checked_blocks
from tacit.errors import InputError
from tacit.models.rows import Floats, unit_rows


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


def flag(name: str, value: Any) -> bool:
    """`value` as a bool, if it is True or False.

    Raises
    ------
    InputError
        If it is anything else.
    """
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name}={value!r} must be True or False; leave it out")
    return bool(value)


def public_rows(public: Any, width: int) -> Any:
    """`public` as rows of shape (m, width), not copied where it is an array of any kind."""
    rows = as_rows(public, "public")
    if rows.shape[1] != width:
        raise InputError(f"public has shape {rows.shape} and the private rows {width} columns; encode both alike")
    return rows


def public_centre(public: Any, width: int) -> Floats | None:
    """The mean of the unit public rows, of shape (width,); None without public rows."""
    if public is None:
        return None
    rows = public_rows(public, width)
    sums = (unit_rows(block).sum(axis=0) for block in checked_blocks(rows, dtype=np.dtype(np.float64), name="public"))
    return np.asarray(sum(sums) / len(rows))


def declared_counts(counts: Any, n_classes: int) -> Floats | None:
    """Numbers of records per class as declared, of shape (n_classes,); None where they are not."""
    if counts is None:
        return None
    given = np.asarray(counts, dtype=object)
    if given.shape not in ((), (n_classes,)):
        rule = f"must be one number, or one for each of {n_classes} classes"
        raise InputError(f"counts={counts!r} {rule}; leave it out to buy noisy counts")
    return np.broadcast_to([real("counts", count, 1, 2**53) for count in given.ravel()], (n_classes,)).copy()
