"""The ledger: what was spent on a data set so far, in an append-only file beside it.

Each line is one JSON object under a declared identity of the private data. (A hash of the data as
its identity would itself be private, and would change with a copy.) An `allow` line states the
allowance; the last one is in force. A `charge` line records a guarantee before its noise is drawn
and is never refunded. Both record what is left after them, in the currency of the allowance: the
privacy parameter that is added up (`allowance.py`). An exclusive lock is held from reading the
balance to writing the charge, so two processes cannot spend the same allowance. Lines are hashed
(`chain.py`).
"""

from __future__ import annotations

import errno
import math
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

from tacit.compute.documents import MOST_BYTES
from tacit.compute.locks import lock
from tacit.errors import InputError, LedgerError, excerpt, quoted
from tacit.privacy.account import Account, balance, figure
from tacit.privacy.allowance import Allowance
from tacit.privacy.budget import Budget
from tacit.privacy.chain import Chain
from tacit.privacy.decimals import NONE_LEFT, written
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.ledger_note import has_note, note
from tacit.privacy.unit import Unit

_UNREADABLE = (ArithmeticError, AttributeError, KeyError, RecursionError, TypeError, ValueError)
ENDING = ".ledger.jsonl"
_PATIENCE = 1.0  # seconds to wait for the first entry of a file that another process creates


class Ledger:
    """The ledger of one data set.

    Parameters
    ----------
    path : str or Path
        The file; `allow` creates it. A charge to a file that does not exist is refused.
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
            raise LedgerError(
                f"identity={quoted(identity)} must name the private data; pass for example 'survey'"
            )
        if not identity.isprintable():
            raise LedgerError(
                f"identity={quoted(identity)} must be printable text; pass for example 'survey'"
            )
        self.path = Path(path).resolve()
        self.identity = identity
        self._data: Path | None = None  # the data beside which the file lies

    @classmethod
    def beside(cls, data: str | Path, identity: str) -> Ledger:
        """The ledger beside a store's folder or a data file."""
        data = Path(data).resolve()  # a link to the data shares the ledger of the data
        ledger = cls(data.with_name(data.name + ENDING), identity)
        ledger._data = data
        return ledger

    @classmethod
    def in_use(cls, path: Path | None, data: str | Path, identity: str) -> Ledger | None:
        """Return the ledger that counts what is spent on the data, or None if there is none.

        It is the ledger at `path`, which must exist. Without a path it is the ledger beside the
        data or, since data may have been renamed, a ledger in the same folder that has entries of
        the identity.

        Raises
        ------
        LedgerError
            If the ledger at `path` is missing, several have entries of the identity, or the store
            notes a ledger that is not found.
        """
        if path is not None:
            named = cls(path, identity)
            named._check_exists()
            return named

        beside = cls.beside(data, identity)
        if beside.path.exists():
            return beside

        candidates = [cls(file, identity) for file in sorted(beside.path.parent.glob(f"*{ENDING}"))]
        ledgers = [ledger for ledger in candidates if not ledger.account().empty]
        if len(ledgers) > 1:
            listed = ", ".join(ledger.path.name for ledger in ledgers)
            raise LedgerError(
                f"{listed} beside {data} all have entries of {identity!r}; name one with --ledger"
            )
        if ledgers:
            return ledgers[0]
        if has_note(Path(data).resolve()):
            raise LedgerError(
                f"{data} notes a ledger of {identity!r}, and none is beside it; name it with"
                f" --ledger FILE, or start another with tacit ledger {data} --new --allow ..."
            )
        return None

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r}, identity={self.identity!r})"

    def allow(
        self,
        budget: Budget | str,
        unit: Unit | str = Unit.ADD_REMOVE,
        currency: str | None = None,
        most_records: int | None = None,
    ) -> None:
        """State the allowance, which must cover what was already spent; create the file if it does
        not exist.

        State it before the first charge. If you raise it later, the new value may depend on
        released results. The ledger then records what was spent, but the allowance is no longer a
        guarantee.

        Parameters
        ----------
        budget : Budget or str
        unit : Unit or str
            Charges are converted to it and then added up.
        currency : {"rho", "epsilon", "mu", "renyi"}, optional
            The privacy parameter in which charges are added up; see `tacit.privacy.allowance`. Only
            a budget epsilon=...,delta=... leaves a choice: "mu" (default), or "renyi", which also
            gives a finite cost to zCDP guarantees and private hyperparameter searches.
        most_records : int, optional
            For a unit per person: the most records that a person has. Charges per record are then
            converted by `Guarantee.per_person`, and are refused without it.

        Raises
        ------
        LedgerError
            If more than this was already spent, or charges were made under another unit or
            currency.
        BudgetError, InputError
            If the currency does not count the budget, or `most_records` does not fit the unit.
        """
        allowance = Allowance.of(budget, unit, currency, most_records)
        with self._locked(create=True) as file:
            chain, account = self._read(file)
            before = account.allowance
            if before is not None and not account.untouched and before.kind != allowance.kind:
                against = f"{self.path} has charges against {before}, counted in {before.kind}"
                raise LedgerError(
                    f"allowance {allowance} is counted in {allowance.kind}, and {against}; state it"
                    " in the same kind"
                )
            for charge in account.charges:
                self._check_unit(allowance, charge.guarantee, charge.what)
            left = allowance.after([charge.guarantee for charge in account.charges])
            if left is None:
                spent = Guarantee(
                    allowance.unit, account.with_allowance(allowance, NONE_LEFT).spent
                )
                recorded = f"{self.path} records as spent: {spent.figures()}"
                raise LedgerError(
                    f"allowance {allowance} is below what {recorded}; it must cover what was spent"
                )
            stated = {
                "budget": str(allowance.budget),
                "unit": allowance.unit.value,
                "currency": allowance.currency,
            }
            declared = {} if most_records is None else {"most_records": most_records}
            self._append(
                file, chain, account, {"kind": "allow", **stated, **declared, "left": written(left)}
            )
        if self._data is not None:
            self.note_in(self._data)

    def note_in(self, data: Path) -> None:
        """Note in the manifest of a store that a ledger counts what is spent on it; warn if it
        cannot be written.
        """
        try:
            note(data)
        except (OSError, ValueError) as error:
            fault = (
                f"{data} cannot note that {self.path.name} counts what is spent on it"
                f" ({excerpt(str(error))})"
            )
            warnings.warn(
                f"{fault}; where the store is moved, name the ledger with --ledger", stacklevel=3
            )

    def charge(self, guarantee: Guarantee, what: str) -> None:
        """Record a guarantee before its noise is drawn; personal budgets are charged at the most
        expensive group's cost. If the file states no allowance for any identity, the charge is
        recorded and nothing is limited.

        Raises
        ------
        LedgerError
            If the file does not exist or has no entry of this identity, or if the charge would
            overdraw the allowance or has no finite cost in its currency; nothing is recorded then.
        """
        with self._locked(create=False) as file:
            chain, account = self._read(file)
            self._append(file, chain, account, self._charge_entry(account, guarantee, what))

    def check(self, guarantee: Guarantee, what: str) -> None:
        """Raise the error that `charge` would raise now, and record nothing."""
        self._check_exists()
        self._charge_entry(self.account(), guarantee, what)

    def _charge_entry(self, account: Account, guarantee: Guarantee, what: str) -> dict[str, Any]:
        what = excerpt(what)
        entry: dict[str, Any] = {"kind": "charge", "what": what, "guarantee": guarantee.to_json()}
        if account.allowance is not None:
            return entry | {
                "left": written(self._left(account, account.allowance, guarantee, what))
            }
        if account.allowed or (account.empty and account.others):
            listed = excerpt(", ".join(account.allowed or account.others))
            raise LedgerError(
                f"ledger {self.path} is of {listed} and allows nothing for {self.identity!r}; name"
                " the ledger of these data, or state what may be spent on them (tacit ledger DATA"
                " --new --file FILE --allow ...)"
            )
        return entry

    def _check_unit(self, allowance: Allowance, guarantee: Guarantee, what: str) -> None:
        """Refuse a charge that does not convert to the unit of the allowance."""
        try:
            allowance.converted(guarantee)
        except InputError as error:
            remedy = f"keep another ledger for it (--allow ... --unit {guarantee.unit})"
            if (
                allowance.unit.per_person
                and not guarantee.unit.per_person
                and allowance.most_records is None
            ):
                remedy = (
                    f"learn under {allowance.unit}, or declare the most records of a person"
                    " (--most-records)"
                )
            raise LedgerError(
                f"{excerpt(what)} is private under {guarantee.unit}, which does not convert to"
                f" {allowance.unit}, the unit of {self.path}; {remedy}"
            ) from error

    def _left(
        self, account: Account, allowance: Allowance, guarantee: Guarantee, what: str
    ) -> Decimal:
        """Return what the charge leaves of the allowance; an error if it does not fit."""
        self._check_unit(allowance, guarantee, what)
        left = account.after(guarantee)
        if left is not None:
            return left
        spent = f"the ledger {self.path}: {balance(account)}"
        exact = account.untouched and allowance.budget.kind == "approx"
        unpriced = None if exact else allowance.unpriced(guarantee)
        unit = "" if allowance.unit is Unit.ADD_REMOVE else f" --unit {allowance.unit}"
        if unpriced is not None and unpriced.bounded:
            other = (
                "rho=... or"
                f" epsilon=...,delta=...{' with currency renyi' * math.isinf(unpriced.mu)}"
            )
            raise LedgerError(
                f"{what}, {unpriced.describe()}, has no finite privacy cost in"
                f" {allowance.currency}, the currency of {spent}; choose another method, or keep a"
                f" ledger that allows {other}{unit}"
            )
        raise LedgerError(
            f"{what} at {figure(account, guarantee, exact=exact)} would overdraw {spent}; spend"
            " less: an allowance that is raised after a charge is only a record and no limit"
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
            raise LedgerError(
                f"ledger {self.path} cannot be read ({error.strerror}); check its permissions"
            ) from error

    def _check_exists(self) -> None:
        if not self.path.exists():
            raise LedgerError(
                f"ledger {self.path} does not exist; check its name, or start it by tacit ledger"
                f" DATA --new --file {self.path.name} --allow ... (in Python Ledger.allow)"
            )

    @contextmanager
    def _locked(self, *, create: bool) -> Iterator[IO[bytes]]:
        """The file, open for appending and locked; a file that is created here and gets no entry is
        removed again.
        """
        created = False
        try:
            if create:
                with suppress(FileExistsError):
                    file = self.path.open("xb+", buffering=0)
                    created = True
            if not created:
                self._check_file()
                file = open(self.path, "ab+", buffering=0, opener=None if create else _existing)  # noqa: SIM115
        except OSError as error:
            if not create:
                self._check_exists()
            raise LedgerError(
                f"ledger {self.path} cannot be written ({error.strerror}); choose another"
            ) from error
        with file:
            try:
                _lock(file, self.path)  # released when the file is closed, also by a crash
                if not self.path.exists() or not os.path.samestat(
                    os.fstat(file.fileno()), self.path.stat()
                ):
                    raise LedgerError(
                        f"ledger {self.path} was replaced while it was opened; try again"
                    )
                yield file
            finally:
                if created and os.fstat(file.fileno()).st_size == 0:
                    self.path.unlink(missing_ok=True)

    def _check_file(self) -> None:
        """Refuse what is not a plain file, and an empty file, unless another process is creating
        it.
        """
        if self.path.exists() and not self.path.is_file():
            raise LedgerError(f"ledger {self.path} is not a plain file; choose another")
        deadline = time.monotonic() + _PATIENCE
        while self.path.exists() and self.path.stat().st_size == 0:
            if time.monotonic() > deadline:
                remedy = "restore it from a copy, or delete it if nothing was ever charged"
                raise LedgerError(f"ledger {self.path} is empty, so its entries are lost; {remedy}")
            time.sleep(0.01)

    def _append(
        self, file: IO[bytes], chain: Chain, account: Account, entry: dict[str, Any]
    ) -> None:
        moment = datetime.now(UTC).isoformat(timespec="seconds")
        line = chain.next({"time": moment, "identity": self.identity} | entry)
        try:  # a line that cannot be read back would make the ledger useless
            account.with_entry(Chain().read(line, compare=False))
        except _UNREADABLE as error:
            raise LedgerError(
                f"the entry cannot be recorded ({excerpt(str(error))}); nothing is charged"
            ) from error
        length = file.seek(0, os.SEEK_END)
        try:
            if file.write(line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file.fileno())
        except OSError as error:
            os.truncate(file.fileno(), length)
            raise LedgerError(
                f"ledger {self.path} cannot be written ({error.strerror}); nothing is charged"
            ) from error

    def _read(self, file: IO[bytes]) -> tuple[Chain, Account]:
        """The chain of lines, which the next line continues, and the account of this identity."""
        chain, account = Chain(), Account()
        others = set[str]()
        allowed = set[str]()
        size = file.seek(0, os.SEEK_END)
        if size > MOST_BYTES:
            raise LedgerError(
                f"ledger {self.path} has {size} bytes, more than {MOST_BYTES}; start another file"
            )
        file.seek(0)
        for number, line in enumerate(file.read().splitlines(keepends=True), 1):
            try:
                entry = chain.read(line)
                if not isinstance(entry["identity"], str):
                    raise ValueError(f"identity {quoted(entry['identity'])} is not text")
                if entry["identity"] == self.identity:
                    account = account.with_entry(entry)
                else:
                    others.add(entry["identity"])
                    if entry["kind"] == "allow":
                        allowed.add(entry["identity"])
            except _UNREADABLE as error:
                remedy = "restore the file from a copy"
                if not line.endswith(b"\n"):  # the last line was cut off
                    remedy += ", or remove this line if no release came of the fit that wrote it"
                fault = f"is not a complete entry ({excerpt(str(error))})"
                raise LedgerError(
                    f"line {number} of ledger {self.path} {fault}; {remedy}"
                ) from error
        return chain, replace(account, others=tuple(sorted(others)), allowed=tuple(sorted(allowed)))


def _existing(path: str, flags: int) -> int:
    """Open a file as `open` does, but never create it."""
    return os.open(path, flags & ~os.O_CREAT)


def _lock(file: IO[bytes], path: Path) -> None:
    try:
        lock(file)
    except OSError as error:
        raise LedgerError(
            f"ledger {path} cannot be locked ({error.strerror}), so two processes could spend the"
            " same allowance; keep it on a file system with locks"
        ) from error
