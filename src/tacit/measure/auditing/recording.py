"""Audits of releases as their documents state them."""

import math
from datetime import UTC, date, datetime
from typing import Literal

from tacit.measure.auditing.result import Audit
from tacit.releases.audited import AuditResult, outcome
from tacit.version import __version__


def item_of(audit: Audit, *, day: date | None = None) -> AuditResult:
    """Return item 17 of a release that was audited; the day is today by default."""
    if day is None:
        day = datetime.now(UTC).date()
    alarm = audit.nearest_alarm
    promise_at_alarm = alarm.promise_at_alarm
    delta_at_alarm = alarm.delta_at_alarm
    if promise_at_alarm is None or delta_at_alarm is None:
        promise_at_alarm = audit.promise
        delta_at_alarm = audit.delta
    return AuditResult(
        result=outcome(audit.epsilon_lower, audit.promise, alarm.at_alarm, promise_at_alarm),
        lower_bound=audit.epsilon_lower,
        promise=_number(audit.promise),
        lower_bound_at_alarm=alarm.at_alarm,
        promise_at_alarm=_number(promise_at_alarm),
        delta_at_alarm=delta_at_alarm,
        delta=audit.delta,
        confidence=audit.confidence,
        unit=audit.unit.value,
        assumption=audit.assumption,
        attacks=audit.attacks,
        setup=audit.setup,
        date=str(day),
        version=__version__,
    )


def _number(epsilon: float) -> float | Literal["inf"]:
    """Return an epsilon as documents state it."""
    return epsilon if math.isfinite(epsilon) else "inf"
