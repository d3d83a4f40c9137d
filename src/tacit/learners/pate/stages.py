"""The folder of a fit of PATE: labels that were bought, so that an interrupted fit goes on with them, and tables.

`teachers/` (see `teacher_folder.py`), `voting.npz` and `voting.json` (the answers, and a hash of all that decides
them), and for people `teachers.csv`, `votings.csv` and `students.csv`. All of it is private.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from tacit.compute.atomic import atomic_file
from tacit.errors import InputError
from tacit.learners.pate.aggregators import UNANSWERED
from tacit.learners.pate.allocation import Allocation
from tacit.learners.pate.scheme import Scheme
from tacit.learners.pate.student import Student
from tacit.learners.pate.teachers import Votes
from tacit.learners.pate.voting import Answers, Voting
from tacit.mechanisms.noise import Integers

TABLES = ("teachers.csv", "votings.csv", "students.csv", "voting.npz", "voting.json")


@dataclass(frozen=True, eq=False)
class Kept:
    """Answers of an earlier run, and what they state about themselves."""

    stated: Any
    labels: Integers
    paid: NDArray[np.bool_]
    estimate: list[float]


class Stages:
    """What is kept of a fit.

    Parameters
    ----------
    folder : path or None
        Created if it is absent; without one nothing is kept.

    Raises
    ------
    InputError
        If it cannot be written.
    """

    def __init__(self, folder: Path | str | None) -> None:
        if not isinstance(folder, str | Path | None):
            raise InputError(f"folder={folder!r} must be a path; pass text, and a name of digits as ./{folder}")
        self.folder = None if folder is None else Path(folder)
        if self.folder is not None:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                for name in TABLES:
                    if (self.folder / name).is_dir():
                        raise IsADirectoryError(0, f"{name} in it is a folder")
            except OSError as error:
                raise InputError(f"folder {self.folder} cannot be made ({error.strerror}); choose another") from error

    def read_labels(self, n_classes: int) -> Kept | None:
        """The answers of an earlier run, if there are any.

        Raises
        ------
        InputError
            If they cannot be read, or are no answers.
        """
        if self.folder is None or not (self.folder / "voting.json").exists():
            return None
        path = self.folder / "voting.json"
        try:
            stated = json.loads(path.read_text(encoding="utf-8"))
            with np.load(path.with_suffix(".npz"), allow_pickle=False) as arrays:
                labels, paid, estimate = (arrays[name] for name in ("labels", "paid", "estimate"))
        except (OSError, ValueError, KeyError, EOFError, TypeError, AttributeError, BadZipFile) as error:
            raise InputError(f"{path} or its arrays cannot be read ({error}); choose another folder") from error
        if (
            labels.ndim != 1
            or labels.dtype.kind != "i"
            or paid.shape != labels.shape
            or paid.dtype != bool
            or not np.all((labels >= UNANSWERED) & (labels < n_classes))
            or not len(labels)
            or estimate.dtype != np.float64
        ):
            raise InputError(f"{path.with_suffix('.npz')} holds no answers to queries; choose another folder")
        return Kept(stated, labels.astype(np.int64), paid, estimate.tolist())

    def resume(self, voting: Voting, votes: Integers, settings: str) -> bool:
        """Take the answers of an earlier run, if there are any: labels are bought once.

        Raises
        ------
        InputError
            If they are of other votes or settings, or cannot be read.
        """
        kept = self.read_labels(len(voting.classes))
        if kept is None:
            return False
        if kept.stated != {"hash": _hash(voting.plan, votes, settings)} or len(kept.labels) > len(votes):
            raise InputError(f"{self.folder} holds answers to other votes or settings; choose another folder")
        estimate = kept.estimate[0] if kept.estimate else None
        voting.replay(votes[: len(kept.labels)], kept.labels, kept.paid, estimate)
        return True

    def keep_labels(self, voting: Voting, votes: Integers, settings: str) -> None:
        """Keep the answers."""
        if self.folder is None:
            return
        path = self.folder / "voting.json"
        with atomic_file(path.with_suffix(".npz"), force=True) as part, part.open("wb") as file:
            estimate = np.array([] if voting.estimate is None else [voting.estimate])
            np.savez(file, labels=voting.labels[: voting.asked], paid=voting.paid[: voting.asked], estimate=estimate)
        with atomic_file(path) as part:
            part.write_text(json.dumps({"hash": _hash(voting.plan, votes, settings)}) + "\n", encoding="utf-8")

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


def _hash(plan: Scheme, votes: Integers, settings: str) -> str:
    facts = (plan.aggregator, plan.budgets, plan.delta, plan.rhos, plan.n_queries, plan.n_labels, settings)
    digest = hashlib.sha256(repr(facts).encode())
    digest.update(plan.collector.payers().tobytes() + plan.collector.sensitivities(slice(0, 1)).tobytes())
    digest.update(np.ascontiguousarray(votes).data)
    return digest.hexdigest()


def _table(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    with atomic_file(path, force=True) as part, part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
