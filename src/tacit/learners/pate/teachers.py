"""Teachers: one classifier for each part of the private records, and its votes on public records.

A teacher depends on its part, its number and public facts alone: teachers share no statistic, no validation records,
no early stopping and no list of the classes that occur. Under a unit per person the sizes of parts are private, and a
teacher does not depend on the size of another's part: it is trained alone. Votes and accuracies are private.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.checkpoint import Checkpoint
from tacit.compute.engines.workers import shielding_workers
from tacit.compute.progress import progress
from tacit.compute.shared import digest, shared
from tacit.data.formats.npy import map_npy
from tacit.errors import InputError, excerpt
from tacit.learners.common.models import IndexClassifier, alike, check_kind, check_labels
from tacit.learners.common.parameters import real, whole
from tacit.learners.common.training import Training, faster_batched, train_many
from tacit.learners.pate.classifiers import check_name
from tacit.models.networks import network, predict, weights

MEMBERS = 20  # records, or persons, that a teacher has at least by default
FEWEST_TEACHERS, MOST_TEACHERS = 50, 1000  # by default, where there are members enough
TOGETHER = 50  # networks that are trained at once, so that an interrupt loses at most these


@dataclass(frozen=True)
class Teachers:
    """Who votes: classifiers that learn from disjoint parts of the private records.

    Parameters
    ----------
    number : int, optional
        By default one for 20 records, or for 20 persons under a unit per person, 1000 at most; or half, a quarter and
        so on of these, if their labels tell nearly as much by simulation. Upsampling trains as many more as it copies
        records.
    model : scikit-learn classifier, str or callable, optional
        A classifier to clone, which draws random numbers from its `random_state` alone; the name of one
        (logistic-regression, random-forest, gradient-boosting, knn, naive-bayes, linear-svm) or of a
        network (linear, mlp, cnn, vgg, resnet; they need torch); or a factory of networks. By default
        logistic-regression.
    training : Training or dict, optional
        How networks are trained, as in `LabelPrivate`.
    expected_accuracy : float, default=0.8
        Of a teacher, for the simulated votes on which noise is calibrated: a public guess.
    n_jobs : int, default=1
        Processes that train teachers; -1 is all cores.

    Examples
    --------
    >>> import tacit
    >>> tacit.pate.Teachers(number=100, model="mlp").number
    100
    """

    number: int | None = None
    model: Any = None
    training: Training | dict[str, Any] | None = None
    expected_accuracy: float = 0.8
    n_jobs: int = 1

    def __post_init__(self) -> None:
        if self.number is not None:
            whole("number of teachers", self.number, 1, 10**6)
        check_name(self.model)
        Training.of(self.training)
        real("expected_accuracy", self.expected_accuracy, 0.01, 0.99)
        if whole("n_jobs", self.n_jobs, -1, 10**4) == 0:
            raise InputError("n_jobs=0 starts no process; pass 1 or more, or -1 for all cores")

    def numbers_for(self, members: int) -> list[int]:
        """Numbers of teachers to consider for so many records, or persons, in ascending order."""
        if self.number is not None:
            return [self.number]
        most = max(1, min(members // MEMBERS, MOST_TEACHERS))
        halves = [most >> times for times in range(most.bit_length()) if most >> times >= FEWEST_TEACHERS]
        return halves[::-1] or [most]


@dataclass(frozen=True, eq=False)
class Votes:
    """Class indices that teachers vote for, private: of shape (n_queries, n_teachers) and (n_test, n_teachers).

    `accuracies`, of shape (n_teachers,), are shares of the test records that each teacher gets right.
    """

    votes: NDArray[np.int64]
    test_votes: NDArray[np.int64] | None = None
    accuracies: NDArray[np.float64] | None = None


class Ensemble:
    """Teachers of one kind, one for each of the `parts` of the rows of X; it votes only for classes in its part.

    The largest part sets the steps of all networks, which are trained side by side where that is faster. With
    `private_sizes` each is trained alone, for the steps of its own part.

    In `folder`, `teachers/` is a private checkpoint: `00012.npy` holds the votes of teacher 12, and `00012.safetensors`
    its weights if it is a network. A teacher whose votes are there is not trained again.
    """

    def __init__(
        self,
        teacher: Any,
        parts: Sequence[Any],
        X: Any,
        y: Any,
        queries: Any,
        *,
        n_classes: int,
        training: Training | None = None,
        seed: int = 0,
        test: tuple[Any, Any] | None = None,
        folder: Path | str | None = None,
        private_sizes: bool = False,
    ) -> None:
        self.X = X if hasattr(X, "shape") else np.asarray(X)
        self.y, self.parts = np.asarray(y), [np.asarray(part) for part in parts]
        check_kind("teacher", teacher)
        check_labels(self.y, len(self.X), n_classes)
        _check_parts(self.parts, len(self.X))
        queried = [queries] if test is None else [queries, test[0]]
        self.queried = np.concatenate([alike(self.X, records) for records in queried])
        if test is not None and len(test[0]) != len(test[1]):
            raise InputError(f"there are {len(test[0])} test records and {len(test[1])} labels; pass one for each")
        self.n_queries, self.test_labels = len(queries), None if test is None else np.asarray(test[1])
        largest = None if private_sizes else max(len(part) for part in self.parts)
        self.plan = _Plan(teacher, n_classes, training or Training(), seed, largest)
        self.checkpoint: Checkpoint | None = None
        self.known: dict[int, NDArray[np.int64]] = {}
        self.hashes: list[str] = []
        """Of all that decides each teacher, its records included; empty without a folder."""
        if folder is not None:
            self.hashes = self._hashes()
            self.checkpoint = Checkpoint(Path(folder) / "teachers", digest(self.hashes))
            trained = [number for number in range(len(self.parts)) if self.checkpoint.has(_votes_file(number))]
            self.known = {number: self._finished_votes(self.checkpoint, number) for number in trained}

    def votes(self, n_jobs: int = 1) -> Votes:
        """Train the teachers that are missing, in so many processes, and let all vote on each query."""
        votes = shared("teacher-votes", self._hashes, lambda: self._trained_votes(n_jobs))
        n = self.n_queries
        if self.test_labels is None:
            return Votes(votes)
        return Votes(votes[:n], votes[n:], np.mean(votes[n:] == self.test_labels[:, None], axis=0))

    def _hashes(self) -> list[str]:
        """Hashes of all that decides the votes of each teacher."""
        from joblib import hash as hash_of_object

        plan = self.plan
        if plan.is_network:  # a module in print tells its layers
            module = network(plan.teacher)(self.X.shape[1:], plan.n_classes)
            kind = f"{plan.teacher if isinstance(plan.teacher, str) else ''} {module} {plan.training} {plan.largest}"
        else:
            kind = hash_of_object(plan.teacher)
        common = hash_of(f"{kind} {plan.n_classes} {plan.seed}", self.queried)
        return [hash_of(common, part, self.X[part], self.y[part]) for part in self.parts]

    def _trained_votes(self, n_jobs: int) -> NDArray[np.int64]:
        """Votes of all teachers, of shape (queries and test records, teachers)."""
        from joblib import Parallel, delayed

        votes = np.empty((len(self.queried), len(self.parts)), dtype=np.int64)
        for number, known in self.known.items():
            votes[:, number] = known
        missing = [number for number in range(len(self.parts)) if number not in self.known]
        together = self.plan.is_network and self.plan.largest is not None and faster_batched(self.plan.teacher)
        size = TOGETHER if together else 1
        groups = [missing[start : start + size] for start in range(0, len(missing), size)]

        def records(number: int) -> tuple[NDArray[Any], NDArray[Any]]:
            return self.X[self.parts[number]], self.y[self.parts[number]]

        jobs = (delayed(_train)(self.plan, group, list(map(records, group)), self.queried) for group in groups)
        with nullcontext() if n_jobs == 1 else shielding_workers():  # it starts the processes
            results = Parallel(n_jobs=n_jobs, return_as="generator")(jobs)
        trained = zip(groups, results, strict=True)
        for group, teachers in progress(trained, "training teachers", len(missing), lambda item: len(item[0])):
            for number, (of_teacher, state) in zip(group, teachers, strict=True):
                votes[:, number] = of_teacher
                if self.checkpoint is not None:
                    _finish(self.checkpoint, number, of_teacher, state)
        return votes

    def _finished_votes(self, checkpoint: Checkpoint, number: int) -> NDArray[np.int64]:
        """Votes of a teacher that an earlier run trained, of shape (queries and test records,)."""
        path, remedy = checkpoint.path(_votes_file(number)), "delete it, or choose another folder"
        try:
            votes = map_npy(path)
        except InputError as error:
            raise InputError(f"{path} is not an array of votes ({excerpt(str(error))}); {remedy}") from error
        n_classes = self.plan.n_classes
        valid = votes.shape == (len(self.queried),) and votes.dtype.kind == "i"
        if not valid or not np.all((votes >= 0) & (votes < n_classes)):
            raise InputError(f"{path} does not hold {len(self.queried)} votes for {n_classes} classes; {remedy}")
        return np.asarray(votes, dtype=np.int64)


@dataclass(frozen=True)
class _Plan:
    """Public settings that decide a teacher, beside its number and its records; `largest` is None if it is private."""

    teacher: Any
    n_classes: int
    training: Training
    seed: int
    largest: int | None

    @property
    def is_network(self) -> bool:
        return not hasattr(self.teacher, "fit")


def _votes_file(number: int) -> str:
    return f"{number:05d}.npy"


def _finish(
    checkpoint: Checkpoint, number: int, votes: NDArray[np.int64], weights: dict[str, NDArray[Any]] | None
) -> None:
    """Write what a teacher votes, and before that the weights of a network: a teacher with votes is finished."""
    from safetensors.numpy import save

    if weights is not None:
        checkpoint.write(f"{number:05d}.safetensors", save(weights))
    checkpoint.write(_votes_file(number), votes.astype(np.int32))


def hash_of(text: str, *arrays: NDArray[Any]) -> str:
    """Hash of a text and of arrays, by content, type and shape."""
    digest = hashlib.sha256(text.encode())
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _train(
    plan: _Plan, numbers: Sequence[int], parts: Sequence[tuple[NDArray[Any], NDArray[Any]]], queried: NDArray[Any]
) -> list[tuple[NDArray[np.int64], dict[str, NDArray[Any]] | None]]:
    """Votes on the `queried` records, and weights of networks, of the teachers of these numbers and records."""
    if not plan.is_network:
        pairs = zip(numbers, parts, strict=True)
        classifiers = (IndexClassifier(plan.teacher, X, y, [plan.seed, number]) for number, (X, y) in pairs)
        return [(classifier.predict(queried), None) for classifier in classifiers]
    modules = train_many(
        plan.teacher, parts, plan.n_classes, plan.training, seed=plan.seed, numbers=numbers, largest=plan.largest
    )
    present = [np.unique(y) for _, y in parts]
    return [(predict(module, queried, among=y), weights(module)) for module, y in zip(modules, present, strict=True)]


def _check_parts(parts: Sequence[NDArray[Any]], records: int) -> None:
    if not parts:
        raise InputError("parts is empty; pass one array of rows for each teacher")
    for number, part in enumerate(parts):
        if part.ndim != 1 or part.dtype.kind not in "iu" or not len(part) or part.min() < 0 or part.max() >= records:
            raise InputError(f"part {number} must be a non-empty list of rows from 0 to {records - 1}; correct it")
