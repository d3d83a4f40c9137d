"""Shards of a store that the workers of an engine encode, on this machine or on a cluster.

A worker opens the source and loads the encoder as this process did. Hashes tell whether both are
the same there. It encodes with one thread, writes finished shards into the folder of the job, and
keeps no label or person.
"""

import socket
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tacit.compute.checkpoint import KEY
from tacit.compute.engines import Engine
from tacit.compute.engines.workers import environment, in_directory
from tacit.compute.progress import progress, unreported
from tacit.encoding.encoders.base import Features
from tacit.encoding.encoders.batches import batch_size
from tacit.encoding.encoders.job import Job, Options
from tacit.encoding.sources.base import Faults, Source
from tacit.errors import InputError, excerpt

# number of threads of encoders that count cores themselves
ONE_CORE = {"LOKY_MAX_CPU_COUNT": "1"}

# A worker loads the encoder once, for all shards of a job that it encodes.
_opened: dict[tuple[Path, str], Job] = {}


@dataclass(frozen=True)
class Task:
    """The arguments of a worker, from which it prepares the job again.

    `directory` is the working folder of the caller, in which relative paths start. `card` describes
    the caller's encoder, and `key` hashes it with the source: both are compared with the worker's.
    """

    open_source: Callable[[], Source]
    load_features: Callable[[], Features]
    faults: Faults
    options: Options
    work: Path
    directory: Path
    card: dict[str, Any]
    key: str


def check_reopens(job: Job) -> None:
    """Refuse a source or an encoder that workers cannot open."""
    if job.source.reopen is None:
        raise InputError(
            "an engine encodes sources that workers can open, and this one lies in memory; open it"
            " with open_source, or leave the engine out"
        )
    if job.features.reload is None:
        raise InputError(
            "an engine runs encoders that workers can load, and this one was made here; load it"
            " with load_encoder, or leave the engine out"
        )


def encode_on_engine(job: Job, numbers: Sequence[int], engine: Engine) -> None:
    """Encode shards of a job where an engine runs."""
    # makes the folder of the job, with the key by which a worker knows it
    job.checkpoint  # noqa: B018
    finished = engine.map(partial(_encode_shard, _task(job)), numbers)
    try:
        with closing(finished):
            n_records = job.n_records(numbers)
            for _ in progress(finished, "encoding", n_records, lambda n: n):
                pass
    finally:
        # joblib with one job encodes in this process, which needs that encoder no longer
        _opened.clear()


def _task(job: Job) -> Task:
    """Describe a job that `check_reopens` let pass."""
    source = job.source
    features = job.features
    assert source.reopen is not None
    assert features.reload is not None
    # labels, persons and class names are added here, when all shards are finished
    options = Options(
        dtype=job.options.dtype,
        batch=features.backbone.batch,
        shard_rows=job.options.shard_rows,
    )
    return Task(
        open_source=source.reopen,
        load_features=features.reload,
        faults=dict(source.faults),
        options=options,
        work=job.work,
        directory=Path.cwd(),
        card=features.card,
        key=job.key,
    )


def _encode_shard(task: Task, number: int) -> int:
    """Encode a shard in a worker; return the number of its records."""
    with in_directory(task.directory), environment(ONE_CORE), unreported():
        job = _open(task)
        job.encode([number])
        return job.n_records([number])


def _open(task: Task) -> Job:
    """Prepare the job of a task in a worker; refuse one that differs from the caller's."""
    machine = socket.gethostname()
    key_file = task.work / KEY
    if not key_file.is_file() or key_file.read_text() != task.key:
        raise InputError(
            f"a worker on {machine} does not find the work of this run in {task.work}; choose an"
            " output in a folder that all machines share"
        )

    job = _opened.get((task.work, task.key))
    if job is not None:
        return job

    source = replace(task.open_source(), labels=None, persons=None, faults=task.faults)
    features = task.load_features()
    size = batch_size(features, task.options.batch)
    job = Job(source, features, task.options, task.work, size, in_worker=True)
    if job.key != task.key:
        raise InputError(f"a worker on {machine} {_difference(task.card, features.card)}")

    # one job in memory, since encoders are large
    _opened.clear()
    _opened[task.work, task.key] = job
    return job


def _difference(ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    """Return the end of an error, which says what a worker sees otherwise."""
    for name in sorted(ours.keys() | theirs.keys()):
        if ours.get(name) != theirs.get(name):
            there = excerpt(str(theirs.get(name)))
            here = excerpt(str(ours.get(name)))
            return (
                f"loads another encoder: {name} is {there} there and {here} here; give all"
                " machines the same weights and libraries, and pass --precision float32"
            )
    return (
        "sees another source: names, sizes or times of its files differ; give one in a folder that"
        " all machines share"
    )
