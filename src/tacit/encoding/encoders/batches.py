"""Batches of records: decoded in worker processes, encoded one after another, in a fixed order.

A batch holds the same records however often the work is interrupted, so its features have the same
bits.
"""

import hashlib
import os
import warnings
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.compute.engines.workers import shielding_workers
from tacit.compute.progress import progress
from tacit.encoding.encoders.base import TEXT_WINDOW, Features
from tacit.encoding.encoders.pictures import PictureInput, Unreadable, content, decoded
from tacit.encoding.sources.base import Record
from tacit.errors import InputError

# batches that each worker decodes in advance
AHEAD = 2

CUT_REMEDY = "pass long='mean' for the mean over their windows, or shorten them"

# niceness of workers, so that the encoder comes first
NICE = 5


@dataclass(frozen=True, eq=False)
class Batch:
    """A batch of records, decoded or encoded.

    `values` are pixels, (n, 3, height, width), texts, or features, (n, dim), of the n good records,
    and None while pixels lie in a file. `good` has the positions of these records in the batch,
    `contents` hashes of their content, and `faults` the positions of the other records, with the
    reason why they cannot be used. `n_longer` counts the texts that are longer than the encoder
    reads at once.
    """

    values: Any
    good: list[int]
    contents: list[str]
    faults: list[tuple[int, str]]
    n_longer: int = 0


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
    picture_form = features.backbone.input
    if picture_form is None:
        for batch in batches:
            yield _encode(decode_texts(batch), features, dtype)
        return

    decode = PictureDecoder(picture_form)
    if not workers:
        for batch in batches:
            yield _encode(decode(batch), features, dtype)
        return

    with closing(decode_ahead(decode, batches, workers, scratch)) as decoded_batches:
        for decoded_batch in decoded_batches:
            yield _encode(decoded_batch, features, dtype)


def encode_records(
    records: Sequence[Record], features: Features, batch: int | None = None, workers: int = 0
) -> tuple[NDArray[np.float32], int]:
    """Return the rows of records of the kind that the encoder takes, (n, dim), and the number of
    texts that it does not read to their end.

    Raises InputError if a record cannot be encoded.
    """
    batches = batches_of(iter(records), batch_size(features, batch))
    encoded_batches = encode_batches(batches, features, np.dtype(np.float32), workers)
    rows: list[NDArray[np.float32]] = []
    n_encoded = 0
    n_longer = 0
    for encoded in progress(
        encoded_batches, "encoding", len(records), lambda encoded: len(encoded.good)
    ):
        if encoded.faults:
            place, reason = encoded.faults[0]
            raise InputError(
                f"record {n_encoded + place} cannot be encoded ({reason}); leave it out"
            )
        rows.append(encoded.values)
        n_encoded += len(encoded.good)
        n_longer += encoded.n_longer
    return np.concatenate(rows), 0 if features.long_mean else n_longer


def warn_of_cut(n_cut: int, remedy: str = CUT_REMEDY, *, stacklevel: int) -> None:
    """Warn of texts that an encoder did not read to their end."""
    if n_cut:
        warnings.warn(
            f"texts that are longer than the encoder reads, and were cut off at their end: {n_cut};"
            f" {remedy}",
            UserWarning,
            stacklevel=stacklevel + 1,
        )


@dataclass(frozen=True)
class PictureDecoder:
    """Decodes and resizes a batch of pictures."""

    form: PictureInput

    def __call__(self, records: Sequence[Record], path: Path | None = None) -> Batch:
        """Decode a batch; with `path`, write its pixels there, from where `open` reads them."""
        good: list[int] = []
        contents: list[str] = []
        faults: list[tuple[int, str]] = []
        pixels = self._buffer(len(records), path)
        for place, record in enumerate(records):
            try:
                picture = decoded(record)
                # good pictures lie side by side, without gaps for the others
                pixels[len(good)] = self.form.prepare(picture)
            except Unreadable as error:
                faults.append((place, str(error)))
                continue
            contents.append(content(picture))
            good.append(place)

        values = pixels[: len(good)] if path is None else None
        return Batch(values, good, contents, faults)

    def open(self, batch: Batch, path: Path) -> Batch:
        """Return a batch with the pixels that a process has written."""
        if not batch.good:
            return batch
        return replace(batch, values=self._buffer(len(batch.good), path))

    def _buffer(self, n: int, path: Path | None) -> NDArray[Any]:
        """Return an array for the pixels of n pictures, in memory or in a file."""
        shape = (n, 3, *self.form.size)
        dtype = self.form.dtype
        if path is None:
            return np.empty(shape, dtype)

        # "w+" would clear a file that exists
        mode: Literal["r+", "w+"] = "r+" if path.exists() else "w+"
        return np.memmap(path, dtype, mode, shape=shape)


def decode_texts(records: Sequence[Record]) -> Batch:
    """Check a batch of texts."""
    values: list[str] = []
    good: list[int] = []
    contents: list[str] = []
    faults: list[tuple[int, str]] = []
    for place, text in enumerate(records):
        if not isinstance(text, str):
            faults.append((place, "there is no text"))
            continue
        if not text.strip():
            faults.append((place, "the text is empty"))
            continue

        try:
            encoded_text = text.encode()
        except UnicodeEncodeError:
            faults.append((place, "it holds half of a character (a lone surrogate)"))
            continue
        contents.append(hashlib.blake2b(encoded_text, digest_size=16).hexdigest())
        values.append(text)
        good.append(place)
    return Batch(values, good, contents, faults)


def batches_of(records: Iterator[Record], size: int) -> Iterator[list[Record]]:
    """Yield records in lists of `size`; the last may be shorter."""
    while batch := list(islice(records, size)):
        yield batch


def batch_size(features: Features, batch: int | None) -> int:
    """Set the batch size of the encoder, if `batch` is given, and return how many records are
    handled together: a batch of pictures, or the texts that are sorted by length together.
    """
    backbone = features.backbone
    if batch is not None:
        whole_number = isinstance(batch, int) and not isinstance(batch, bool)
        if not whole_number or batch < 1:
            raise InputError(f"batch={batch} must be at least 1; leave it out for {backbone.batch}")
        if backbone.fixed_batch and batch != backbone.batch:
            raise InputError(
                f"batch={batch} where the encoder takes {backbone.batch} at a time; leave it out"
            )
        backbone.batch = batch

    if backbone.input is None:
        return backbone.batch * TEXT_WINDOW
    return backbone.batch


def check_workers(workers: Any) -> None:
    """Refuse a number of processes that is negative or not whole."""
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 0:
        raise InputError(f"workers={workers!r} must be a whole number, 0 or more; leave it out")


def _encode(batch: Batch, features: Features, dtype: np.dtype[Any]) -> Batch:
    """Return a batch with its features; records whose rows cannot be stored become faults."""
    if not batch.good:
        return replace(batch, values=np.empty((0, 0), np.float32))

    if features.backbone.input is None:
        n_longer = sum(map(features.is_longer, batch.values))
        batch = replace(batch, n_longer=n_longer)
        rows = _encode_texts(features, batch.values, dtype)
    else:
        rows = features(batch.values, dtype)

    with np.errstate(over="ignore", invalid="ignore"):
        stored = rows.astype(dtype)
    usable = np.isfinite(stored).all(axis=1) & stored.any(axis=1)
    if usable.all():
        return replace(batch, values=rows)

    reason = f"its features are all zeros, not finite, or beyond {dtype}"
    new_faults = [(batch.good[i], reason) for i in np.flatnonzero(~usable)]
    usable_rows = np.flatnonzero(usable)
    return Batch(
        rows[usable],
        [batch.good[i] for i in usable_rows],
        [batch.contents[i] for i in usable_rows],
        sorted([*batch.faults, *new_faults]),
        batch.n_longer,
    )


def _encode_texts(
    features: Features, texts: list[str], dtype: np.dtype[Any]
) -> NDArray[np.float32]:
    """Return the features of texts, (n, dim).

    Texts of similar length go through the encoder together, so that little is padded.
    """
    # ties by position, so that batches are always the same
    order = sorted(range(len(texts)), key=lambda place: (len(texts[place]), place))
    size = features.backbone.batch
    blocks = []
    for first in range(0, len(texts), size):
        batch = [texts[place] for place in order[first : first + size]]
        blocks.append(features(batch, dtype))

    ordered = np.concatenate(blocks)
    rows = np.empty_like(ordered)
    rows[order] = ordered
    return rows


def decode_ahead(
    decode: PictureDecoder, batches: Iterator[Any], workers: int, scratch: Path | None = None
) -> Generator[Batch, None, None]:
    """Decode in processes, a few batches ahead of the caller.

    This process decodes the first batch while the others start. Pixels pass through memory-mapped
    files that are reused, which avoids copies through pipes.
    """
    # loky, unlike multiprocessing, needs no `if __name__ == "__main__"` in scripts
    from joblib.externals.loky import ProcessPoolExecutor

    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    pool = ProcessPoolExecutor(
        workers, timeout=60, env=one_thread, initializer=os.nice, initargs=(NICE,)
    )
    first = next(batches, None)
    with TemporaryDirectory(dir=scratch, ignore_cleanup_errors=True) as folder:
        # one file more than pending batches: the caller still reads from that of the last batch
        free = deque(Path(folder) / str(number) for number in range(AHEAD * workers + 1))
        pending: deque[tuple[Any, Path]] = deque()

        def submit(count: int) -> None:
            for batch in islice(batches, count):
                path = free.popleft()
                pending.append((pool.submit(decode, batch, path), path))

        try:
            with shielding_workers():
                submit(AHEAD * workers)
            if first is not None:
                yield decode(first)
            while pending:
                future, path = pending.popleft()
                batch = future.result()
                submit(1)
                yield decode.open(batch, path)

                # the caller has returned, so the pixels are used
                free.append(path)
        except BrokenExecutor as error:
            raise InputError(
                "a process that decodes was ended from outside, perhaps for lack of memory; run"
                " again with --workers 0 (workers=0), which continues from the records already"
                " encoded"
            ) from error
        finally:
            pool.shutdown(wait=True, kill_workers=True)
