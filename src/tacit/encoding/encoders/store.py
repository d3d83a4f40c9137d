"""From sources to embedding stores, shard by shard, so that an interrupted run goes on where it was.

While it runs, `.NAME.encoding` lies beside the store: a finished shard is `00000.npy` with `00000.json`, which is
written last. The shards become the store when all are there; a second run takes the finished ones over if the encoder,
the source and the options are the same, by their hashes.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from tacit.compute.atomic import atomic_file, atomic_folder, check_writable, remove_parts
from tacit.compute.checkpoint import Checkpoint
from tacit.compute.progress import progress
from tacit.compute.shared import digest, locked
from tacit.data.arrays import combined_hash
from tacit.data.embeddings import EmbeddingStore
from tacit.data.labels import class_list
from tacit.data.manifest import Manifest, StoredFile, holds_stores, is_store
from tacit.data.writing import LABEL, label_indexes, stored_file, sync
from tacit.encoding.encoders.base import Features
from tacit.encoding.encoders.batches import Batch, batch_size, batches_of, encode_batches
from tacit.encoding.sources.base import Source
from tacit.errors import InputError

SHARD_ROWS = 4096
DTYPES = ("float16", "float32")
BAD = ".bad.csv"
HEADER = "record,reason\n"
LOCK = ".lock"
SHOWN = 3  # names of bad records in an error


@dataclass(frozen=True)
class Options:
    """What becomes of the records.

    Parameters
    ----------
    classes : list or int, optional
        The class list as a public fact; by default what the source declares, else what its labels show.
    public : bool
        Keep no labels, and of the files' paths only the last part.
    skip_bad : bool
        Leave out records that cannot be encoded; they are listed in NAME.bad.csv beside the store.
    dtype : {"float16", "float32"}
        How rows are stored.
    batch : int, optional
        Records at a time.
    workers : int
        Processes that decode pictures; 0 decodes in this one.
    shard_rows : int
        Records in one file of the store, and what an interrupt loses at most.

    Raises
    ------
    InputError
        If one is wrong.
    """

    classes: Any = None
    public: bool = False
    skip_bad: bool = False
    dtype: str = "float16"
    batch: int | None = None
    workers: int = 0
    shard_rows: int = SHARD_ROWS

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise InputError(f"dtype={self.dtype!r} is not one of {', '.join(DTYPES)}; pass one of them")
        if self.shard_rows < 1:
            raise InputError(f"shard_rows={self.shard_rows} must be positive; leave it out for {SHARD_ROWS}")
        if self.workers < 0:
            raise InputError(f"workers={self.workers} must be 0 or more; leave it out")


@dataclass(frozen=True)
class Outcome:
    """What became of one source.

    Parameters
    ----------
    store : EmbeddingStore
    skipped : int
        Records that could not be encoded and are left out.
    reused : int
        Records that an earlier run had encoded.
    """

    store: EmbeddingStore
    skipped: int
    reused: int


def encode_to_stores(
    sources: Mapping[str, Source],
    features: Features,
    folder: Path | str,
    options: Options = Options(),
    *,
    identity: str | None = None,
    force: bool = False,
) -> dict[str, Outcome]:
    """Encode a source into a store, or several splits into a folder of stores.

    A run that was interrupted goes on when it is started again.

    Parameters
    ----------
    sources : dict
        By name of the split; one of name "" makes `folder` itself the store.
    features : Features
        Of `load_encoder`.
    folder : path
    options : Options
    identity : str, optional
        Declared name of the private data; by default the folder's. Splits add their own name.
    force : bool
        Replace what `folder` holds.

    Returns
    -------
    dict of Outcome

    Raises
    ------
    InputError
        If an option is wrong, or records cannot be encoded and `skip_bad` is False. What was encoded is kept then, so
        that a run with `skip_bad` takes no time.
    """
    folder = Path(folder).absolute()
    bad = folder.with_name(folder.name + BAD)
    _check_output(folder, bad, sources, force)
    if options.classes is not None and (options.public or all(source.labels is None for source in sources.values())):
        raise InputError("classes are given, and no labels are kept; leave them out")
    size = batch_size(features, options.batch)
    work = folder.parent / f".{folder.name}.encoding"
    known_as = identity or folder.name
    jobs = {
        name: _Job(
            source, features, options, work / (name or "whole"), size, f"{known_as}-{name}" if name else known_as
        )
        for name, source in sources.items()
    }
    work.mkdir(mode=0o700, exist_ok=True)
    try:
        with locked(work / LOCK, wait=False):
            remove_parts(folder)
            reused = {name: job.run() for name, job in jobs.items()}
            faults = {name: job.faults() for name, job in jobs.items()}
            _check_bad(bad, faults, jobs, options.skip_bad)
            with atomic_folder(folder, force=force, ours=_kind(sources)) as temporary:
                for name, job in jobs.items():
                    (temporary / name).mkdir(exist_ok=True)
                    job.assemble(temporary / name)
                    EmbeddingStore.open(temporary / name)  # raises here rather than under the final name
            for job in jobs.values():
                job.checkpoint.clear()
            shutil.rmtree(work)
    except BlockingIOError as error:
        raise InputError(f"another run is encoding into {folder}; wait for it, or choose another output") from error
    return {name: Outcome(EmbeddingStore.open(folder / name), len(faults[name]), reused[name]) for name in jobs}


def _kind(sources: Mapping[str, Source]) -> Callable[[Path], bool]:
    """The function that tells whether a folder holds what this run writes."""
    return is_store if "" in sources else holds_stores


def _check_output(folder: Path, bad: Path, sources: Mapping[str, Source], force: bool) -> None:
    """Check before any work that the store and the list of bad records can be written."""
    for source in sources.values():
        if source.folder is not None and source.folder.resolve() in (folder.resolve(), *folder.resolve().parents):
            raise InputError(f"{folder} lies in the source {source.folder}; choose an output beside it")
    try:
        str(folder).encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{str(folder)!r} is no name in UTF-8; choose another output") from error
    check_writable(folder, force=force, ours=_kind(sources))
    check_writable(bad, force=True)
    if bad.exists() and not (bad.is_file() and bad.read_bytes()[: len(HEADER)] == HEADER.encode()):
        raise InputError(f"{bad} holds something else, and bad records would be listed there; choose another output")


@dataclass(frozen=True)
class _Shard:
    """A finished shard: its number, records in it by their place, hashes of them, and what is wrong with others."""

    number: int
    good: list[int]
    contents: list[str]
    faults: list[tuple[int, str]]
    dim: int


@dataclass(frozen=True)
class _Job:
    """One source on its way to a store; `size` records are handled together."""

    source: Source
    features: Features
    options: Options
    work: Path
    size: int
    identity: str

    def __post_init__(self) -> None:
        _ = self.classes  # labels are checked before anything is encoded

    @property
    def rows(self) -> int:
        """Records in a shard: whole batches, so that these do not depend on where a run began."""
        return -(-self.options.shard_rows // self.size) * self.size

    @property
    def count(self) -> int:
        """Number of shards."""
        return -(-len(self.source) // self.rows)

    @cached_property
    def classes(self) -> tuple[Any, bool]:
        """The class list, and whether it was declared."""
        given, source = self.options.classes, self.source
        if self.options.public or source.labels is None:
            return None, False
        declared = class_list(given) if given is not None else source.classes if source.classes_declared else None
        listed = declared or source.classes
        if listed is None and source.labels.dtype.kind == "U":
            listed = np.unique(source.labels).tolist()
        label_indexes(source.labels, listed)
        return None if listed is None else class_list(listed), declared is not None

    def run(self) -> int:
        """Encode what is missing; returns the number of records that an earlier run had encoded."""
        done = [number for number in range(self.count) if self._done(number)]
        total = len(self.source)
        for first, end in _runs([number for number in range(self.count) if number not in set(done)]):
            count = min(end * self.rows, total) - first * self.rows
            records = islice(self.source.records(first * self.rows), count)
            batches = batches_of(records, self.size)
            dtype = np.dtype(self.options.dtype)
            with closing(encode_batches(batches, self.features, dtype, self.options.workers, self.work)) as found:
                shown = progress(found, "encoding", count, lambda one: len(one.good) + len(one.faults))
                for number in range(first, end):
                    own = min(self.rows, total - number * self.rows)
                    self._write(number, list(islice(shown, -(-own // self.size))))
        return sum(min(self.rows, total - number * self.rows) for number in done)

    def shards(self) -> Iterator[_Shard]:
        """The finished shards, one in memory at a time."""
        for number in range(self.count):
            yield self._shard(number)

    def faults(self) -> list[tuple[str, str]]:
        """Names of the records that cannot be encoded, and why."""
        return [
            (_text(self.source.names[shard.number * self.rows + place]), why)
            for shard in self.shards()
            for place, why in shard.faults
        ]

    def assemble(self, folder: Path) -> None:
        """Put the store into `folder`, of links to the finished shards."""
        (folder / "shards").mkdir()
        files: list[StoredFile] = []
        dims: list[int] = []
        for shard in self.shards():
            if shard.good:
                name = f"shards/{len(files):05d}.npy"
                _link(self.checkpoint.path(_rows_file(shard.number)), folder / name)
                files.append(stored_file(folder, name, len(shard.good)))
                dims.append(shard.dim)
        classes, declared = self.classes
        Manifest(
            rows=sum(file.rows for file in files),
            dim=dims[0],
            dtype=self.options.dtype,
            shards=tuple(files),
            metadata=self._write_metadata(folder),
            has_labels=self.labels is not None,
            classes=classes,
            classes_declared=declared,
            identity=self.identity,
            card={
                "encoder": self.features.card,
                "source": {
                    "kind": self.source.kind,
                    "public": self.options.public,
                    "content_sha256": combined_hash(value for shard in self.shards() for value in shard.contents),
                },
            },
        ).save(folder)

    @property
    def labels(self) -> Any:
        """Labels that the store keeps."""
        return None if self.options.public else self.source.labels

    @cached_property
    def checkpoint(self) -> Checkpoint:
        """Finished shards; those of another encoder, source or layout are removed."""
        own = [version("tacit"), self.features.card, self.source.stamp, len(self.source), self.options.dtype]
        key = digest([*own, self.size, self.rows, self.features.backbone.batch])
        return Checkpoint(self.work, key, replace=True)

    def _done(self, number: int) -> bool:
        """Whether a shard is there in full."""
        return self.checkpoint.has(_facts_file(number)) and (
            self.checkpoint.has(_rows_file(number)) or not self._shard(number).good
        )

    def _shard(self, number: int) -> _Shard:
        return _Shard(number, **json.loads(self.checkpoint.path(_facts_file(number)).read_text(encoding="utf-8")))

    def _write(self, number: int, batches: Sequence[Batch]) -> None:
        """Keep a shard; its facts last."""
        dtype = np.dtype(self.options.dtype)
        rows = [batch.values.astype(dtype) for batch in batches if batch.good]
        facts = {
            "good": [place + self.size * one for one, batch in enumerate(batches) for place in batch.good],
            "contents": [value for batch in batches for value in batch.contents],
            "faults": [
                (place + self.size * one, why) for one, batch in enumerate(batches) for place, why in batch.faults
            ],
            "dim": rows[0].shape[1] if rows else 0,
        }
        if rows:
            self.checkpoint.write(_rows_file(number), np.concatenate(rows))
        self.checkpoint.write(_facts_file(number), json.dumps(facts).encode())

    def _write_metadata(self, folder: Path) -> StoredFile:
        """Label, name and hash of each record, a shard at a time."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        indexes = label_indexes(self.labels, self.classes[0])
        fields = [(LABEL, pa.int32())] if indexes is not None else []
        schema = pa.schema([*fields, ("record", pa.string()), ("content", pa.string())])
        name, rows = "metadata.parquet", 0
        with (folder / name).open("wb") as file:
            with pq.ParquetWriter(file, schema) as writer:
                for shard in self.shards():
                    rows += len(shard.good)
                    places = [shard.number * self.rows + place for place in shard.good]
                    names = [_text(self.source.names[place]) for place in places]
                    shown = [one.rpartition("/")[2] for one in names] if self.options.public else names
                    own = [pa.array(indexes[places], pa.int32())] if indexes is not None else []
                    columns = [*own, pa.array(shown, pa.string()), pa.array(shard.contents, pa.string())]
                    writer.write_table(pa.Table.from_arrays(columns, schema=schema))
            sync(file)
        return stored_file(folder, name, rows)


def _rows_file(number: int) -> str:
    return f"{number:05d}.npy"


def _facts_file(number: int) -> str:
    return f"{number:05d}.json"


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Consecutive numbers as (first, one after the last)."""
    start = 0
    for place in range(1, len(numbers) + 1):
        if place == len(numbers) or numbers[place] != numbers[place - 1] + 1:
            yield numbers[start], numbers[place - 1] + 1
            start = place


def _check_bad(
    path: Path, faults: Mapping[str, Sequence[tuple[str, str]]], jobs: Mapping[str, _Job], skip: bool
) -> None:
    """Write the list of records that cannot be encoded; raise unless they are to be left out."""
    found = [fault for own in faults.values() for fault in own]
    if not found:
        path.unlink(missing_ok=True)
        return
    with atomic_file(path, force=True) as part, part.open("w", encoding="utf-8", newline="") as file:
        file.write(HEADER)
        csv.writer(file, lineterminator="\n").writerows(found)
    shown = "; ".join(f"{name}: {why}" for name, why in found[:SHOWN]) + ("; ..." if len(found) > SHOWN else "")
    if any(len(faults[name]) == len(job.source) for name, job in jobs.items()):
        raise InputError(f"no record of the source can be encoded ({shown}); check it, {path} lists them")
    if not skip:
        total = sum(len(job.source) for job in jobs.values())
        raise InputError(
            f"{len(found)} of {total} records cannot be encoded ({shown}; {path} lists them); mend them, or leave "
            "them out with --skip-bad (skip_bad=True), which goes on from what is encoded"
        )


def _text(name: str) -> str:
    """A file's name as text, whatever bytes it has."""
    return name.encode("utf-8", "backslashreplace").decode()


def _link(old: Path, new: Path) -> None:
    try:
        os.link(old, new)
    except OSError:  # a file system without links
        shutil.copyfile(old, new)
