"""All entries of a ledger's file, read at once, for whoever checks it against a release.

The file may come from somebody else: its lines are checked as those of `ledger.py`, nothing is
written, and no lock is taken.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tacit.compute.documents import MOST_BYTES
from tacit.errors import LedgerError, excerpt, quoted
from tacit.privacy.account import Account
from tacit.privacy.chain import Chain
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.ledger import UNREADABLE


@dataclass
class History:
    """The lines of a ledger: the hash of each, the account of each identity, and where in the file
    its charges stand.
    """

    hashes: list[str] = field(default_factory=list)
    accounts: dict[str, Account] = field(default_factory=dict)
    charges: list[tuple[int, str, Guarantee]] = field(default_factory=list)
    """Number of the line, from 0, identity and guarantee of each charge."""

    @classmethod
    def read(cls, path: Path) -> History:
        """Read a file.

        Raises
        ------
        LedgerError
            If the file is missing or empty, or a line is no entry, was changed, or follows a line
            that is not there.
        """
        if not path.is_file():
            raise LedgerError(f"ledger {path} is not a file; check its name")
        try:
            with path.open("rb") as file:
                content = file.read(MOST_BYTES + 1)
        except OSError as error:
            raise LedgerError(
                f"ledger {path} cannot be read ({error.strerror}); check its permissions"
            ) from error
        if not content or len(content) > MOST_BYTES:
            raise LedgerError(
                f"ledger {path} has {len(content)} bytes, not 1 to {MOST_BYTES}; give the ledger of"
                " the private data"
            )

        history = cls()
        chain = Chain()
        for number, line in enumerate(content.splitlines(keepends=True)):
            try:
                history._add(number, chain, line)
            except UNREADABLE as error:
                raise LedgerError(
                    f"line {number + 1} of ledger {path} is not a complete entry"
                    f" ({excerpt(str(error))}); get the ledger again from the owner of the data"
                ) from error
        return history

    def _add(self, number: int, chain: Chain, line: bytes) -> None:
        """Read the next line; whatever is wrong with it is raised."""
        entry = chain.read(line)
        identity = entry["identity"]
        if not isinstance(identity, str):
            raise ValueError(f"identity {quoted(identity)} is not text")

        account = self.accounts.get(identity, Account()).with_entry(entry)
        if entry["kind"] == "charge":
            self.charges.append((number, identity, account.charges[-1].guarantee))
        self.accounts[identity] = account
        self.hashes.append(chain.head)
