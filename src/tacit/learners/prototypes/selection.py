"""Choice of public rows for each class, shared by `PublicPrototypes` and `ProjectedPrototypes`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from tacit.compute.shared import shared
from tacit.errors import InputError
from tacit.learners.common.base import Prepared
from tacit.learners.prototypes.scores import scores
from tacit.learners.prototypes.scores.arithmetic import Scoring
from tacit.mechanisms import exponential, top_k
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.models.public_rows import public_rows


def candidates(public: Any, width: int) -> Any:
    """Return the public rows to choose from, of shape (m, width)."""
    if public is None:
        raise InputError(
            "public=None must be public rows to choose from; pass public=X_public (--public STORE)"
        )
    return public_rows(public, width)


@contextmanager
def class_scores(
    scoring: Scoring, public: Any, private: Prepared, n_classes: int, **files: Any
) -> Iterator[Any]:
    """Yield scores of shape (C, m), computed once for all cells of a sweep.

    `files` are `folder` and `engine`, as of `scores`.
    """
    X = private.X
    labels = private.labels
    # `scoring.classes` is set where scores are divided by a person's number of records, which they
    # are not at an infinite epsilon, whatever the unit
    person_sizes = None
    if scoring.classes is not None and private.persons is not None:
        person_sizes = private.persons.of_same_person

    # All that decides the scores; they are hashed only where scores are shared. A centre follows
    # from the public rows, so it is enough to say that there is one.
    def facts() -> tuple[Any, ...]:
        rule = (
            scoring.low,
            scoring.high,
            scoring.factor,
            repr(scoring.arithmetic),
            scoring.centre is not None,
        )
        return public, X, labels, person_sizes, n_classes, *rule

    computation = scores(scoring, public, X, labels, n_classes, person_sizes=person_sizes, **files)
    with ExitStack() as stack:

        def compute() -> Any:
            # called only where nothing is shared yet; files of scores stay until the stack closes
            return stack.enter_context(computation)

        yield shared("public-scores", facts, compute)


def select_one(
    row: Integers,
    *,
    sensitivity: int,
    epsilon: float,
    noise: NoiseSource,
    selection: str = "exponential",
) -> int:
    """Select a position of `row` by `exponential.select`.

    At an infinite epsilon it is the position of the largest score, the lowest one on ties.
    """
    if math.isinf(epsilon):
        return int(top_k.best_first(row)[0])
    return exponential.select(
        row, sensitivity=sensitivity, epsilon=epsilon, noise=noise, selection=selection
    )
