"""The ledger: what was spent on a data set so far, in an append-only file beside it.

Each line is one JSON object under a declared identity of the private data. (A hash of the data as
its identity would itself be private, and would change with a copy.) An `allow` line states the
allowance; the last one is in force. A `charge` line records a guarantee before its noise is drawn
and is never refunded. Both record what is left after them, in the currency of the allowance: the
privacy parameter that is added up (`allowance.py`). An exclusive lock is held from reading the
balance to writing the charge, so two processes cannot spend the same allowance. Lines are hashed
(`chain.py`).

An allowance may declare parts that share no record, or nobody's records under a unit per person. A
charge that names a part then counts for that part alone, and each part has the whole allowance.
"""

from __future__ import annotations

import errno
import math
import os
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from tacit.compute.documents import MOST_BYTES
from tacit.compute.locks import lock
from tacit.compute.remote import RemotePath, as_path
from tacit.errors import InputError, LedgerError, excerpt, quoted
from tacit.privacy.account import Account, Left, balance, figure, left_after_all
from tacit.privacy.allowance import Allowance
from tacit.privacy.budget import Budget
from tacit.privacy.chain import Chain
from tacit.privacy.decimals import NONE_LEFT, written
from tacit.privacy.guarantee import THIS_RUN, Guarantee
from tacit.privacy.ledger_note import has_note, note
from tacit.privacy.parts import part_key, part_name
from tacit.privacy.unit import Unit

ENDING = ".ledger.jsonl"

# Errors that may be raised while a line is read that is not an entry.
UNREADABLE = (ArithmeticError, AttributeError, KeyError, RecursionError, TypeError, ValueError)

# Seconds to wait for the first entry of a file that another process creates.
_PATIENCE = 1.0


def check_ledger(ledger: Any) -> None:
    """Refuse an argument that is neither a ledger nor None."""
    if not isinstance(ledger, Ledger | None):
        raise InputError(
            f"ledger={quoted(ledger)} must be a Ledger; pass tacit.Ledger.beside(store, identity)"
        )


def scope_of(ledger: Ledger | None) -> str:
    """Return the scope of the guarantee of one run, which is charged to the ledger if there is
    one.
    """
    if ledger is None:
        return THIS_RUN
    return scope_of_charge(ledger.identity)


def scope_of_charge(identity: str) -> str:
    """Return the scope of a run that was charged under this identity; a gate looks for it."""
    return f"this run, charged to the ledger of {identity!r}"


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
        data = as_path(data)
        if isinstance(data, RemotePath):
            raise LedgerError(
                f"{data} is not on this machine, where its ledger must be; name a file with"
                " --ledger (tacit ledger: --file)"
            )
        data = data.resolve()  # a link to the data shares the ledger of the data
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
            ledger = cls(path, identity)
            ledger._check_exists()
            return ledger

        # nothing lies beside data at a URL
        if isinstance(as_path(data), RemotePath):
            return None
        beside = cls.beside(data, identity)
        if beside.path.exists():
            return beside

        # The data may have been renamed without the ledger.
        candidates = [cls(file, identity) for file in sorted(beside.path.parent.glob(f"*{ENDING}"))]
        ledgers = [ledger for ledger in candidates if not ledger.account().empty]
        if len(ledgers) > 1:
            file_names = ", ".join(ledger.path.name for ledger in ledgers)
            raise LedgerError(
                f"{file_names} beside {data} all have entries of {identity!r}; name one with"
                " --ledger"
            )
        if ledgers:
            return ledgers[0]

        # The store may have been moved without the ledger.
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
        parts: Sequence[str] | None = None,
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
        parts : sequence of str, optional
            Names of parts of the data that share no record, or under a unit per person nobody's
            records (declared, and nothing checks it). Each part has the whole allowance. An
            allowance that is stated again keeps the parts; more may be named then, and none that
            was charged may be left out.

        Raises
        ------
        LedgerError
            If more than this was already spent, charges were made under another unit or currency,
            or a part that was charged is not among `parts`.
        BudgetError, InputError
            If the currency does not count the budget, `most_records` does not fit the unit, or two
            names of parts differ in case or spaces only.
        """
        allowance = Allowance.of(budget, unit, currency, most_records)
        names = None if parts is None else _part_names(parts)
        with self._locked(create=True) as file:
            chain, account = self._read(file)
            declared = account.parts if names is None else names
            self._append(file, chain, account, self._allow_entry(account, allowance, declared))
        if self._data is not None:
            self.note_in(self._data)

    def _allow_entry(
        self, account: Account, allowance: Allowance, parts: Sequence[str]
    ) -> dict[str, Any]:
        """The entry of an allowance, which must cover the charges so far in the same currency."""
        earlier = account.allowance
        if earlier is not None and not account.untouched and earlier.kind != allowance.kind:
            charges = f"{self.path} has charges against {earlier}, counted in {earlier.kind}"
            raise LedgerError(
                f"allowance {allowance} is counted in {allowance.kind}, and {charges}; state it in"
                " the same kind"
            )
        for charge in account.charges:
            self._check_unit(allowance, charge.guarantee, charge.what)

        if parts:
            self._check_charged_parts(account, parts)

        left = left_after_all(allowance, account.charges, parts)
        if left is None:
            none_left = Left(NONE_LEFT, dict.fromkeys(parts, NONE_LEFT))
            spent = account.with_allowance(allowance, none_left).spent
            figures = Guarantee(allowance.unit, spent).figures()
            raise LedgerError(
                f"allowance {allowance} is below what {self.path} records as spent: {figures}; it"
                " must cover what was spent"
            )

        entry: dict[str, Any] = {
            "kind": "allow",
            "budget": str(allowance.budget),
            "unit": allowance.unit.value,
            "currency": allowance.currency,
        }
        if allowance.most_records is not None:
            entry["most_records"] = allowance.most_records
        return entry | _left_members(left)

    def _check_charged_parts(self, account: Account, parts: Sequence[str]) -> None:
        """Refuse declared parts that leave out one with charges."""
        keys = {part_key(name) for name in parts}
        for charge in account.charges:
            if charge.part is not None and part_key(charge.part) not in keys:
                raise LedgerError(
                    f"parts={excerpt(', '.join(parts))} leaves out {charge.part!r}, which"
                    f" {self.path} has charges of; name it too"
                )

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
            # where `allow` was called
            warnings.warn(
                f"{fault}; where the store is moved, name the ledger with --ledger", stacklevel=3
            )

    def charge(self, guarantee: Guarantee, what: str, part: str | None = None) -> None:
        """Record a guarantee before its noise is drawn; personal budgets are charged at the most
        expensive group's cost. If the file states no allowance for any identity, the charge is
        recorded and nothing is limited.

        Parameters
        ----------
        guarantee : Guarantee
        what : str
            Which use of the data it is.
        part : str, optional
            The part of the records that was used alone. Where the allowance declares parts it is
            one of them, and only that part is charged; otherwise the charge counts like all others.

        Raises
        ------
        LedgerError
            If the file does not exist or has no entry of this identity, or if the charge would
            overdraw the allowance, has no finite cost in its currency, or is of a part that is not
            declared; nothing is recorded then.
        """
        with self._locked(create=False) as file:
            chain, account = self._read(file)
            self._append(file, chain, account, self._charge_entry(account, guarantee, what, part))

    def check(self, guarantee: Guarantee, what: str, part: str | None = None) -> None:
        """Raise the error that `charge` would raise now, and record nothing."""
        self._check_exists()
        self._charge_entry(self.account(), guarantee, what, part)

    def _charge_entry(
        self, account: Account, guarantee: Guarantee, what: str, part: str | None
    ) -> dict[str, Any]:
        """The entry of a charge, which must fit the allowance if there is one."""
        what = excerpt(what)
        entry: dict[str, Any] = {"kind": "charge", "what": what, "guarantee": guarantee.to_json()}
        if part is not None:
            part = part_name(part)
            part = self._declared(account, part) or part
            entry["part"] = part
        if account.allowance is not None:
            left = self._left_after(account, account.allowance, guarantee, what, part)
            return entry | _left_members(left)

        # Other data have an allowance in this file, or the file is theirs alone.
        if account.allowed or (account.empty and account.others):
            identities = excerpt(", ".join(account.allowed or account.others))
            raise LedgerError(
                f"ledger {self.path} is of {identities} and allows nothing for {self.identity!r};"
                " name the ledger of these data, or state what may be spent on them (tacit ledger"
                " DATA --new --file FILE --allow ...)"
            )
        return entry

    def _declared(self, account: Account, part: str) -> str | None:
        """The declared part of this name, if parts are declared."""
        try:
            return account.declared(part)
        except InputError as error:
            raise LedgerError(f"{self.path}: {error}") from error

    def _check_unit(self, allowance: Allowance, guarantee: Guarantee, what: str) -> None:
        """Refuse a charge that does not convert to the unit of the allowance."""
        try:
            allowance.converted(guarantee)
        except InputError as error:
            remedy = f"keep another ledger for it (--allow ... --unit {guarantee.unit})"
            record_to_person = allowance.unit.per_person and not guarantee.unit.per_person
            if record_to_person and allowance.most_records is None:
                remedy = (
                    f"learn under {allowance.unit}, or declare the most records of a person"
                    " (--most-records)"
                )
            raise LedgerError(
                f"{excerpt(what)} is private under {guarantee.unit}, which does not convert to"
                f" {allowance.unit}, the unit of {self.path}; {remedy}"
            ) from error

    def _left_after(
        self,
        account: Account,
        allowance: Allowance,
        guarantee: Guarantee,
        what: str,
        part: str | None,
    ) -> Left:
        """Return what the charge leaves of the allowance; an error if it does not fit."""
        self._check_unit(allowance, guarantee, what)
        left = account.after(guarantee, part)
        if left is None:
            raise self._overdrawn(account, allowance, guarantee, what, part)
        return left

    def _overdrawn(
        self,
        account: Account,
        allowance: Allowance,
        guarantee: Guarantee,
        what: str,
        part: str | None,
    ) -> LedgerError:
        """The error of a charge that does not fit, or has no finite cost in the currency."""
        declared = account.declared(part)
        ledger = f"the ledger {self.path}: {balance(account, declared)}"

        # The first charge to an approximate allowance counts by its exact curve.
        untouched = account.untouched if declared is None else account.untouched_part(declared)
        exact = untouched and allowance.budget.kind == "approx"
        if not exact:
            event = allowance.unpriced(guarantee)
            if event is not None and event.bounded:
                terms = "rho=... or epsilon=...,delta=..."
                if math.isinf(event.mu):
                    terms += " with currency renyi"
                if allowance.unit is not Unit.ADD_REMOVE:
                    terms += f" --unit {allowance.unit}"
                return LedgerError(
                    f"{what}, {event.describe()}, has no finite privacy cost in"
                    f" {allowance.currency}, the currency of {ledger}; choose another method, or"
                    f" keep a ledger that allows {terms}"
                )

        cost = figure(account, guarantee, exact=exact)
        return LedgerError(
            f"{what} at {cost} would overdraw {ledger}; spend less: an allowance that is raised"
            " after a charge is only a record and no limit"
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
        file, is_new = self._open(create=create)
        with file:
            try:
                # The lock is released when the file is closed, also by a crash.
                _lock(file, self.path)
                if not self._is_at_path(file):
                    raise LedgerError(
                        f"ledger {self.path} was replaced while it was opened; try again"
                    )
                yield file
            finally:
                if is_new and os.fstat(file.fileno()).st_size == 0:
                    self.path.unlink(missing_ok=True)

    def _open(self, *, create: bool) -> tuple[IO[bytes], bool]:
        """Open the file for appending; return it, and True if it was created here."""
        try:
            if create:
                with suppress(FileExistsError):
                    return self.path.open("xb+", buffering=0), True
            self._check_file()
            opener = None if create else _existing
            return open(self.path, "ab+", buffering=0, opener=opener), False
        except OSError as error:
            if not create:
                self._check_exists()
            raise LedgerError(
                f"ledger {self.path} cannot be written ({error.strerror}); choose another"
            ) from error

    def _is_at_path(self, file: IO[bytes]) -> bool:
        """Tell whether an open file is still the one at the path, and not a file it replaced."""
        if not self.path.exists():
            return False
        return os.path.samestat(os.fstat(file.fileno()), self.path.stat())

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
        """Append an entry and wait until it is on disk; a line that is cut short is removed."""
        moment = datetime.now(UTC).isoformat(timespec="seconds")
        line = chain.next({"time": moment, "identity": self.identity} | entry)

        # A line that cannot be read back would make the ledger useless.
        try:
            account.with_entry(Chain().read(line, compare=False))
        except UNREADABLE as error:
            raise LedgerError(
                f"the entry cannot be recorded ({excerpt(str(error))}); nothing is charged"
            ) from error

        length = file.seek(0, os.SEEK_END)
        try:
            if file.write(line) != len(line):
                # a full disk takes a part of the line without an error
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file.fileno())
        except OSError as error:
            os.truncate(file.fileno(), length)
            raise LedgerError(
                f"ledger {self.path} cannot be written ({error.strerror}); nothing is charged"
            ) from error

    def _read(self, file: IO[bytes]) -> tuple[Chain, Account]:
        """The chain of lines, which the next line continues, and the account of this identity."""
        size = file.seek(0, os.SEEK_END)
        if size > MOST_BYTES:
            raise LedgerError(
                f"ledger {self.path} has {size} bytes, more than {MOST_BYTES}; start another file"
            )
        file.seek(0)

        chain = Chain()
        account = Account()
        other_identities = set[str]()
        identities_with_allowance = set[str]()
        for number, line in enumerate(file.read().splitlines(keepends=True), 1):
            try:
                entry = chain.read(line)
                identity = entry["identity"]
                if not isinstance(identity, str):
                    raise ValueError(f"identity {quoted(identity)} is not text")
                if identity == self.identity:
                    account = account.with_entry(entry)
                else:
                    other_identities.add(identity)
                    if entry["kind"] == "allow":
                        identities_with_allowance.add(identity)
            except UNREADABLE as error:
                raise self._unreadable(number, line, error) from error

        account = replace(
            account,
            others=tuple(sorted(other_identities)),
            allowed=tuple(sorted(identities_with_allowance)),
            head=chain.head,
        )
        return chain, account

    def _unreadable(self, number: int, line: bytes, error: Exception) -> LedgerError:
        """The error of a line that is no entry."""
        remedy = "restore the file from a copy"
        is_cut_off = not line.endswith(b"\n")
        if is_cut_off:
            remedy += ", or remove this line if no release came of the fit that wrote it"
        return LedgerError(
            f"line {number} of ledger {self.path} is not a complete entry ({excerpt(str(error))});"
            f" {remedy}"
        )


def _part_names(parts: Sequence[str]) -> tuple[str, ...]:
    """Declared names of parts, of which no two are one part."""
    if isinstance(parts, str):
        raise InputError(f"parts={quoted(parts)} must be a list; pass for example parts=['A', 'B']")
    names: dict[str, str] = {}
    for value in parts:
        name = part_name(value)
        key = part_key(name)
        if key in names:
            raise InputError(f"parts {quoted(names[key])} and {quoted(name)} are one; name it once")
        names[key] = name
    return tuple(names.values())


def _left_members(left: Left) -> dict[str, Any]:
    """What is left, as members of a line; by part too where parts are declared."""
    members: dict[str, Any] = {"left": written(left.least)}
    if left.of_parts:
        members["left_of_parts"] = {name: written(of) for name, of in left.of_parts.items()}
    return members


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
