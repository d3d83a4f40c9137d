"""The result of an audit: lower bounds on what was revealed, beside the promise."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from tacit.measure.auditing.bounds import ALARM_ERROR, LEVEL
from tacit.privacy.guarantee import rounded_up
from tacit.privacy.unit import Unit
from tacit.privacy.words import rounded_down

INDEPENDENT_RUNS = "runs draw independent noise"
FAIR_COINS = "canaries are in the data by independent fair coins"
ONE_GAUSSIAN = f"{INDEPENDENT_RUNS}; the release is mu-GDP for some mu"
INDEPENDENT_AXES = "the noise of a release is Gaussian and independent in each coordinate"


@dataclass(frozen=True)
class Bound:
    """A lower bound on epsilon at the delta of the audit, by one attack.

    Parameters
    ----------
    attack : str
    epsilon : float
        At the confidence of the audit, all its bounds together.
    at_alarm : float
        At the confidence of an alarm, which is 1 - 1e-6 over all audits together.
    assumption : str
        Of the bound, beside the pseudo-randomness of seeded draws.
    decides : bool
        Whether an alarm follows where `at_alarm` exceeds the promise; not where the assumption may
        be false of a mechanism that keeps its promise.
    promise_at_alarm : float, optional
        What `at_alarm` is held against, if not epsilon at the delta of the audit. One run is held
        against a smaller delta, since with probability delta it may reveal all.
    delta_at_alarm : float, optional
        The delta of both, if not that of the audit.
    """

    attack: str
    epsilon: float
    at_alarm: float
    assumption: str
    decides: bool = True
    promise_at_alarm: float | None = None
    delta_at_alarm: float | None = None

    @property
    def shown(self) -> str:
        """The bound with three significant digits, rounded down."""
        return rounded_down(self.epsilon)

    def exceeds(self, promise: float) -> bool:
        """Whether the bound proves that a promise of this epsilon is broken."""
        return self.decides and self.excess(promise) > 0

    def excess(self, promise: float) -> float:
        """Return the bound of an alarm minus what it is held against, for a promise of this
        epsilon.
        """
        if self.promise_at_alarm is not None:
            promise = self.promise_at_alarm
        return -math.inf if math.isinf(promise) else self.at_alarm - promise


@dataclass(frozen=True)
class Audit:
    """Empirical lower bounds on a privacy cost, beside the promise.

    Attributes
    ----------
    subject : str
        A method, or the release that was audited.
    unit : Unit
        The neighbouring relation of the promise, and of the canaries.
    promise : float
        Epsilon at `delta` that is promised.
    delta : float
    bounds : tuple of Bound
    seed : int
    confidence : float
        With which all `bounds` hold together.
    setup : str
        Of the attacks, in words.
    points : tuple of (float, float)
        Bounds on false- and true-positive rates that attacks on pairs reached, each at the
        confidence.
    """

    subject: str
    unit: Unit
    promise: float
    delta: float
    bounds: tuple[Bound, ...]
    seed: int
    confidence: float = LEVEL
    setup: str = ""
    points: tuple[tuple[float, float], ...] = ()

    @property
    def best(self) -> Bound:
        """The largest lower bound."""
        return max(self.bounds, key=lambda bound: bound.epsilon)

    @property
    def epsilon_lower(self) -> float:
        """The largest lower bound on epsilon at `delta`."""
        return self.best.epsilon

    @property
    def assumption(self) -> str:
        """The assumption of the largest lower bound."""
        return self.best.assumption

    @property
    def attacks(self) -> tuple[str, ...]:
        """The attacks that were tried, each once."""
        return tuple(dict.fromkeys(bound.attack for bound in self.bounds))

    @property
    def exceeded(self) -> bool:
        """Whether a bound at the confidence of an alarm exceeds the promise."""
        return any(bound.exceeds(self.promise) for bound in self.bounds)

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        shown = rounded_down(self.epsilon_lower)
        found = (
            f"{self.subject}: epsilon is at least {shown} at delta {rounded_up(self.delta)}"
            f" (confidence {self.confidence:g}, {self.best.attack}), and at most"
            f" {rounded_up(self.promise)} is promised under unit {self.unit}"
        )
        if self.exceeded:
            return f"{found}; THE PROMISE IS BROKEN (confidence 1 - {ALARM_ERROR:g})"
        return found

    @property
    def nearest_alarm(self) -> Bound:
        """The bound that is nearest to an alarm, or furthest beyond it, of those that decide."""
        deciding = [bound for bound in self.bounds if bound.decides]
        return max(deciding, key=lambda bound: bound.excess(self.promise))

    def to_json(self) -> dict[str, Any]:
        """Return the audit as plain JSON values; an infinite epsilon is None."""
        return {
            "subject": self.subject,
            "unit": self.unit.value,
            "promise": _finite(self.promise),
            "delta": self.delta,
            "confidence": self.confidence,
            "epsilon_lower": _finite(self.epsilon_lower),
            "assumption": self.assumption,
            "exceeded": self.exceeded,
            "bounds": [
                asdict(bound)
                | {"epsilon": _finite(bound.epsilon), "at_alarm": _finite(bound.at_alarm)}
                for bound in self.bounds
            ],
            "seed": self.seed,
            "setup": self.setup,
        }

    def __str__(self) -> str:
        return self.sentence


def _finite(number: float) -> float | None:
    if not math.isfinite(number):
        return None
    return number
