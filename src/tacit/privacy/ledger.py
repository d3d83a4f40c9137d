"""The ledger: what was spent on a data set so far, in an append-only file beside it.

Each line is one JSON object under a declared identity of the private data. (A hash of the data as its identity would
itself be private, and would change with a copy.) An `allow` line states the allowance; the last one is in force. A
`charge` line records a guarantee before its noise is drawn and is never refunded. Both record what is left after them,
in the currency of the allowance: the privacy parameter that is added up (`allowance.py`). An exclusive lock is held
from reading the balance to writing the charge, so two processes cannot spend the same allowance. Lines are hashed
(`chain.py`).
"""

from __future__ import annotations

import errno
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

from tacit.compute.documents import MOST_BYTES
from tacit.compute.locks import lock
from tacit.errors import InputError, LedgerError, excerpt, quoted
from tacit.privacy.account import Account, balance, figure
from tacit.privacy.allowance import NONE_LEFT, Allowance
from tacit.privacy.budget import Budget
from tacit.privacy.chain import Chain
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.unit import Unit

_UNREADABLE = (ArithmeticError, AttributeError, KeyError, RecursionError, TypeError, ValueError)
_PATIENCE = 1.0  # seconds to wait for the first entry of a file that another process creates


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
            raise LedgerError(f"identity={quoted(identity)} must name the private data; pass for example 'survey'")
        if not identity.isprintable():
            raise LedgerError(f"identity={quoted(identity)} must be printable text; pass for example 'survey'")
        self.path = Path(path).resolve()
        self.identity = identity

    @classmethod
    def beside(cls, data: str | Path, identity: str) -> Ledger:
        """The ledger beside a store's folder or a data file."""
        data = Path(data).resolve()  # a link to the data shares the ledger of the data
        return cls(data.with_name(data.name + ".ledger.jsonl"), identity)

    @classmethod
    def in_use(cls, path: Path | None, data: str | Path, identity: str) -> Ledger | None:
        """The ledger at `path`; without a path, the ledger beside the data, if its file exists."""
        if path is not None:
            return cls(path, identity)
        beside = cls.beside(data, identity)
        return beside if beside.path.exists() else None

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r}, identity={self.identity!r})"

    def allow(
        self,
        budget: Budget | str,
        unit: Unit | str = Unit.ADD_REMOVE,
        currency: str | None = None,
        most_records: int | None = None,
    ) -> None:
        """State the allowance; it must cover what was already spent.

        State it before the first charge. If you raise it later, the new value may depend on released results. The
        ledger then records what was spent, but the allowance is no longer a guarantee.

        Parameters
        ----------
        budget : Budget or str
        unit : Unit or str
            Charges are converted to it and then added up.
        currency : {"rho", "epsilon", "mu", "renyi"}, optional
            The privacy parameter in which charges are added up; see `tacit.privacy.allowance`. Only a budget
            epsilon=...,delta=... leaves a choice: "mu" (default), or "renyi", which also gives a finite cost to zCDP
            guarantees and private hyperparameter searches.
        most_records : int, optional
            For a unit per person: the most records that a person has. Charges per record are then converted by
            `Guarantee.per_person`, and are refused without it.

        Raises
        ------
        LedgerError
            If more than this was already spent, or charges were made under another unit or currency.
        BudgetError, InputError
            If the currency does not count the budget, or `most_records` does not fit the unit.
        """
        allowance = Allowance.of(budget, unit, currency, most_records)
        with self._locked() as file:
            chain, account = self._read(file)
            before = account.allowance
            if before is not None and not account.untouched and before.kind != allowance.kind:
                against = f"{self.path} has charges against {before}, counted in {before.kind}"
                raise LedgerError(
                    f"allowance {allowance} is counted in {allowance.kind}, and {against}; state it in the same kind"
                )
            for charge in account.charges:
                self._check_unit(allowance, charge.guarantee, charge.what)
            left = allowance.after([charge.guarantee for charge in account.charges])
            if left is None:
                spent = Guarantee(allowance.unit, account.with_allowance(allowance, NONE_LEFT).spent)
                raise LedgerError(
                    f"allowance {allowance} is below what {self.path} records as spent: {spent.figures()}; allow more"
                )
            stated = {"budget": str(allowance.budget), "unit": allowance.unit.value, "currency": allowance.currency}
            declared = {} if most_records is None else {"most_records": most_records}
            self._append(file, chain, account, {"kind": "allow", **stated, **declared, "left": str(left)})

    def charge(self, guarantee: Guarantee, what: str) -> None:
        """Record a guarantee before its noise is drawn; personal budgets are charged at the most expensive group's
        cost. If the file states no allowance for any identity, the charge is recorded and nothing is limited.

        Raises
        ------
        LedgerError
            If it would overdraw the allowance, or has no finite cost in its currency; nothing is recorded then.
        """
        with self._locked() as file:
            chain, account = self._read(file)
            self._append(file, chain, account, self._charge_entry(account, guarantee, what))

    def check(self, guarantee: Guarantee, what: str) -> None:
        """Raise the error that `charge` would raise now, and record nothing."""
        self._charge_entry(self.account(), guarantee, what)

    def _charge_entry(self, account: Account, guarantee: Guarantee, what: str) -> dict[str, Any]:
        what = excerpt(what)
        entry: dict[str, Any] = {"kind": "charge", "what": what, "guarantee": guarantee.to_json()}
        if account.allowance is not None:
            return entry | {"left": str(self._left(account, account.allowance, guarantee, what))}
        if account.others:
            raise LedgerError(
                f"ledger {self.path} allows {excerpt(', '.join(account.others))} and nothing for {self.identity!r}; "
                "state an allowance for it, or use the declared identity"
            )
        return entry

    def _check_unit(self, allowance: Allowance, guarantee: Guarantee, what: str) -> None:
        """Refuse a charge that does not convert to the unit of the allowance."""
        try:
            allowance.converted(guarantee)
        except InputError as error:
            remedy = f"keep another ledger for it (--allow ... --unit {guarantee.unit})"
            if allowance.unit.per_person and not guarantee.unit.per_person and allowance.most_records is None:
                remedy = f"learn under {allowance.unit}, or declare the most records of a person (--most-records)"
            raise LedgerError(
                f"{excerpt(what)} is private under {guarantee.unit}, which does not convert to {allowance.unit}, the "
                f"unit of {self.path}; {remedy}"
            ) from error

    def _left(self, account: Account, allowance: Allowance, guarantee: Guarantee, what: str) -> Decimal:
        """What the charge leaves of the allowance; an error if it does not fit."""
        self._check_unit(allowance, guarantee, what)
        left = account.after(guarantee)
        if left is not None:
            return left
        spent = f"the ledger {self.path}: {balance(account)}"
        exact = account.untouched and allowance.budget.kind == "approx"
        unpriced = None if exact else allowance.unpriced(guarantee)
        unit = "" if allowance.unit is Unit.ADD_REMOVE else f" --unit {allowance.unit}"
        if unpriced is not None and unpriced.bounded:
            other = f"rho=... or epsilon=...,delta=...{' with currency renyi' * math.isinf(unpriced.mu)}"
            raise LedgerError(
                f"{what}, {unpriced.describe()}, has no finite privacy cost in {allowance.currency}, the currency of "
                f"{spent}; choose another method, or keep a ledger that allows {other}{unit}"
            )
        raise LedgerError(
            f"{what} at {figure(account, guarantee, exact=exact)} would overdraw {spent}; spend less, or allow more "
            f"(`tacit ledger DATA --allow ...{unit}`), which is then only a record and not a limit"
        )

    def account(self) -> Account:
        """Read the allowance and the charges; a ledger that does not exist yet is empty."""
        if not self.path.exists():
            return Account()
        self._check_file()
        try:
            with self.path.open("rb") as file:
                return self._read(file)[1]
        except OSError as error:
            raise LedgerError(f"ledger {self.path} cannot be read ({error.strerror}); check its permissions") from error

    @contextmanager
    def _locked(self) -> Iterator[IO[bytes]]:
        """The file, open for appending and locked; a file that is created here and gets no entry is removed again."""
        created = True
        try:
            try:
                file = self.path.open("xb+", buffering=0)
            except FileExistsError:
                created = False
                self._check_file()
                file = self.path.open("ab+", buffering=0)
        except OSError as error:
            raise LedgerError(f"ledger {self.path} cannot be written ({error.strerror}); choose another") from error
        with file:
            try:
                _lock(file, self.path)  # released when the file is closed, also by a crash
                if not self.path.exists() or not os.path.samestat(os.fstat(file.fileno()), self.path.stat()):
                    raise LedgerError(f"ledger {self.path} was replaced while it was opened; try again")
                yield file
            finally:
                if created and os.fstat(file.fileno()).st_size == 0:
                    self.path.unlink(missing_ok=True)

    def _check_file(self) -> None:
        """Refuse what is not a plain file, and an empty file, unless another process is creating it."""
        if self.path.exists() and not self.path.is_file():
            raise LedgerError(f"ledger {self.path} is not a plain file; choose another")
        deadline = time.monotonic() + _PATIENCE
        while self.path.exists() and self.path.stat().st_size == 0:
            if time.monotonic() > deadline:
                remedy = "restore it from a copy, or delete it if nothing was ever charged"
                raise LedgerError(f"ledger {self.path} is empty, so its entries are lost; {remedy}")
            time.sleep(0.01)

    def _append(self, file: IO[bytes], chain: Chain, account: Account, entry: dict[str, Any]) -> None:
        moment = datetime.now(UTC).isoformat(timespec="seconds")
        line = chain.next({"time": moment, "identity": self.identity} | entry)
        try:  # a line that cannot be read back would make the ledger useless
            account.with_entry(Chain().read(line, compare=False))
        except _UNREADABLE as error:
            raise LedgerError(f"the entry cannot be recorded ({excerpt(str(error))}); nothing is charged") from error
        length = file.seek(0, os.SEEK_END)
        try:
            if file.write(line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file.fileno())
        except OSError as error:
            os.truncate(file.fileno(), length)
            raise LedgerError(f"ledger {self.path} cannot be written ({error.strerror}); nothing is charged") from error

    def _read(self, file: IO[bytes]) -> tuple[Chain, Account]:
        """The chain of lines, which the next line continues, and the account of this identity."""
        chain, account, others = Chain(), Account(), set()
        size = file.seek(0, os.SEEK_END)
        if size > MOST_BYTES:
            raise LedgerError(f"ledger {self.path} has {size} bytes, more than {MOST_BYTES}; start another file")
        file.seek(0)
        for number, line in enumerate(file.read().splitlines(keepends=True), 1):
            try:
                entry = chain.read(line)
                if not isinstance(entry["identity"], str):
                    raise ValueError(f"identity {quoted(entry['identity'])} is not text")
                if "left" in entry and not chain.hashed:
                    raise ValueError("it states what is left and has no hash")
                if entry["identity"] == self.identity:
                    account = account.with_entry(entry)
                elif entry["kind"] == "allow":
                    others.add(entry["identity"])
            except _UNREADABLE as error:
                remedy = "restore the file from a copy"
                if not line.endswith(b"\n"):  # the last line was cut off
                    remedy += ", or remove this line if no release came of the fit that wrote it"
                fault = f"is not a complete entry ({excerpt(str(error))})"
                raise LedgerError(f"line {number} of ledger {self.path} {fault}; {remedy}") from error
        return chain, replace(account, others=tuple(sorted(others)))


def _lock(file: IO[bytes], path: Path) -> None:
    try:
        lock(file)
    except OSError as error:
        raise LedgerError(
            f"ledger {path} cannot be locked ({error.strerror}), so two processes could spend the same allowance; "
            "keep it on a file system with locks"
        ) from error
