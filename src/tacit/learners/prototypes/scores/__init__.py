"""The score of every public record for every class, in exact integers.

    u_c(p) = sum over records x of class c of (clip(1 + cos(x, p), d_min, d_max) - d_min)

Neighbouring relation: add/remove one record, or one person with all their records.

Exactness. Each unit row becomes an integer row (`arithmetic.py`) by its own values and public
facts. Products of integer rows are exact integers in any order, block shape, number of threads or
workers. Products of floats are not exact: adding a record can change the bits of other records'
scores.

Clipped scores (`clipped.py`). Each product is clipped to [low, high], and low is subtracted. So a
record adds a whole number in [0, W], W = high - low. The scores have sensitivity W and are
monotone.

Unclipped scores (`unclipped.py`), for d_min = 0 and d_max = 2. The score is n_c N^2 + <p, sum of
x>, one product for each class, and W = 2 N^2.

Clipped scores under a unit per person. What a record adds is multiplied by a public power of two F,
divided by the number m of records of its person, over all classes, and rounded down. So a person
adds at most W F to the scores of all classes together. That is the sensitivity, also for one record
of a person, by the proof in `tacit.mechanisms.exponential`. W F is from 2^36 to 2^37, so rounding
takes at most m 2^-36 of what a person may add.

Source: Wahdany et al. 2024, section 4; exact form by tacit.
"""

import math
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.array_files import array_in, files_of
from tacit.compute.checkpoint import Checkpoint
from tacit.compute.engines import Engine
from tacit.compute.shared import digest, locked
from tacit.compute.threads import in_threads
from tacit.compute.timing import SCORING, phase
from tacit.data.rows import one_line
from tacit.errors import InputError
from tacit.learners.prototypes.scores.arithmetic import BLOCK, Scoring
from tacit.learners.prototypes.scores.clipped import (
    TileScorer,
    shard_width,
    shards_in_folder,
    shards_in_memory,
)
from tacit.learners.prototypes.scores.unclipped import unclipped_scores
from tacit.mechanisms.noise import Integers
from tacit.version import __version__

# Each row adds at most 2^37 to a score, so scores of fewer than 2^26 rows fit 64 bits.
MOST_ROWS = 2**26

# name of a folder that is removed in the end, so no other program may use it
WORK = "tacit-scores"

# bytes of scores, or of private integer rows; larger arrays lie in files
IN_MEMORY = 2**28


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of shape (C, m), between 0 and the sensitivity for each record; private.

    Each shard, of shape (C, shard width), has the scores of consecutive public rows, in memory or
    mapped from a file.
    """

    shards: list[Integers]

    def __len__(self) -> int:
        return len(self.shards[0])

    def __iter__(self) -> Iterator[Integers]:
        """Yield the scores of each class, (m,)."""
        for c in range(len(self)):
            yield np.concatenate([shard[c] for shard in self.shards])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Integers:
        # a single shard is not copied
        scores = self.shards[0]
        if len(self.shards) > 1:
            scores = np.concatenate(self.shards, axis=1)
        return scores if dtype is None else scores.astype(dtype)


@contextmanager
def scores(
    scoring: Scoring,
    public: Any,
    X: NDArray[Any],
    labels: Integers,
    n_classes: int,
    *,
    person_sizes: Integers | None = None,
    folder: Path | None = None,
    engine: Engine | None = None,
) -> Iterator[Scores]:
    """Yield exact scores of public rows (m, d) by private rows (n, d).

    Rows of zeros contribute nothing. Under a unit per person `person_sizes` (n,) has, for each
    record, the number of records of its person.

    Public rows are read in blocks. Finished shards of clipped scores lie in `folder`, where a later
    run resumes from them; they are private and removed when the block ends well. An engine computes
    shards if one is passed, otherwise threads do.
    """
    _check_records(scoring, labels, person_sizes)

    def tile_scorer(array: NDArray[Any]) -> TileScorer:
        return _tile_scorer(scoring, public, X, labels, person_sizes, n_classes, array)

    def unclipped(array: NDArray[Any]) -> Scores:
        centre = scoring.centre
        return Scores([unclipped_scores(public, X, labels, person_sizes, centre, array)])

    dtype, shape = _working_array(scoring, X, len(public), n_classes)
    bytes_of_scores = 8 * n_classes * len(public)
    bytes_of_array = math.prod(shape) * np.dtype(dtype).itemsize
    fits_memory = max(bytes_of_scores, bytes_of_array) <= IN_MEMORY

    if folder is None and engine is None and fits_memory:
        array = np.empty(shape, dtype)
        if scoring.clipped:
            yield Scores(shards_in_memory(tile_scorer(array)))
        else:
            yield unclipped(array)
        return

    with work_folder(folder) as place:
        file = place / "part"
        try:
            array = array_in(file, dtype, shape)
            if scoring.clipped:
                scorer = tile_scorer(array)
                if engine is not None:
                    scorer = _scorer_for_workers(scorer, array, file)
                checkpoint = Checkpoint(place / f"scores-{_key(scorer)}")
                yield Scores(shards_in_folder(scorer, checkpoint, engine))
            else:
                yield unclipped(array)
        finally:
            file.unlink(missing_ok=True)

        # scores of earlier runs too; some file systems keep files that are still mapped
        shutil.rmtree(place, ignore_errors=True)


def _check_records(scoring: Scoring, labels: Integers, person_sizes: Integers | None) -> None:
    if len(labels) >= MOST_ROWS:
        raise InputError(
            f"{len(labels)} rows could overflow 64-bit scores; learn from fewer than {MOST_ROWS}"
        )
    if (person_sizes is None) is not (scoring.classes is None):
        raise ValueError("person_sizes go with a scoring by person, and with no other")


def _working_array(
    scoring: Scoring, X: NDArray[Any], n_public: int, n_classes: int
) -> tuple[str, tuple[int, int]]:
    """Return the type and shape of the working array.

    It holds the private rows as integers for clipped scores, else the scores.
    """
    if scoring.clipped:
        return scoring.arithmetic.dtype, (len(X), scoring.arithmetic.width(X.shape[1]))
    return "int64", (n_classes, n_public)


def _scorer_for_workers(scorer: TileScorer, array: np.memmap[Any, Any], file: Path) -> TileScorer:
    """Return a scorer that maps its rows from the file of the working array."""
    if not len(scorer.rows):
        # an empty file cannot be mapped
        return scorer

    # all rows must be in the file before workers map it
    array.flush()
    rows = np.memmap(file, array.dtype, "r", shape=scorer.rows.shape)
    return replace(scorer, rows=rows)


@contextmanager
def work_folder(folder: Path | None) -> Iterator[Path]:
    """Yield a folder in `folder`, or a temporary folder, for the files of one fit.

    Only this user can read it. A second fit that uses `folder` at the same time is refused.
    """
    if folder is None:
        with TemporaryDirectory(prefix="tacit-scores-") as temporary:
            yield Path(temporary)
        return

    work = folder / WORK
    with ExitStack() as stack:
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            stack.enter_context(locked(folder / ".lock", wait=False))
            work.mkdir(mode=0o700, exist_ok=True)
        except BlockingIOError as error:
            raise InputError(
                f"folder={folder} is in use by another fit; wait for it, or choose another"
            ) from error
        except (OSError, ValueError) as error:
            raise InputError(
                f"folder={str(folder)!r} cannot be made ({one_line(error)}); choose another"
            ) from error

        # a link, or the folder of another user, would show the scores to others
        if work.is_symlink() or work.stat().st_uid != os.geteuid():
            raise InputError(f"{work} is not yours, and scores are private; choose another folder")
        work.chmod(0o700)
        yield work


@phase(SCORING)
def _tile_scorer(
    scoring: Scoring,
    public: Any,
    X: NDArray[Any],
    labels: Integers,
    person_sizes: Integers | None,
    n_classes: int,
    rows: NDArray[Any],
) -> TileScorer:
    """Return the scorer of these records, whose integer rows are written to `rows` by group.

    Rows of zeros have no direction and are left out.
    """
    classes, divisors, groups = _groups(labels, person_sizes, n_classes)
    order = np.argsort(groups, kind="stable")

    def round_block(start: int) -> tuple[NDArray[Any], Integers]:
        records = order[start : start + BLOCK]
        integers = scoring.arithmetic.integers(X[records], scoring.centre)
        present = integers.any(axis=1)
        return integers[present], groups[records][present]

    group_sizes = np.zeros(len(classes), np.int64)
    n_rows = 0
    for integers, block_groups in in_threads(round_block, range(0, len(order), BLOCK)):
        rows[n_rows : n_rows + len(integers)] = integers
        n_rows += len(integers)
        group_sizes += np.bincount(block_groups, minlength=len(classes))

    return TileScorer(
        scoring=scoring,
        public=public,
        rows=rows[:n_rows],
        ends=np.cumsum(group_sizes),
        classes=classes,
        divisors=divisors,
        n_classes=n_classes,
        shard=shard_width(n_classes),
    )


def _groups(
    labels: Integers, person_sizes: Integers | None, n_classes: int
) -> tuple[Integers, Integers, Integers]:
    """Return the class (g,) and the divisor (g,) of each group, and the group (n,) of each row.

    Groups are sorted by class.
    """
    if person_sizes is None:
        return np.arange(n_classes), np.ones(n_classes, np.int64), labels

    # number each pair of a class and a number of records; sorting the numbers sorts by class first
    base = int(person_sizes.max(initial=0)) + 1
    pairs, groups = np.unique(labels * base + person_sizes, return_inverse=True)
    return pairs // base, pairs % base, groups


def _key(scorer: TileScorer) -> str:
    """Hash of all that determines the shards.

    Public rows in files enter by path, size and time, since reading them would take long.
    """
    rule = scorer.scoring
    versions = [__version__, version("numpy"), version("numba")]
    facts = [versions, repr(rule.arithmetic), rule.low, rule.high, rule.factor, scorer.shard]
    groups = [scorer.ends, scorer.classes, scorer.divisors]
    centre = [] if rule.centre is None else [rule.centre]

    public = scorer.public
    files = files_of(public)
    if files is not None:
        public = repr(files)
    return digest([*facts, *groups, scorer.rows, *centre, public])
