"""An ensemble of teachers: a classifier for each part of the private records, and their votes.

A teacher depends on its part, its number and public facts alone: teachers share no statistic, no
validation records, no early stopping and no list of the classes that occur. Under a unit per person
the sizes of parts are private, and a teacher does not depend on the size of another's part: it is
trained alone. Votes and accuracies are private.

Teachers are trained in blocks of consecutive numbers, in this process or where an engine runs, with
one thread each: so their bits are the same wherever they are trained, and whichever workers died
meanwhile.
"""

from __future__ import annotations

import hashlib
import math
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.array_files import ArrayFile, ShardFiles, array_in, to_files
from tacit.compute.checkpoint import Checkpoint
from tacit.compute.engines import Engine
from tacit.compute.engines.workers import alone
from tacit.compute.progress import progress
from tacit.compute.shared import digest, shared
from tacit.data.formats.npy import map_npy
from tacit.data.rows import one_line
from tacit.errors import InputError, excerpt
from tacit.learners.common.models import IndexClassifier, alike, check_kind, check_labels
from tacit.learners.common.training import Training, faster_batched, train_many
from tacit.models.networks import network, predict, weights

TOGETHER = 50  # networks that are trained at once
# at most, of teachers that are trained one by one: an interrupt loses at most a block of each
# worker
BLOCKS = 256
IN_MEMORY = 2**24  # bytes of votes; more lie in a file
HASHED = 256  # rows of an array that are hashed at once
# folders: in that of a run, and in the checkpoint while an engine trains
CHECKPOINT, RECORDS = "teachers", "records"


@dataclass(frozen=True, eq=False)
class Votes:
    """Class indices that teachers vote for, private: of shape (n_queries, n_teachers) and (n_test,
    n_teachers).

    They are of the smallest unsigned type; many of them are mapped from a file. `accuracies`, of
    shape (n_teachers,), are shares of the test records that each teacher gets right.
    """

    votes: NDArray[Any]
    test_votes: NDArray[Any] | None = None
    accuracies: NDArray[np.float64] | None = None


class Ensemble:
    """Teachers of one kind, one for each of the `parts` of the rows of X; it votes only for classes
    in its part.

    The largest part sets the steps of all networks, which are trained side by side where that is
    faster. With `private_sizes` each is trained alone, for the steps of its own part.

    In `folder`, `teachers/` is a private checkpoint: `00012.npy` holds the votes of a block of
    teachers, of which teacher 12 is the first, and `00012.safetensors` their weights if they are
    networks, by names such as `13.0.weight`. A block whose votes are there is not trained again.
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
        X = X if hasattr(X, "shape") else np.asarray(X)
        y, parts = np.asarray(y), [np.asarray(part) for part in parts]
        check_kind("teacher", teacher)
        check_labels(y, len(X), n_classes)
        _check_parts(parts, len(X))
        queried = np.concatenate(
            [alike(X, records) for records in ([queries] if test is None else [queries, test[0]])]
        )
        if test is not None and len(test[0]) != len(test[1]):
            raise InputError(
                f"there are {len(test[0])} test records and {len(test[1])} labels; pass one for"
                " each"
            )
        self.n_queries, self.test_labels = (
            len(queries),
            None if test is None else np.asarray(test[1]),
        )
        self.records = _Records(
            X, y, np.concatenate(parts), np.cumsum([len(part) for part in parts]), queried
        )
        largest = None if private_sizes else max(len(part) for part in parts)
        self.plan = _Plan(teacher, n_classes, training or Training(), seed, largest)
        self.checkpoint: Checkpoint | None = None
        self.known: dict[int, NDArray[Any]] = {}
        self.hashes: list[str] = []
        """Of all that decides each teacher, its records included; empty without a folder."""
        if folder is not None:
            self.hashes = self._hashes()
            self.checkpoint = Checkpoint(
                Path(folder).absolute() / CHECKPOINT, digest(self.hashes), private=True
            )
            trained = [first for first in self._blocks() if self.checkpoint.has(_votes_file(first))]
            self.known = {first: self._finished_votes(self.checkpoint, first) for first in trained}

    def votes(self, engine: Engine | None = None) -> Votes:
        """Train the teachers that are missing, in this process or where the engine runs; let all
        vote on each query.
        """
        votes = shared("teacher-votes", self._hashes, lambda: self._trained_votes(engine))
        n = self.n_queries
        if self.test_labels is None:
            return Votes(votes)
        accuracies = [np.mean(of_teacher == self.test_labels) for of_teacher in votes[n:].T]
        return Votes(votes[:n], votes[n:], np.array(accuracies))

    def _hashes(self) -> list[str]:
        """Hashes of all that decides the votes of each teacher."""
        from joblib import hash as hash_of_object

        plan, records = self.plan, self.records
        if plan.is_network:  # a module in print tells its layers
            module = network(plan.teacher)(records.X.shape[1:], plan.n_classes)
            kind = (
                f"{plan.teacher if isinstance(plan.teacher, str) else ''} {module} {plan.training}"
                f" {plan.largest}"
            )
        else:
            kind = hash_of_object(plan.teacher)
        common = hash_of(f"{kind} {plan.n_classes} {plan.seed}", records.queried)
        return [
            hash_of(common, records.rows(number), *records.of(number))
            for number in range(len(records.ends))
        ]

    def _blocks(self) -> range:
        """The first teacher of each block; the step is the size of a block."""
        teachers = len(self.records.ends)
        return range(0, teachers, TOGETHER if self.plan.side_by_side else -(-teachers // BLOCKS))

    def _trained_votes(self, engine: Engine | None) -> NDArray[Any]:
        """Votes of all teachers, of shape (queries and test records, teachers)."""
        votes = self._empty()
        for first, known in self.known.items():
            votes[first : first + len(known)] = known
        blocks = self._blocks()
        missing = [first for first in blocks if first not in self.known]
        teachers = len(votes) - sum(map(len, self.known.values()))
        with self._reachable(engine) as records:
            task = partial(_train_block, self.plan, records, self.checkpoint, blocks.step)
            results = (
                (alone(task, first) for first in missing)
                if engine is None
                else engine.map(task, missing)
            )
            with closing(results):
                for first, block in progress(
                    results, "training teachers", teachers, lambda result: len(result[1])
                ):
                    votes[first : first + len(block)] = block
        return votes.T

    def _empty(self) -> NDArray[Any]:
        """An array for votes, of shape (teachers, queries and test records); a large one is mapped
        from a file.
        """
        shape, dtype = (len(self.records.ends), len(self.records.queried)), self.plan.dtype
        if math.prod(shape) * dtype.itemsize <= IN_MEMORY:
            return np.empty(shape, dtype)
        near = None if self.checkpoint is None else self.checkpoint.folder
        with TemporaryDirectory(prefix=".votes-", dir=near, ignore_cleanup_errors=True) as folder:
            # the map outlives the name of the file
            return np.asarray(array_in(Path(folder) / "votes", dtype, shape))

    @contextmanager
    def _reachable(self, engine: Engine | None) -> Iterator[_Records]:
        """The records: for an engine in files, which are private and removed when the block
        ends.
        """
        if engine is None:
            yield self.records
        elif self.checkpoint is None:
            with TemporaryDirectory(prefix="tacit-teachers-") as temporary:
                yield self.records.in_files(Path(temporary))
        else:
            folder = self.checkpoint.path(RECORDS)
            try:
                yield self.records.in_files(folder)
            finally:
                shutil.rmtree(folder, ignore_errors=True)

    def _finished_votes(self, checkpoint: Checkpoint, first: int) -> NDArray[Any]:
        """Votes of a block that an earlier run trained, of shape (teachers, queries and test
        records).
        """
        path, remedy = checkpoint.path(_votes_file(first)), "delete it, or choose another folder"
        try:
            votes = map_npy(path)
        except InputError as error:
            raise InputError(
                f"{path} is not an array of votes ({excerpt(str(error))}); {remedy}"
            ) from error
        teachers = min(self._blocks().step, len(self.records.ends) - first)
        shape, n_classes = (teachers, len(self.records.queried)), self.plan.n_classes
        if votes.shape != shape or votes.dtype != self.plan.dtype or votes.max() >= n_classes:
            fault = (
                f"{path} does not hold votes of {shape[0]} teachers on {shape[1]} records for"
                f" {n_classes} classes"
            )
            raise InputError(f"{fault}; {remedy}")
        return votes


@dataclass(frozen=True, eq=False)
class _Records:
    """Arrays, or the files that hold them: records to train teachers from, and `queried` records to
    vote on.

    `order` holds positions in X, those of one teacher after those of another; `ends` (teachers,)
    says where each ends.
    """

    X: Any
    y: Any
    order: Any
    ends: Any
    queried: Any

    def in_files(self, folder: Path) -> _Records:
        """The files; an array that is not in a file is written to the folder."""
        try:
            return _Records(**{name: to_files(array, folder) for name, array in vars(self).items()})
        except OSError as error:
            fault = f"{folder} cannot take the records of teachers ({one_line(error)})"
            raise InputError(f"{fault}; choose another folder") from error

    def opened(self) -> _Records:
        """The arrays, mapped from files where they are in files."""
        arrays = vars(self).items()
        return _Records(
            **{name: x.open() if isinstance(x, ArrayFile | ShardFiles) else x for name, x in arrays}
        )

    def rows(self, number: int) -> NDArray[np.int64]:
        """Positions of the records of a teacher."""
        return np.asarray(self.order[self.ends[number - 1] if number else 0 : self.ends[number]])

    def of(self, number: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Records and labels of a teacher."""
        rows = self.rows(number)
        return self.X[rows], self.y[rows]


@dataclass(frozen=True)
class _Plan:
    """Public settings that decide a teacher, beside its number and its records; `largest` is None
    if it is private.
    """

    teacher: Any
    n_classes: int
    training: Training
    seed: int
    largest: int | None

    @property
    def is_network(self) -> bool:
        return not hasattr(self.teacher, "fit")

    @property
    def side_by_side(self) -> bool:
        """Whether the networks of a block are trained at once."""
        return self.is_network and self.largest is not None and faster_batched(self.teacher)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest unsigned type of a class index."""
        return np.min_scalar_type(self.n_classes - 1)


def _votes_file(first: int) -> str:
    return f"{first:05d}.npy"


def remove_records(folder: Path) -> None:
    """Remove the private records and votes that a killed run left in the folder of a run, which no
    other run uses.
    """
    checkpoint = folder / CHECKPOINT
    for left in (checkpoint / RECORDS, *checkpoint.glob(".*")):
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)  # workers of that run may still be writing
        else:
            left.unlink(missing_ok=True)


def hash_of(text: str, *arrays: NDArray[Any]) -> str:
    """Hash of a text and of arrays, by content, type and shape."""
    digest = hashlib.sha256(text.encode())
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        for start in range(0, len(array), HASHED):
            digest.update(np.ascontiguousarray(array[start : start + HASHED]).data)
    return digest.hexdigest()


def _train_block(
    plan: _Plan, records: _Records, checkpoint: Checkpoint | None, size: int, first: int
) -> tuple[int, NDArray[Any]]:
    """The first of `size` teachers, and their votes; if there is a checkpoint, they are written
    first.
    """
    records = records.opened()
    numbers = range(first, min(first + size, len(records.ends)))
    parts = [records.of(number) for number in numbers]
    if plan.is_network:
        modules = _networks(plan, numbers, parts)
        pairs = zip(modules, (np.unique(y) for _, y in parts), strict=True)
        said = [predict(module, records.queried, among=y).astype(plan.dtype) for module, y in pairs]
        states = {
            f"{number}.{name}": array
            for number, module in zip(numbers, modules, strict=True)
            for name, array in weights(module).items()
        }
    else:
        triples = ((number, *part) for number, part in zip(numbers, parts, strict=True))
        classifiers = (
            IndexClassifier(plan.teacher, X, y, [plan.seed, number]) for number, X, y in triples
        )
        said = [
            classifier.predict(records.queried).astype(plan.dtype) for classifier in classifiers
        ]
        states = {}
    if checkpoint is not None:
        _finish(checkpoint, first, np.array(said), states)
    return first, np.array(said)


def _networks(
    plan: _Plan, numbers: Sequence[int], parts: Sequence[tuple[NDArray[Any], NDArray[Any]]]
) -> list[Any]:
    """A trained network for each part; where sizes are private, each alone, for the steps of its
    own part.
    """
    options: dict[str, Any] = {"seed": plan.seed, "largest": plan.largest}
    if plan.largest is not None:
        return train_many(
            plan.teacher, parts, plan.n_classes, plan.training, numbers=numbers, **options
        )
    return [
        train_many(
            plan.teacher, [part], plan.n_classes, plan.training, numbers=[number], **options
        )[0]
        for number, part in zip(numbers, parts, strict=True)
    ]


def _finish(
    checkpoint: Checkpoint, first: int, votes: NDArray[Any], states: dict[str, NDArray[Any]]
) -> None:
    """Write what a block votes, and before that the weights of networks: a block with votes is
    finished.
    """
    from safetensors.numpy import save

    try:
        if states:
            checkpoint.write(f"{first:05d}.safetensors", save(states))
        checkpoint.write(_votes_file(first), votes)
    except OSError as error:
        fault = f"{checkpoint.folder} cannot take {votes.nbytes} bytes of votes ({one_line(error)})"
        raise InputError(f"{fault}; choose another folder") from error


def _check_parts(parts: Sequence[NDArray[Any]], records: int) -> None:
    if not parts:
        raise InputError("parts is empty; pass one array of rows for each teacher")
    for number, part in enumerate(parts):
        if (
            part.ndim != 1
            or part.dtype.kind not in "iu"
            or not len(part)
            or part.min() < 0
            or part.max() >= records
        ):
            raise InputError(
                f"part {number} must be a non-empty list of rows from 0 to {records - 1};"
                " correct it"
            )
