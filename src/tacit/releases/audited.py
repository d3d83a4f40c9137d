"""The result of an audit of a release, as its document states it, and what of it follows from the
recorded guarantee.
"""

from typing import Annotated, Literal

from pydantic import Field

from tacit.privacy.guarantee import Guarantee, rounded_up
from tacit.releases.fields import Date, Model, Number, Share, Text, UnitName

# relative excess of a stated promise: bounds have become tighter; and what rounding changes
EXCESS = 1e-4
TOLERANCE = 1e-6

CONFIDENCE = 0.95
"""Of the stated lower bound."""

Outcome = Literal[
    "no lower bound is above the promise",
    "a lower bound is above the promise, and none is at confidence 1 - 1e-6",
    "THE PROMISE IS BROKEN: a lower bound is above it at confidence 1 - 1e-6",
]
WITHIN: Outcome = "no lower bound is above the promise"
ABOVE: Outcome = "a lower bound is above the promise, and none is at confidence 1 - 1e-6"
BROKEN: Outcome = "THE PROMISE IS BROKEN: a lower bound is above it at confidence 1 - 1e-6"


class AuditResult(Model):
    """Item 17 of an audited release: lower bounds on epsilon at `delta`, beside the promise.

    `lower_bound` holds with probability `confidence`, and `lower_bound_at_alarm`, which is one on
    epsilon at `delta_at_alarm`, with probability 1 - 1e-6. `result` follows from these numbers.
    """

    result: Outcome
    lower_bound: Number
    promise: Number
    delta: Annotated[float, Field(gt=0, lt=1)]
    lower_bound_at_alarm: Number
    promise_at_alarm: Number
    delta_at_alarm: Annotated[float, Field(ge=0, lt=1)]
    confidence: Share
    unit: UnitName
    assumption: Text
    attacks: Annotated[tuple[Text, ...], Field(min_length=1)]
    setup: Text
    date: Date
    version: Text
    meaning: Literal[
        "a lower bound on what fits of the stated learner to public rows reveal; better attacks may"
        " reveal more, and only the promise is an upper bound"
    ] = (
        "a lower bound on what fits of the stated learner to public rows reveal; better attacks may"
        " reveal more, and only the promise is an upper bound"
    )

    @property
    def passed(self) -> bool:
        """Whether the audit did not show that the promise is broken."""
        return self.result != BROKEN


def outcome(
    lower_bound: float, promise: float, lower_bound_at_alarm: float, promise_at_alarm: float
) -> Outcome:
    """Return the result that follows from the numbers of an audit."""
    if lower_bound_at_alarm > promise_at_alarm:
        return BROKEN
    if lower_bound > promise:
        return ABOVE
    return WITHIN


def audit_fault(audit: AuditResult, guarantee: Guarantee) -> str | None:
    """Describe the first statement about an audit that the recorded events, or its own numbers, do
    not bear out; None if all agree.
    """
    if audit.confidence != CONFIDENCE:
        return (
            f"audit.confidence is stated as {audit.confidence:g}, and bounds hold at {CONFIDENCE:g}"
        )
    if audit.unit != guarantee.unit:
        return f"the audit is under unit {audit.unit} and the guarantee under {guarantee.unit}"

    promise = float(audit.promise)
    promise_at_alarm = float(audit.promise_at_alarm)
    promises = (
        ("promise", promise, audit.delta),
        ("promise_at_alarm", promise_at_alarm, audit.delta_at_alarm),
    )
    for name, stated, delta in promises:
        true = guarantee.epsilon(delta)
        is_same = true * (1 - TOLERANCE) <= stated <= true * (1 + EXCESS)
        if not is_same:
            return (
                f"audit.{name} is stated as {stated:.10g} and the events give {true:.10g} at delta"
                f" {rounded_up(delta)}"
            )

    lower_bound = float(audit.lower_bound)
    at_alarm = float(audit.lower_bound_at_alarm)
    expected = outcome(lower_bound, promise, at_alarm, promise_at_alarm)
    if audit.result != expected:
        return f"audit.result is stated as {audit.result!r} and its numbers give {expected!r}"
    return None
