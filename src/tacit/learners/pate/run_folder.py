"""The folder of a fit of PATE, or of a voting: it keeps labels, so that they are bought once, and
tables.

- `teachers/` is the checkpoint of the teachers (see `ensemble.py`).
- `slurm/` has the inputs and logs of Slurm's tasks.
- `voting.npz` has the answers; `voting-1.npz` those of the voting with this seed.
- `voting.json` has hashes of all that decides the answers and of the answers, and the charges to
  ledgers that paid for them.
- `teachers.csv` and others are tables for people (see `tables.py`); those of a voting have its seed
  in their names too.

All of it is private: the folder is readable by its owner alone.
"""

from __future__ import annotations

import csv
import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.atomic import atomic_file
from tacit.compute.checkpoint import Checkpoint
from tacit.compute.documents import read_json
from tacit.compute.shared import locked
from tacit.data.formats.npz import Archive
from tacit.errors import InputError, excerpt
from tacit.learners.pate.aggregators import UNANSWERED
from tacit.learners.pate.ensemble import hash_of, remove_records
from tacit.learners.pate.scheme import Scheme
from tacit.mechanisms.noise import Integers
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.ledger import Ledger

# Tables of the teachers, and those of a voting.
OF_TEACHERS = ("teachers", "records")
OF_VOTING = ("votings", "queries", "readings", "students")
# Files and folders of a run.
RUN_FILE = re.compile(
    rf"({'|'.join(OF_TEACHERS)})\.csv|({'|'.join(OF_VOTING)})(-[0-9]+)?\.csv"
    r"|voting(-[0-9]+)?\.(npz|json)|teachers|slurm"
)
# Fields of voting.json.
FIELDS = ("run", "votes", "charges", "answers")


@dataclass(frozen=True, eq=False)
class StoredAnswers:
    """Labels that a fit bought, of shape (queries,), and what decided and paid for them.

    `run` and `votes` are hashes of what is known before teachers are trained, and of their votes;
    `charges` has the name of each charge to a ledger, and the hash of what was promised then.
    """

    run: str
    votes: str
    charges: dict[str, str]
    labels: Integers
    paid: NDArray[np.bool_]

    @property
    def hash(self) -> str:
        """Hash of all fields."""
        return hash_of(json.dumps([self.run, self.votes, self.charges]), self.labels, self.paid)

    def paid_by(self, ledger: Ledger, promise: Guarantee) -> bool:
        """Return whether a charge of this promise to this ledger has paid for the labels."""
        promise_hash = hash_of_promise(promise)
        paying = {
            _charge_text(name)
            for name, charge_hash in self.charges.items()
            if charge_hash == promise_hash
        }
        return any(charge.what in paying for charge in ledger.account().charges)


def charge_for(ledger: Ledger, promise: Guarantee) -> dict[str, str]:
    """Charge a promise to a ledger; return a name that no other charge has, with the hash of the
    promise.
    """
    name = secrets.token_hex(8)
    ledger.charge(promise, what=_charge_text(name))
    return {name: hash_of_promise(promise)}


def _charge_text(name: str) -> str:
    """Text of a charge in the ledger."""
    return f"PATE fit {name}"


class RunFolder:
    """The folder of a fit; it is made readable by its owner alone. Without a path, nothing is read
    or written.

    Several votings of the same teachers share a folder: `voting_seed` tells their files apart.
    """

    def __init__(self, path: Path | str | None, voting_seed: int = 0) -> None:
        self.suffix = f"-{voting_seed}" if voting_seed else ""
        if not isinstance(path, str | Path | None):
            raise InputError(
                f"folder={path!r} must be a path; pass text, and a name of digits as ./{path}"
            )
        self.path = None if path is None else Path(path)
        if self.path is None:
            return
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make_private(self.path)
            for name in (*self._tables(), self._arrays(), self._answers()):
                if (self.path / name).is_dir():
                    raise IsADirectoryError(0, f"{name} in it is a folder")
        except OSError as error:
            raise InputError(
                f"folder {self.path} cannot be made ({error.strerror}); choose another"
            ) from error

    def _answers(self) -> str:
        """Name of the file that states what the answers are."""
        return f"voting{self.suffix}.json"

    def _arrays(self) -> str:
        """Name of the file of the answers."""
        return f"voting{self.suffix}.npz"

    def _table(self, name: str) -> str:
        """Name of the file of a table."""
        return f"{name}.csv" if name in OF_TEACHERS else f"{name}{self.suffix}.csv"

    def _tables(self) -> list[str]:
        return [self._table(name) for name in (*OF_TEACHERS, *OF_VOTING)]

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the folder from reading answers to writing them, so that two runs do not draw noise
        twice at the cost of once.

        Another run waits, and then takes the answers. Private records that a killed run left behind
        are removed.
        """
        with ExitStack() as stack:
            if self.path is not None:
                try:
                    stack.enter_context(locked(self.path / ".lock"))
                except OSError as error:
                    fault = (
                        f"folder {self.path} cannot be locked ({error.strerror}), so two runs could"
                        " draw two noises"
                    )
                    raise InputError(f"{fault}; choose one on a file system with locks") from error
                remove_records(self.path)
            yield

    def read_answers(self, run: str, n_classes: int) -> StoredAnswers | None:
        """The answers of an earlier run of this hash, if there are any; changed or other answers
        are an error.
        """
        if self.path is None or not Checkpoint(self.path).has(self._answers()):
            return None
        path = self.path / self._answers()
        arrays_path = self.path / self._arrays()
        try:
            document = read_json(path)
            run_before, votes, charges, stated_hash = (document[name] for name in FIELDS)
            labels, paid = Archive(arrays_path).read(["labels", "paid"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            fault = f"{path} or its arrays cannot be read ({excerpt(str(error))})"
            raise InputError(f"{fault}; choose another folder") from error

        are_labels = labels.ndim == 1 and len(labels) > 0 and labels.dtype == np.int64
        are_choices = paid.shape == labels.shape and paid.dtype == bool
        valid = are_labels and are_choices
        if not valid or not np.all((labels >= UNANSWERED) & (labels < n_classes)):
            raise InputError(f"{arrays_path} holds no answers to queries; choose another folder")

        stored = StoredAnswers(run_before, votes, charges, labels, paid)
        if stored.hash != stated_hash:
            raise InputError(
                f"{path} or its arrays were changed after they were written; choose another folder"
            )
        if stored.run != run:
            raise self._other_votes()
        return stored

    def check_votes(self, stored: StoredAnswers, votes: NDArray[Any]) -> None:
        """Refuse answers of an earlier run to other votes than these."""
        if stored.votes != _hash_of_votes(votes) or len(stored.labels) > len(votes):
            raise self._other_votes()

    def _other_votes(self) -> InputError:
        return InputError(
            f"{self.path} holds answers to other votes or settings; choose another folder"
        )

    def write_answers(
        self,
        run: str,
        votes: NDArray[Any],
        labels: Integers,
        paid: NDArray[np.bool_],
        charges: dict[str, str],
    ) -> None:
        """Write the answers, and the name and the hash of the promise of each charge that paid for
        them.
        """
        if self.path is None:
            return
        stored = StoredAnswers(run, _hash_of_votes(votes), charges, labels, paid)
        arrays = BytesIO()
        np.savez(arrays, labels=labels, paid=paid)
        document = dict(
            zip(FIELDS, (stored.run, stored.votes, stored.charges, stored.hash), strict=True)
        )

        # answers count once the document is there, so it comes last
        checkpoint = Checkpoint(self.path, private=True)
        checkpoint.write(self._arrays(), arrays.getvalue())
        checkpoint.write(self._answers(), json.dumps(document).encode() + b"\n")

    def write_tables(self, tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Write tables by name, each if it has rows."""
        for name, rows in tables.items():
            if self.path is not None and rows:
                _write_table(self.path / self._table(name), rows)


def run_hash(plan: Scheme, records: Sequence[str], settings: Sequence[object]) -> str:
    """Hash of all that decides the answers, or their cost, beside the votes.

    That is the scheme, with the groups of each teacher and the weight of each vote, the records of
    each teacher, and settings.
    """
    collector = plan.collector
    queries = slice(0, plan.n_queries)
    facts = (
        repr(collector),
        collector.scale,
        plan.unit.value,
        plan.aggregator,
        plan.budgets,
        plan.delta,
        plan.allowances,
        plan.n_queries,
        plan.n_labels,
        records,
        settings,
    )
    teacher_arrays = (collector.holds, collector.weights(queries))
    payer_arrays = (collector.payers(), collector.sensitivities(queries))
    return hash_of(repr(facts), *teacher_arrays, *payer_arrays)


def _hash_of_votes(votes: NDArray[Any]) -> str:
    """Hash of votes of shape (queries, teachers), in the order in which they lie in memory: teacher
    by teacher.
    """
    return hash_of("", votes.T)


def hash_of_promise(promise: Guarantee) -> str:
    """Hash of all that a guarantee states."""
    return hash_of(json.dumps(promise.to_json()))


def _make_private(folder: Path) -> None:
    """Let nobody else read the folder; refuse one that others can read and that holds other
    files.
    """
    status = folder.stat()
    if status.st_uid != os.geteuid():
        raise InputError(f"folder {folder} is not yours, and a run is private; choose another")
    if not status.st_mode & 0o077:
        return
    for path in folder.iterdir():
        if not RUN_FILE.fullmatch(path.name) and not path.name.startswith("."):
            fault = f"folder {folder} can be read by others and holds {path.name!r}"
            raise InputError(f"{fault}; make it private (chmod 700), or choose another")
    folder.chmod(0o700)


def _write_table(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as CSV; the first row names the columns."""
    with (
        atomic_file(path, force=True, private=True) as part,
        part.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
