"""The job of encoding a source: shards are finished one after another, then put together as a
store.

A finished shard is `00000-KEY.npy`, its rows, with `00000-KEY.json`, its facts, which is written
last. KEY is the beginning of a hash of the encoder, the source and the options. A later run takes
finished shards over if that hash is the same. It is also in the names, so that a worker which is
left over from another run replaces no shard of this one.
"""

import json
import math
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.checkpoint import Checkpoint
from tacit.compute.progress import progress
from tacit.compute.shared import digest
from tacit.data.arrays import combined_hash
from tacit.data.label_sets import Indicators
from tacit.data.labels import ClassValue, LabelKind, class_list
from tacit.data.manifest import Manifest, StoredFile
from tacit.data.names import ClassNames
from tacit.data.origin import CONTENT, RECORD, ROW, without_folders
from tacit.data.writing import (
    LABEL,
    PERSON,
    label_column,
    label_indexes,
    stored_file,
    sync,
    write_names,
)
from tacit.encoding.encoders.base import Features
from tacit.encoding.encoders.batches import Batch, batches_of, check_workers, encode_batches
from tacit.encoding.sources.base import Record, Source
from tacit.errors import InputError
from tacit.version import __version__

SHARD_ROWS = 4096
DTYPES = ("float16", "float32")


@dataclass(frozen=True)
class Options:
    """Options of an encoding: which facts of the records are kept, and how rows are stored.

    Parameters
    ----------
    classes : list or int, optional
        The class list as a public fact; by default what the source declares, else what its labels
        show.
    labels : {"value", "index"}
        Meaning of whole numbers as labels beside a list of names: "index" for positions in it.
    public : bool
        Keep no labels, and of the files' paths only the last part.
    skip_bad : bool
        Leave out records that cannot be encoded, and the faults of the source; they are listed in
        NAME.bad.csv beside the store.
    dtype : {"float16", "float32"}, optional
        How rows are stored; by default as `Features.stored_dtype` says.
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
    dtype: str | None = None
    batch: int | None = None
    workers: int = 0
    shard_rows: int = SHARD_ROWS
    names: ClassNames | None = None
    declared_public: bool = False
    labels: LabelKind = "value"

    def __post_init__(self) -> None:
        if self.dtype is not None and self.dtype not in DTYPES:
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
    """Facts about a finished shard.

    `good` has the places in the shard of the records that were encoded, `contents` hashes of their
    content, `faults` the places of other records with the reason, and `dim` the width of the rows.
    `n_longer` counts the texts that are longer than the encoder reads at once, which is private.
    """

    number: int
    good: list[int]
    contents: list[str]
    faults: list[tuple[int, str]]
    dim: int
    n_longer: int = 0


@dataclass(frozen=True)
class Job:
    """A source that is encoded in the folder `work`, `size` records at a time.

    `in_worker` is for workers of an engine, which must find the folder as it was prepared.
    """

    source: Source
    features: Features
    options: Options
    work: Path
    size: int
    identity: str = ""
    in_worker: bool = False

    def __post_init__(self) -> None:
        # labels are checked before anything is encoded
        classes, declared = self.classes
        names = self.options.names
        if names is None:
            return
        if not declared or len(names.rows) != len(classes):
            raise InputError(
                "names are not those of a declared class list; give one entry for each class"
                " (--classes)"
            )

    @property
    def dtype(self) -> str:
        """Type in which rows are stored."""
        return self.options.dtype or self.features.stored_dtype

    @property
    def rows(self) -> int:
        """Records in a shard.

        Shards are whole batches, so that batches do not depend on the shard that a run began with.
        """
        n_batches = math.ceil(self.options.shard_rows / self.size)
        return n_batches * self.size

    @property
    def count(self) -> int:
        """Number of shards."""
        return math.ceil(len(self.source) / self.rows)

    @property
    def labels(self) -> Any:
        """Labels that the store keeps."""
        return None if self.options.public else self.source.labels

    @property
    def persons(self) -> Any:
        """Ids of persons that the store keeps."""
        return None if self.options.public else self.source.persons

    @property
    def label_kind(self) -> LabelKind:
        """Meaning of whole numbers as labels, as the source or the options state it."""
        if self.options.labels == "index":
            return "index"
        return self.source.label_kind

    @cached_property
    def classes(self) -> tuple[Any, bool]:
        """The class list, and whether it was declared."""
        source = self.source
        if self.labels is None:
            return None, False

        declared_classes = source.classes if source.classes_declared else None
        if self.options.classes is not None:
            declared_classes = class_list(self.options.classes)

        classes = declared_classes or source.classes
        if classes is None and source.several:
            # nothing names the columns of the matrix
            classes = Indicators(self.labels, None).listed
        if classes is None and self.labels.dtype.kind == "U":
            classes = np.unique(self.labels).tolist()

        # refuses labels outside the list
        with self.source.places.in_errors():
            self._indexes(classes)
        if classes is not None:
            classes = class_list(classes)
        return classes, declared_classes is not None

    def _indexes(self, classes: list[ClassValue] | None) -> NDArray[Any] | None:
        """Return labels as a store holds them, (rows,), or the matrix of several labels a record,
        (rows, C).
        """
        if self.labels is not None and self.source.several:
            sets = Indicators(self.labels, self.source.classes)
            return sets.recoded(class_list(classes or sets.listed), self.label_kind).matrix
        return label_indexes(self.labels, classes, self.label_kind)

    @cached_property
    def key(self) -> str:
        """Hash of everything that decides the shards: encoder, source and layout."""
        facts: list[Any] = [
            __version__,
            self.features.card,
            self.source.stamp,
            len(self.source),
            self.dtype,
        ]
        if self.source.faults:
            # ids may be in another file than the records
            facts.append(sorted(self.source.faults))
        return digest([*facts, self.size, self.rows, self.features.backbone.batch])

    @cached_property
    def checkpoint(self) -> Checkpoint:
        """Finished shards; those of another encoder, source or layout are removed."""
        return Checkpoint(self.work, self.key, replace=not self.in_worker)

    def missing(self) -> list[int]:
        """Return the numbers of the shards that are not finished."""
        return [number for number in range(self.count) if not self._is_finished(number)]

    def n_records(self, numbers: Sequence[int]) -> int:
        """Return the number of records in some shards."""
        # the last shard may be shorter
        n_records = len(self.source)
        return sum(min(self.rows, n_records - number * self.rows) for number in numbers)

    def encode(self, numbers: Sequence[int]) -> None:
        """Encode shards, whose numbers are in order, in this process."""
        records = chain.from_iterable(map(self._records, _runs(numbers)))
        batches = encode_batches(
            batches_of(records, self.size),
            self.features,
            np.dtype(self.dtype),
            self.options.workers,
            self.work,
        )
        with closing(batches):
            batches_with_progress = progress(
                batches,
                "encoding",
                self.n_records(numbers),
                lambda batch: len(batch.good) + len(batch.faults),
            )
            # only the last shard of the source may end with a batch that is not full
            batches_in_shard = self.rows // self.size
            for number in numbers:
                self._write_shard(number, list(islice(batches_with_progress, batches_in_shard)))

    def _records(self, shards: range) -> Iterator[Record]:
        """Yield the records of consecutive shards; those that the source leaves out are None."""
        first = shards.start * self.rows
        last = min(shards.stop * self.rows, len(self.source))
        records = islice(self.source.records(first), last - first)
        for place, record in enumerate(records, first):
            yield None if place in self.source.faults else record

    def shards(self) -> Iterator[Shard]:
        """Yield the finished shards, one in memory at a time."""
        return (self._shard(number) for number in range(self.count))

    def faults(self) -> list[tuple[str, str]]:
        """Return the names of the records that cannot be encoded, in full, and the reasons."""
        listed = []
        for shard in self.shards():
            for place_in_shard, reason in shard.faults:
                place = shard.number * self.rows + place_in_shard
                name = _as_text(self.source.names[place])
                listed.append((name, self.source.faults.get(place, reason)))
        return listed

    def n_longer(self) -> int:
        """Return the number of texts that are longer than the encoder reads at once."""
        return sum(shard.n_longer for shard in self.shards())

    def assemble(self, folder: Path) -> None:
        """Put the store into `folder`, of links to the finished shards."""
        (folder / "shards").mkdir()
        files: list[StoredFile] = []
        dim = 0
        for shard in self.shards():
            if not shard.good:
                # all records are faulty, so there are no rows
                continue
            dim = shard.dim
            name = f"shards/{len(files):05d}.npy"
            _link(self.checkpoint.path(self._file(shard.number, "npy")), folder / name)
            files.append(stored_file(folder, name, len(shard.good)))

        classes, declared = self.classes
        content_hash = combined_hash(
            record_hash for shard in self.shards() for record_hash in shard.contents
        )
        source: dict[str, Any] = {
            "kind": self.source.kind,
            "public": self.options.public,
            "content_sha256": content_hash,
        }
        records_are_public = self.options.public or self.options.declared_public
        if records_are_public and self.n_longer():
            source["longer_texts"] = self.n_longer()
        manifest = Manifest(
            rows=sum(file.rows for file in files),
            dim=dim,
            dtype=self.dtype,
            shards=tuple(files),
            metadata=self._write_metadata(folder),
            has_labels=self.labels is not None,
            several_labels=self.labels is not None and self.source.several,
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
        if not self.checkpoint.has(self._file(number, "json")):
            return False

        # a shard without good records has no rows
        return self.checkpoint.has(self._file(number, "npy")) or not self._shard(number).good

    def _file(self, number: int, ending: str) -> str:
        """Return the name of a file of a shard."""
        return f"{number:05d}-{self.key[:12]}.{ending}"

    def _shard(self, number: int) -> Shard:
        path = self.checkpoint.path(self._file(number, "json"))
        facts = path.read_text(encoding="utf-8")
        return Shard(number, **json.loads(facts))

    def _write_shard(self, number: int, batches: Sequence[Batch]) -> None:
        rows: list[Any] = []
        good: list[int] = []
        contents: list[str] = []
        faults: list[tuple[int, str]] = []
        for position, batch in enumerate(batches):
            # places in a batch become places in the shard
            start = position * self.size
            good.extend(start + place for place in batch.good)
            contents.extend(batch.contents)
            faults.extend((start + place, reason) for place, reason in batch.faults)
            if batch.good:
                rows.append(batch.values.astype(self.dtype))

        facts = {
            "good": good,
            "contents": contents,
            "faults": faults,
            "dim": rows[0].shape[1] if rows else 0,
            "n_longer": sum(batch.n_longer for batch in batches),
        }
        if rows:
            self.checkpoint.write(self._file(number, "npy"), np.concatenate(rows))

        # written last: the facts stand for a finished shard
        self.checkpoint.write(self._file(number, "json"), json.dumps(facts).encode())

    def _write_metadata(self, folder: Path) -> StoredFile:
        """Write label, person, position, name and hash of each record, a shard at a time."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        indexes = self._indexes(self.classes[0])
        fields = []
        if indexes is not None:
            fields.append((LABEL, label_column(indexes[:0]).type))
        if self.persons is not None:
            id_type = pa.string() if self.persons.dtype.kind == "U" else pa.int64()
            fields.append((PERSON, id_type))
        fields += [(ROW, pa.int64()), (RECORD, pa.string()), (CONTENT, pa.string())]
        schema = pa.schema(fields)

        name = "metadata.parquet"
        n_rows = 0
        with (folder / name).open("wb") as file:
            # a dictionary of the other columns, whose values differ, would hold them all in memory
            with pq.ParquetWriter(file, schema, use_dictionary=[LABEL, PERSON]) as writer:
                for shard in self.shards():
                    n_rows += len(shard.good)
                    writer.write_table(pa.table(self._columns(shard, indexes), schema))
            sync(file)
        return stored_file(folder, name, n_rows)

    def _columns(self, shard: Shard, indexes: NDArray[Any] | None) -> dict[str, Any]:
        """Return the metadata of a shard's good records, by column."""
        places = [shard.number * self.rows + place for place in shard.good]
        names = [_as_text(self.source.names[place]) for place in places]
        if self.options.public:
            names = [without_folders(path) for path in names]

        columns: dict[str, Any] = {}
        if indexes is not None:
            columns = {LABEL: label_column(indexes[places])}
        if self.persons is not None:
            columns[PERSON] = self.persons[places].tolist()
        return columns | {ROW: places, RECORD: names, CONTENT: shard.contents}


def _runs(numbers: Sequence[int]) -> Iterator[range]:
    """Yield the runs of consecutive numbers."""
    first = 0
    for place in range(1, len(numbers) + 1):
        if place == len(numbers) or numbers[place] != numbers[place - 1] + 1:
            yield range(numbers[first], numbers[place - 1] + 1)
            first = place


def _as_text(name: str) -> str:
    """Return a file's name as text, whatever bytes it has."""
    return name.encode("utf-8", "backslashreplace").decode()


def _link(old: Path, new: Path) -> None:
    try:
        os.link(old, new)
    except OSError:  # a file system without links
        shutil.copyfile(old, new)
