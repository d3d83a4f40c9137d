"""The ledger: what was spent on a data set so far, in an append-only file beside it.

Each line is one JSON object under a declared identity of the private data. (A hash of the data as
its identity would itself be private, and would change with a copy.) An `allow` line states the
allowance; the last one is in force. A `charge` line records a guarantee before its noise is drawn
and is never refunded. Both record what is left after them, in the currency of the allowance: the
privacy parameter that is added up (`allowance.py`). An exclusive lock is held from reading the
balance to writing the charge, so two processes cannot spend the same allowance. Lines are hashed
(`chain.py`). `ledger_entries.py` makes new entries, `ledger_file.py` opens the file and appends.

An allowance may declare parts that share no record, or nobody's records under a unit per person. A
charge that names a part then counts for that part alone, and each part has the whole allowance.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from tacit.compute.documents import MOST_BYTES
from tacit.compute.remote import RemotePath, as_path
from tacit.errors import InputError, LedgerError, excerpt, quoted
from tacit.privacy.account import Account
from tacit.privacy.allowance import Allowance
from tacit.privacy.budget import Budget
from tacit.privacy.chain import Chain
from tacit.privacy.guarantee import THIS_RUN, Guarantee
from tacit.privacy.ledger_entries import allow_entry, charge_entry, part_names
from tacit.privacy.ledger_file import append, check_exists, check_file, locked
from tacit.privacy.ledger_note import has_note, note
from tacit.privacy.unit import Unit

ENDING = ".ledger.jsonl"

# Errors that may be raised while a line is read that is not an entry.
UNREADABLE = (ArithmeticError, AttributeError, KeyError, RecursionError, TypeError, ValueError)


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
            check_exists(ledger.path)
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
        names = None if parts is None else part_names(parts)
        with locked(self.path, create=True) as file:
            chain, account = self._read(file)
            declared = account.parts if names is None else names
            entry = allow_entry(self.path, account, allowance, declared)
            self._append(file, chain, account, entry)
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
        with locked(self.path, create=False) as file:
            chain, account = self._read(file)
            entry = charge_entry(self.path, self.identity, account, guarantee, what, part)
            self._append(file, chain, account, entry)

    def check(self, guarantee: Guarantee, what: str, part: str | None = None) -> None:
        """Raise the error that `charge` would raise now, and record nothing."""
        check_exists(self.path)
        charge_entry(self.path, self.identity, self.account(), guarantee, what, part)

    def account(self) -> Account:
        """Read the allowance and the charges; a ledger that does not exist yet is empty."""
        if not self.path.exists():
            return Account()
        check_file(self.path)
        try:
            with self.path.open("rb") as file:
                return self._read(file)[1]
        except OSError as error:
            raise LedgerError(
                f"ledger {self.path} cannot be read ({error.strerror}); check its permissions"
            ) from error

    def _append(
        self, file: IO[bytes], chain: Chain, account: Account, entry: dict[str, Any]
    ) -> None:
        """Append an entry that can be read back, and wait until it is on disk."""
        moment = datetime.now(UTC).isoformat(timespec="seconds")
        line = chain.next({"time": moment, "identity": self.identity} | entry)

        # A line that cannot be read back would make the ledger useless.
        try:
            account.with_entry(Chain().read(line, compare=False))
        except UNREADABLE as error:
            raise LedgerError(
                f"the entry cannot be recorded ({excerpt(str(error))}); nothing is charged"
            ) from error

        append(file, self.path, line)

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
