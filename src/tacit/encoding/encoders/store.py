"""From sources to embedding stores, shard by shard, so that an interrupted run goes on where it
was.

While it runs, finished shards lie beside the store in `.NAME.encoding`; they become the store when
all are there.
"""

import csv
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tacit.compute.atomic import atomic_file, atomic_folder, check_writable, remove_parts
from tacit.compute.shared import locked
from tacit.data.embeddings import EmbeddingStore
from tacit.data.manifest import holds_stores, is_store
from tacit.encoding.encoders.base import Features
from tacit.encoding.encoders.batches import batch_size
from tacit.encoding.encoders.job import Job
from tacit.encoding.encoders.job import Options as Options
from tacit.encoding.sources.base import Source
from tacit.errors import InputError

HEADER = "record,reason\n"
SHOWN = 3  # names of bad records in an error


@dataclass(frozen=True)
class Outcome:
    """The store of a source, how many records were skipped as bad, and how many an earlier run had
    encoded.
    """

    store: EmbeddingStore
    skipped: int
    reused: int


def encode_to_stores(
    sources: Mapping[str, Source],
    features: Features,
    folder: Path | str,
    options: Options | None = None,
    *,
    identity: str | None = None,
    force: bool = False,
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
    bad = folder.with_name(f"{folder.name}.bad.csv")
    ours = is_store if "" in sources else holds_stores
    check_writable(folder, force=force, ours=ours)
    _check_folder(folder, bad, sources)
    if options.classes is not None and (
        options.public or all(source.labels is None for source in sources.values())
    ):
        raise InputError("classes are given, and no labels are kept; leave them out")
    size = batch_size(features, options.batch)
    work = folder.parent / f".{folder.name}.encoding"
    identity = identity or folder.name
    jobs = {
        name: Job(
            source,
            features,
            options,
            work / (name or "whole"),
            size,
            f"{identity}-{name}" if name else identity,
        )
        for name, source in sources.items()
    }
    work.mkdir(mode=0o700, exist_ok=True)
    try:
        with locked(work / ".lock", wait=False):
            remove_parts(folder)
            reused = {name: job.run() for name, job in jobs.items()}
            faults = {name: job.faults() for name, job in jobs.items()}
            _check_faults(bad, faults, jobs, options.skip_bad)
            with atomic_folder(folder, force=force, ours=ours) as temporary:
                for name, job in jobs.items():
                    (temporary / name).mkdir(exist_ok=True)
                    job.assemble(temporary / name)
                    # raises here rather than under the final name
                    EmbeddingStore.open(temporary / name)
            for job in jobs.values():
                job.checkpoint.clear()
            shutil.rmtree(work)
    except BlockingIOError as error:
        raise InputError(
            f"another run is encoding into {folder}; wait for it, or choose another output"
        ) from error
    return {
        name: Outcome(EmbeddingStore.open(folder / name), len(faults[name]), reused[name])
        for name in jobs
    }


def _check_folder(folder: Path, bad: Path, sources: Mapping[str, Source]) -> None:
    """Check before any work that the store is outside of its source, and that bad records can be
    listed.
    """
    for source in sources.values():
        if source.folder is not None and source.folder.resolve() in (
            folder.resolve(),
            *folder.resolve().parents,
        ):
            raise InputError(
                f"{folder} lies in the source {source.folder}; choose an output beside it"
            )
    try:
        str(folder).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{str(folder)!r} is not a name in UTF-8; choose another output"
        ) from error
    check_writable(bad, force=True)
    if bad.exists() and not (bad.is_file() and bad.read_bytes()[: len(HEADER)] == HEADER.encode()):
        raise InputError(
            f"{bad} holds something else, and bad records would be listed there; choose another"
            " output"
        )


def _check_faults(
    path: Path, faults: Mapping[str, Sequence[tuple[str, str]]], jobs: Mapping[str, Job], skip: bool
) -> None:
    """List the records that cannot be encoded in a file; raise unless they are to be left out."""
    listed = [fault for of_job in faults.values() for fault in of_job]
    if not listed:
        path.unlink(missing_ok=True)
        return
    with (
        atomic_file(path, force=True) as part,
        part.open("w", encoding="utf-8", newline="") as file,
    ):
        file.write(HEADER)
        csv.writer(file, lineterminator="\n").writerows(listed)

    texts: list[str] = []
    for job_name, faults_of_job in faults.items():
        source = jobs[job_name].source
        for name, reason in faults_of_job[: SHOWN - len(texts)]:
            texts.append(f"{source.shown(name)}: {reason}")
    if len(listed) > SHOWN:
        texts.append("...")
    shown = "; ".join(texts)
    if any(len(faults[name]) == len(job.source) for name, job in jobs.items()):
        raise InputError(
            f"no record of the source can be encoded ({shown}); check it, {path} lists them"
        )
    if not skip:
        total = sum(len(job.source) for job in jobs.values())
        raise InputError(
            f"{len(listed)} of {total} records cannot be encoded ({shown}; {path} lists them); fix"
            " them, or leave them out with --skip-bad (skip_bad=True), which continues from the"
            " records already encoded"
        )
