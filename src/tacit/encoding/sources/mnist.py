"""MNIST and data sets of its format as their owners ship them: four idx files, compressed or
not.
"""

import struct
from typing import IO

import numpy as np

from tacit.data.labels import class_list
from tacit.encoding.sources.base import Rows, Source, by_index, labels_of, stamp
from tacit.encoding.sources.tree import Tree, read_arrays, read_exactly
from tacit.errors import InputError

FILES = {"train": "train", "test": "t10k"}
PICTURES, LABELS = 2051, 2049  # magic numbers of bytes in three dimensions and in one


def splits(files: Tree) -> list[str]:
    """Which of the two splits are there."""
    return [split for split in FILES if _find(files, split, "images", 3)]


def read(files: Tree, split: str) -> Source:
    """A split; the classes are the digits, or garments, 0 to 9."""
    pictures, labels = str(_find(files, split, "images", 3)), _find(files, split, "labels", 1)
    if labels is None:
        raise InputError(
            f"{files.path} lacks the labels of {pictures}; get them from where the pictures are"
        )
    with files.plain(pictures) as file:
        shape = _shape(file, PICTURES, pictures)
        records = read_arrays(lambda: files.plain(pictures), file.tell(), shape, pictures)
    with files.plain(labels) as file:
        (count,) = _shape(file, LABELS, labels)
        values = np.frombuffer(read_exactly(file, count, labels), np.uint8)
    classes = class_list(10)
    values = by_index(labels_of(values, shape[0], labels), classes, labels)
    return Source(
        "picture", Rows(shape[0]), records, stamp(files.stamp, split), values, classes, True
    )


def _find(files: Tree, split: str, what: str, dimensions: int) -> str | None:
    ending = f"idx{dimensions}-ubyte"
    return files.find(f"{FILES[split]}-{what}-{ending}", f"{FILES[split]}-{what}.{ending}")


def _shape(file: IO[bytes], magic: int, name: str) -> tuple[int, ...]:
    """The shape that the header of an idx file states."""
    (number,) = struct.unpack(">I", read_exactly(file, 4, name))
    if number != magic:
        raise InputError(
            f"{name} begins with {number} where an idx file of its kind begins with {magic}; get it"
            " again"
        )
    dimensions = magic % 256
    return struct.unpack(f">{dimensions}I", read_exactly(file, 4 * dimensions, name))
