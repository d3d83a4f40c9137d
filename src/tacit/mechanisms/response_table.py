"""Outputs drawn by a table: any randomizer of a label with finitely many outputs.

Unit: change one label.
The table has one row of output probabilities for each label.
Theorem: epsilon-DP with epsilon the largest log ratio within a column [Dwork et al. 2006, by
definition]. Probabilities are converted to numbers of the 2^64 values of a random word. These
numbers are sampled, and epsilon is computed from them.
Source: inverse sampling from a cumulative table.
"""

import math

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.mechanisms.randomized_response import WORDS

Floats = NDArray[np.float64]


class ResponseTable:
    """How many of the 2^64 `words` give each output for each label, and the `epsilon` of these
    numbers.

    It is built from probabilities >= 0 of shape (labels, outputs); each column is all zeros or has
    none.
    """

    def __init__(self, probabilities: Floats) -> None:
        used = probabilities.max(axis=0) > 0
        if not np.all(probabilities[:, used] > 0):
            raise InputError(
                "a table has a column with zeros and others, which no epsilon allows; repair it"
            )
        self.words = [_whole(row.tolist()) for row in probabilities]
        columns = [column for column in zip(*self.words, strict=True) if max(column) > 0]
        self.epsilon = max(math.log(max(column) / min(column)) for column in columns)
        ends = [np.cumsum(np.array(row, dtype=object)) for row in self.words]
        self._ends = [
            np.array([min(int(end), WORDS - 1) for end in row], dtype=np.uint64) for row in ends
        ]
        self._last = [max(i for i, words in enumerate(row) if words) for row in self.words]

    def matrix(self) -> Floats:
        """The probabilities as sampled, of shape (labels, outputs)."""
        return np.array([[words / WORDS for words in row] for row in self.words])

    def sample(self, labels: Integers, noise: NoiseSource) -> Integers:
        """Draw the index of an output for each label, of shape (n,)."""
        words, result = noise.words(len(labels)), np.empty(len(labels), dtype=np.int64)
        for label, (ends, last) in enumerate(zip(self._ends, self._last, strict=True)):
            of_label = labels == label
            # the last end is 2^64, which a word cannot hold: 2^64 - 1 stands for it
            result[of_label] = np.minimum(
                np.searchsorted(ends, words[of_label], side="right"), last
            )
        return result


def _whole(row: list[float]) -> list[int]:
    """Integers in proportion to the row, positive where it is, with sum 2^64; the largest absorbs
    the rounding.
    """
    total = math.fsum(row)
    words = [max(int(value / total * WORDS), 1) if value > 0 else 0 for value in row]
    words[row.index(max(row))] += WORDS - sum(words)
    return words
