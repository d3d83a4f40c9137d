"""The tree of which the classes of a release are the leaves, as its document states it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.errors import InputError
from tacit.releases.schema import Contents, TaskContents, has_several_labels

if TYPE_CHECKING:
    from tacit.data.trees import Tree


def tree_of(contents: Contents) -> Tree | None:
    """Return the tree that a document states; None if it states none.

    Raises
    ------
    InputError
        If it is no tree of the classes.
    """
    if not isinstance(contents, TaskContents) or not contents.task.tree:
        return None

    # most releases have no tree, and predict without reading classes from data
    from tacit.data.trees import Tree

    return Tree(contents.task.tree).over(contents.classes)


def tree_misfit(contents: Contents) -> str | None:
    """Describe the fault of the tree that a document states; None if there is none."""
    try:
        tree = tree_of(contents)
    except InputError as error:
        return str(error)
    if tree is not None and has_several_labels(contents):
        return "a tree is of exclusive classes, and a row may have several labels"
    return None
