"""Answers on a test set: how many there are at each level of a tree, and how many are right.

An answer is right if it is the true class or a node above it. Coverage is the share of rows that
are answered by a node below the root.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.texts import nfc
from tacit.models.answers import Answers, Levels, no_label
from tacit.models.rows import Floats

if TYPE_CHECKING:
    from tacit.data.trees import Tree

# probabilities that are asked for in a picture of coverage against accuracy
ASKED = (0.51, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99)


@dataclass(frozen=True)
class LevelShare:
    """Share of all rows that are answered at a level, and of these that are right; None if none
    is.
    """

    level: int
    answered: float
    right: float | None


@dataclass(frozen=True)
class Coverage:
    """Answers of this probability or more: the shares over all levels, and at each level."""

    at_least: float
    answered: float
    right: float | None
    levels: tuple[LevelShare, ...]


def coverage(
    answers: Answers,
    truth: NDArray[Any],
    tree: Tree | None,
    *,
    at_least: float,
    deepest: int,
) -> Coverage:
    """Score answers against true classes (n,); `deepest` is the level of the deepest class."""
    is_right = right_answers(answers, truth, tree)
    levels = []
    for level in range(1, deepest + 1):
        share, right = _shares(answers.level == level, is_right)
        levels.append(LevelShare(level, share, right))
    answered, right = _shares(answers.level > 0, is_right)
    return Coverage(at_least, answered, right, tuple(levels))


def right_answers(answers: Answers, truth: NDArray[Any], tree: Tree | None) -> NDArray[np.bool_]:
    """Tell which answers are the true class or a node above it, (n,)."""
    paths = {}
    for value in np.unique(truth).tolist():
        path = (nfc(value),) if tree is None else tree.path(nfc(value))
        paths[value] = set(path)
    pairs = zip(answers.label.tolist(), truth.tolist(), strict=True)
    is_right = np.array([nfc(label) in paths[value] for label, value in pairs], dtype=bool)
    return is_right & (answers.level > 0)


def coverages(
    probabilities: Floats,
    truth: NDArray[Any],
    classes: NDArray[Any],
    tree: Tree | None,
    asked: Sequence[float] = ASKED,
) -> list[Coverage]:
    """Score the answers of each probability that is asked for, from probabilities (n, C)."""
    levels = Levels.of(tree, classes)
    empty = no_label(classes)
    results = []
    for at_least in asked:
        answers = levels.answers(probabilities, at_least, empty)
        results.append(coverage(answers, truth, tree, at_least=at_least, deepest=levels.deepest))
    return results


def _shares(
    is_answered: NDArray[np.bool_], is_right: NDArray[np.bool_]
) -> tuple[float, float | None]:
    """Share of the rows that are answered, and of these that are right."""
    n_answered = int(is_answered.sum())
    if n_answered == 0:
        return 0.0, None
    return n_answered / len(is_answered), float(is_right[is_answered].mean())
