"""Answers that may be less exact than a class: the deepest node of a tree that is likely enough.

The probability of a node is the sum of those of the leaves below it. For a probability q above 1/2
at most one node of each level reaches q, since two that are not on one path add up to at most 1. So
the nodes that reach q lie on one path from a root, and the answer is the deepest of them. A node
above all classes says nothing: it is no answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.texts import nfc
from tacit.errors import InputError, quoted
from tacit.models.rows import Floats

if TYPE_CHECKING:
    from tacit.data.trees import Tree

# rows whose nodes are added up together
BLOCK = 4096


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers for n rows.

    Parameters
    ----------
    label : ndarray of shape (n,)
        A class or an inner node; "" where there is no answer, or -1 beside classes that are whole
        numbers.
    level : ndarray of shape (n,), int64
        1 for the nodes below the root, 2 for those below them, and so on; 0 where there is no
        answer.
    probability : ndarray of shape (n,), float64
        That of the label; where there is no answer, that of the most likely class.
    """

    label: NDArray[Any]
    level: NDArray[np.int64]
    probability: Floats

    def __len__(self) -> int:
        return len(self.label)

    def without(self, refused: NDArray[np.bool_], likely: Floats, no_label: Any) -> Answers:
        """Return the answers with none for refused rows (n,); `likely`, of shape (n,), are the
        probabilities of the most likely classes.
        """
        return Answers(
            without_answer(self.label, refused, no_label),
            np.where(refused, 0, self.level),
            np.where(refused, likely, self.probability),
        )


@dataclass(frozen=True, eq=False)
class Level:
    """The nodes of one level, and the classes above it, which stand for themselves.

    `starts` are the places of the nodes' first leaves in the order of the tree, and `depths` their
    levels.
    """

    labels: NDArray[Any]
    starts: NDArray[np.int64]
    depths: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Levels:
    """A tree of a class list as arrays: the `order` of the classes, in which the leaves below each
    node are neighbours, and the nodes of each level from the root down.
    """

    order: NDArray[np.int64]
    levels: tuple[Level, ...]

    @classmethod
    def of(cls, tree: Tree | None, classes: NDArray[Any]) -> Levels:
        """Return the levels of a tree over a class list; without a tree, that of the classes."""
        names = classes.tolist()
        paths: list[tuple[Any, ...]] = [(nfc(name),) for name in names]
        if tree is not None:
            tree = tree.over(names)
            paths = [tree.path(nfc(name)) for name in names]

        # Nodes are numbered as they are met, so that siblings stay in the order of the classes.
        numbers: dict[Any, int] = {}
        for path in paths:
            for node in path:
                numbers.setdefault(node, len(numbers))
        keys = [tuple(numbers[node] for node in path) for path in paths]
        order = sorted(range(len(names)), key=keys.__getitem__)
        paths = [paths[i] for i in order]

        deepest = max(map(len, paths))
        levels = [_level(paths, depth) for depth in range(1, deepest + 1)]
        while len(levels) > 1 and len(levels[0].starts) == 1:
            # a node above all classes
            levels = levels[1:]
        n_above = deepest - len(levels)
        levels = [Level(level.labels, level.starts, level.depths - n_above) for level in levels]
        return cls(np.array(order, dtype=np.int64), tuple(levels))

    @property
    def deepest(self) -> int:
        """The level of the deepest class."""
        return int(self.levels[-1].depths.max())

    def classes(self, probabilities: Floats) -> Answers:
        """Return the most likely class of each row, from probabilities (n, C)."""
        # at the last level each class stands for itself
        last = self.levels[-1]
        places = np.argsort(self.order)
        best = places[probabilities.argmax(axis=1)]
        return Answers(last.labels[best], last.depths[best], probabilities.max(axis=1))

    def answers(self, probabilities: Floats, at_least: float, no_label: Any) -> Answers:
        """Return the deepest node of each row whose probability is `at_least` or more.

        `probabilities` has shape (n, C).
        """
        n_rows = len(probabilities)
        labels = np.full(n_rows, no_label, dtype=self._label_type(no_label))
        depths = np.zeros(n_rows, dtype=np.int64)
        likely = probabilities.max(axis=1, initial=0.0)

        for start in range(0, n_rows, BLOCK):
            part = slice(start, start + BLOCK)
            in_order = probabilities[part][:, self.order]
            for level in self.levels:
                of_nodes = np.add.reduceat(in_order, level.starts, axis=1)
                best = of_nodes.argmax(axis=1)
                largest = of_nodes[np.arange(len(best)), best]

                # a node of a deeper level is below that of the level before, and replaces it
                reached = largest >= at_least
                labels[part][reached] = level.labels[best[reached]]
                depths[part][reached] = level.depths[best[reached]]
                likely[part][reached] = largest[reached]
        return Answers(labels, depths, likely)

    def _label_type(self, no_label: Any) -> np.dtype[Any]:
        """Return a type that holds every label."""
        types = [level.labels.dtype for level in self.levels]
        return np.result_type(np.array([no_label]).dtype, *types)


def _level(paths: list[tuple[Any, ...]], depth: int) -> Level:
    """Return the nodes at a depth of paths whose leaves are in the order of the tree."""
    ancestors = [path[:depth][-1] for path in paths]

    # the leaves below a node stand together, so a node starts where the ancestor changes
    starts = [0]
    for leaf in range(1, len(paths)):
        if ancestors[leaf] != ancestors[leaf - 1]:
            starts.append(leaf)

    labels = np.array([ancestors[i] for i in starts])
    depths = [min(depth, len(paths[i])) for i in starts]
    return Level(labels, np.array(starts, dtype=np.int64), np.array(depths, dtype=np.int64))


def no_label(classes: NDArray[Any]) -> str | int:
    """Return the label that stands for no answer: "" for texts, -1 for numbers."""
    if classes.dtype.kind == "U":
        return ""
    if classes.dtype.kind in "iuf":
        return -1
    raise InputError(
        f"classes of type {classes.dtype} have no label for no answer; use predict without at_least"
        " and refuse, or fit with classes that are texts or whole numbers"
    )


def without_answer(labels: NDArray[Any], refused: NDArray[np.bool_], no_label: Any) -> NDArray[Any]:
    """Return the labels (n,) with that of no answer for refused rows."""
    label_type = np.result_type(np.array([no_label]).dtype, labels.dtype)
    kept = labels.astype(label_type)
    kept[refused] = no_label
    return kept


def check_distinct(classes: NDArray[Any]) -> None:
    """Refuse class -1, which would look like no answer; "" is no class."""
    if classes.dtype.kind in "if" and (classes == -1).any():
        raise InputError(
            "class -1 would look like no answer; use Release.answers, whose level is 0 there"
        )


def checked_share(at_least: Any) -> float:
    """Return the probability that is asked for: above 1/2, since two classes could reach less."""
    is_number = isinstance(at_least, int | float | np.integer | np.floating)
    if not is_number or isinstance(at_least, bool) or not 0.5 < at_least <= 1:
        raise InputError(
            f"at_least={quoted(at_least)} must be above 0.5 and at most 1, so that no two classes"
            " reach it; pass for example at_least=0.9 (--at-least 0.9)"
        )
    return float(at_least)
