"""The folder of a fit of PATE: labels that were bought, so that an interrupted fit goes on with them, and tables.

`teachers/` (see `teacher_folder.py`), `voting.npz` and `voting.json` (the answers, and a hash of all that decides
them), and for people `teachers.csv`, `votings.csv` and `students.csv`. All of it is private.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tacit.compute.atomic import atomic_file
from tacit.errors import InputError
from tacit.learners.pate.allocation import Allocation
from tacit.learners.pate.scheme import Scheme
from tacit.learners.pate.student import Student
from tacit.learners.pate.teachers import Votes
from tacit.learners.pate.voting import Answers, Voting
from tacit.mechanisms.noise import Integers


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
        self.folder = None if folder is None else Path(folder)
        if self.folder is not None:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(f"folder {self.folder} cannot be made ({error.strerror}); choose another") from error

    def resume(self, voting: Voting, votes: Integers, settings: str) -> bool:
        """Take the answers of an earlier run, if there are any: labels are bought once.

        Raises
        ------
        InputError
            If they are of other votes or settings, or cannot be read.
        """
        if self.folder is None or not (self.folder / "voting.json").exists():
            return False
        path = self.folder / "voting.json"
        try:
            stated = json.loads(path.read_text(encoding="utf-8"))
            with np.load(path.with_suffix(".npz"), allow_pickle=False) as kept:
                labels, paid = kept["labels"], kept["paid"]
                estimate = kept["estimate"].tolist()
        except (OSError, ValueError, KeyError, EOFError) as error:
            raise InputError(f"{path} or its arrays cannot be read ({error}); choose another folder") from error
        if stated != {"hash": _hash(voting.plan, votes, settings)} or labels.shape != paid.shape:
            raise InputError(f"{path} holds answers to other votes or settings; choose another folder")
        voting.replay(votes[: len(labels)], labels, paid, estimate[0] if estimate else None)
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
