"""Events as plain JSON values, for ledgers and releases."""

from dataclasses import fields
from typing import Any

from tacit.errors import InputError, excerpt, quoted
from tacit.privacy import events
from tacit.privacy.events import Event

_TYPES: dict[str, type[Event]] = {
    kind.__name__: kind
    for kind in (
        events.Gaussian,
        events.SampledGaussian,
        events.Exponential,
        events.PureDP,
        events.ZCDP,
        events.RandomizedResponse,
        events.Laplace,
        events.Parallel,
        events.RepeatAndSelect,
    )
}


def event_to_json(event: Event) -> Any:
    """One object per event with its parameters; a composition is a list of {count, event}."""
    if isinstance(event, events.Composition):
        return [{"count": n, "event": event_to_json(part)} for part, n in event.counts]
    values = {field.name: getattr(event, field.name) for field in fields(event)}  # type: ignore[arg-type]
    return {"type": type(event).__name__} | {name: _value_to_json(value) for name, value in values.items()}


def event_from_json(document: Any) -> Event:
    """Read what `event_to_json` wrote.

    Raises
    ------
    InputError
        If the type or its parameters are not known.
    """
    try:
        if isinstance(document, list):
            return events.compose(_count(part["count"]) * event_from_json(part["event"]) for part in document)
        values = {name: _value_from_json(value) for name, value in document.items() if name != "type"}
        return _TYPES[document["type"]](**values)
    except (KeyError, TypeError) as error:
        fault = f"event {quoted(document)} cannot be read ({excerpt(str(error))})"
        raise InputError(f"{fault}; use the version that wrote it") from error


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise InputError(f"count {quoted(value)} must be a whole number of 63 bits; use the version that wrote it")
    return value


def _value_to_json(value: Any) -> Any:
    if isinstance(value, Event):
        return event_to_json(value)
    return "inf" if value == float("inf") else value  # JSON has no infinity


def _value_from_json(value: Any) -> Any:
    if isinstance(value, dict | list):
        return event_from_json(value)
    return float("inf") if value == "inf" else value
