"""Food-101 as its owners ship it: `food-101.tar.gz`, or its folder, with its lists of train and
test.
"""

import numpy as np

from tacit.encoding.sources.base import Source, empty, labels_of, named_classes, stamp
from tacit.encoding.sources.tree import Tree

SPLITS = ("train", "test")


def splits(files: Tree) -> list[str]:
    """Which splits are listed."""
    return (
        [split for split in SPLITS if _list(files, split) is not None]
        if files.find("classes.txt")
        else []
    )


def read(files: Tree, split: str) -> Source:
    """The pictures that the list of the split names, in the order of the files."""
    listed = set(files.read(str(_list(files, split))).decode().split())
    pictures = [name for name in files.names if _key(name) in listed]
    if not pictures:
        raise empty(files.path, f"pictures of meta/{split}.txt")
    classes = named_classes(files.read(str(files.find("classes.txt"))).decode().split(), files.path)
    labels = labels_of(
        np.array([_key(name).partition("/")[0] for name in pictures]), len(pictures), files.path
    )
    return Source(
        "picture",
        pictures,
        files.records(pictures),
        stamp(files.stamp, split),
        labels,
        classes,
        True,
    )


def _list(files: Tree, split: str) -> str | None:
    return next((name for name in files.names if name.endswith(f"meta/{split}.txt")), None)


def _key(name: str) -> str:
    """apple_pie/1005649 for food-101/images/apple_pie/1005649.jpg."""
    return "/".join(name.rsplit("/", 2)[1:]).rpartition(".")[0]
