"""The ledger: what was spent on a data set so far, in an append-only file beside it.

One JSON object a line, each under a declared identity of the private data (not a hash of its
content, which would itself be private, and would change with a copy). `allow` lines state the
allowance, the last one in force; `charge` lines record a guarantee before its noise is drawn and are
never refunded. An exclusive lock spans reading the balance and writing the charge, so that two
processes cannot spend the same allowance.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from tacit.errors import LedgerError
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event, compose
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.unit import Unit


@dataclass(frozen=True)
class Charge:
    """One recorded use: when, what, and the guarantee it was charged at."""

    time: str
    what: str
    guarantee: Guarantee


@dataclass(frozen=True)
class Account:
    """What the ledger says of one identity: the allowance in force and all charges."""

    allowance: Budget | None
    unit: Unit
    charges: tuple[Charge, ...]
    others: tuple[str, ...] = ()
    """Other identities that the same file holds an allowance for."""

    @property
    def spent(self) -> Event:
        """The sum of all charges, under the allowance's unit."""
        return compose(charge.guarantee.to(self.unit).event for charge in self.charges)


class Ledger:
    """The ledger of one data set.

    Parameters
    ----------
    path : str or Path
        The file; it is created by the first entry.
    identity : str
        Declared name of the private data. Stores of the same records share one identity.

    Examples
    --------
    >>> import tempfile
    >>> from tacit.privacy.events import Gaussian
    >>> ledger = Ledger(Path(tempfile.mkdtemp()) / "survey.ledger.jsonl", identity="survey")
    >>> ledger.allow(Budget.zcdp(1))
    >>> ledger.charge(Guarantee(Unit.ADD_REMOVE, Gaussian(1.0)), what="first release")
    >>> ledger.account().spent.rho
    0.5
    """

    def __init__(self, path: str | Path, identity: str) -> None:
        if not isinstance(identity, str) or not identity.strip():
            raise LedgerError(f"identity={identity!r} must name the private data; pass for example identity='survey'")
        self.path = Path(path).resolve()
        self.identity = identity

    @classmethod
    def beside(cls, data: str | Path, identity: str) -> Ledger:
        """The ledger kept beside a store's folder or a data file."""
        data = Path(data).resolve()  # a link to the data shares their ledger
        return cls(data.with_name(data.name + ".ledger.jsonl"), identity)

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r}, identity={self.identity!r})"

    def allow(self, budget: Budget | str, unit: Unit | str = Unit.ADD_REMOVE) -> None:
        """State the allowance; it must cover what was already spent.

        Raises
        ------
        LedgerError
            If more than this was already spent.
        """
        budget, unit = Budget.parse(budget), Unit(unit)
        with self._locked() as file:
            account = self._read(file)
            spent = Account(budget, unit, account.charges).spent
            if not budget.permits(spent):
                so_far = Guarantee(unit, spent).figures()
                raise LedgerError(
                    f"allowance {budget} is below what {self.path} records as spent: {so_far}; allow more"
                )
            self._append(file, {"kind": "allow", "budget": str(budget), "unit": unit.value})

    def charge(self, guarantee: Guarantee, what: str) -> None:
        """Record a use before it happens; personal budgets are charged at the dearest group's.

        Raises
        ------
        LedgerError
            If it would overdraw the allowance; nothing is recorded then.
        """
        guarantee = guarantee.of_everybody()
        with self._locked() as file:
            account = self._read(file)
            if account.allowance is None and account.others:
                raise LedgerError(
                    f"ledger {self.path} allows {', '.join(account.others)} and nothing for {self.identity!r}; "
                    "state an allowance for it, or use the declared identity"
                )
            if account.allowance is not None:
                total = compose((account.spent, guarantee.to(account.unit).event))
                if not account.allowance.permits(total):
                    raise LedgerError(
                        f"{what} at {figure(account, guarantee.to(account.unit).event)} would overdraw the ledger "
                        f"{self.path}: {balance(account)}; spend less, or allow more (`tacit ledger DATA --allow ...`)"
                    )
            self._append(file, {"kind": "charge", "what": what, "guarantee": guarantee.to_json()})

    def account(self) -> Account:
        """Read the allowance and the charges; a ledger that does not exist yet is empty."""
        if not self.path.exists():
            return Account(None, Unit.ADD_REMOVE, ())
        self._check_plain()
        with self.path.open("r", encoding="utf-8", errors="replace") as file:
            return self._read(file)

    def _check_plain(self) -> None:
        if self.path.exists() and not self.path.is_file():
            raise LedgerError(f"ledger {self.path} is not a plain file; choose another")

    @contextmanager
    def _locked(self) -> Iterator[IO[str]]:
        import fcntl

        self._check_plain()
        try:
            file = self.path.open("a+", encoding="utf-8", errors="replace")
        except OSError as error:
            raise LedgerError(f"ledger {self.path} cannot be written ({error.strerror}); choose another") from error
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)  # released when the file is closed, also by a crash
            yield file

    def _append(self, file: IO[str], entry: dict[str, Any]) -> None:
        entry = {"time": datetime.now(UTC).isoformat(timespec="seconds"), "identity": self.identity} | entry
        file.write(json.dumps(entry) + "\n")
        file.flush()
        os.fsync(file.fileno())

    def _read(self, file: IO[str]) -> Account:
        file.seek(0)
        allowance, unit, charges, others = None, Unit.ADD_REMOVE, [], set()
        for number, line in enumerate(file, 1):
            identity, entry = self._parse(number, line)
            if isinstance(entry, Charge):
                charges += [entry] if identity == self.identity else []
            elif identity == self.identity:
                allowance, unit = entry
            else:
                others.add(identity)
        return Account(allowance, unit, tuple(charges), tuple(sorted(others)))

    def _parse(self, number: int, line: str) -> tuple[str, Charge | tuple[Budget, Unit]]:
        try:
            entry = json.loads(line)
            if not line.endswith("\n"):
                raise ValueError("it is cut off")
            if entry["kind"] == "allow":
                return entry["identity"], (Budget.parse(entry["budget"]), Unit(entry["unit"]))
            if entry["kind"] == "charge":
                guarantee = Guarantee.from_json(entry["guarantee"])
                return entry["identity"], Charge(entry["time"], entry["what"], guarantee)
            raise ValueError(f"kind {entry['kind']!r} is not known")
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise LedgerError(
                f"line {number} of ledger {self.path} is not a complete entry ({' '.join(str(error).split())}); if a "
                "crash cut it off, no noise was drawn after it: delete that line"
            ) from error


def figure(account: Account, event: Event) -> str:
    """What an event costs, in the terms of the allowance; without one in rho, or epsilon where there is no rho."""
    allowance = account.allowance
    if (allowance is None and math.isfinite(event.rho)) or (allowance is not None and allowance.rho is not None):
        return f"rho={event.rho:.6g}"
    delta = 1e-6 if allowance is None else allowance.delta or 0.0
    total = Guarantee(account.unit, event).epsilon(delta)
    return f"epsilon={total:.6g}" + (f" at delta={delta:g}" if delta else "")


def balance(account: Account) -> str:
    """Say what is allowed and what was spent, for people."""
    charges = f"{len(account.charges)} charge{'' if len(account.charges) == 1 else 's'}"
    if account.allowance is None:
        return f"{charges}, no allowance stated"
    spent = figure(account, account.spent)
    return f"{spent} of {account.allowance} spent in {charges} under unit {account.unit.value}"
