"""The gate: hold a release, or labels of public rows by one, against a policy.

The files of the folder are read once. Hashes, numbers and the signature are checked on these bytes,
so that a folder that is exchanged meanwhile changes nothing; the verdict names their hash, by which
whoever hands the folder out can tell that it is still the one that was checked. No rule is looked
at before the release verifies. `rules.py` has the rules, `policy.py` the policy.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path

from tacit.errors import InputError, LedgerError, ReleaseError
from tacit.privacy.history import History
from tacit.releases.evidence import Evidence, files_of, ledger_evidence, signer_of
from tacit.releases.policy import Policy
from tacit.releases.public_labels import PublicLabels
from tacit.releases.reading import DOCUMENT, LABELS_DOCUMENT, OF_TRANSPORT
from tacit.releases.release import Release
from tacit.releases.rules import RULES, Unmet, check_stamp


@dataclass(frozen=True)
class Ruling:
    """The answer of one rule, with a line that names the value, the rule and, where it is not met,
    the remedy.
    """

    rule: str
    met: bool
    line: str


@dataclass(frozen=True)
class Verdict:
    """The answers of all rules of a policy about one folder.

    `sha256` is that of the document, which has the hashes of the other files. `unchecked` are the
    rules that the policy does not state.
    """

    folder: str
    policy: str
    document: str
    sha256: str
    rulings: tuple[Ruling, ...]
    unchecked: tuple[str, ...]

    @property
    def met(self) -> bool:
        """True if every rule is met."""
        return all(ruling.met for ruling in self.rulings)

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        checked = f"the SHA-256 of the {self.document} that was checked is {self.sha256}"
        if self.met:
            n_rules = len(self.rulings)
            return f"{self.folder} meets all {n_rules} rules of {self.policy}; {checked}"
        broken = [ruling.rule for ruling in self.rulings if not ruling.met]
        number = "1 rule is" if len(broken) == 1 else f"{len(broken)} rules are"
        return f"{self.folder} does not meet {self.policy}: {number} not met ({', '.join(broken)})"


def decide(
    folder: Path | str,
    policy: Policy,
    *,
    ledger: Path | str | None = None,
    key: Path | str | None = None,
    today: date | None = None,
) -> Verdict:
    """Hold a folder against a policy.

    Parameters
    ----------
    folder : str or Path
        A release, published or not, or labels of public rows.
    policy : Policy
        As `Policy.read` returns it.
    ledger : str or Path, optional
        The ledger of the private data. `epsilon` and `advantage` then count all its charges.
    key : str or Path, optional
        PEM file of the public key of whoever must have signed all files.
    today : date, optional
        The day from which the age of an audit is counted; by default that of the clock, in UTC.

    Returns
    -------
    Verdict
        Not met where hashes, arrays or numbers of the release do not agree, or it is stamped
        "NOT FOR RELEASE", whatever the policy says.

    Raises
    ------
    ReleaseError
        If a file is missing, unknown, too large or malformed.
    InputError
        If the folder is a link, the ledger is missing or read by no rule, or there is no such key.

    Examples
    --------
    >>> import tempfile, numpy as np, tacit
    >>> X, y = np.repeat(np.eye(2), 50, axis=0), np.repeat([0, 1], 50)
    >>> model = tacit.NoisySumPrototypes("rho=0.5", classes=2).fit(X, y)
    >>> folder = tacit.Release.of(model, name="pets").save(tempfile.mkdtemp() + "/pets")
    >>> policy = Policy.of({"unit": "record", "epsilon": 5, "delta": 1e-5})
    >>> decide(folder, policy).met
    True
    """
    folder = Path(folder)
    history = None
    if ledger is not None:
        history = _history(Path(ledger), policy)

    files = files_of(folder)
    is_labels = LABELS_DOCUMENT in files
    document_name = LABELS_DOCUMENT if is_labels else DOCUMENT
    of_kind = PublicLabels.of_files if is_labels else Release.of_files
    loaded: Release | PublicLabels = of_kind(files, folder)

    verified = _ruling("verified", partial(_verified, folder, loaded))
    rulings = [verified]
    if verified.met:
        signer, signature_fault = signer_of(folder, files, key)
        document = loaded.release if isinstance(loaded, PublicLabels) else loaded.document
        evidence = Evidence(
            document=document,
            guarantee=loaded.guarantee,
            labels=is_labels,
            ledger=ledger_evidence(document, loaded.guarantee, history),
            signer=signer,
            signature_fault=signature_fault,
            today=today or datetime.now(UTC).date(),
        )
        rulings += _answers(policy, evidence, key is not None)

    return Verdict(
        folder=str(folder),
        policy=policy.source,
        document=document_name,
        sha256=hashlib.sha256(files[document_name]).hexdigest(),
        rulings=tuple(rulings),
        unchecked=tuple(rule for rule in RULES if rule not in policy.keys),
    )


def _answers(policy: Policy, evidence: Evidence, has_key: bool) -> list[Ruling]:
    """Answer the rules of the policy; a stamp, and a signature by a key that was given, always
    count.
    """
    rulings = [_ruling("stamp", partial(check_stamp, evidence))]
    for rule, answer in RULES.items():
        counts = rule in policy.keys or (rule == "signature" and has_key)
        if counts:
            rulings.append(_ruling(rule, partial(answer, policy, evidence)))
    return rulings


def _ruling(rule: str, answer: Callable[[], str]) -> Ruling:
    try:
        return Ruling(rule, True, answer())
    except Unmet as unmet:
        return Ruling(rule, False, str(unmet))


def _verified(folder: Path, loaded: Release | PublicLabels) -> str:
    """Check hashes, arrays or counts, every stated number, and that nothing else is beside them."""
    unread = [name for name in OF_TRANSPORT if os.path.lexists(folder / name)]
    if unread:
        raise Unmet(
            f"{folder} holds {', '.join(unread)}, which no check reads and which may hold anything;"
            " copy the files of the release alone to a new folder"
        )
    try:
        loaded.verify()
    except ReleaseError as error:
        raise Unmet(str(error)) from error
    return "hashes and every stated number about privacy agree with the recorded events"


def _history(ledger: Path, policy: Policy) -> History | LedgerError:
    """Read a ledger that some rule reads; the error is returned where its lines are at fault."""
    rules = [rule for rule in ("epsilon", "ledger_since", "advantage") if rule in policy.keys]
    if not rules:
        raise InputError(
            f"--ledger {ledger} is read by no rule of {policy.source}; state ledger_since or"
            " epsilon there, or leave it out"
        )
    if not ledger.is_file():
        raise InputError(f"ledger {ledger} is not a file; check its name")
    try:
        return History.read(ledger)
    except LedgerError as error:
        return error
