"""The policy of a gate: a file of TOML that says under which conditions a release may leave.

Each key is one rule, and a key that is left out is not checked. `gate.py` holds a release against a
policy.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import date, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from tacit.compute.documents import read_text
from tacit.errors import InputError, excerpt, nearest, quoted
from tacit.privacy.unit import Unit

MOST_BYTES = 2**16

# of numbers; none that means anything is near
LARGEST = 1e300

# short names of the units under which all data of a record or of a person are protected, and also
# that they are there
SHORT_UNITS = {"record": Unit.ADD_REMOVE, "person": Unit.ADD_REMOVE_PERSON}

KNOWN = "known"
REQUIRED = "required"
Evaluation = Literal["paid", "public", "paid or public"]


@dataclass(frozen=True)
class Policy:
    """Conditions under which a release may leave; None where the policy does not state one.

    Parameters
    ----------
    source : str
        The file, for messages.
    unit : Unit
        The neighbouring relation under which a guarantee must hold, and under which `epsilon` and
        `advantage` are compared.
    epsilon, delta : float
        The largest epsilon, at this delta. Both are stated or neither.
    ledger_since : date
        The last day on which the ledger of the private data may begin.
    unprotected : tuple of str
        Quantities that may be unprotected, beside the class list.
    least_records : int
        The fewest records that each class must be declared to have.
    evaluation : {"paid", "public", "paid or public"}
        How the stated figures must have been measured.
    signature : {"required"}
        All files must be signed by the owner of a key.
    encoder : "known" or tuple of str
        The encoder of the rows must be identified, or be one of these.
    advantage : float
        The largest advantage of any membership attack.
    audit_days : int
        The stated audit must be younger than this, in days.

    Examples
    --------
    >>> policy = Policy.of({"unit": "person", "epsilon": 3, "delta": 1e-5})
    >>> policy.unit, policy.keys
    (<Unit.ADD_REMOVE_PERSON: 'add-remove-person'>, ('unit', 'epsilon', 'delta'))
    """

    source: str
    unit: Unit | None = None
    epsilon: float | None = None
    delta: float | None = None
    ledger_since: date | None = None
    unprotected: tuple[str, ...] | None = None
    least_records: int | None = None
    evaluation: Evaluation | None = None
    signature: Literal["required"] | None = None
    encoder: Literal["known"] | tuple[str, ...] | None = None
    advantage: float | None = None
    audit_days: int | None = None

    @classmethod
    def read(cls, path: Path | str) -> Policy:
        """Read a policy from a file of TOML.

        Raises
        ------
        InputError
            If the file cannot be read, is empty, or has an unknown key or a value that its key does
            not take.
        """
        path = Path(path)
        if not path.is_file():
            raise InputError(f"policy {path} is not a file; give a file of TOML")
        try:
            values = tomllib.loads(read_text(path, MOST_BYTES))
        # a TOMLDecodeError is a ValueError
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(
                f"policy {path} is not readable as TOML ({excerpt(str(error))}); correct it"
            ) from error
        return cls.of(values, str(path))

    @classmethod
    def of(cls, values: Mapping[str, Any], source: str = "policy") -> Policy:
        """Return the policy of these values by key; errors are those of `read`."""
        if not values:
            raise InputError(
                f"policy {source} states nothing, so everything would meet it; state some of"
                f" {', '.join(KEYS)}"
            )
        for key in values:
            if key not in KEYS:
                raise InputError(f"policy {source} has the key {quoted(key)}; {nearest(key, KEYS)}")

        conditions = {}
        for key, value in values.items():
            try:
                conditions[key] = _READERS[key](value)
            except ValueError as error:
                raise InputError(
                    f"policy {source}: {key} = {quoted(value)} {error}; correct it"
                ) from None

        policy = cls(source, **conditions)
        policy._check_companions()
        return policy

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that the policy states, in the order of KEYS."""
        return tuple(key for key in KEYS if getattr(self, key) is not None)

    def _check_companions(self) -> None:
        """Refuse a number that means nothing without another key."""
        needs = {
            "epsilon": ("unit", "delta"),
            "delta": ("epsilon",),
            "advantage": ("unit",),
        }
        for key, companions in needs.items():
            if key not in self.keys:
                continue
            for companion in companions:
                if companion not in self.keys:
                    raise InputError(
                        f"policy {self.source} states {key} without {companion}, so it means"
                        f" nothing; add {companion}"
                    )


KEYS = tuple(field.name for field in fields(Policy) if field.name != "source")


def _unit(value: Any) -> Unit:
    names = (*SHORT_UNITS, *Unit)
    if not isinstance(value, str) or value not in names:
        raise ValueError(f"is no unit; {nearest(str(value), names)}")
    return SHORT_UNITS.get(value) or Unit(value)


def _number(least: float, most: float) -> Callable[[Any], float]:
    """Return a reader of finite numbers from `least` to `most`."""

    def read(value: Any) -> float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        # compared as it is: a whole number may be too large for a float
        is_finite = is_number and -math.inf < value <= LARGEST
        if not is_finite or not least <= value <= most:
            bounds = f"from {least:g} to {most:g}"
            if math.isinf(most):
                bounds = f"of {least:g} or more"
            raise ValueError(f"must be a finite number {bounds}")
        return float(value)

    return read


def _positive(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError("must be a whole number, 1 or more")
    return value


def _day(value: Any) -> date:
    # a datetime is a date
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError("must be a day such as 2026-01-31") from None


def _texts(value: Any) -> tuple[str, ...]:
    """Return texts, of which none is empty; a single text may stand without brackets."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple):
        raise ValueError("must be a list of texts")
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("must be a list of texts")
    if not all(text.strip() for text in texts):
        raise ValueError("holds an empty text")
    return tuple(texts)


def _encoder(value: Any) -> Any:
    if value == KNOWN:
        return KNOWN
    encoders = _texts(value)
    if not encoders:
        raise ValueError(f'names no encoder; write "{KNOWN}" or a list of names or hashes')
    return encoders


def _one_of(*words: str) -> Callable[[Any], Any]:
    """Return a reader of one of these words."""

    def read(value: Any) -> Any:
        if not isinstance(value, str) or value not in words:
            choices = " or ".join(f'"{word}"' for word in words)
            raise ValueError(f"must be {choices}")
        return value

    return read


# Of each key, the function that checks its value; a ValueError states the rule.
_READERS: dict[str, Callable[[Any], Any]] = {
    "unit": _unit,
    "epsilon": _number(0, math.inf),
    "delta": _number(0, 0.1),
    "ledger_since": _day,
    "unprotected": _texts,
    "least_records": _positive,
    "evaluation": _one_of(*get_args(Evaluation)),
    "signature": _one_of(REQUIRED),
    "encoder": _encoder,
    "advantage": _number(0, 1),
    "audit_days": _positive,
}
