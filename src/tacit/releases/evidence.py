"""Evidence about a folder, on which the rules of a gate decide: its files, who signed them, and the
account of the private data in a ledger.

The files are read once, and everything is found from these bytes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

from tacit.errors import InputError, LedgerError, ReleaseError, excerpt
from tacit.privacy.account import Account
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.history import History
from tacit.privacy.ledger import scope_of_charge
from tacit.releases import labels_files, reading
from tacit.releases.fields import NOT_STATED
from tacit.releases.reading import LABELS_DOCUMENT, README, SIGNATURE
from tacit.releases.schema import CombinedPattern, Document, LedgerPattern
from tacit.releases.signing import LARGEST, check_signature

# Files beside those of a release that a signature covers, and the most bytes of each.
SIGNED = {README: 2**25, "LICENSE": 2**20, SIGNATURE: LARGEST}


@dataclass(frozen=True)
class LedgerEvidence:
    """The account of the private data in a ledger, and their name there, once ledger and release
    are known to belong together; else `fault` says why there is none. `later` are the charges of
    these data after the release was made.
    """

    given: bool
    account: Account | None = None
    identity: str = ""
    later: tuple[Guarantee, ...] = ()
    fault: str = ""


@dataclass(frozen=True)
class Evidence:
    """What the rules read: the document of a release that verified, and what was found about it.

    `signer` is the fingerprint of the key that signed all files; where it is empty,
    `signature_fault` says why.
    """

    document: Document
    guarantee: Guarantee
    labels: bool
    ledger: LedgerEvidence
    signer: str
    signature_fault: str
    today: date


def files_of(folder: Path) -> dict[str, bytes]:
    """Read the files of a release or of labels, and those beside them that a signature covers."""
    if folder.is_symlink():
        raise InputError(
            f"{folder} is a link, which may lead elsewhere when the folder is handed out; give the"
            " folder itself"
        )
    if (folder / LABELS_DOCUMENT).exists():
        files = labels_files.read_files(folder)
    else:
        files = reading.read_files(folder)
    for name, limit in SIGNED.items():
        # a link that leads nowhere is refused too
        if os.path.lexists(folder / name):
            files[name] = reading.read_file(folder / name, limit)
    return files


def signer_of(folder: Path, files: dict[str, bytes], key: Path | str | None) -> tuple[str, str]:
    """Return the fingerprint of the key that signed these files, or why there is none."""
    if key is None:
        return "", "no key was given; give the signer's public key with --key"
    with TemporaryDirectory() as temporary:
        copy = Path(temporary, folder.absolute().name)
        copy.mkdir()
        for name, data in files.items():
            (copy / name).write_bytes(data)
        try:
            return check_signature(copy, key), ""
        except ReleaseError as error:
            return "", str(error).replace(str(copy), str(folder))


def ledger_evidence(
    document: Document, guarantee: Guarantee, history: History | LedgerError | None
) -> LedgerEvidence:
    """Find the account of the private data in a ledger.

    Ledger and release belong together if the ledger still has the line that was its last when the
    release was made, and has, up to there, the charge of this release under the identity that the
    release names.
    """
    if history is None:
        fault = "no ledger was given; give the one of the private data with --ledger"
        return LedgerEvidence(given=False, fault=fault)
    if isinstance(history, LedgerError):
        return LedgerEvidence(given=True, fault=str(history))

    pattern = document.pattern
    if not isinstance(pattern, LedgerPattern) or pattern.ledger_head == NOT_STATED:
        fault = "the release states no head of a ledger; fit with a ledger"
        if isinstance(pattern, CombinedPattern):
            fault = (
                "the release is made of summaries, which each owner's ledger counts; leave the"
                " ledger out, and hold each summary against that of its owner"
            )
        return LedgerEvidence(given=True, fault=fault)
    if pattern.ledger_head not in history.hashes:
        fault = (
            f"the head {pattern.ledger_head[:12]}... that the release states is no line of it: it"
            " is another ledger, or lines were removed; get the owner's ledger"
        )
        return LedgerEvidence(given=True, fault=fault)

    head = history.hashes.index(pattern.ledger_head)
    identities = [
        identity
        for number, identity, charged in history.charges
        if number <= head
        and same_cost(charged, guarantee)
        and is_charged_to(identity, guarantee.scope)
    ]
    if not identities:
        fault = (
            "it has no charge of this release, under the identity of the data that the release"
            " names; give the ledger that the fit was charged to"
        )
        return LedgerEvidence(given=True, fault=fault)

    identity = identities[-1]
    account = history.accounts[identity]
    if account.since[:10] != pattern.ledger_since:
        fault = (
            f"the release states that it begins on {pattern.ledger_since}, and its first line of"
            f" these data is of {excerpt(account.since[:10])}; get the owner's ledger"
        )
        return LedgerEvidence(given=True, fault=fault)
    later = tuple(
        charged
        for number, charged_identity, charged in history.charges
        if number > head and charged_identity == identity
    )
    return LedgerEvidence(given=True, account=account, identity=identity, later=later)


def same_cost(charged: Guarantee, guarantee: Guarantee) -> bool:
    """Tell whether two guarantees are of the same events; what is unprotected may differ."""
    cost = (charged.unit, charged.event, charged.groups)
    return cost == (guarantee.unit, guarantee.event, guarantee.groups)


def is_charged_to(identity: str, scope: str) -> bool:
    """Tell whether the scope of a guarantee says that it was charged under an identity."""
    charged = scope_of_charge(identity)
    # a search, and fits that the statement does not cover, add to the scope
    return scope == charged or scope.startswith((f"{charged}, ", f"{charged}; "))
