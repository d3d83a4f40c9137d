"""Types of fields that documents of releases share: one line of text, numbers with or without a
bound, labels, and a recorded guarantee.

A number without a bound is "inf", as in recorded events. Text is one line, so that no value can
pass for another item of the card.
"""

import json
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

if TYPE_CHECKING:
    from tacit.privacy.guarantee import Guarantee

NOT_STATED = "not stated"

# No control characters, line separators or switches of the writing direction.
ONE_LINE = r"^[^\p{Cc}\p{Zl}\p{Zp}\x{202A}-\x{202E}\x{2066}-\x{2069}]*$"
Text = Annotated[str, Field(max_length=4000, pattern=ONE_LINE)]
Number = Annotated[float, Field(ge=0)] | Literal["inf"]
Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[int, Field(ge=1, lt=2**31)]

Date = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
Day = Date | Literal["not stated"]

# a class label; whole numbers fit 64 bits, as in the array of the class list
Label = bool | Annotated[int, Field(ge=-(2**63), lt=2**63)] | float | Text

# a fact of a mechanism, such as its noise multiplier
Fact = bool | int | float | Text
DType = Literal["float16", "float32", "float64", "int64"]
UnitName = Literal[
    "add-remove",
    "replace",
    "change-label",
    "add-remove-person",
    "replace-person",
    "change-labels-of-person",
]


class Model(BaseModel):
    """Base of all: strict types, no further fields, no NaN, never changed."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Recorded(Model):
    """The guarantee as `tacit.privacy.guarantee.Guarantee.to_json` writes it."""

    unit: UnitName
    event: JsonValue
    unprotected: tuple[Text, ...]
    groups: dict[Text, JsonValue]
    scope: Text

    @classmethod
    def of(cls, guarantee: "Guarantee") -> "Recorded":
        """Record a guarantee."""
        # by its JSON, since strict types take lists for tuples only there
        return cls.model_validate_json(json.dumps(guarantee.to_json()))


class EpsilonAtDelta(Model):
    """One point of the privacy curve."""

    epsilon: Number
    delta: Share


class Numbers(Model):
    """Privacy cost of one unit or group."""

    pure_epsilon: Number
    epsilons: tuple[EpsilonAtDelta, ...]
