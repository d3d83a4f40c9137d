"""Add thousands of summaries up as a tree, where an engine runs.

Workers add groups of summaries up, then groups of these partial sums, until few are left. A partial
sum is a summary itself, saved in the folder of the work, so a run that was killed goes on from
those that are there. Sums are exact integers, so neither the groups, nor their order, nor the
engine change a bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from tacit.compute.checkpoint import Checkpoint
from tacit.compute.engines import Engine, engine_from, whole
from tacit.compute.engines.workers import in_directory
from tacit.compute.progress import progress, unreported
from tacit.compute.shared import digest, locked
from tacit.errors import InputError, quoted
from tacit.releases.adding import Reference
from tacit.releases.combination import NOTHING, Declared
from tacit.releases.summary import Summary, added_up
from tacit.releases.summary_files import stamp_of_files
from tacit.version import __version__

# summaries that a worker adds up to one
LARGEST_GROUP = 64

# summaries that this process adds up at the end
MOST_AT_LAST = 16


class Group(NamedTuple):
    """Summaries that a worker adds up, and the folder of their sum."""

    folders: tuple[Path, ...]
    total: Path


@dataclass(frozen=True)
class Task:
    """What all groups share: what is declared, the recipe that all must have, and the folder in
    which relative paths start.
    """

    declared: Declared
    reference: Reference
    directory: Path

    def add(
        self, folders: Sequence[Path], name: str | None = None, date: str | None = None
    ) -> Summary:
        """Add summaries up in this process."""
        return added_up(
            folders,
            name=name,
            date=date,
            declared=self.declared,
            reference=self.reference,
        )


def added_anywhere(
    summaries: Iterable[Summary | Path | str],
    *,
    engine: Any = None,
    jobs: int = 1,
    folder: Path | str | None = None,
    declared: Declared = NOTHING,
    name: str | None = None,
    date: str | None = None,
) -> Summary:
    """Add summaries up in this process, or where an engine runs; parameters are those of
    `added_on_engine`.

    By default joblib is the engine if `jobs` is more than 1 or `folder` is passed.
    """
    if engine is None and (whole("jobs", jobs) > 1 or folder is not None):
        engine = "joblib"
    if engine is None:
        return added_up(summaries, declared=declared, name=name, date=date)
    return added_on_engine(
        summaries,
        engine=engine,
        jobs=jobs,
        folder=folder,
        declared=declared,
        name=name,
        date=date,
    )


def added_on_engine(
    summaries: Iterable[Summary | Path | str],
    *,
    engine: Any,
    jobs: int,
    folder: Path | str | None,
    declared: Declared = NOTHING,
    name: str | None = None,
    date: str | None = None,
) -> Summary:
    """Add folders of summaries up where an engine runs; the result is that of `added_up`.

    Parameters
    ----------
    summaries : iterable of str or Path
        Folders that all workers see.
    engine : {"joblib", "ray", "slurm"}, str or Engine
        See `tacit.combine`.
    jobs : int
        Groups that are added up at the same time.
    folder : str or Path, optional
        For partial sums, from which a killed run goes on; all workers must see it. By default a
        temporary folder of this machine.
    declared : Declared
        What is declared of the parts.
    name, date : str, optional
        Of the sum.
    """
    folders = [_folder_of(summary) for summary in summaries]
    if not folders:
        raise InputError("there are no summaries to add; pass one at least")
    work_folder = None if folder is None else Path(folder).absolute()
    runner = engine_from(engine, whole("jobs", jobs), work_folder)
    assert runner is not None

    first = Summary.load(folders[0])
    reference = Reference(first.recipe, first.centre, first.source)
    task = Task(declared, reference, Path.cwd())
    with _checkpoint(work_folder, folders, task) as checkpoint:
        level = 0
        while level == 0 or len(folders) > MOST_AT_LAST:
            folders = _added_level(folders, level, task, checkpoint, runner)
            level += 1
        return task.add(folders, name, date)


def group_size(n_summaries: int) -> int:
    """Return the size of groups, which does not depend on the number of jobs: a run may go on with
    another.
    """
    return max(2, min(LARGEST_GROUP, math.isqrt(n_summaries)))


def _folder_of(summary: Any) -> Path:
    if isinstance(summary, str | Path):
        return Path(summary)
    raise InputError(
        f"an engine reads summaries from their folders, and summaries hold"
        f" {quoted(type(summary).__name__)}; pass folders, or leave the engine out"
    )


@contextmanager
def _checkpoint(folder: Path | None, folders: Sequence[Path], task: Task) -> Iterator[Checkpoint]:
    """Yield the folder of partial sums, which is removed when all are added up."""
    if folder is None:
        with TemporaryDirectory(prefix="tacit-combine-") as temporary:
            yield Checkpoint(Path(temporary))
        return

    # partial sums of other summaries, or of files that changed since, have another folder
    files = [(str(path.absolute()), stamp_of_files(path)) for path in folders]
    key = digest([__version__, repr(task.declared.without_allowances()), files])
    checkpoint = Checkpoint(folder / f"sums-{key[:16]}", key)
    try:
        with locked(checkpoint.path(".lock"), wait=False):
            yield checkpoint
    except BlockingIOError as error:
        raise InputError(
            f"another run adds these summaries up in {folder}; wait for it, or choose another"
            " folder"
        ) from error
    checkpoint.clear()


def _added_level(
    folders: Sequence[Path], level: int, task: Task, checkpoint: Checkpoint, engine: Engine
) -> list[Path]:
    """Add groups of summaries up; return the folders of the sums."""
    size = group_size(len(folders))
    groups = []
    for number, first in enumerate(range(0, len(folders), size)):
        total = checkpoint.path(f"level-{level}-{number:05d}")
        groups.append(Group(tuple(folders[first : first + size]), total))

    # a folder is there whole or not at all
    missing = [group for group in groups if not group.total.is_dir()]
    n_missing = sum(len(group.folders) for group in missing)
    finished = engine.map(partial(_add_group, task), missing)
    label = "summaries" if level == 0 else "partial sums"
    with closing(finished):
        for _ in progress(finished, label, n_missing, lambda n: n):
            pass
    return [group.total for group in groups]


def _add_group(task: Task, group: Group) -> int:
    """Add a group of summaries up in a worker; return their number."""
    with in_directory(task.directory), unreported():
        # allowances may name parts of other groups, so they are declared of the whole alone
        partial_task = replace(task, declared=task.declared.without_allowances())
        total = partial_task.add(group.folders)
        total.save(group.total, force=True, allow_research=True)
        return len(group.folders)
