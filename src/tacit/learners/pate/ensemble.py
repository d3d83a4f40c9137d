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

# Networks that are trained at once.
TOGETHER = 50

# Blocks of teachers that are trained one by one, at most. An interrupt loses at most one block of
# each worker.
BLOCKS = 256

# Bytes of votes that are held in memory; more lie in a file.
IN_MEMORY = 2**24

# Rows of an array that are hashed at once.
HASHED = 256

# Folder of the checkpoint, in that of a run; and of the records, in the checkpoint, while an engine
# trains.
CHECKPOINT = "teachers"
RECORDS = "records"


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
        y = np.asarray(y)
        parts = [np.asarray(part) for part in parts]
        check_kind("teacher", teacher)
        check_labels(y, len(X), n_classes)
        _check_parts(parts, len(X))

        # test records are voted on after the queries
        queried = [alike(X, queries)]
        self.n_queries = len(queries)
        self.test_labels = None
        if test is not None:
            test_records, test_labels = test
            queried.append(alike(X, test_records))
            if len(test_records) != len(test_labels):
                raise InputError(
                    f"there are {len(test_records)} test records and {len(test_labels)} labels;"
                    " pass one for each"
                )
            self.test_labels = np.asarray(test_labels)

        ends = np.cumsum([len(part) for part in parts])
        self.records = _Records(X, y, np.concatenate(parts), ends, np.concatenate(queried))
        largest = None if private_sizes else max(len(part) for part in parts)
        self.plan = _Plan(teacher, n_classes, training or Training(), seed, largest)

        self.checkpoint: Checkpoint | None = None
        self.finished_votes: dict[int, NDArray[Any]] = {}
        """Votes of the blocks that an earlier run trained, by the first teacher of each."""
        self.hashes: list[str] = []
        """Of all that decides each teacher, its records included; empty without a folder."""
        if folder is not None:
            self._open_checkpoint(Path(folder))

    def _open_checkpoint(self, folder: Path) -> None:
        """Read which teachers an earlier run has trained from the same records and settings."""
        self.hashes = self._hashes()
        checkpoint = Checkpoint(folder.absolute() / CHECKPOINT, digest(self.hashes), private=True)
        self.checkpoint = checkpoint
        for first in self._blocks():
            if checkpoint.has(_votes_file(first)):
                self.finished_votes[first] = self._read_votes(checkpoint, first)

    def votes(self, engine: Engine | None = None) -> Votes:
        """Train the teachers that are missing, in this process or where the engine runs; let all
        vote on each query.
        """
        votes = shared("teacher-votes", self._hashes, lambda: self._trained_votes(engine))
        if self.test_labels is None:
            return Votes(votes)
        query_votes = votes[: self.n_queries]
        test_votes = votes[self.n_queries :]
        accuracies = [np.mean(column == self.test_labels) for column in test_votes.T]
        return Votes(query_votes, test_votes, np.array(accuracies))

    def _hashes(self) -> list[str]:
        """Hashes of all that decides the votes of each teacher."""
        from joblib import hash as hash_of_object

        plan = self.plan
        records = self.records
        if plan.is_network:
            # the text of a module has its layers
            module = network(plan.teacher)(records.X.shape[1:], plan.n_classes)
            name = plan.teacher if isinstance(plan.teacher, str) else ""
            kind = f"{name} {module} {plan.training} {plan.largest}"
        else:
            kind = hash_of_object(plan.teacher)
        common = hash_of(f"{kind} {plan.n_classes} {plan.seed}", records.queried)
        return [
            hash_of(common, records.rows(number), *records.of(number))
            for number in range(len(records.ends))
        ]

    def _blocks(self) -> range:
        """The first teacher of each block; the step is the size of a block."""
        n_teachers = len(self.records.ends)
        size = TOGETHER if self.plan.side_by_side else -(-n_teachers // BLOCKS)
        return range(0, n_teachers, size)

    def _trained_votes(self, engine: Engine | None) -> NDArray[Any]:
        """Votes of all teachers, of shape (queries and test records, teachers)."""
        votes = self._empty()
        n_missing = len(votes)
        for first, block_votes in self.finished_votes.items():
            votes[first : first + len(block_votes)] = block_votes
            n_missing -= len(block_votes)

        blocks = self._blocks()
        missing = [first for first in blocks if first not in self.finished_votes]
        with self._reachable(engine) as records:
            task = partial(_train_block, self.plan, records, self.checkpoint, blocks.step)
            if engine is None:
                results = (alone(task, first) for first in missing)
            else:
                results = engine.map(task, missing)
            with closing(results):
                for first, block_votes in progress(
                    results, "training teachers", n_missing, lambda result: len(result[1])
                ):
                    votes[first : first + len(block_votes)] = block_votes
        return votes.T

    def _empty(self) -> NDArray[Any]:
        """An array for votes, of shape (teachers, queries and test records); a large one is mapped
        from a file.
        """
        shape = (len(self.records.ends), len(self.records.queried))
        dtype = self.plan.dtype
        if math.prod(shape) * dtype.itemsize <= IN_MEMORY:
            return np.empty(shape, dtype)

        parent = None if self.checkpoint is None else self.checkpoint.folder
        with TemporaryDirectory(prefix=".votes-", dir=parent, ignore_cleanup_errors=True) as folder:
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

    def _read_votes(self, checkpoint: Checkpoint, first: int) -> NDArray[Any]:
        """Read the votes of a block that an earlier run trained, of shape (teachers, queries and
        test records).
        """
        path = checkpoint.path(_votes_file(first))
        remedy = "delete it, or choose another folder"
        try:
            votes = map_npy(path)
        except InputError as error:
            raise InputError(
                f"{path} is not an array of votes ({excerpt(str(error))}); {remedy}"
            ) from error

        n_teachers = min(self._blocks().step, len(self.records.ends) - first)
        n_records = len(self.records.queried)
        n_classes = self.plan.n_classes
        valid = votes.shape == (n_teachers, n_records) and votes.dtype == self.plan.dtype
        if not valid or votes.max() >= n_classes:
            fault = (
                f"{path} does not hold votes of {n_teachers} teachers on {n_records} records for"
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
        arrays = {
            name: array.open() if isinstance(array, ArrayFile | ShardFiles) else array
            for name, array in vars(self).items()
        }
        return _Records(**arrays)

    def rows(self, number: int) -> NDArray[np.int64]:
        """Positions of the records of a teacher."""
        start = self.ends[number - 1] if number else 0
        return np.asarray(self.order[start : self.ends[number]])

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
        """True if the networks of a block are trained at once."""
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
    for leftover in (checkpoint / RECORDS, *checkpoint.glob(".*")):
        if leftover.is_dir():
            # workers of that run may still be writing
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


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
    """Train a block of teachers; return the first of them, and their votes, of shape (teachers,
    queries and test records).

    If there is a checkpoint, the votes are written first.
    """
    records = records.opened()
    numbers = range(first, min(first + size, len(records.ends)))
    parts = [records.of(number) for number in numbers]
    states: dict[str, NDArray[Any]] = {}
    if plan.is_network:
        networks = _networks(plan, numbers, parts)
        votes = [
            predict(module, records.queried, among=np.unique(y)).astype(plan.dtype)
            for module, (_, y) in zip(networks, parts, strict=True)
        ]
        for number, module in zip(numbers, networks, strict=True):
            for name, array in weights(module).items():
                states[f"{number}.{name}"] = array
    else:
        votes = []
        for number, (X, y) in zip(numbers, parts, strict=True):
            classifier = IndexClassifier(plan.teacher, X, y, [plan.seed, number])
            votes.append(classifier.predict(records.queried).astype(plan.dtype))

    block_votes = np.array(votes)
    if checkpoint is not None:
        _finish(checkpoint, first, block_votes, states)
    return first, block_votes


def _networks(
    plan: _Plan, numbers: Sequence[int], parts: Sequence[tuple[NDArray[Any], NDArray[Any]]]
) -> list[Any]:
    """Return a trained network for each part.

    Where sizes are private, each is trained alone, for the steps of its own part.
    """
    options: dict[str, Any] = {"seed": plan.seed, "largest": plan.largest}
    if plan.largest is not None:
        return train_many(
            plan.teacher, parts, plan.n_classes, plan.training, numbers=numbers, **options
        )
    networks = []
    for number, part in zip(numbers, parts, strict=True):
        networks += train_many(
            plan.teacher, [part], plan.n_classes, plan.training, numbers=[number], **options
        )
    return networks


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


def _check_parts(parts: Sequence[NDArray[Any]], n_records: int) -> None:
    """Refuse parts that are no rows of the records."""
    if not parts:
        raise InputError("parts is empty; pass one array of rows for each teacher")
    for number, part in enumerate(parts):
        is_list_of_rows = part.ndim == 1 and part.dtype.kind in "iu" and len(part) > 0
        if not is_list_of_rows or part.min() < 0 or part.max() >= n_records:
            raise InputError(
                f"part {number} must be a non-empty list of rows from 0 to {n_records - 1};"
                " correct it"
            )
