"""The job of encoding a source: shards are finished one after another, then put together as a
store.

A finished shard is `00000.npy`, its rows, with `00000.json`, its facts, which is written last. A
later run takes finished shards over if the encoder, the source and the options are the same, by
their hash.
"""

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from tacit.compute.checkpoint import Checkpoint
from tacit.compute.progress import progress
from tacit.compute.shared import digest
from tacit.data.arrays import combined_hash
from tacit.data.labels import class_list
from tacit.data.manifest import Manifest, StoredFile
from tacit.data.names import ClassNames
from tacit.data.origin import RECORD, ROW, without_folders
from tacit.data.writing import LABEL, PERSON, label_indexes, stored_file, sync, write_names
from tacit.encoding.encoders.base import Features
from tacit.encoding.encoders.batches import Batch, batches_of, check_workers, encode_batches
from tacit.encoding.sources.base import Source
from tacit.errors import InputError
from tacit.version import __version__

SHARD_ROWS = 4096
DTYPES = ("float16", "float32")


@dataclass(frozen=True)
class Options:
    """What becomes of the records.

    Parameters
    ----------
    classes : list or int, optional
        The class list as a public fact; by default what the source declares, else what its labels
        show.
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
    names : ClassNames, optional
        Rows of class names that the store shall carry, in the order of the declared class list.
    declared_public : bool
        Whether all records and labels are public, as the store then states.
    """

    classes: Any = None
    public: bool = False
    skip_bad: bool = False
    dtype: str = "float16"
    batch: int | None = None
    workers: int = 0
    shard_rows: int = SHARD_ROWS
    names: ClassNames | None = None
    declared_public: bool = False

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise InputError(
                f"dtype={self.dtype!r} is not one of {', '.join(DTYPES)}; pass one of them"
            )
        if self.shard_rows < 1:
            raise InputError(
                f"shard_rows={self.shard_rows} must be positive; leave it out for {SHARD_ROWS}"
            )
        check_workers(self.workers)


@dataclass(frozen=True)
class Shard:
    """Facts about a finished shard: the places of its good records, hashes of them, and what is
    wrong with others.
    """

    number: int
    good: list[int]
    contents: list[str]
    faults: list[tuple[int, str]]
    dim: int


@dataclass(frozen=True)
class Job:
    """A source that is encoded in the folder `work`, `size` records at a time."""

    source: Source
    features: Features
    options: Options
    work: Path
    size: int
    identity: str

    def __post_init__(self) -> None:
        listed, declared = self.classes  # labels are checked before anything is encoded
        names = self.options.names
        if names is not None and (not declared or len(names.rows) != len(listed)):
            raise InputError(
                "names are not those of a declared class list; give one entry for each class"
                " (--classes)"
            )

    @property
    def rows(self) -> int:
        """Records in a shard: whole batches, so that these do not depend on where a run began."""
        return -(-self.options.shard_rows // self.size) * self.size

    @property
    def count(self) -> int:
        """Number of shards."""
        return -(-len(self.source) // self.rows)

    @property
    def labels(self) -> Any:
        """Labels that the store keeps."""
        return None if self.options.public else self.source.labels

    @property
    def persons(self) -> Any:
        """Ids of persons that the store keeps."""
        return None if self.options.public else self.source.persons

    @cached_property
    def classes(self) -> tuple[Any, bool]:
        """The class list, and whether it was declared."""
        source = self.source
        if self.labels is None:
            return None, False
        declared = source.classes if source.classes_declared else None
        if self.options.classes is not None:
            declared = class_list(self.options.classes)
        listed = declared or source.classes
        if listed is None and self.labels.dtype.kind == "U":
            listed = np.unique(self.labels).tolist()
        label_indexes(self.labels, listed)
        return None if listed is None else class_list(listed), declared is not None

    @cached_property
    def checkpoint(self) -> Checkpoint:
        """Finished shards; those of another encoder, source or layout are removed."""
        facts = [
            __version__,
            self.features.card,
            self.source.stamp,
            len(self.source),
            self.options.dtype,
        ]
        key = digest([*facts, self.size, self.rows, self.features.backbone.batch])
        return Checkpoint(self.work, key, replace=True)

    def run(self) -> int:
        """Encode from the first shard on that is not finished; return the number of records before
        it.
        """
        first = next(
            (number for number in range(self.count) if not self._is_finished(number)), self.count
        )
        done, total = min(first * self.rows, len(self.source)), len(self.source)
        batches = batches_of(islice(self.source.records(done), total - done), self.size)
        encoded = encode_batches(
            batches, self.features, np.dtype(self.options.dtype), self.options.workers, self.work
        )
        if done < total:
            with closing(encoded):
                shown = progress(
                    encoded,
                    "encoding",
                    total - done,
                    lambda batch: len(batch.good) + len(batch.faults),
                )
                for number in range(first, self.count):
                    self._write_shard(number, list(islice(shown, self.rows // self.size)))
        return done

    def shards(self) -> Iterator[Shard]:
        """The finished shards, one in memory at a time."""
        return (self._shard(number) for number in range(self.count))

    def faults(self) -> list[tuple[str, str]]:
        """Names of the records that cannot be encoded, in full, and why."""
        return [
            (_as_text(self.source.names[shard.number * self.rows + place]), why)
            for shard in self.shards()
            for place, why in shard.faults
        ]

    def assemble(self, folder: Path) -> None:
        """Put the store into `folder`, of links to the finished shards."""
        (folder / "shards").mkdir()
        files: list[StoredFile] = []
        dim = 0
        for shard in self.shards():
            if shard.good:
                dim, name = shard.dim, f"shards/{len(files):05d}.npy"
                _link(self.checkpoint.path(f"{shard.number:05d}.npy"), folder / name)
                files.append(stored_file(folder, name, len(shard.good)))
        classes, declared = self.classes
        content = combined_hash(value for shard in self.shards() for value in shard.contents)
        source = {
            "kind": self.source.kind,
            "public": self.options.public,
            "content_sha256": content,
        }
        manifest = Manifest(
            rows=sum(file.rows for file in files),
            dim=dim,
            dtype=self.options.dtype,
            shards=tuple(files),
            metadata=self._write_metadata(folder),
            has_labels=self.labels is not None,
            classes=classes,
            classes_declared=declared,
            identity=self.identity,
            card={"encoder": self.features.card, "source": source, **self.source.facts},
            has_persons=self.persons is not None,
            declared_public=self.options.declared_public,
        )
        if self.options.names is not None:
            manifest = write_names(
                folder, self.options.names.rows, self.options.names.facts, manifest
            )
        manifest.save(folder)

    def _is_finished(self, number: int) -> bool:
        name = f"{number:05d}"
        facts, rows = self.checkpoint.has(f"{name}.json"), self.checkpoint.has(f"{name}.npy")
        return facts and (rows or not self._shard(number).good)

    def _shard(self, number: int) -> Shard:
        return Shard(
            number,
            **json.loads(self.checkpoint.path(f"{number:05d}.json").read_text(encoding="utf-8")),
        )

    def _write_shard(self, number: int, batches: Sequence[Batch]) -> None:
        rows = [batch.values.astype(self.options.dtype) for batch in batches if batch.good]
        placed = list(zip(range(0, self.rows, self.size), batches, strict=False))
        facts = {
            "good": [start + place for start, batch in placed for place in batch.good],
            "contents": [value for batch in batches for value in batch.contents],
            "faults": [
                (start + place, why) for start, batch in placed for place, why in batch.faults
            ],
            "dim": rows[0].shape[1] if rows else 0,
        }
        if rows:
            self.checkpoint.write(f"{number:05d}.npy", np.concatenate(rows))
        self.checkpoint.write(f"{number:05d}.json", json.dumps(facts).encode())

    def _write_metadata(self, folder: Path) -> StoredFile:
        """Label, person, position, name and hash of each record, a shard at a time."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        indexes = label_indexes(self.labels, self.classes[0])
        persons = self.persons
        fields = [(LABEL, pa.int32())] if indexes is not None else []
        if persons is not None:
            fields.append((PERSON, pa.string() if persons.dtype.kind == "U" else pa.int64()))
        schema = pa.schema(
            [*fields, (ROW, pa.int64()), (RECORD, pa.string()), ("content", pa.string())]
        )
        name, rows = "metadata.parquet", 0
        with (folder / name).open("wb") as file:
            # a dictionary of the other columns, whose values differ, would hold them all in memory
            with pq.ParquetWriter(file, schema, use_dictionary=[LABEL, PERSON]) as writer:
                for shard in self.shards():
                    rows += len(shard.good)
                    places = [shard.number * self.rows + place for place in shard.good]
                    names = [_as_text(self.source.names[place]) for place in places]
                    if self.options.public:
                        names = [without_folders(path) for path in names]
                    columns: dict[str, Any] = {} if indexes is None else {LABEL: indexes[places]}
                    if persons is not None:
                        columns[PERSON] = persons[places].tolist()
                    columns |= {ROW: places, RECORD: names, "content": shard.contents}
                    writer.write_table(pa.table(columns, schema))
            sync(file)
        return stored_file(folder, name, rows)


def _as_text(name: str) -> str:
    """A file's name as text, whatever bytes it has."""
    return name.encode("utf-8", "backslashreplace").decode()


def _link(old: Path, new: Path) -> None:
    try:
        os.link(old, new)
    except OSError:  # a file system without links
        shutil.copyfile(old, new)
