"""Numbers and words about privacy as documents of earlier versions state them, so that these still
verify.

Since version 5 a single use of an event that states its trade-off function is priced by it, and the
words say where a rate is only an upper bound. Earlier documents state the smallest of several
bounds instead. Since version 9 prices of events are rounded up and
their noise multipliers down; before, to the nearest number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tacit.privacy import accounting, attack_rates
from tacit.privacy.events import Event
from tacit.privacy.events.base import Rounding
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.unit import Unit
from tacit.privacy.words import (
    DECISIVE,
    about_group,
    meaning,
    most_expensive,
    same_in_three_digits,
    standing_of_record,
)


@dataclass(frozen=True)
class OlderNumbers:
    """The numbers of a guarantee in a document of version 3 or 4; methods are those of
    `Guarantee`.
    """

    guarantee: Guarantee
    version: int

    def epsilon(self, delta: float = 0.0, group: str | None = None) -> float:
        """Smallest epsilon at delta that was known, of this group or of the most expensive
        group.
        """
        return max(accounting.older_epsilon(event, delta) for event in self.guarantee.totals(group))

    def attack_rate(self, false_positive_rate: float) -> float:
        """Smallest bound on the true-positive rate that was known; in version 3 without that by the
        advantage.
        """
        attack_rate = oldest_attack_rate
        if self.version == 4:
            attack_rate = older_attack_rate
        return max(attack_rate(event, false_positive_rate) for event in self.guarantee.totals())

    @property
    def advantage(self) -> float:
        """Smallest bound on the advantage that was known."""
        return max(
            attack_rates.bounded_advantage(event.base(), accounting.older_epsilon)
            for event in self.guarantee.totals()
        )


def _rounded_to_nearest(value: float) -> str:
    return f"{value:.6g}"


TO_NEAREST = Rounding(_rounded_to_nearest, _rounded_to_nearest)
"""As compositions of documents before version 9 state the numbers of events."""


def older_attack_rate(event: Event, false_positive_rate: float) -> float:
    """The true-positive rate of one sum of events as version 4 states it."""
    event = event.base()
    if accounting.has_exact_mu(event):
        return attack_rates.attack_rate(event, false_positive_rate)
    return attack_rates.bounded_attack_rate(event, false_positive_rate, accounting.older_epsilon)


def oldest_attack_rate(event: Event, false_positive_rate: float) -> float:
    """The true-positive rate of one sum of events as version 3 states it."""
    return attack_rates.attack_rate_by_curve(
        event.base(), false_positive_rate, accounting.older_epsilon
    )


def older_words(
    unit: Unit, epsilon: float, pure: float, advantage: float, epsilons: Mapping[str, float]
) -> str:
    """The words of a document of version 4; `epsilons` are those of its groups at DECISIVE."""
    delta = DECISIVE
    if same_in_three_digits(epsilon, pure):
        epsilon = pure
        delta = 0.0
    words = f"{meaning(unit, epsilon, delta, advantage)} {standing_of_record(epsilon)}"
    return about_group(words, most_expensive(epsilons))
