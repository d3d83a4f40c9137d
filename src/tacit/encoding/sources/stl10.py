"""STL-10 as its owners ship it: `stl10_binary.tar.gz`, or its folder. Its split `unlabeled` is a
public pool.
"""

from collections.abc import Iterator

import numpy as np

from tacit.encoding.sources.base import Record, Rows, Source, by_index, named_classes, stamp
from tacit.encoding.sources.tree import Tree, read_arrays
from tacit.errors import InputError

SHAPE = (3, 96, 96)  # each channel is stored column by column
PIXELS = 3 * 96 * 96
SPLITS = ("train", "test", "unlabeled")


def splits(files: Tree) -> list[str]:
    """Which splits are there."""
    return [split for split in SPLITS if files.find(f"{split}_X.bin")]


def read(files: Tree, split: str) -> Source:
    """A split; its labels may be missing."""
    path = str(files.find(f"{split}_X.bin"))
    with files.open(path) as file:
        size = file.seek(0, 2)
    rows, rest = divmod(size, PIXELS)
    if rest or not rows:
        raise InputError(f"{path} has {size} bytes, no multiple of {PIXELS}; get the archive again")
    names, labels = files.find("class_names.txt"), files.find(f"{split}_y.bin")
    classes = (
        None if names is None else named_classes(files.read(names).decode().split(), files.path)
    )
    values = None
    if labels is not None:
        values = np.frombuffer(files.read(labels), np.uint8).astype(np.int64)
        if len(values) != rows:
            raise InputError(
                f"{labels} has {len(values)} labels for {rows} pictures; get the archive again"
            )
        values = values if classes is None else by_index(values - 1, classes, labels)
    stored = read_arrays(lambda: files.open(path), 0, (rows, *SHAPE), path)

    def records(start: int) -> Iterator[Record]:
        return (pixels.transpose(2, 1, 0) for pixels in stored(start))

    return Source(
        "picture",
        Rows(rows),
        records,
        stamp(files.stamp, split),
        values,
        classes,
        classes is not None,
    )
