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

# magic numbers of bytes in three dimensions and in one
PICTURES = 2051
LABELS = 2049


def splits(files: Tree) -> list[str]:
    """Return which of the two splits are there."""
    return [split for split in FILES if _find(files, split, "images", 3)]


def read(files: Tree, split: str) -> Source:
    """Read a split; the classes are the digits, or garments, 0 to 9."""
    pictures = str(_find(files, split, "images", 3))
    labels = _find(files, split, "labels", 1)
    if labels is None:
        raise InputError(
            f"{files.path} lacks the labels of {pictures}; get them from where the pictures are"
        )

    with files.open_unpacked(pictures) as file:
        shape = _shape(file, PICTURES, pictures)
        header_length = file.tell()
    records = read_arrays(lambda: files.open_unpacked(pictures), header_length, shape, pictures)
    n_pictures = shape[0]

    with files.open_unpacked(labels) as file:
        (n_labels,) = _shape(file, LABELS, labels)
        indexes = np.frombuffer(read_exactly(file, n_labels, labels), np.uint8)
    classes = class_list(10)
    values = by_index(labels_of(indexes, n_pictures, labels), classes, labels)
    return Source(
        "picture",
        Rows(n_pictures),
        records,
        stamp(files.stamp, split),
        labels=values,
        classes=classes,
        label_kind="index",
        classes_declared=True,
    )


def _find(files: Tree, split: str, content: str, dimensions: int) -> str | None:
    """Find a file of a split; some copies have a dot before the ending, others a hyphen."""
    name = f"{FILES[split]}-{content}"
    ending = f"idx{dimensions}-ubyte"
    return files.find(f"{name}-{ending}", f"{name}.{ending}")


def _shape(file: IO[bytes], magic: int, name: str) -> tuple[int, ...]:
    """Read the shape that the header of an idx file states."""
    (number,) = struct.unpack(">I", read_exactly(file, 4, name))
    if number != magic:
        raise InputError(
            f"{name} begins with {number} where an idx file of its kind begins with {magic}; get it"
            " again"
        )

    # the last byte of a magic number is the number of dimensions
    dimensions = magic % 256
    return struct.unpack(f">{dimensions}I", read_exactly(file, 4 * dimensions, name))
