"""From sources to embedding stores, shard by shard, so that an interrupted run goes on where it
was.

While it runs, finished shards lie beside the store in `.NAME.encoding`; they become the store when
all are there.
"""

import csv
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from tacit.compute.atomic import atomic_file, atomic_folder, check_writable, remove_parts
from tacit.compute.engines import Engine, engine_from, whole
from tacit.compute.shared import locked
from tacit.data.embeddings import EmbeddingStore
from tacit.data.manifest import holds_stores, is_store
from tacit.encoding.encoders.base import Features
from tacit.encoding.encoders.batches import batch_size
from tacit.encoding.encoders.job import Job
from tacit.encoding.encoders.job import Options as Options
from tacit.encoding.encoders.on_engine import check_reopens, encode_on_engine
from tacit.encoding.sources.base import Source
from tacit.errors import InputError

HEADER = "record,reason\n"

# folder of an engine's logs, in that of the job; no split has its name
ENGINE = ".engine"

# names of bad records in an error
MOST_EXAMPLES = 3


@dataclass(frozen=True)
class Outcome:
    """The store of a source, the number of records that were skipped as bad, the number that an
    earlier run had encoded, and the number of texts that are longer than the encoder reads at once.
    """

    store: EmbeddingStore
    skipped: int
    reused: int
    longer: int = 0


def encode_to_stores(
    sources: Mapping[str, Source],
    features: Features,
    folder: Path | str,
    options: Options | None = None,
    *,
    identity: str | None = None,
    force: bool = False,
    engine: Any = None,
    jobs: int = 1,
    minutes: int | None = None,
) -> dict[str, Outcome]:
    """Encode a source into a store, or several splits into a folder of stores.

    A run that was interrupted goes on when it is started again.

    Parameters
    ----------
    sources : dict
        By name of the split; a source of name "" makes `folder` itself the store.
    features : Features
        Of `load_encoder`.
    folder : path
    options : Options, optional
    identity : str, optional
        Declared name of the private data; by default the folder's. Splits add their names.
    force : bool
        Replace what `folder` holds.
    engine : {"joblib", "ray", "slurm"}, str or Engine, optional
        Where shards are encoded, each by one thread, with the same bits: "ray:ADDRESS" and
        "slurm:PARTITION" are understood. All workers must see the source, the encoder and the
        folder that holds `folder`. By default in this process, or by joblib if `jobs` is more than
        1.
    jobs : int
        Shards that an engine encodes at the same time.
    minutes : int, optional
        For slurm: the time limit of a task, for all its shards together.

    Returns
    -------
    dict of Outcome

    Raises
    ------
    InputError
        If an option is wrong, or records cannot be encoded and `skip_bad` is False. What was
        encoded is kept then, so that a run with `skip_bad` takes no time.
    """
    options = options or Options()
    folder = Path(folder).absolute()
    faults_path = folder.with_name(f"{folder.name}.bad.csv")
    is_replaceable = is_store if "" in sources else holds_stores
    check_writable(folder, force=force, ours=is_replaceable)
    _check_folder(folder, faults_path, sources)
    if options.classes is not None:
        no_labels = all(source.labels is None for source in sources.values())
        if options.public or no_labels:
            raise InputError("classes are given, and no labels are kept; leave them out")

    work = folder.parent / f".{folder.name}.encoding"
    split_jobs = _split_jobs(sources, features, options, work, identity or folder.name)
    work.mkdir(mode=0o700, exist_ok=True)
    runner = _runner(engine, jobs, minutes, work, split_jobs)
    try:
        with locked(work / ".lock", wait=False):
            # leftovers of a killed run
            remove_parts(folder)
            n_reused = {name: _finish(job, runner) for name, job in split_jobs.items()}
            faults = {name: job.faults() for name, job in split_jobs.items()}
            _check_faults(faults_path, faults, split_jobs, options.skip_bad)

            n_longer = {name: job.n_longer() for name, job in split_jobs.items()}
            with atomic_folder(folder, force=force, ours=is_replaceable) as temporary:
                _assemble(split_jobs, temporary)
            for job in split_jobs.values():
                job.checkpoint.clear()
            shutil.rmtree(work)
    except BlockingIOError as error:
        raise InputError(
            f"another run is encoding into {folder}; wait for it, or choose another output"
        ) from error

    outcomes = {}
    for name in split_jobs:
        store = EmbeddingStore.open(folder / name)
        outcomes[name] = Outcome(
            store, skipped=len(faults[name]), reused=n_reused[name], longer=n_longer[name]
        )
    return outcomes


def _runner(
    engine: Any, jobs: int, minutes: int | None, work: Path, split_jobs: Mapping[str, Job]
) -> Engine | None:
    """Return the engine that encodes shards, or None for this process; an engine that cannot run
    leaves no empty folder.
    """
    try:
        if engine is None and whole("jobs", jobs) > 1:
            engine = "joblib"
        if engine is None and minutes is not None:
            raise InputError(f"minutes={minutes} is for the engine slurm; leave it out")
        runner = engine_from(engine, jobs, work / ENGINE, minutes)
        if runner is not None:
            for job in split_jobs.values():
                check_reopens(job)
    except InputError:
        # fails if an earlier run has finished shards
        with suppress(OSError):
            work.rmdir()
        raise
    return runner


def _finish(job: Job, runner: Engine | None) -> int:
    """Encode the shards that are not finished; return the number of records in the others."""
    missing = job.missing()
    if missing:
        if runner is None:
            job.encode(missing)
        else:
            encode_on_engine(job, missing, runner)
    return len(job.source) - job.n_records(missing)


def _split_jobs(
    sources: Mapping[str, Source], features: Features, options: Options, work: Path, identity: str
) -> dict[str, Job]:
    """Return the job of each source, which keeps finished shards in a folder of its name."""
    size = batch_size(features, options.batch)
    jobs = {}
    for name, source in sources.items():
        job_folder = work / (name or "whole")
        job_identity = f"{identity}-{name}" if name else identity
        jobs[name] = Job(source, features, options, job_folder, size, job_identity)
    return jobs


def _assemble(jobs: Mapping[str, Job], folder: Path) -> None:
    """Put the store of each job into a folder of its name."""
    for name, job in jobs.items():
        (folder / name).mkdir(exist_ok=True)
        job.assemble(folder / name)
        # a store that cannot be opened is an error here rather than under the final name
        EmbeddingStore.open(folder / name)


def _check_folder(folder: Path, faults_path: Path, sources: Mapping[str, Source]) -> None:
    """Check before any work that the store is outside of its source, and that bad records can be
    listed.
    """
    output_folders = (folder.resolve(), *folder.resolve().parents)
    for source in sources.values():
        if source.folder is not None and source.folder.resolve() in output_folders:
            raise InputError(
                f"{folder} lies in the source {source.folder}; choose an output beside it"
            )
    try:
        str(folder).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{str(folder)!r} is not a name in UTF-8; choose another output"
        ) from error

    check_writable(faults_path, force=True)
    if faults_path.exists() and not _is_list_of_faults(faults_path):
        raise InputError(
            f"{faults_path} holds something else, and bad records would be listed there; choose"
            " another output"
        )


def _is_list_of_faults(path: Path) -> bool:
    """Tell whether a file was written by `_write_faults`."""
    return path.is_file() and path.read_bytes()[: len(HEADER)] == HEADER.encode()


def _check_faults(
    path: Path, faults: Mapping[str, Sequence[tuple[str, str]]], jobs: Mapping[str, Job], skip: bool
) -> None:
    """List the records that cannot be encoded in a file; raise unless they are to be left out."""
    all_faults = list(chain.from_iterable(faults.values()))
    if not all_faults:
        path.unlink(missing_ok=True)
        return
    _write_faults(path, all_faults)

    examples = _examples(faults, jobs)
    if any(len(faults[name]) == len(job.source) for name, job in jobs.items()):
        raise InputError(
            f"no record of the source can be encoded ({examples}); check it, {path} lists them"
        )
    if not skip:
        n_records = sum(len(job.source) for job in jobs.values())
        raise InputError(
            f"{len(all_faults)} of {n_records} records cannot be encoded ({examples}; {path} lists"
            " them); fix them, or leave them out with --skip-bad (skip_bad=True), which continues"
            " from the records already encoded"
        )


def _write_faults(path: Path, faults: Sequence[tuple[str, str]]) -> None:
    """Write the list of bad records, which are private: only the owner may read the file."""
    with (
        atomic_file(path, force=True, private=True) as part,
        part.open("w", encoding="utf-8", newline="") as file,
    ):
        file.write(HEADER)
        csv.writer(file, lineterminator="\n").writerows(faults)


def _examples(faults: Mapping[str, Sequence[tuple[str, str]]], jobs: Mapping[str, Job]) -> str:
    """Return the first bad records with the reasons, as messages show them."""
    texts: list[str] = []
    for job_name, faults_of_job in faults.items():
        source = jobs[job_name].source
        for name, reason in faults_of_job[: MOST_EXAMPLES - len(texts)]:
            texts.append(f"{source.shown(name)}: {reason}")
    if sum(len(faults_of_job) for faults_of_job in faults.values()) > MOST_EXAMPLES:
        texts.append("...")
    return "; ".join(texts)
