"""Batches of records: decoded in worker processes, encoded one after another, in a fixed order.

A batch holds the same records however often the work is interrupted, so its features have the same
bits.
"""

import hashlib
import os
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.engines.workers import shielding_workers
from tacit.compute.progress import progress
from tacit.encoding.encoders.base import TEXT_WINDOW, Features
from tacit.encoding.encoders.pictures import PictureInput, Unreadable, content, decoded
from tacit.encoding.sources.base import Record
from tacit.errors import InputError

AHEAD = 2  # batches that each worker decodes in advance
NICE = 5  # niceness of workers, so that the encoder comes first


@dataclass(frozen=True, eq=False)
class Batch:
    """A batch of records, decoded or encoded.

    `values` are pixels, (n, 3, height, width), texts, or features, (n, dim), of the n good records,
    and None while pixels lie in a file. `good` has the positions of these records in the batch,
    `contents` hashes of their content, and `faults` the positions of the other records, with the
    reason why they cannot be used.
    """

    values: Any
    good: list[int]
    contents: list[str]
    faults: list[tuple[int, str]]


def encode_batches(
    batches: Iterator[Sequence[Record]],
    features: Features,
    dtype: np.dtype[Any],
    workers: int = 0,
    scratch: Path | None = None,
) -> Generator[Batch, None, None]:
    """Encode batches in order; rows that overflow `dtype`, in which they will be stored, become
    faults.

    `workers` processes decode pictures (0: this process does), and write the pixels to files in the
    folder `scratch`.
    """
    wanted = features.backbone.input
    if wanted is None:
        yield from (_encode(decode_texts(batch), features, dtype) for batch in batches)
    elif workers:
        with closing(
            decode_ahead(PictureDecoder(wanted), batches, workers, scratch)
        ) as decoded_batches:
            yield from (_encode(batch, features, dtype) for batch in decoded_batches)
    else:
        decode = PictureDecoder(wanted)
        yield from (_encode(decode(batch), features, dtype) for batch in batches)


def encode_records(
    records: Sequence[Record], features: Features, batch: int | None = None, workers: int = 0
) -> NDArray[np.float32]:
    """Rows of records of the kind that the encoder takes, (n, dim); InputError if one cannot be
    encoded.
    """
    batches = batches_of(iter(records), batch_size(features, batch))
    encoded = encode_batches(batches, features, np.dtype(np.float32), workers)
    rows: list[NDArray[np.float32]] = []
    done = 0
    for part in progress(encoded, "encoding", len(records), lambda part: len(part.good)):
        for place, why in part.faults:
            raise InputError(f"record {done + place} cannot be encoded ({why}); leave it out")
        rows.append(part.values)
        done += len(part.good)
    return np.concatenate(rows)


@dataclass(frozen=True)
class PictureDecoder:
    """Decodes and resizes a batch of pictures."""

    wanted: PictureInput

    def __call__(self, records: Sequence[Record], path: Path | None = None) -> Batch:
        """Decode a batch; with `path`, write its pixels there for `open` to find."""
        good: list[int] = []
        contents, faults = [], []
        values = self._buffer(len(records), path)
        for place, record in enumerate(records):
            try:
                picture = decoded(record)
                values[len(good)] = self.wanted.prepare(picture)
            except Unreadable as error:
                faults.append((place, str(error)))
                continue
            contents.append(content(picture))
            good.append(place)
        return Batch(values[: len(good)] if path is None else None, good, contents, faults)

    def open(self, batch: Batch, path: Path) -> Batch:
        """A batch with the pixels that a process has written."""
        return replace(batch, values=self._buffer(len(batch.good), path)) if batch.good else batch

    def _buffer(self, n: int, path: Path | None) -> NDArray[Any]:
        """An array for the pixels of n pictures, in memory or in a file."""
        shape, dtype = (n, 3, *self.wanted.size), self.wanted.dtype
        if path is None:
            return np.empty(shape, dtype)
        return np.memmap(path, dtype, "r+" if path.exists() else "w+", shape=shape)


def decode_texts(records: Sequence[Record]) -> Batch:
    """Check a batch of texts."""
    values, good, contents, faults = [], [], [], []
    for place, text in enumerate(records):
        if not isinstance(text, str) or not text.strip():
            faults.append(
                (place, "the text is empty" if isinstance(text, str) else "there is no text")
            )
            continue
        try:
            contents.append(hashlib.blake2b(text.encode(), digest_size=16).hexdigest())
        except UnicodeEncodeError:
            faults.append((place, "it holds half of a character (a lone surrogate)"))
            continue
        values.append(text)
        good.append(place)
    return Batch(values, good, contents, faults)


def batches_of(records: Iterator[Record], size: int) -> Iterator[list[Record]]:
    """Records in lists of `size`; the last may be shorter."""
    while batch := list(islice(records, size)):
        yield batch


def batch_size(features: Features, batch: int | None) -> int:
    """How many records are handled together: a batch of pictures, or the texts that are sorted by
    length together.

    It sets the batch size of the encoder, if `batch` is given.
    """
    backbone = features.backbone
    if batch is not None and (isinstance(batch, bool) or not isinstance(batch, int) or batch < 1):
        raise InputError(f"batch={batch} must be at least 1; leave it out for {backbone.batch}")
    if batch is not None and backbone.fixed_batch and batch != backbone.batch:
        raise InputError(
            f"batch={batch} where the encoder takes {backbone.batch} at a time; leave it out"
        )
    backbone.batch = batch or backbone.batch
    return backbone.batch * (TEXT_WINDOW if backbone.input is None else 1)


def check_workers(workers: Any) -> None:
    """Refuse a number of processes that is negative or not whole."""
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 0:
        raise InputError(f"workers={workers!r} must be a whole number, 0 or more; leave it out")


def _encode(batch: Batch, features: Features, dtype: np.dtype[Any]) -> Batch:
    """A batch with its features; rows that cannot be stored become faults."""
    if not batch.good:
        return replace(batch, values=np.empty((0, 0), np.float32))
    encode = _encode_texts if features.backbone.input is None else Features.__call__
    rows = encode(features, batch.values, dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        stored = rows.astype(dtype)
    usable = np.isfinite(stored).all(axis=1) & stored.any(axis=1)
    if usable.all():
        return replace(batch, values=rows)
    why = f"its features are all zeros, not finite, or beyond {dtype}"
    faults = [
        *batch.faults,
        *((place, why) for place, use in zip(batch.good, usable, strict=True) if not use),
    ]
    chosen = np.flatnonzero(usable)
    return Batch(
        rows[usable],
        [batch.good[i] for i in chosen],
        [batch.contents[i] for i in chosen],
        sorted(faults),
    )


def _encode_texts(
    features: Features, texts: list[str], dtype: np.dtype[Any]
) -> NDArray[np.float32]:
    """Features of texts; those of similar length go through the encoder together, so that little is
    padded.
    """
    order = sorted(range(len(texts)), key=lambda place: (len(texts[place]), place))
    size = features.backbone.batch
    batches = [
        [texts[place] for place in order[first : first + size]]
        for first in range(0, len(texts), size)
    ]
    ordered = np.concatenate([features(batch, dtype) for batch in batches])
    rows = np.empty_like(ordered)
    rows[order] = ordered
    return rows


def decode_ahead(
    decode: PictureDecoder, batches: Iterator[Any], workers: int, scratch: Path | None = None
) -> Generator[Batch, None, None]:
    """Decode in processes, a few batches ahead of the caller; this process decodes the first batch
    while they start.

    Pixels pass through memory-mapped files that are reused, which avoids copies through pipes.
    """
    # needs no guard around a script's own code
    from joblib.externals.loky import ProcessPoolExecutor

    alone = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    pool = ProcessPoolExecutor(
        workers, timeout=60, env=alone, initializer=os.nice, initargs=(NICE,)
    )
    first = next(batches, None)
    with TemporaryDirectory(dir=scratch, ignore_cleanup_errors=True) as folder:
        free = deque(Path(folder) / str(number) for number in range(AHEAD * workers + 1))
        waiting: deque[tuple[Any, Path]] = deque()

        def submit(count: int) -> None:
            for batch in islice(batches, count):
                path = free.popleft()
                waiting.append((pool.submit(decode, batch, path), path))

        try:
            with shielding_workers():
                submit(AHEAD * workers)
            if first is not None:
                yield decode(first)
            while waiting:
                future, path = waiting.popleft()
                batch = future.result()
                submit(1)
                yield decode.open(batch, path)
                free.append(path)
        except BrokenExecutor as error:
            raise InputError(
                "a process that decodes was ended from outside, perhaps for lack of memory; run"
                " again with --workers 0 (workers=0), which continues from the records already"
                " encoded"
            ) from error
        finally:
            pool.shutdown(wait=True, kill_workers=True)
