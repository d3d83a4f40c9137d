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
from tacit.privacy.decimals import rounded_up
from tacit.privacy.events import Event, compose, event_from_json
from tacit.privacy.unit import Unit
from tacit.privacy.words import DECISIVE, in_words, most_expensive

__all__ = ["Guarantee", "guarantee_under", "implied_units", "rounded_up"]

THIS_RUN = "this run only"
DELTAS = (1e-5, 1e-6, 1e-9)
"""Deltas at which epsilon is stated."""
FALSE_POSITIVE_RATES = (0.001, 0.01, 0.1)
"""False-positive rates at which the largest true-positive rate of an attack is stated."""
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

        events = [self.event, *(event for _, event in self.groups)]
        has_parallel_events = any(event.base() != event for event in events)
        if self.unit.per_person and has_parallel_events:
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
        return _finite(rho)

    @property
    def mu(self) -> float | None:
        """Gaussian-DP parameter of the most expensive group; None if there is none."""
        mu = max(event.mu for event in self.totals())
        return _finite(mu)

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
        if group:
            group_name = group
        else:
            # the numbers below are then those of the group whose records cost most
            epsilons = {name: self.epsilon(DECISIVE, name) for name, _ in self.groups}
            group_name = most_expensive(epsilons)

        return in_words(
            self.unit,
            self.epsilon(DECISIVE, group),
            self.epsilon(0.0, group),
            self._advantage(group),
            group_name,
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
        conversion = _CONVERSIONS.get((self.unit, unit))
        if conversion is not None:
            return self._changed(unit, conversion)

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
        unit = _PER_PERSON.get(self.unit)
        if unit is None:
            fault = "says nothing about another number of records"
            if self.unit.per_person:
                fault = "is already per person"
            raise InputError(
                f"unit={self.unit} {fault}; convert a guarantee under add-remove or change-label"
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

        # A person is a group of records. Group privacy holds for any of them, so also where all are
        # in one class: nothing is parallel then.
        guarantee = self._changed(unit, lambda event: event.for_group(most_records).base())
        declaration = f"that nobody has more than {most_records} records (declared)"
        return replace(guarantee, unprotected=(*self.unprotected, declaration))

    def _changed(self, unit: Unit, conversion: Callable[[Event], Event]) -> Guarantee:
        """The guarantee under another unit, each of its events converted."""
        groups = tuple((name, conversion(event)) for name, event in self.groups)
        return replace(self, unit=unit, event=conversion(self.event), groups=groups)

    def without_groups(self, cost: Callable[[Event], float]) -> Guarantee:
        """The same guarantee with every record charged at the most expensive group's cost.

        Groups of equal cost, such as those that have no finite cost, are compared by rho.
        """
        largest = max(self.totals(), key=lambda total: (cost(total), total.rho))
        return replace(self, event=largest, groups=())

    def statement(self, delta: float | None = None, *, opening: str = "The release hides") -> str:
        """The guarantee in words: what holds, under which unit, and what is not covered; at the
        budget's delta. `opening` says what hides it, where that is no release of a learner.
        """
        if delta is None:
            delta = self.delta or STATED_AT

        lines = [f"{opening} {self.unit.hidden}, up to:"]
        if not self.groups:
            lines.append(f"  {self.figures(None, delta)}")
        for name, _ in self.groups:
            lines.append(f"  {name}: {self.figures(name, delta)}")
        if self.unit in (Unit.ADD_REMOVE, Unit.ADD_REMOVE_PERSON):
            for unit in implied_units(self.unit):
                lines.append(f"  under unit {unit.value}: {self.to(unit).figures(None, delta)}")
        if self.bounded:
            lines += self._against_attacks()
        lines.append(self.in_words())

        # With groups, there may be no event that counts for every group.
        if not self.groups or self.event.counted():
            lines.append(f"Sum of: {self.event.describe()}.")
        for name, event in self.groups:
            lines.append(f"For {name} sum of: {event.describe()}.")

        unprotected = ", ".join(self.unprotected) or "nothing beyond the public arguments"
        lines.append(f"Not protected: {unprotected}.")
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
        group = ""
        if len(self.groups) > 1:
            group = " (of the group whose records cost most)"
        epsilons = [f"{rounded_up(self.epsilon(delta))} at {delta:g}" for delta in DELTAS]
        rates = [
            f"{rounded_up(self.attack_rate(rate))} at {rate:g}" for rate in FALSE_POSITIVE_RATES
        ]

        attacker = "Attacks"
        bound = "at most "
        if self.attained:
            attacker = "The best attack"
            bound = "up to "
        return [
            f"Epsilon at delta{group}: {', '.join(epsilons)}.",
            (
                f"{attacker}{group}: true-positive rate {bound}{', '.join(rates)} (false-positive"
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
        events = dict(self.groups)
        if group is not None:
            if group not in events:
                raise InputError(
                    f"group={group!r} is not one of {list(events)}; name one, or leave it out for"
                    " the largest"
                )
            return [compose((self.event, events[group]))]

        if not events:
            return [self.event]
        return [compose((self.event, event)) for event in events.values()]

    def figures(self, group: str | None = None, delta: float = STATED_AT) -> str:
        """The numbers of the statement on one line: of this group, or each at its largest over the
        groups.
        """
        totals = self.totals(group)
        if not all(total.bounded for total in totals):
            return "no bound: this is not private"

        pure = max(total.pure for total in totals)
        rho = max(total.rho for total in totals)
        mu = max(total.mu for total in totals)

        numbers = []
        if math.isfinite(pure):
            numbers.append(f"epsilon = {rounded_up(pure)} (pure)")
        numbers.append(
            f"epsilon = {rounded_up(self.epsilon(delta, group))} at delta = {rounded_up(delta)}"
        )
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
        return Guarantee(unit, _for_two(event.base()), unprotected)
    return Guarantee(Unit.ADD_REMOVE_PERSON, event.base(), unprotected).to(unit)


def implied_units(unit: Unit) -> tuple[Unit, ...]:
    """The other units under which a guarantee holds too, some at another privacy cost."""
    return tuple(target for source, target in _CONVERSIONS if source is unit)


def _finite(parameter: float) -> float | None:
    """Return a privacy parameter; None if there is none, which events state as infinity."""
    if not math.isfinite(parameter):
        return None
    return parameter


def _identity(event: Event) -> Event:
    return event


def _for_two(event: Event) -> Event:
    return event.for_group(2)


# From a unit, to another unit: the events under the other one. A replacement is two changes, a
# removal and an addition; `Guarantee.to` gives the reason of each.
_CONVERSIONS: dict[tuple[Unit, Unit], Callable[[Event], Event]] = {
    (Unit.ADD_REMOVE, Unit.REPLACE): _for_two,
    (Unit.ADD_REMOVE, Unit.CHANGE_LABEL): lambda event: event.for_label_change(),
    (Unit.REPLACE, Unit.CHANGE_LABEL): _identity,
    (Unit.ADD_REMOVE_PERSON, Unit.REPLACE_PERSON): _for_two,
    (Unit.ADD_REMOVE_PERSON, Unit.ADD_REMOVE): lambda event: event.for_record_of_person(),
    (Unit.ADD_REMOVE_PERSON, Unit.REPLACE): _for_two,
    (Unit.ADD_REMOVE_PERSON, Unit.CHANGE_LABEL): _for_two,
    (Unit.REPLACE_PERSON, Unit.REPLACE): _identity,
    (Unit.REPLACE_PERSON, Unit.CHANGE_LABEL): _identity,
    (Unit.CHANGE_LABELS_OF_PERSON, Unit.CHANGE_LABEL): _identity,
}

# The unit per person to which a unit per record converts by group privacy, if any.
_PER_PERSON = {
    Unit.ADD_REMOVE: Unit.ADD_REMOVE_PERSON,
    Unit.CHANGE_LABEL: Unit.CHANGE_LABELS_OF_PERSON,
}
