"""Choosing public rows for each class: what `PublicPrototypes` and `ProjectedPrototypes` share."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from tacit.compute.shared import shared
from tacit.errors import InputError
from tacit.learners.common.base import Prepared
from tacit.learners.common.parameters import public_rows
from tacit.learners.prototypes.scores import scores
from tacit.learners.prototypes.scores.arithmetic import Scoring
from tacit.mechanisms import exponential, top_k
from tacit.mechanisms.noise import Integers, NoiseSource


def candidates(public: Any, width: int) -> Any:
    """Public rows to choose from, of shape (m, width)."""
    if public is None:
        raise InputError(
            "public=None must be public rows to choose from; pass public=X_public (--public STORE)"
        )
    return public_rows(public, width)


@contextmanager
def class_scores(
    how: Scoring, public: Any, private: Prepared, n_classes: int, **where: Any
) -> Iterator[Any]:
    """Scores of shape (C, m) within the block, computed once for all cells of a sweep; parameters
    as of `scores`.
    """
    X, labels = private.X, private.labels
    person_sizes = (
        private.persons.of_same_person
        if how.classes is not None and private.persons is not None
        else None
    )

    def facts() -> tuple[Any, ...]:
        rule = how.low, how.high, how.factor, repr(how.arithmetic), how.centre is not None
        return public, X, labels, person_sizes, n_classes, *rule

    with ExitStack() as stack:  # entered only where nothing is shared yet
        computed = scores(how, public, X, labels, n_classes, person_sizes=person_sizes, **where)
        yield shared("public-scores", facts, lambda: stack.enter_context(computed))  # type: ignore[arg-type]


def select_one(
    row: Integers,
    *,
    sensitivity: int,
    epsilon: float,
    noise: NoiseSource,
    selection: str = "exponential",
) -> int:
    """`exponential.select`; at an infinite epsilon the largest score, the lowest index first on
    ties.
    """
    if math.isinf(epsilon):
        return int(top_k.best_first(row)[0])
    return exponential.select(
        row, sensitivity=sensitivity, epsilon=epsilon, noise=noise, selection=selection
    )
