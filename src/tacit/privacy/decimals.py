"""Exact decimal arithmetic of ledgers, independent of the decimal settings of the process.

`decimal.getcontext()` and `decimal.DefaultContext` belong to the process: at two digits of
precision 1 - 0.004 is 1, and a ledger would accept charges without end. Here precision, rounding,
exponents and traps are fixed. A difference that needs more digits is rounded down, so that what is
left is never too much.
"""

from __future__ import annotations

import math
from decimal import (
    ROUND_CEILING,
    ROUND_DOWN,
    Context,
    Decimal,
    DivisionByZero,
    InvalidOperation,
    Overflow,
)

DIGITS = 60  # a float has 17; an allowance of 1e20 less charges of 1e-20 is still exact


def fixed_context(digits: int, rounding: str) -> Context:
    """A context that takes no setting from the process.

    Examples
    --------
    >>> fixed_context(2, ROUND_DOWN).divide(Decimal(2), Decimal(3))
    Decimal('0.66')
    """
    return Context(
        prec=digits,
        rounding=rounding,
        Emin=-999_999,
        Emax=999_999,
        capitals=1,
        clamp=0,
        flags=[],
        traps=[InvalidOperation, DivisionByZero, Overflow],
    )


_CONTEXT = fixed_context(DIGITS, ROUND_DOWN)
NONE_LEFT = _CONTEXT.create_decimal("0")
_UNLIMITED = _CONTEXT.create_decimal("Infinity")


def decimal_of(amount: float) -> Decimal:
    """The decimal number that a float is written as, so that 0.1 and 0.2 add up to 0.3."""
    if math.isinf(amount):
        return _UNLIMITED
    return read(repr(float(amount)))


def read(text: str) -> Decimal:
    """A number from text, rounded down to DIGITS; ArithmeticError if it is none."""
    return _CONTEXT.create_decimal(text)


def written(amount: Decimal) -> str:
    """A number as text that `read` reads back."""
    return _CONTEXT.to_sci_string(amount)


def subtract(left: Decimal, cost: Decimal) -> Decimal:
    """Subtract a cost from what is left, rounded down to DIGITS."""
    return _CONTEXT.subtract(left, cost)


def exceeds(cost: Decimal, left: Decimal) -> bool:
    """Return whether a cost is more than what is left; ArithmeticError if one of them is no
    number.
    """
    return _CONTEXT.compare_signal(cost, left) > 0


def rounded_up(value: float, digits: int = 6) -> str:
    """A price as text, rounded up to so many digits (up to the error of float arithmetic).

    Every price that is printed goes through this function, so that none is printed too small:
    epsilon, rho, mu, delta, rates of attacks.

    Examples
    --------
    >>> rounded_up(2.25, 2), rounded_up(1.0000001), rounded_up(0.1 + 0.2)
    ('2.3', '1.00001', '0.3')
    """
    # without this, 0.3 from 0.1 + 0.2 would be rounded up to 0.300001
    without_float_error = Decimal.from_float(value * (1 - 1e-12))
    rounded = fixed_context(digits, ROUND_CEILING).plus(without_float_error)
    return f"{float(rounded):.{digits}g}"


def rounded_down(value: float, digits: int = 6) -> str:
    """A positive number as text, rounded down to so many digits.

    Examples
    --------
    >>> rounded_down(0.12345678)
    '0.123456'
    """
    rounded = fixed_context(digits, ROUND_DOWN).create_decimal(repr(float(value)))
    return f"{float(rounded):.{digits}g}"


def noise_rounded_down(multiplier: float, digits: int = 6) -> str:
    """A noise multiplier as text, rounded down to so many digits (up to the error of float
    arithmetic), since less noise costs more.

    Examples
    --------
    >>> noise_rounded_down(2.00000987), noise_rounded_down(2.9999999999999996)
    ('2', '3')
    """
    # without the factor, 3 less the error of float arithmetic would be rounded down to 2.99999
    return rounded_down(multiplier * (1 + 1e-12), digits)
