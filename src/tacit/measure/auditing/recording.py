"""Audits of releases as their documents state them."""

import math
from datetime import UTC, date, datetime

from tacit.measure.auditing.result import Audit
from tacit.releases.audited import AuditResult, outcome
from tacit.version import __version__


def item_of(audit: Audit, *, day: date | None = None) -> AuditResult:
    """Return item 17 of a release that was audited; the day is today by default."""
    if day is None:
        day = datetime.now(UTC).date()
    return AuditResult(
        result=outcome(audit.epsilon_lower, audit.at_alarm, audit.promise),
        lower_bound=audit.epsilon_lower,
        lower_bound_at_alarm=audit.at_alarm,
        promise=audit.promise if math.isfinite(audit.promise) else "inf",
        delta=audit.delta,
        confidence=audit.confidence,
        unit=audit.unit.value,
        assumption=audit.assumption,
        attacks=audit.attacks,
        setup=audit.setup,
        date=str(day),
        version=__version__,
    )
