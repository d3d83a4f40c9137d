"""STL-10 as its owners ship it: `stl10_binary.tar.gz`, or its folder. Its split `unlabeled` is a public pool."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tacit.encoding.sources.base import Record, Rows, Source, by_index, named_classes, stamp
from tacit.encoding.sources.tree import Tree, read_exactly
from tacit.errors import InputError

SHAPE = (3, 96, 96)  # each channel is stored column by column
PIXELS = 3 * 96 * 96
SPLITS = ("train", "test", "unlabeled")


def splits(files: Tree) -> list[str]:
    """Which splits are there."""
    return [split for split in SPLITS if files.find(f"{split}_X.bin")]


def read(files: Tree, split: str) -> Source:
    """One split."""
    path = str(files.find(f"{split}_X.bin"))
    labels = files.find(f"{split}_y.bin")
    names = files.find("class_names.txt")
    with files.open(path) as file:
        size = file.seek(0, 2)
    if not size or size % PIXELS:
        raise InputError(f"{path} has {size} bytes, no multiple of {PIXELS}; get the archive again")
    classes = None if names is None else named_classes(files.read(names).decode().split(), files.path)
    found = None
    if labels is not None:
        found = np.frombuffer(files.read(labels), np.uint8).astype(np.int64)
        if len(found) != size // PIXELS:
            raise InputError(f"{labels} has {len(found)} labels for {size // PIXELS} pictures; get the archive again")
        found = found if classes is None else by_index(found - 1, classes, labels)

    def records(start: int) -> Iterator[Record]:
        with files.open(path) as file:
            file.seek(start * PIXELS)
            for _ in range(start, size // PIXELS):
                yield np.frombuffer(read_exactly(file, PIXELS, path), np.uint8).reshape(SHAPE).transpose(2, 1, 0)

    return Source(
        "picture", Rows(size // PIXELS), records, stamp(files.stamp, split), found, classes, classes is not None
    )
