"""A guarantee: a unit, the sum of the recorded events, and what is not protected.

Every number that tacit states about privacy is computed by a method of this value when it is
needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tacit.errors import InputError, quoted
from tacit.privacy import accounting, attack_rates
from tacit.privacy.events import Event, compose, event_from_json
from tacit.privacy.unit import Unit
from tacit.privacy.words import DECISIVE, in_words, most_expensive, rounded_up

__all__ = ["Guarantee", "guarantee_under", "implied_units", "rounded_up"]

THIS_RUN = "this run only"
DELTAS = (1e-5, 1e-6, 1e-9)
"""At which epsilon is stated."""
FALSE_POSITIVE_RATES = (0.001, 0.01, 0.1)
"""At which the most that an attack reaches is stated."""
STATED_AT = 1e-6
"""The delta of a statement where the budget has none."""


@dataclass(frozen=True)
class Guarantee:
    """The privacy cost of a release under a unit.

    Parameters
    ----------
    unit : Unit
        Which change of the data is hidden.
    event : Event
        The sum of all events; with `groups`, the events that count for every group.
    unprotected : tuple of str
        Quantities about the private data that the guarantee does not hide.
    groups : tuple of (str, Event)
        For personal budgets: each group's name and the events that count for it alone.
    scope : str
        Which accesses to the data are counted.
    delta : float, optional
        Delta of the budget, at which the statement gives epsilon first; 1e-6 without it. It is no
        part of equality, nor of `to_json`.

    Examples
    --------
    >>> from tacit.privacy.events import Exponential
    >>> guarantee = Guarantee(Unit.ADD_REMOVE, Exponential(1.0))
    >>> round(guarantee.epsilon(1e-6), 6), guarantee.rho
    (0.998409, 0.125)
    >>> guarantee.to(Unit.REPLACE).epsilon(0)
    2.0
    """

    unit: Unit
    event: Event
    unprotected: tuple[str, ...] = ()
    groups: tuple[tuple[str, Event], ...] = ()
    scope: str = THIS_RUN
    delta: float | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        names = [name for name, _ in self.groups]
        if len(set(names)) < len(names):
            raise InputError(f"groups {quoted(names)} name a group twice; add up its events")
        totals = [self.event, *(event for _, event in self.groups)]
        if self.unit.per_person and any(event.base() != event for event in totals):
            raise InputError(
                "a person may be in several classes, so nothing is parallel; pass event.base()"
            )

    @property
    def events(self) -> tuple[Event, ...]:
        """Every recorded event, one entry per use."""
        return tuple(event for event, n in self.event.counted() for _ in range(n))

    @property
    def bounded(self) -> bool:
        """True if some bound holds for every group; a search may have epsilon at each delta and
        neither rho nor mu.
        """
        return all(event.bounded for event in self.totals())

    @property
    def rho(self) -> float | None:
        """zCDP parameter of the most expensive group; None if there is none."""
        rho = max(event.rho for event in self.totals())
        return rho if math.isfinite(rho) else None

    @property
    def mu(self) -> float | None:
        """Gaussian-DP parameter of the most expensive group; None if there is none."""
        mu = max(event.mu for event in self.totals())
        return mu if math.isfinite(mu) else None

    def epsilon(self, delta: float = 0.0, group: str | None = None) -> float:
        """Smallest valid epsilon at `delta`, of this group or of the most expensive group; inf if
        no bound holds.

        Parameters
        ----------
        delta : float, default=0.0
            Failure probability; at 0 the result is the pure epsilon.
        group : str, optional
            Name of a budget group.
        """
        return max(accounting.epsilon(event, delta) for event in self.totals(group))

    def attack_rate(self, false_positive_rate: float) -> float:
        """Largest true-positive rate of any membership attack at this false-positive rate."""
        return max(attack_rates.attack_rate(event, false_positive_rate) for event in self.totals())

    @property
    def advantage(self) -> float:
        """Most by which any membership attack's true-positive rate exceeds its false-positive
        rate.
        """
        return self._advantage()

    @property
    def attained(self) -> bool:
        """True if an attack is known that reaches the advantage and the attack rates; otherwise
        they are bounds.

        It is known for Gaussian noise and for a single use of most other events: on some pair of
        neighbouring data sets the best attack has these rates. With groups it is known if it is for
        every group.
        """
        return self._attained()

    def _attained(self, group: str | None = None) -> bool:
        return all(attack_rates.attained(event) for event in self.totals(group))

    def _advantage(self, group: str | None = None) -> float:
        return max(attack_rates.advantage(event) for event in self.totals(group))

    def in_words(self, group: str | None = None) -> str:
        """Say what the guarantee means for a record or person, and where it stands in common
        guidance.

        Parameters
        ----------
        group : str, optional
            Name of a budget group; without it the words are about the group whose records cost
            most.

        Raises
        ------
        InputError
            If there is no such group.
        """
        named = group or most_expensive(
            {name: self.epsilon(DECISIVE, name) for name, _ in self.groups}
        )
        return in_words(
            self.unit,
            self.epsilon(DECISIVE, group),
            self.epsilon(0.0, group),
            self._advantage(group),
            named,
            attained=self._attained(group),
        )

    def to(self, unit: Unit | str) -> Guarantee:
        """State the guarantee of the same release under another unit.

        Add/remove converts to replace (a removal and an addition: group privacy for two) and to
        change-label. Replace converts to change-label, which is one kind of replacement. A
        guarantee for a person holds for each of their records: add-remove-person converts to
        add-remove (`Event.for_record_of_person`) and, as two changes, to replace-person, replace
        and change-label; replace-person to replace and change-label; change-labels-of-person to
        change-label. No other conversion holds; `per_person` goes from a record to a person, by
        group privacy.

        Raises
        ------
        InputError
            If the conversion does not hold.
        """
        unit = Unit(unit)
        if unit == self.unit:
            return self
        converted = _CONVERSIONS.get((self.unit, unit))
        if converted is not None:
            return self._changed(unit, converted)
        remedy = f"leave the unit out, or choose a method private under {unit.value}"
        if unit.per_person and not self.unit.per_person:
            remedy = (
                f"learn under unit {unit.value} with persons=..., or declare"
                " per_person(most_records=...)"
            )
        raise InputError(f"unit={self.unit} does not imply unit={unit}; {remedy}")

    def per_person(self, most_records: int) -> Guarantee:
        """Convert a guarantee per record to one for a person with at most this many records, by
        group privacy.

        From add-remove it is a guarantee under add-remove-person, from change-label under
        change-labels-of-person. The number is declared and nothing checks it, so it is listed among
        what is not protected.

        Parameters
        ----------
        most_records : int
            The most records that a person has, 1 or more.

        Raises
        ------
        InputError
            Under replace, which says nothing of a person with another number of records, or a unit
            per person; with personal budgets; if a private search contributes; or if the number is
            not whole or below 1.

        Examples
        --------
        >>> from tacit.privacy.events import Gaussian
        >>> Guarantee(Unit.ADD_REMOVE, Gaussian(10.0)).per_person(5).mu
        0.5
        """
        check_most_records(most_records)
        unit = {
            Unit.ADD_REMOVE: Unit.ADD_REMOVE_PERSON,
            Unit.CHANGE_LABEL: Unit.CHANGE_LABELS_OF_PERSON,
        }.get(self.unit)
        if unit is None:
            why = (
                "is already per person"
                if self.unit.per_person
                else "says nothing about another number of records"
            )
            raise InputError(
                f"unit={self.unit} {why}; convert a guarantee under add-remove or change-label"
            )
        if self.groups:
            raise InputError(
                "personal budgets are of records, and a person may be in several groups; leave"
                " them out"
            )
        for part, _ in self.event.contained():
            if not part.groups_of_any_size:
                raise InputError(
                    f"{part.describe()} has no known cost for groups; learn under unit {unit}"
                    " instead"
                )
        declared = f"that nobody has more than {most_records} records (declared)"
        moved = self._changed(unit, lambda event: event.for_group(most_records).base())
        return replace(moved, unprotected=(*self.unprotected, declared))

    def _changed(self, unit: Unit, change: Callable[[Event], Event]) -> Guarantee:
        groups = tuple((name, change(event)) for name, event in self.groups)
        return replace(self, unit=unit, event=change(self.event), groups=groups)

    def without_groups(self, cost: Callable[[Event], float]) -> Guarantee:
        """The same guarantee with every record charged at the most expensive group's cost.

        Groups of equal cost, such as those that have no finite cost, are compared by rho.
        """
        return replace(
            self, event=max(self.totals(), key=lambda total: (cost(total), total.rho)), groups=()
        )

    def statement(self, delta: float | None = None) -> str:
        """The guarantee in words: what holds, under which unit, and what is not covered; at the
        budget's delta.
        """
        delta = self.delta or STATED_AT if delta is None else delta
        lines = [f"The release hides {self.unit.hidden}, up to:"]
        lines += [f"  {name}: {self.figures(name, delta)}" for name, _ in self.groups]
        lines += [] if self.groups else [f"  {self.figures(None, delta)}"]
        if self.unit in (Unit.ADD_REMOVE, Unit.ADD_REMOVE_PERSON):
            for unit in implied_units(self.unit):
                lines.append(f"  under unit {unit.value}: {self.to(unit).figures(None, delta)}")
        if self.bounded:
            lines += self._against_attacks()
        lines.append(self.in_words())
        if not self.groups or self.event.counted():
            lines.append(f"Sum of: {self.event.describe()}.")
        lines += [f"For {name} sum of: {event.describe()}." for name, event in self.groups]
        lines.append(
            "Not protected:"
            f" {', '.join(self.unprotected) or 'nothing beyond the public arguments'}."
        )
        lines.append(
            f"Covers {self.scope}; anything fitted on private rows before it (a scaler, a PCA) is"
            " outside, and so is any figure computed from private rows after it (a score, a choice"
            " of parameters)."
        )
        return "\n".join(lines)

    def _against_attacks(self) -> list[str]:
        """Epsilon at each delta, and what attacks reach: of the group whose records cost most at
        each.
        """
        most = " (of the group whose records cost most)" if len(self.groups) > 1 else ""
        epsilons = [f"{rounded_up(self.epsilon(delta))} at {delta:g}" for delta in DELTAS]
        rates = [
            f"{rounded_up(self.attack_rate(rate))} at {rate:g}" for rate in FALSE_POSITIVE_RATES
        ]
        subject, bound = ("The best attack", "up to ") if self.attained else ("Attacks", "at most ")
        return [
            f"Epsilon at delta{most}: {', '.join(epsilons)}.",
            (
                f"{subject}{most}: true-positive rate {bound}{', '.join(rates)} (false-positive"
                f" rate); advantage {bound}{rounded_up(self.advantage)}."
            ),
        ]

    def __str__(self) -> str:
        return self.statement()

    def to_json(self) -> dict[str, Any]:
        """Return the guarantee as plain JSON values."""
        return {
            "unit": self.unit.value,
            "event": self.event.to_json(),
            "unprotected": list(self.unprotected),
            "groups": {name: event.to_json() for name, event in self.groups},
            "scope": self.scope,
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Guarantee:
        """Read what `to_json` wrote."""
        return cls(
            unit=Unit(document["unit"]),
            event=event_from_json(document["event"]),
            unprotected=tuple(document["unprotected"]),
            groups=tuple(
                (name, event_from_json(event)) for name, event in document["groups"].items()
            ),
            scope=document["scope"],
        )

    def totals(self, group: str | None = None) -> list[Event]:
        """The sum of events of each group, or of this group; a single event if there are no
        groups.
        """
        groups = dict(self.groups)
        if group is not None and group not in groups:
            raise InputError(
                f"group={group!r} is not one of {list(groups)}; name one, or leave it out for the"
                " largest"
            )
        chosen = list(groups.values()) if group is None else [groups[group]]
        return [compose((self.event, event)) for event in chosen] or [self.event]

    def figures(self, group: str | None = None, delta: float = STATED_AT) -> str:
        """The numbers of the statement on one line: of this group, or each at its largest over the
        groups.
        """
        totals = self.totals(group)
        if not all(total.bounded for total in totals):
            return "no bound: this is not private"
        pure, rho, mu = (
            max(getattr(total, name) for total in totals) for name in ("pure", "rho", "mu")
        )
        numbers = [f"epsilon = {rounded_up(pure)} (pure)"] if math.isfinite(pure) else []
        numbers.append(f"epsilon = {rounded_up(self.epsilon(delta, group))} at delta = {delta:g}")
        if math.isfinite(rho):
            numbers.append(f"rho = {rounded_up(rho)} (zCDP)")
        if math.isfinite(mu):
            numbers.append(f"mu = {rounded_up(mu)} (Gaussian DP)")
        return ", ".join(numbers)


def check_most_records(number: object) -> None:
    """Refuse anything but a whole number of records, 1 or more."""
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise InputError(
            f"most_records={quoted(number)} must be a whole number, 1 or more; correct it"
        )


def guarantee_under(event: Event, unit: Unit, unprotected: tuple[str, ...] = ()) -> Guarantee:
    """The guarantee under `unit` of a mechanism whose event is that of one record added or removed.

    Under a unit per person the mechanism bounds the sum over a person's records as it bounds a
    record otherwise. So the event is that of one person added or removed, without `Parallel`, since
    a person may be in several classes. A person's labels change by a removal and an addition.
    """
    if not unit.per_person:
        return Guarantee(Unit.ADD_REMOVE, event, unprotected).to(unit)
    if unit is Unit.CHANGE_LABELS_OF_PERSON:
        return Guarantee(unit, _two(event.base()), unprotected)
    return Guarantee(Unit.ADD_REMOVE_PERSON, event.base(), unprotected).to(unit)


def implied_units(unit: Unit) -> tuple[Unit, ...]:
    """The other units under which a guarantee holds too, some at another privacy cost."""
    return tuple(target for source, target in _CONVERSIONS if source is unit)


def _same(event: Event) -> Event:
    return event


def _two(event: Event) -> Event:
    return event.for_group(2)


_CONVERSIONS: dict[tuple[Unit, Unit], Callable[[Event], Event]] = {
    (Unit.ADD_REMOVE, Unit.REPLACE): _two,
    (Unit.ADD_REMOVE, Unit.CHANGE_LABEL): lambda event: event.for_label_change(),
    (Unit.REPLACE, Unit.CHANGE_LABEL): _same,
    (Unit.ADD_REMOVE_PERSON, Unit.REPLACE_PERSON): _two,
    (Unit.ADD_REMOVE_PERSON, Unit.ADD_REMOVE): lambda event: event.for_record_of_person(),
    (Unit.ADD_REMOVE_PERSON, Unit.REPLACE): _two,
    (Unit.ADD_REMOVE_PERSON, Unit.CHANGE_LABEL): _two,
    (Unit.REPLACE_PERSON, Unit.REPLACE): _same,
    (Unit.REPLACE_PERSON, Unit.CHANGE_LABEL): _same,
    (Unit.CHANGE_LABELS_OF_PERSON, Unit.CHANGE_LABEL): _same,
}
