"""STL-10 as its owners ship it: `stl10_binary.tar.gz`, or its folder. Its split `unlabeled` is a
public pool.
"""

from collections.abc import Iterator

import numpy as np

from tacit.encoding.sources.base import Record, Rows, Source, by_index, named_classes, stamp
from tacit.encoding.sources.tree import Tree, read_arrays
from tacit.errors import InputError

# each channel is stored column by column
SHAPE = (3, 96, 96)
PIXELS = 3 * 96 * 96
SPLITS = ("train", "test", "unlabeled")


def splits(files: Tree) -> list[str]:
    """Return which splits are there."""
    return [split for split in SPLITS if files.find(f"{split}_X.bin")]


def read(files: Tree, split: str) -> Source:
    """Read a split; its labels may be missing."""
    path = str(files.find(f"{split}_X.bin"))
    with files.open(path) as file:
        size = file.seek(0, 2)
    n_pictures, surplus_bytes = divmod(size, PIXELS)
    if surplus_bytes or n_pictures == 0:
        raise InputError(f"{path} has {size} bytes, no multiple of {PIXELS}; get the archive again")

    classes = None
    names_path = files.find("class_names.txt")
    if names_path is not None:
        classes = named_classes(files.read(names_path).decode().split(), files.path)

    values = None
    labels_path = files.find(f"{split}_y.bin")
    if labels_path is not None:
        values = np.frombuffer(files.read(labels_path), np.uint8).astype(np.int64)
        if len(values) != n_pictures:
            raise InputError(
                f"{labels_path} has {len(values)} labels for {n_pictures} pictures; get the"
                " archive again"
            )
        if classes is not None:
            # labels count from 1
            values = by_index(values - 1, classes, labels_path)
    stored_pictures = read_arrays(lambda: files.open(path), 0, (n_pictures, *SHAPE), path)

    def records(start: int) -> Iterator[Record]:
        # from (channels, width, height) to (height, width, channels)
        return (pixels.transpose(2, 1, 0) for pixels in stored_pictures(start))

    return Source(
        "picture",
        Rows(n_pictures),
        records,
        stamp(files.stamp, split),
        values,
        classes,
        label_kind="index",
        classes_declared=classes is not None,
    )
