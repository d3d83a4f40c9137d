"""What a ledger says about one data set: its allowance, its charges, and what is left of the
allowance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from tacit.errors import excerpt, quoted
from tacit.privacy.allowance import Allowance, free
from tacit.privacy.decimals import NONE_LEFT, exceeds, read
from tacit.privacy.events import Event, compose
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.unit import Unit

_NO_BALANCE = "it does not state what is left of the allowance"


@dataclass(frozen=True)
class Charge:
    """A recorded use of the data: when, what, and the guarantee it was charged at."""

    time: str
    what: str
    guarantee: Guarantee


@dataclass(frozen=True)
class Account:
    """What the ledger says about one identity."""

    allowance: Allowance | None = None
    """The allowance in force."""
    charges: tuple[Charge, ...] = ()
    left: Decimal | None = None
    """What the charges leave, in the currency of the allowance; None without an allowance."""
    first: Allowance | None = None
    """The allowance in force at the first charge that costs something; before it, the latest."""
    others: tuple[str, ...] = ()
    """Other identities that the same file has entries of."""
    allowed: tuple[str, ...] = ()
    """Other identities for which the same file states an allowance."""
    since: str = ""
    """When the first entry was made; empty without entries. Uses before were not recorded."""

    @property
    def unit(self) -> Unit:
        """The unit in which charges are added up: without an allowance the unit of all charges, if
        they share one.
        """
        if self.allowance is not None:
            return self.allowance.unit
        units = {charge.guarantee.unit for charge in self.charges}
        return units.pop() if len(units) == 1 else Unit.ADD_REMOVE

    @property
    def spent(self) -> Event:
        """The sum of all charges under the allowance's unit; personal budgets at the most expensive
        group's cost.
        """

        def cost(event: Event) -> float:
            return event.rho if self.allowance is None else self.allowance.cost(event)

        return compose(
            self.converted(charge.guarantee).without_groups(cost).event for charge in self.charges
        )

    def converted(self, guarantee: Guarantee) -> Guarantee:
        """The guarantee in the unit of the account, in which charges are added up."""
        return (
            guarantee.to(self.unit)
            if self.allowance is None
            else self.allowance.converted(guarantee)
        )

    @property
    def untouched(self) -> bool:
        """Whether no charge has a privacy cost, so that nothing was learned from the data yet."""
        return all(free(charge.guarantee) for charge in self.charges)

    @property
    def empty(self) -> bool:
        """Whether the ledger has no entry of this identity."""
        return self.allowance is None and not self.charges

    @property
    def caveat(self) -> str:
        """Why the sum of the charges is not guaranteed to be within the allowance; empty if it
        is.
        """
        if self.allowance is None or self.untouched:
            return ""
        if self.first is None:
            return (
                "the allowance was stated after the first charge, so it is a record and no"
                " guarantee"
            )
        if self.allowance == self.first:
            return ""
        if self.allowance.kind == self.first.kind:
            of_first = self.first.after([charge.guarantee for charge in self.charges])
            if of_first is not None and self.left is not None and not exceeds(self.left, of_first):
                return f"lowered after the first charge; what is guaranteed is {self.first}"
        return (
            f"raised from {self.first} after the first charge, so it is a record and no guarantee"
        )

    def after(self, guarantee: Guarantee) -> Decimal | None:
        """What another charge would leave of the allowance; None if it does not fit."""
        assert self.allowance is not None
        if self.untouched:
            return self.allowance.after_first(guarantee)
        return self.allowance.after_next(guarantee, self.left or NONE_LEFT)

    def with_allowance(self, allowance: Allowance, left: Decimal) -> Account:
        """This account once an allowance is stated that the charges so far leave `left` of."""
        return replace(
            self, allowance=allowance, left=left, first=allowance if self.untouched else self.first
        )

    def with_entry(self, entry: dict[str, Any]) -> Account:
        """This account after another line of the ledger."""
        left = read(entry["left"]) if "left" in entry else None
        if left is not None and exceeds(NONE_LEFT, left):
            raise ValueError(f"left={left} must be zero or positive")
        since = self.since or str(entry["time"])
        if entry["kind"] == "allow":
            terms = entry["budget"], entry["unit"], entry["currency"], entry.get("most_records")
            if left is None:
                raise ValueError(_NO_BALANCE)
            return replace(self, since=since).with_allowance(Allowance.of(*terms), left)
        if entry["kind"] != "charge":
            raise ValueError(f"kind {quoted(entry['kind'])} is not known")

        if left is None and self.allowance is not None:
            raise ValueError(_NO_BALANCE)
        guarantee = Guarantee.from_json(entry["guarantee"])
        charge = Charge(str(entry["time"]), str(entry["what"]), guarantee)
        return replace(self, charges=(*self.charges, charge), left=left, since=since)


def figure(account: Account, guarantee: Guarantee, *, exact: bool = False) -> str:
    """The privacy cost of a guarantee in words: in the currency of the allowance, else as rho or as
    epsilon.

    With `exact`, the cost of a first charge to an approximate allowance: its epsilon.
    """
    guarantee = guarantee if account.allowance is None else account.converted(guarantee)
    delta = 1e-6
    if account.allowance is None:
        if guarantee.rho is not None:
            return f"rho={guarantee.rho:.6g}"
    else:
        delta = account.allowance.budget.delta or 0.0
        if not exact and math.isfinite(cost := account.allowance.cost_of(guarantee)):
            return account.allowance.amount(cost)
    return f"epsilon={guarantee.epsilon(delta):.6g}" + (f" at delta={delta:g}" if delta else "")


def balance(account: Account) -> str:
    """What is allowed and what was spent, in words."""
    charges = f"{len(account.charges)} charge{'' if len(account.charges) == 1 else 's'}"
    before = (
        "" if account.empty else f"; uses before {excerpt(account.since[:10])} are not recorded"
    )
    if account.allowance is None:
        return f"{charges}, no allowance stated{before}"
    spent = account.allowance.spent(account.left or NONE_LEFT)
    caveat = f" ({account.caveat})" if account.caveat else ""
    return (
        f"{spent} of {account.allowance} spent in {charges} under unit"
        f" {account.unit.value}{caveat}{before}"
    )
