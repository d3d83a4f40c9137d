"""The account of one data set in a ledger: its allowance, its charges, and what they leave."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from tacit.errors import excerpt, quoted
from tacit.privacy.allowance import Allowance, free
from tacit.privacy.decimals import NONE_LEFT, exceeds, read, rounded_up
from tacit.privacy.events import Event, compose
from tacit.privacy.guarantee import Guarantee
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


@dataclass(frozen=True)
class Account:
    """Everything that the ledger says about one identity."""

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
    def spent(self) -> Event:
        """The sum of all charges under the unit of the account.

        Personal budgets count at the cost of the most expensive group. Raises an InputError if a
        charge cannot be converted to that unit.
        """

        def cost(event: Event) -> float:
            """Order groups by their cost."""
            if self.allowance is None:
                return event.rho
            return self.allowance.cost(event)

        guarantees = [self.converted(charge.guarantee) for charge in self.charges]
        return compose(guarantee.without_groups(cost).event for guarantee in guarantees)

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
            left_of_first = self.first.after([charge.guarantee for charge in self.charges])
            if left_of_first is not None and self.left is not None:
                is_lowered = not exceeds(self.left, left_of_first)
                if is_lowered:
                    return f"lowered after the first charge; what is guaranteed is {self.first}"
        return (
            f"raised from {self.first} after the first charge, so it is a record and no guarantee"
        )

    def after(self, guarantee: Guarantee) -> Decimal | None:
        """Return what another charge would leave of the allowance; None if it does not fit."""
        assert self.allowance is not None
        if self.untouched:
            return self.allowance.after_first(guarantee)
        return self.allowance.after_next(guarantee, self.left or NONE_LEFT)

    def with_allowance(self, allowance: Allowance, left: Decimal) -> Account:
        """Return this account with an allowance in force, of which `left` remains."""
        first = allowance if self.untouched else self.first
        return replace(self, allowance=allowance, left=left, first=first)

    def with_entry(self, entry: dict[str, Any]) -> Account:
        """Return this account after another line of the ledger."""
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


def balance(account: Account) -> str:
    """Say in words what is allowed and what was spent."""
    n_charges = len(account.charges)
    charges = "1 charge" if n_charges == 1 else f"{n_charges} charges"
    unrecorded = ""
    if not account.empty:
        unrecorded = f"; uses before {excerpt(account.since[:10])} are not recorded"
    if account.allowance is None:
        return f"{charges}, no allowance stated{unrecorded}"

    spent = account.allowance.spent(account.left or NONE_LEFT)
    caveat = f" ({account.caveat})" if account.caveat else ""
    return (
        f"{spent} of {account.allowance} spent in {charges} under unit {account.unit.value}"
        f"{caveat}{unrecorded}"
    )
