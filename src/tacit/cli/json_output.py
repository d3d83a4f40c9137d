"""Facts as JSON: one object on standard output, for programs that read what a command prints."""

import math
from json import dumps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.privacy.guarantee import Guarantee


def print_json(facts: Any) -> None:
    """Print one JSON document on a line; numbers that JSON lacks are null."""
    print(dumps(_plain(facts), allow_nan=False))


def _plain(value: Any) -> Any:
    """A value without numbers that are infinite or no numbers."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def guarantee_facts(guarantee: "Guarantee", delta: float | None = None) -> dict[str, Any]:
    """The numbers of a statement, at the delta of the budget by default; null where there is none.

    `guarantee` holds the recorded events, from which all the others follow. Of personal budgets
    the numbers are the largest over the groups.
    """
    from tacit.privacy.guarantee import STATED_AT

    if delta is None:
        delta = guarantee.delta or STATED_AT
    pure = guarantee.epsilon() if guarantee.bounded else None
    return {
        "unit": guarantee.unit.value,
        "bounded": guarantee.bounded,
        "epsilon": guarantee.epsilon(delta),
        "delta": delta,
        "pure_epsilon": pure,
        "rho": guarantee.rho,
        "mu": guarantee.mu,
        "advantage": guarantee.advantage,
        "unprotected": list(guarantee.unprotected),
        "scope": guarantee.scope,
        "guarantee": guarantee.to_json(),
    }
