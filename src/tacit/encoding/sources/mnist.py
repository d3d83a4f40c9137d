"""MNIST and data sets of its format as their owners ship them: four idx files, compressed or not."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import IO

import numpy as np

from tacit.data.labels import class_list
from tacit.encoding.sources.base import Record, Rows, Source, by_index, labels_of, stamp
from tacit.encoding.sources.tree import Tree, read_exactly
from tacit.errors import InputError

FILES = {"train": "train", "test": "t10k"}
PICTURES, LABELS = 2051, 2049  # magic numbers of bytes in three and in one dimension


def splits(files: Tree) -> list[str]:
    """Which of the two splits are there."""
    return [split for split in FILES if _find(files, split, "images", 3)]


def read(files: Tree, split: str) -> Source:
    """One split; the classes are the digits, or garments, 0 to 9."""
    pictures, labels = str(_find(files, split, "images", 3)), _find(files, split, "labels", 1)
    if labels is None:
        raise InputError(f"{files.path} lacks the labels of {pictures}; get them from where the pictures are")
    with files.plain(pictures) as file:
        rows, height, width = _header(file, PICTURES, pictures)
    with files.plain(labels) as file:
        (count,) = _header(file, LABELS, labels)
        found = np.frombuffer(read_exactly(file, count, labels), np.uint8)

    def records(start: int) -> Iterator[Record]:
        with files.plain(pictures) as file:
            _header(file, PICTURES, pictures)
            for row in range(rows):
                data = read_exactly(file, height * width, pictures)
                if row >= start:
                    yield np.frombuffer(data, np.uint8).reshape(height, width)

    known = class_list(10)
    own = by_index(labels_of(found, rows, labels), known, labels)
    return Source("picture", Rows(rows), records, stamp(files.stamp, split), own, known, True)


def _find(files: Tree, split: str, what: str, dimensions: int) -> str | None:
    ending = f"idx{dimensions}-ubyte"
    return files.find(f"{FILES[split]}-{what}-{ending}", f"{FILES[split]}-{what}.{ending}")


def _header(file: IO[bytes], magic: int, name: str) -> tuple[int, ...]:
    (found,) = struct.unpack(">I", read_exactly(file, 4, name))
    if found != magic:
        raise InputError(f"{name} begins with {found} where an idx file of its kind begins with {magic}; get it again")
    size = 4 * (magic % 256)
    return struct.unpack(f">{magic % 256}I", read_exactly(file, size, name))
