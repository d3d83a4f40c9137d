"""The folder of a fit of PATE: labels that were bought, so that an interrupted fit goes on with them, and tables.

`teachers/` (see `teacher_folder.py`), `voting.npz` (the answers) and `voting.json` (hashes of all that decides them and
of themselves, and which charge to a ledger paid for them), and for people `teachers.csv`, `votings.csv` and
`students.csv`. All of it is private: the folder is readable by its owner alone.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.atomic import atomic_file
from tacit.compute.documents import read_json
from tacit.data.formats.npz import Archive
from tacit.errors import InputError, excerpt
from tacit.learners.pate.aggregators import UNANSWERED
from tacit.learners.pate.allocation import Allocation
from tacit.learners.pate.scheme import Scheme
from tacit.learners.pate.student import Student
from tacit.learners.pate.teachers import Votes
from tacit.learners.pate.voting import Answers, Voting
from tacit.mechanisms.noise import Integers
from tacit.privacy.guarantee import Guarantee

TABLES = ("teachers.csv", "votings.csv", "students.csv", "voting.npz", "voting.json")
FIELDS = ("run", "votes", "charge", "promise", "answers")  # of voting.json


@dataclass(frozen=True, eq=False)
class Kept:
    """Answers of an earlier run, and what they state about themselves.

    Parameters
    ----------
    run, votes : str
        Hashes of what is known before teachers are trained, and of their votes.
    charge : str or None
        Name of the charge that paid for the answers, in the ledger if there was one.
    promise : str
        Hash of what was promised then.
    labels, paid : arrays of shape (queries,)
    """

    run: str
    votes: str
    charge: str | None
    promise: str
    labels: Integers
    paid: NDArray[np.bool_]

    @property
    def hash(self) -> str:
        """Of all that is kept."""
        digest = hashlib.sha256(json.dumps([self.run, self.votes, self.charge, self.promise]).encode())
        for array in (self.labels, self.paid):
            digest.update(f"{array.dtype.str}{array.shape}".encode() + array.tobytes())
        return digest.hexdigest()


class Stages:
    """What is kept of a fit.

    Parameters
    ----------
    folder : path or None
        Created if it is absent, and made readable by its owner alone; without one nothing is kept.

    Raises
    ------
    InputError
        If it cannot be written, belongs to another user, or holds other things that others can read.
    """

    def __init__(self, folder: Path | str | None) -> None:
        if not isinstance(folder, str | Path | None):
            raise InputError(f"folder={folder!r} must be a path; pass text, and a name of digits as ./{folder}")
        self.folder = None if folder is None else Path(folder)
        if self.folder is not None:
            try:
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                _make_private(self.folder)
                for name in TABLES:
                    if (self.folder / name).is_dir():
                        raise IsADirectoryError(0, f"{name} in it is a folder")
            except OSError as error:
                raise InputError(f"folder {self.folder} cannot be made ({error.strerror}); choose another") from error

    def read_answers(self, run: str, n_classes: int) -> Kept | None:
        """The answers of an earlier run of this hash, if there are any.

        Raises
        ------
        InputError
            If they cannot be read, are no answers, were changed, or are of another run.
        """
        if self.folder is None or not (self.folder / "voting.json").exists():
            return None
        path = self.folder / "voting.json"
        try:
            stated = read_json(path)
            run_before, votes, charge, promise, own = (stated[name] for name in FIELDS)
            labels, paid = Archive(path.with_suffix(".npz")).read(["labels", "paid"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            fault = f"{path} or its arrays cannot be read ({excerpt(str(error))})"
            raise InputError(f"{fault}; choose another folder") from error
        if (
            labels.ndim != 1
            or labels.dtype != np.int64
            or paid.shape != labels.shape
            or paid.dtype != bool
            or not np.all((labels >= UNANSWERED) & (labels < n_classes))
            or not len(labels)
        ):
            raise InputError(f"{path.with_suffix('.npz')} holds no answers to queries; choose another folder")
        kept = Kept(run_before, votes, charge, promise, labels, paid)
        if kept.hash != own:
            raise InputError(f"{path} or its arrays were changed after they were written; choose another folder")
        if kept.run != run:
            raise InputError(f"{self.folder} holds answers to other votes or settings; choose another folder")
        return kept

    def resume(self, kept: Kept, voting: Voting, votes: Integers) -> None:
        """Take the answers of an earlier run: labels are bought once.

        Raises
        ------
        InputError
            If they are of other votes.
        """
        if kept.votes != _hash(votes) or len(kept.labels) > len(votes):
            raise InputError(f"{self.folder} holds answers to other votes or settings; choose another folder")
        voting.replay(votes[: len(kept.labels)], kept.labels, kept.paid)

    def keep_answers(self, run: str, voting: Voting, votes: Integers, charge: str | None, promise: Guarantee) -> None:
        """Keep the answers, and what was charged for them."""
        if self.folder is None:
            return
        labels, paid = voting.labels[: voting.asked], voting.paid[: voting.asked]
        kept = Kept(run, _hash(votes), charge, hash_of(promise), labels, paid)
        path = self.folder / "voting.json"
        with atomic_file(path.with_suffix(".npz"), force=True) as part, part.open("wb") as file:
            np.savez(file, labels=kept.labels, paid=kept.paid)
        facts = (kept.run, kept.votes, kept.charge, kept.promise, kept.hash)
        with atomic_file(path, force=True) as part:
            part.write_text(json.dumps(dict(zip(FIELDS, facts, strict=True))) + "\n", encoding="utf-8")

    def keep_tables(
        self, allocation: Allocation, votes: Votes, plan: Scheme, answers: Answers, student: Student, test: float | None
    ) -> None:
        """Write one row for each teacher, for the voting and for the student."""
        if self.folder is None:
            return
        of_teachers = allocation.teacher_groups or [()] * len(allocation.parts)
        accuracies = [None] * len(allocation.parts) if votes.accuracies is None else votes.accuracies.tolist()
        _table(
            self.folder / "teachers.csv",
            [
                {"teacher": i, "records": len(part), "groups": " ".join(groups), "test_accuracy": accuracy}
                for i, (part, groups, accuracy) in enumerate(
                    zip(allocation.parts, of_teachers, accuracies, strict=True)
                )
            ],
        )
        names: list[str | None] = [name for name, _ in answers.spent_.groups] or [None]
        costs = {f"epsilon {name or 'all'}": answers.spent_.epsilon(plan.delta, name) for name in names}
        internal = {f"internal epsilon {name}": value for name, value in answers.internal_.epsilon.items()}
        facts = {"aggregator": str(plan.aggregator), "asked": answers.asked, "answered": answers.answered}
        _table(self.folder / "votings.csv", [facts | {"delta": plan.delta} | costs | internal])
        labels = int(np.sum(answers.labels >= 0))
        own = {"labels": labels, "validation_accuracy": student.validation_accuracy, "test_accuracy": test}
        _table(self.folder / "students.csv", [own])


def run_hash(plan: Scheme, records: Sequence[str], settings: Sequence[object]) -> str:
    """Hash of what decides the answers beside the votes: the scheme, the records of each teacher, and settings."""
    facts = (plan.aggregator, plan.budgets, plan.delta, plan.rhos, plan.n_queries, plan.n_labels, records, settings)
    sensitivities = plan.collector.sensitivities(slice(0, plan.n_queries))
    return _hash(plan.collector.payers(), sensitivities, text=repr(facts))


def hash_of(promise: Guarantee) -> str:
    """Hash of all that a guarantee states."""
    return _hash(text=json.dumps(promise.to_json()))


def _hash(*arrays: NDArray[Any], text: str = "") -> str:
    digest = hashlib.sha256(text.encode())
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _make_private(folder: Path) -> None:
    """Let nobody else read the folder; one that others can read may hold nothing else."""
    status = folder.stat()
    if status.st_uid != os.geteuid():
        raise InputError(f"folder {folder} is not yours, and what is kept is private; choose another")
    if not status.st_mode & 0o077:
        return
    for path in folder.iterdir():
        if path.name not in (*TABLES, "teachers") and not path.name.startswith("."):
            raise InputError(
                f"folder {folder} can be read by others and holds {path.name!r}; make it private (chmod 700), or "
                "choose another"
            )
    folder.chmod(0o700)


def _table(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    with atomic_file(path, force=True) as part, part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
