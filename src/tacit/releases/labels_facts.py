"""What a folder of labels of public rows says of its labels, and counts of them.

Whoever makes the folder states these facts, and whoever verifies it finds them again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.texts import nfc
from tacit.errors import InputError, ReleaseError
from tacit.models.answers import Levels
from tacit.releases.code_tree import tree_of
from tacit.releases.labels_document import ClassCount, Selection
from tacit.releases.reading import AGAIN
from tacit.releases.schema import Document


def possible_labels_of(source: str, release: Document) -> tuple[list[Any], list[int] | None]:
    """Return the labels that a row may have, classes first, and their levels in the tree of the
    release; None without a tree.
    """
    contents = release.contents
    classes = list(contents.classes)
    try:
        tree = tree_of(contents)
    except InputError as error:
        raise ReleaseError(f"{source}: {error}; {AGAIN}") from error
    if tree is None:
        return classes, None

    level_by_label: dict[Any, int] = {}
    for level in Levels.of(tree, np.array(classes)).levels:
        pairs = zip(level.labels.tolist(), level.depths.tolist(), strict=True)
        level_by_label |= dict(pairs)
    inner_nodes = [label for label in level_by_label if label not in classes]
    labels = [*classes, *inner_nodes]
    return labels, [level_by_label[nfc(label)] for label in labels]


def levels_of(
    labels: NDArray[Any], possible_labels: Sequence[Any], levels: Sequence[int] | None
) -> list[int] | None:
    """Return the level of each label; None without a tree."""
    if levels is None:
        return None
    level_by_label = dict(zip(possible_labels, levels, strict=True))
    return [level_by_label[label] for label in labels.tolist()]


def label_meaning(levels: Sequence[int] | None, at_least: float | None) -> Any:
    """Say what a label is: with a tree and a least probability it may be an inner node."""
    if levels is None or at_least is None:
        return "the most likely class"
    return "the deepest node that reaches the least probability"


def selection_of(
    possible_labels: Sequence[Any],
    labels: NDArray[Any],
    left_out: Sequence[int],
    at_least: float | None,
    *,
    refused: int,
    refuse: float | None,
) -> Selection:
    """Count the rows of each possible label; `left_out` has the numbers of those left out below a
    probability, and `refused` is the number of rows that were refused before.
    """
    count_by_label = Counter(labels.tolist())
    classes = tuple(
        ClassCount(label=label, labelled=count_by_label[label], left_out=number)
        for label, number in zip(possible_labels, left_out, strict=True)
    )
    n_left_out = sum(left_out)
    n_rows = len(labels) + n_left_out + refused
    return Selection(
        at_least="none" if at_least is None else at_least,
        refuse="none" if refuse is None else refuse,
        labelled=len(labels),
        left_out=n_left_out,
        share_left_out=n_left_out / n_rows,
        refused=refused,
        share_refused=refused / n_rows,
        classes=classes,
    )
