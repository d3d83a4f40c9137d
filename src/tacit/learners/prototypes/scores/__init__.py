"""The score of every public record for every class, in exact integers.

u_c(p) = sum over records x of class c of (clip(1 + cos(x, p), d_min, d_max) - d_min).
Unit: add/remove one record, or one person with all their records. Each unit row becomes an integer
row (`arithmetic.py`) by its own values and public facts; their products are exact integers in any
order, block shape, number of threads or workers. Each product is clipped to [low, high], less low:
a record adds a whole number in [0, W], W = high - low. Sensitivity W, monotone, exact. (Float
products are not exact: adding a record can change the bits of other records' scores.) Unclipped
(d_min = 0, d_max = 2) the sum is n_c N^2 + <p, sum of x>: one product for each class, W = 2 N^2.
Per person: what a record adds is multiplied by a public power of two F, divided by the number m of
records of its person, over all classes, and rounded down. So a person adds at most W F to scores,
in all classes together: that is the sensitivity, also for one record of a person, by the proof in
`tacit.mechanisms.exponential`. W F is from 2^36 to 2^37, so rounding takes at most m 2^-36 of what
a person may add. Unclipped scores: see `unclipped.py`.
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

MOST_ROWS = 2**26  # each adds at most 2^37 to a score
WORK = "tacit-scores"  # a folder that is removed in the end, so no other program may use this name
IN_MEMORY = 2**28  # bytes of scores, or of private integer rows; larger arrays lie in files


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of shape (C, m), between 0 and the sensitivity for each record; private.

    Each shard, of shape (C, some), has those of consecutive public rows, in memory or mapped from a
    file.
    """

    shards: list[Integers]

    def __len__(self) -> int:
        return len(self.shards[0])

    def __iter__(self) -> Iterator[Integers]:
        """The scores of each class, (m,)."""
        return (np.concatenate([shard[c] for shard in self.shards]) for c in range(len(self)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Integers:
        whole = self.shards[0] if len(self.shards) == 1 else np.concatenate(self.shards, axis=1)
        return whole if dtype is None else whole.astype(dtype)


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
    """Yield exact scores of public rows (m, d) by private rows (n, d); rows of zeros contribute
    nothing.

    Under a unit per person `person_sizes` (n,) has, for each record, the number of records of its
    person.
    Public rows are read in blocks. Finished shards of clipped scores lie in `folder`, where a later
    run resumes from them; they are private and removed when the block ends well. An engine computes
    shards, else threads do.
    """
    if len(labels) >= MOST_ROWS:
        raise InputError(
            f"{len(labels)} rows could overflow 64-bit scores; learn from fewer than {MOST_ROWS}"
        )
    if (person_sizes is None) is not (scoring.classes is None):
        raise ValueError("person_sizes go with a scoring by person, and with no other")
    # of all scores, or of the private rows as integers
    dtype, shape = "int64", (n_classes, len(public))
    if scoring.clipped:
        dtype, shape = scoring.arithmetic.dtype, (len(X), scoring.arithmetic.width(X.shape[1]))
    large = (
        max(8 * n_classes * len(public), math.prod(shape) * np.dtype(dtype).itemsize) > IN_MEMORY
    )
    if folder is None and engine is None and not large:
        array = np.empty(shape, dtype)
        if scoring.clipped:
            yield Scores(
                shards_in_memory(
                    _tile_scorer(scoring, public, X, labels, person_sizes, n_classes, array)
                )
            )
        else:
            yield Scores([unclipped_scores(public, X, labels, person_sizes, scoring.centre, array)])
        return
    with work_folder(folder) as place:
        file = place / "part"
        try:
            array = array_in(file, dtype, shape)
            if scoring.clipped:
                scorer = _tile_scorer(scoring, public, X, labels, person_sizes, n_classes, array)
                if engine is not None and len(scorer.rows):  # workers map this file
                    array.flush()
                    scorer = replace(
                        scorer, rows=np.memmap(file, dtype, "r", shape=scorer.rows.shape)
                    )
                checkpoint = Checkpoint(place / f"scores-{_key(scorer)}")
                yield Scores(shards_in_folder(scorer, checkpoint, engine))
            else:
                yield Scores(
                    [unclipped_scores(public, X, labels, person_sizes, scoring.centre, array)]
                )
        finally:
            file.unlink(missing_ok=True)
        # older scores too; some file systems keep files that are still mapped
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def work_folder(folder: Path | None) -> Iterator[Path]:
    """A folder in `folder`, or a temporary one, that only this user can read and only one fit uses
    at a time.
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
    """Private rows by group, as integers, written to `rows`; rows of zeros are left out."""
    classes, divisors, groups = _groups(labels, person_sizes, n_classes)
    order = np.argsort(groups, kind="stable")
    counts = np.zeros(len(classes), np.int64)
    filled = 0

    def rounded(start: int) -> tuple[NDArray[Any], Integers]:
        chosen = order[start : start + BLOCK]
        integers = scoring.arithmetic.integers(X[chosen], scoring.centre)
        present = integers.any(axis=1)
        return integers[present], groups[chosen][present]

    for integers, of_rows in in_threads(rounded, range(0, len(order), BLOCK)):
        rows[filled : filled + len(integers)] = integers
        filled += len(integers)
        counts += np.bincount(of_rows, minlength=len(classes))
    ends, shard = np.cumsum(counts), shard_width(n_classes)
    return TileScorer(scoring, public, rows[:filled], ends, classes, divisors, n_classes, shard)


def _groups(
    labels: Integers, person_sizes: Integers | None, n_classes: int
) -> tuple[Integers, Integers, Integers]:
    """The class and the divisor of each group, by class, and the group of each private row."""
    if person_sizes is None:
        return np.arange(n_classes), np.ones(n_classes, np.int64), labels
    base = int(person_sizes.max(initial=0)) + 1
    pairs, groups = np.unique(labels * base + person_sizes, return_inverse=True)
    return pairs // base, pairs % base, groups


def _key(scorer: TileScorer) -> str:
    """Hash of all that determines the shards; public rows in files enter by path, size and time,
    not content.
    """
    files, how = files_of(scorer.public), scorer.scoring
    versions = [__version__, version("numpy"), version("numba")]
    facts = [versions, repr(how.arithmetic), how.low, how.high, how.factor, scorer.shard]
    groups = [scorer.ends, scorer.classes, scorer.divisors]
    centre = [] if how.centre is None else [how.centre]
    return digest(
        [*facts, *groups, scorer.rows, *centre, scorer.public if files is None else repr(files)]
    )
