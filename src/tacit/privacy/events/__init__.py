"""Events: what was done to the private data, as frozen values that add up; one file for each kind.

An event records one use of the private data, with parameters that are public. Equal parameters make
equal events; an event never changes and never looks at data. Events add: `a + b` stands for both
uses, in any order and adaptively, and `n * a` for `n` uses of `a`. The event of a guarantee is such
a sum. `base.py` says what an event states about itself; `priced.py` is the base of those that
release less than the noisy numbers behind them.

To add a kind of event, write one file here with a frozen dataclass that derives from `Event`, and
add the class to KINDS below. `tests/contracts/test_events.py` names the tests that it needs.
"""

from typing import Any

from tacit.errors import InputError, excerpt, quoted
from tacit.privacy.events.base import Composition, Event, Losses, compose
from tacit.privacy.events.exponential import Exponential
from tacit.privacy.events.filtered_votes import FilteredVotes
from tacit.privacy.events.gaussian import Gaussian
from tacit.privacy.events.laplace import Laplace
from tacit.privacy.events.noisy_argmax import NoisyArgmax
from tacit.privacy.events.noisy_check import NoisyCheck
from tacit.privacy.events.parallel import Parallel
from tacit.privacy.events.pure import PureDP
from tacit.privacy.events.randomized_response import RandomizedResponse
from tacit.privacy.events.repeat_and_select import RepeatAndSelect
from tacit.privacy.events.sampled_gaussian import SampledGaussian
from tacit.privacy.events.zcdp import ZCDP

__all__ = [
    "KINDS",
    "ZCDP",
    "Composition",
    "Event",
    "Exponential",
    "FilteredVotes",
    "Gaussian",
    "Laplace",
    "Losses",
    "NoisyArgmax",
    "NoisyCheck",
    "Parallel",
    "PureDP",
    "RandomizedResponse",
    "RepeatAndSelect",
    "SampledGaussian",
    "compose",
    "event_from_json",
]

KINDS: tuple[type[Event], ...] = (
    Gaussian,
    SampledGaussian,
    Exponential,
    PureDP,
    ZCDP,
    RandomizedResponse,
    Laplace,
    Parallel,
    RepeatAndSelect,
    NoisyArgmax,
    NoisyCheck,
    FilteredVotes,
)
_BY_NAME = {kind.__name__: kind for kind in KINDS}


def event_from_json(document: Any) -> Event:
    """Read what `Event.to_json` wrote; an unknown type or parameter raises an InputError."""
    try:
        if isinstance(document, list):
            return compose(
                _count(part["count"]) * event_from_json(part["event"]) for part in document
            )

        values = {name: _value(value) for name, value in document.items() if name != "type"}
        return _BY_NAME[document["type"]](**values)
    except (KeyError, TypeError) as error:
        fault = f"event {quoted(document)} cannot be read ({excerpt(str(error))})"
        raise InputError(f"{fault}; use the version that wrote it") from error


def _count(value: Any) -> int:
    """A number of uses in a sum of events."""
    if type(value) is not int or not 0 <= value < 2**63:
        raise InputError(
            f"count {quoted(value)} must be a whole number of 63 bits; use the version that"
            " wrote it"
        )
    return value


def _value(value: Any) -> Any:
    """A parameter of an event, which may be an event itself."""
    if isinstance(value, dict | list):
        return event_from_json(value)
    if value == "inf":
        return float("inf")
    return value
