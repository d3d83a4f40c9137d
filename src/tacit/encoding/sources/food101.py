"""Food-101 as its owners ship it: `food-101.tar.gz`, or its folder, with its lists of train and
test.
"""

import numpy as np

from tacit.encoding.sources.base import Source, empty, labels_of, named_classes, stamp
from tacit.encoding.sources.tree import Tree

SPLITS = ("train", "test")


def splits(files: Tree) -> list[str]:
    """Return the splits of which a list is there."""
    if not files.find("classes.txt"):
        return []
    return [split for split in SPLITS if _list_path(files, split) is not None]


def read(files: Tree, split: str) -> Source:
    """Read the pictures that the list of the split names, in the order of the files."""
    keys = set(files.read(str(_list_path(files, split))).decode().split())
    pictures = [name for name in files.names if _key(name) in keys]
    if not pictures:
        raise empty(files.path, f"pictures of meta/{split}.txt")

    class_names = files.read(str(files.find("classes.txt"))).decode().split()
    classes = named_classes(class_names, files.path)
    class_folders = [_key(name).partition("/")[0] for name in pictures]
    return Source(
        "picture",
        pictures,
        files.records(pictures),
        stamp(files.stamp, split),
        labels_of(np.array(class_folders), len(pictures), files.path),
        classes,
        classes_declared=True,
    )


def _list_path(files: Tree, split: str) -> str | None:
    """Return the file that names the pictures of a split, if it is there."""
    for name in files.names:
        if name.endswith(f"meta/{split}.txt"):
            return name
    return None


def _key(name: str) -> str:
    """Return how lists name a picture: apple_pie/1005649 for
    food-101/images/apple_pie/1005649.jpg.
    """
    class_and_file = name.rsplit("/", 2)[1:]
    return "/".join(class_and_file).rpartition(".")[0]
