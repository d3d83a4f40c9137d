"""The parameters of a learner that the document of its release states, so that others can fit the
same learner to rows of their own.

Parameters are public arguments (a promise follows from them alone). Left out are arrays, rows and
nested objects, what the document states elsewhere, seeds, and where work is done: folders are
private, and so are ledgers.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tacit.privacy.budget import Budget
from tacit.privacy.unit import Unit

# Of all learners: stated elsewhere in the document, private, or without influence on the guarantee.
_NEVER = frozenset(
    {
        "classes",
        "noise",
        "random_state",
        "ledger",
        "public",
        "allow_overlap",
        "names",
        "tree",
        "folder",
        "engine",
        "jobs",
        "seed",
        "voting_seed",
    }
)

# values of a list, and letters of a text, that a document states
_MOST_VALUES = 100
_MOST_LETTERS = 200


def stated_parameters(values: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the parameters that a document states, and the names of those that it cannot state.

    Infinity is the text "inf".
    """
    stated = {}
    left_out = []
    for name, value in values.items():
        if name in _NEVER:
            continue
        plain = _plain(value)
        if plain is _NOT_PLAIN:
            left_out.append(name)
        else:
            stated[name] = plain
    return stated, tuple(left_out)


_NOT_PLAIN = object()


def _plain(value: Any) -> Any:
    """Return a parameter as JSON can state it, or _NOT_PLAIN."""
    if isinstance(value, Budget):
        return str(value)
    if isinstance(value, Unit):
        return value.value
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return _plain_float(value)
    if isinstance(value, str):
        is_stated = value.isprintable() and len(value) <= _MOST_LETTERS
        return value if is_stated else _NOT_PLAIN
    if isinstance(value, list | tuple) and len(value) <= _MOST_VALUES:
        parts = tuple(map(_plain, value))
        is_flat = all(isinstance(part, bool | int | float | str) for part in parts)
        return parts if is_flat else _NOT_PLAIN
    return _NOT_PLAIN


def _plain_float(value: float) -> Any:
    if math.isnan(value):
        return _NOT_PLAIN
    if math.isinf(value):
        return "inf" if value > 0 else _NOT_PLAIN
    return value
