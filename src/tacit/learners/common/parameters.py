"""Checks of parameters, so that a wrong type is a message and not a traceback."""

from collections.abc import Iterable
from dataclasses import fields
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.compute.foreign import of_tensor
from tacit.data.rows import refuse_sparse
from tacit.errors import InputError, quoted
from tacit.models.rows import Floats


def real(name: str, value: Any, low: float, high: float) -> float:
    """`value` as a float, if it is a number in [low, high]; NaN is not."""
    # Python counts True as the number 1
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not low <= value <= high:
        raise InputError(
            f"{name}={value!r} must be a number from {low:g} to {high:g}; correct it, or leave"
            " it out"
        )
    return float(value)


def check_optional(settings: Any, **ranges: tuple[float, float]) -> None:
    """Check attributes of `settings` by `real`, those that are None excepted.

    `ranges` has the lowest and the highest value of each attribute, by its name.
    """
    for name, (low, high) in ranges.items():
        value = getattr(settings, name)
        if value is not None:
            real(name, value, low, high)


def whole(name: str, value: Any, low: int, high: int) -> int:
    """`value` as an int, if it is a whole number in [low, high]."""
    is_number = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_number or not low <= int(value) <= high:
        raise InputError(
            f"{name}={value!r} must be a whole number from {low} to {high}; correct it, or leave"
            " it out"
        )
    return int(value)


def flag(name: str, value: Any) -> bool:
    """`value` as a bool, if it is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name}={value!r} must be True or False; leave it out")
    return bool(value)


def one_of(name: str, value: Any, options: Iterable[str]) -> str:
    """`value`, if it is one of the texts that are offered; the first of them is the remedy."""
    offered = list(options)
    if not isinstance(value, str) or value not in offered:
        raise InputError(
            f"{name}={quoted(value)} must be one of {', '.join(offered)}; pass"
            f" {name}={str(offered[0])!r}"
        )
    return value


def array_of(values: Any, name: str, remedy: str = "pass one for each record") -> NDArray[Any]:
    """`values` as an array; a sparse matrix, or entries of different lengths, are an error."""
    refuse_sparse(values, name)
    values = of_tensor(values)
    try:
        return np.asarray(values)
    except ValueError as error:
        raise InputError(f"{name} has entries of different lengths; {remedy}") from error


def numbers_of(values: Any, name: str, remedy: str) -> Floats:
    """`values` as an array of float64; anything but a dense array of numbers is an error."""
    refuse_sparse(values, name)
    values = of_tensor(values)
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} is not an array of numbers; {remedy}") from error


Value = TypeVar("Value")


def value_of(name: str, settings: Any, kind: type[Value]) -> Value:
    """Return the value object that an instance, a dict of its fields or None (defaults) means."""
    if settings is None:
        return kind()
    if isinstance(settings, kind):
        return settings

    try:
        return kind(**settings)
    except TypeError as error:
        # mypy cannot tell that `kind` is a dataclass
        names = ", ".join(field.name for field in fields(kind))  # type: ignore[arg-type]
        raise InputError(
            f"{name}={settings!r:.60} must be a dict of {names}; correct it"
        ) from error


def declared_counts(counts: Any, n_classes: int) -> Floats | None:
    """Return declared numbers of records per class, of shape (n_classes,).

    A single number is that of every class. Without a declaration there are none (None).
    """
    if counts is None:
        return None

    # objects keep their types, so that `real` refuses booleans and texts
    declared = np.asarray(counts, dtype=object)
    if declared.shape not in ((), (n_classes,)):
        rule = f"must be one number, or one for each of {n_classes} classes"
        raise InputError(f"counts={counts!r} {rule}; leave it out to buy noisy counts")

    numbers = [real("counts", count, 1, 2**53) for count in declared.ravel()]
    # a copy, since what `broadcast_to` returns cannot be written
    return np.broadcast_to(numbers, (n_classes,)).copy()
