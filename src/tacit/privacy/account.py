"""The account of one data set in a ledger: its allowance, its charges, and what they leave."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from tacit.errors import InputError, excerpt, quoted
from tacit.privacy.allowance import Allowance, free
from tacit.privacy.decimals import NONE_LEFT, exceeds, read, rounded_up
from tacit.privacy.domination import dominating
from tacit.privacy.events import Event, compose
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.parts import combined, part_key, part_name
from tacit.privacy.unit import Unit

# Delta at which epsilon is written where no allowance states a delta.
DELTA = 1e-6

_NO_BALANCE = "it does not state what is left of the allowance"


@dataclass(frozen=True)
class Charge:
    """A recorded use of the data: when, what, and the guarantee it was charged at."""

    time: str
    what: str
    guarantee: Guarantee
    part: str | None = None
    """The part of the records that was used; None for all of them."""


@dataclass(frozen=True)
class Left:
    """What charges leave of an allowance."""

    least: Decimal
    """Of the allowance or, with declared parts, of the part with the least left."""
    of_parts: Mapping[str, Decimal] = field(default_factory=dict)
    """Of each declared part."""

    @classmethod
    def of(cls, of_parts: Mapping[str, Decimal]) -> Left:
        """What is left with declared parts, of which there is at least one."""
        return cls(min(of_parts.values()), of_parts)


@dataclass(frozen=True)
class Account:
    """Everything that the ledger says about one identity.

    Where the allowance declares parts, they share no record, so each has the whole allowance:
    charges that name a part count for it, and all others count for every part. Without declared
    parts all charges add up, whatever they name.
    """

    allowance: Allowance | None = None
    """The allowance in force."""
    charges: tuple[Charge, ...] = ()
    left: Decimal | None = None
    """What the charges leave, in the currency of the allowance; None without an allowance. With
    declared parts it is the least that any part has left."""
    left_of_parts: Mapping[str, Decimal] = field(default_factory=dict)
    """What the charges leave of each declared part."""
    first: Allowance | None = None
    """The allowance in force at the first charge that costs something; before it, the latest."""
    others: tuple[str, ...] = ()
    """Other identities that the same file has entries of."""
    allowed: tuple[str, ...] = ()
    """Other identities for which the same file states an allowance."""
    since: str = ""
    """When the first entry was made; empty without entries. Uses before were not recorded."""
    head: str = ""
    """Hash of the last line of the file, be it of this identity or another; empty without lines."""

    @property
    def unit(self) -> Unit:
        """The unit in which charges are added up.

        Without an allowance it is the unit of all charges if they share one, else add-remove.
        """
        if self.allowance is not None:
            return self.allowance.unit
        units = {charge.guarantee.unit for charge in self.charges}
        if len(units) == 1:
            return units.pop()
        return Unit.ADD_REMOVE

    @property
    def parts(self) -> tuple[str, ...]:
        """The declared parts, if any."""
        return tuple(self.left_of_parts)

    @property
    def spent(self) -> Event:
        """The sum of all charges under the unit of the account; with declared parts, an event that
        dominates what was spent on each.

        Personal budgets count at the cost of the most expensive group. Raises an InputError if a
        charge cannot be converted to that unit.
        """
        if not self.parts:
            return self._sum(self.charges)
        return dominating(self.spent_on(part) for part in self.parts)

    def spent_on(self, part: str) -> Event:
        """The sum of the charges that count for a part."""
        return self._sum(self.charges_of(part))

    def _sum(self, charges: Sequence[Charge]) -> Event:
        """The sum of charges under the unit of the account, each at its most expensive group."""

        def cost(event: Event) -> float:
            """Order groups by their cost."""
            if self.allowance is None:
                return event.rho
            return self.allowance.cost(event)

        guarantees = [self.converted(charge.guarantee) for charge in charges]
        return compose(guarantee.without_groups(cost).event for guarantee in guarantees)

    def charges_of(self, part: str) -> tuple[Charge, ...]:
        """The charges that count for a declared part: those that name it, and those of all
        records.
        """
        return _counting(self.charges, part, self.parts)

    def left_for(self, part: str | None = None) -> Decimal | None:
        """What is left for a release of this part, or of all records; None without an allowance.

        Raises
        ------
        InputError
            If parts are declared and this is none of them.
        """
        declared = self.declared(part)
        if declared is None:
            return self.left
        return self.left_of_parts[declared]

    def declared(self, part: str | None) -> str | None:
        """The declared part of this name; None for None, or where no parts are declared."""
        if part is None or not self.parts:
            return None
        for declared in self.parts:
            if part_key(declared) == part_key(part):
                return declared
        listing = excerpt(", ".join(self.parts))
        raise InputError(
            f"part={quoted(part)} is none of the declared parts {listing}; state the allowance"
            " again with this part too"
        )

    def firsts(self) -> list[bool]:
        """For each charge, whether every earlier charge that adds up with it was free."""
        firsts = []
        all_were_charged = False
        charged_parts = set[str]()
        for charge in self.charges:
            costs_something = not free(charge.guarantee)
            if charge.part is None or not self.parts:
                # a charge of all records adds up with those of every part
                firsts.append(not all_were_charged and not charged_parts)
                all_were_charged = all_were_charged or costs_something
                continue

            key = part_key(charge.part)
            firsts.append(not all_were_charged and key not in charged_parts)
            if costs_something:
                charged_parts.add(key)
        return firsts

    def adding_up(self, unit: Unit) -> list[Guarantee]:
        """The guarantees that add up for one record, or one person where `unit` is per person.

        Charges of declared parts count as one guarantee. Parts of a unit per record may share
        persons, so for persons all charges add up.
        """
        of_parts = []
        of_all_records = []
        for charge in self.charges:
            if charge.part is not None and self.parts:
                of_parts.append((charge.part, self.converted(charge.guarantee)))
            else:
                of_all_records.append(charge.guarantee)

        parts_may_share = unit.per_person and not self.unit.per_person
        if parts_may_share or not of_parts:
            return [charge.guarantee for charge in self.charges]
        return [*of_all_records, combined(of_parts)]

    def converted(self, guarantee: Guarantee) -> Guarantee:
        """Convert a guarantee to the unit of the account, in which charges are added up."""
        if self.allowance is None:
            return guarantee.to(self.unit)
        return self.allowance.converted(guarantee)

    @property
    def untouched(self) -> bool:
        """True if every charge so far was free."""
        return all(free(charge.guarantee) for charge in self.charges)

    @property
    def empty(self) -> bool:
        """True if the ledger has no entry of this identity."""
        return self.allowance is None and not self.charges

    @property
    def caveat(self) -> str:
        """The reason why the charges may exceed the allowance; empty if they cannot."""
        if self.allowance is None or self.untouched:
            return ""
        if self.first is None:
            late = "the allowance was stated after the first charge"
            return f"{late}, so it is a record and no guarantee"
        if self.allowance == self.first:
            return ""
        if self.allowance.kind == self.first.kind:
            # Lowered if the balance is at most what the first allowance would have left.
            left_of_first = left_after_all(self.first, self.charges, self.parts)
            if left_of_first is not None and self.left is not None:
                is_lowered = not exceeds(self.left, left_of_first.least)
                if is_lowered:
                    return f"lowered after the first charge; what is guaranteed is {self.first}"
        return (
            f"raised from {self.first} after the first charge, so it is a record and no guarantee"
        )

    def after(self, guarantee: Guarantee, part: str | None = None) -> Left | None:
        """Return what another charge would leave of the allowance; None if it does not fit.

        A charge that names no declared part must fit for every part.
        """
        if not self.parts:
            left = self._after(guarantee, self.untouched, self.left or NONE_LEFT)
            return None if left is None else Left(left)

        declared = self.declared(part)
        of_parts = dict(self.left_of_parts)
        # The exact curve of a first charge takes long, and leaves the same of all untouched parts.
        left_of_untouched: Decimal | None = None
        for name in self.parts if declared is None else (declared,):
            untouched = self.untouched_part(name)
            if untouched and left_of_untouched is not None:
                left = left_of_untouched
            else:
                left = self._after(guarantee, untouched, of_parts[name])
            if left is None:
                return None

            if untouched:
                left_of_untouched = left
            of_parts[name] = left
        return Left.of(of_parts)

    def untouched_part(self, part: str) -> bool:
        """True if every charge that counts for the part was free."""
        return all(free(charge.guarantee) for charge in self.charges_of(part))

    def _after(self, guarantee: Guarantee, untouched: bool, left: Decimal) -> Decimal | None:
        """What a charge leaves of `left`; of the whole allowance if nothing was spent before."""
        assert self.allowance is not None
        if untouched:
            return self.allowance.after_first(guarantee)
        return self.allowance.after_next(guarantee, left)

    def with_allowance(self, allowance: Allowance, left: Left) -> Account:
        """Return this account with an allowance in force, of which `left` remains."""
        first = allowance if self.untouched else self.first
        return replace(
            self,
            allowance=allowance,
            left=left.least,
            left_of_parts=dict(left.of_parts),
            first=first,
        )

    def with_entry(self, entry: dict[str, Any]) -> Account:
        """Return this account after another line of the ledger."""
        since = self.since or str(entry["time"])
        if entry["kind"] == "allow":
            account = self._with_allow_entry(entry)
        elif entry["kind"] == "charge":
            account = self._with_charge_entry(entry)
        else:
            raise ValueError(f"kind {quoted(entry['kind'])} is not known")
        return replace(account, since=since)

    def _with_allow_entry(self, entry: dict[str, Any]) -> Account:
        """Return this account after an allowance was stated."""
        least = _read_least(entry)
        if least is None:
            raise ValueError(_NO_BALANCE)
        left = Left(least)
        if "left_of_parts" in entry:
            left = _read_parts(entry["left_of_parts"])

        allowance = Allowance.of(
            entry["budget"], entry["unit"], entry["currency"], entry.get("most_records")
        )
        return self.with_allowance(allowance, left)

    def _with_charge_entry(self, entry: dict[str, Any]) -> Account:
        """Return this account after a charge."""
        least = _read_least(entry)
        if least is None and self.allowance is not None:
            raise ValueError(_NO_BALANCE)
        charge = Charge(
            time=str(entry["time"]),
            what=str(entry["what"]),
            guarantee=Guarantee.from_json(entry["guarantee"]),
            part=part_name(entry["part"]) if "part" in entry else None,
        )
        charges = (*self.charges, charge)
        if not self.parts:
            return replace(self, charges=charges, left=least)

        # raises an error for a part that is not declared
        self.declared(charge.part)
        if "left_of_parts" in entry:
            of_parts = {**self.left_of_parts, **_read_parts(entry["left_of_parts"]).of_parts}
        else:
            # a version that knows no parts counts every charge for all of them
            of_parts = dict.fromkeys(self.parts, least or NONE_LEFT)
        if len(of_parts) > len(self.parts):
            raise ValueError("it names a part that is not declared")
        left = Left.of(of_parts)
        return replace(self, charges=charges, left=left.least, left_of_parts=left.of_parts)


def left_after_all(
    allowance: Allowance, charges: Sequence[Charge], parts: Sequence[str]
) -> Left | None:
    """Return what these charges leave of an allowance with these declared parts; None if they
    exceed it.
    """
    if not parts:
        left = allowance.after([charge.guarantee for charge in charges])
        return None if left is None else Left(left)

    of_parts = {}
    for part in parts:
        counting = _counting(charges, part, parts)
        left = allowance.after([charge.guarantee for charge in counting])
        if left is None:
            return None
        of_parts[part] = left
    return Left.of(of_parts)


def _counting(charges: Sequence[Charge], part: str, parts: Sequence[str]) -> tuple[Charge, ...]:
    """The charges that count for one of the declared parts: all but those of other parts."""
    others = {part_key(declared) for declared in parts} - {part_key(part)}

    def counts(charge: Charge) -> bool:
        """Tell whether a charge names no other part."""
        return charge.part is None or part_key(charge.part) not in others

    return tuple(filter(counts, charges))


def _read_least(entry: Mapping[str, Any]) -> Decimal | None:
    """What a line says is left; None if it does not say."""
    if "left" not in entry:
        return None
    return _read_left(entry["left"])


def _read_left(text: Any) -> Decimal:
    """An amount of a line that is left."""
    left = read(text)
    if exceeds(NONE_LEFT, left):
        raise ValueError(f"left={left} must be zero or positive")
    return left


def _read_parts(document: Any) -> Left:
    """What a line says is left of each part."""
    if not isinstance(document, dict) or not document:
        raise ValueError("left_of_parts is no object of parts")
    return Left.of({part_name(name): _read_left(text) for name, text in document.items()})


def figure(account: Account, guarantee: Guarantee, *, exact: bool = False) -> str:
    """Write the privacy cost of a guarantee.

    It is in the currency of the allowance, else rho or epsilon.
    With `exact`, the cost of a first charge to an approximate allowance: its epsilon.
    """
    allowance = account.allowance
    delta = DELTA
    if allowance is None:
        if guarantee.rho is not None:
            return f"rho={rounded_up(guarantee.rho)}"
    else:
        guarantee = account.converted(guarantee)
        delta = allowance.budget.delta or 0.0
        if not exact:
            cost = allowance.cost_of(guarantee)
            if math.isfinite(cost):
                return allowance.amount(cost)

    epsilon = f"epsilon={rounded_up(guarantee.epsilon(delta))}"
    if delta:
        return f"{epsilon} at delta={rounded_up(delta)}"
    return epsilon


def balance(account: Account, part: str | None = None) -> str:
    """Say in words what is allowed and what was spent: on this declared part, or at most on any."""
    charges_of_part = account.charges if part is None else account.charges_of(part)
    n_charges = len(charges_of_part)
    charges = "1 charge" if n_charges == 1 else f"{n_charges} charges"
    unrecorded = ""
    if not account.empty:
        unrecorded = f"; uses before {excerpt(account.since[:10])} are not recorded"
    if account.allowance is None:
        return f"{charges}, no allowance stated{unrecorded}"

    left = account.left_for(part) or NONE_LEFT
    spent = f"{account.allowance.spent(left)} of {account.allowance} spent"
    if part is not None:
        return f"{spent} on part {part!r} in {charges}"
    if account.parts:
        n_parts = len(account.parts)
        parts = "the only declared part" if n_parts == 1 else f"each of {n_parts} declared parts"
        spent = f"at most {spent} on {parts}"
    caveat = f" ({account.caveat})" if account.caveat else ""
    return f"{spent} in {charges} under unit {account.unit.value}{caveat}{unrecorded}"
