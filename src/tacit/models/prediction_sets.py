"""Prediction sets: the classes of a row whose score is at most a released threshold.

A score of a row and a class is 0 or more, at most 1, and larger for classes that fit the row worse:

    probability   1 less the probability of the class [Sadinle, Lei and Wasserman 2019]; its sets
                  are the smallest on average
    cumulative    the probability of all classes that are likelier than it [Romano, Sesia and
                  Candes 2020]; its sets are larger for rows that are harder to tell

Thresholds are from a public list, the edges. The most likely class is always in the set. It adds
classes to sets, so no set covers less, and none is empty.

`tacit.measure.prediction_sets` pays for the threshold.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tacit.models.rows import Floats

Score = Literal["probability", "cumulative"]
SCORES = get_args(Score)

N_EDGES = 64
"""Thresholds to choose from. The noise of a threshold grows with the square root of their number;
neighbouring ones differ by an eighth in the probability at which a class is left out.
"""

# A class of probability above one half is the most likely one, which is in the set anyway.
HIGHEST_CUTOFF = 0.5

# The lowest cutoff is this part of 1/C, the probability of each of C equally likely classes.
LOWEST_CUTOFF = 1 / 50

# Cumulative scores: the lowest probability of all classes that are not likelier.
LOWEST_REST = 1e-3


@dataclass(frozen=True)
class SetRule:
    """The rule that makes the sets of a release.

    Parameters
    ----------
    score : {"probability", "cumulative"}
    threshold : float or None
        The largest score of a class in the set; None if every set holds all classes.
    """

    score: Score
    threshold: float | None

    def of(self, probabilities: Floats) -> NDArray[np.bool_]:
        """Tell which classes are in the set of each row, from probabilities (n, C); (n, C)."""
        if self.threshold is None:
            return np.ones(probabilities.shape, dtype=np.bool_)

        members = scores(probabilities, self.score) <= self.threshold
        likeliest = np.argmax(probabilities, axis=1)
        members[np.arange(len(members)), likeliest] = True
        return members


def edges(score: Score, n_classes: int) -> Floats:
    """Return the public thresholds of a score in rising order, of shape (N_EDGES,).

    >>> edges("probability", 10)[[0, -1]]
    array([0.5  , 0.998])
    """
    if score == "cumulative":
        return np.asarray(1 - np.geomspace(1.0, LOWEST_REST, N_EDGES))
    cutoffs = np.geomspace(HIGHEST_CUTOFF, LOWEST_CUTOFF / n_classes, N_EDGES)
    return np.asarray(1 - cutoffs)


def scores(probabilities: Floats, score: Score) -> Floats:
    """Return the score of each class for each row, from probabilities (n, C); (n, C)."""
    if score == "probability":
        return np.asarray(1 - probabilities)

    order = np.argsort(-probabilities, axis=1, kind="stable")
    falling = np.take_along_axis(probabilities, order, axis=1)
    likelier = np.cumsum(falling, axis=1) - falling
    cumulative = np.empty_like(likelier)
    np.put_along_axis(cumulative, order, np.maximum(likelier, 0.0), axis=1)
    return cumulative


def scores_of_labels(probabilities: Floats, labels: NDArray[np.int64], score: Score) -> Floats:
    """Return the score of each row's own class, from probabilities (n, C) and labels (n,); (n,)."""
    return np.asarray(scores(probabilities, score)[np.arange(len(labels)), labels])
