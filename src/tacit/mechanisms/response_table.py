"""Outputs drawn by a table: any randomizer of a label with finitely many outputs.

Unit: change one label.

Mechanism: the table has one row of output probabilities for each label.

Theorem: epsilon-DP with epsilon the largest log ratio within a column [Dwork et al. 2006, by
definition]. Probabilities are converted to numbers of the 2^64 values of a random word. These
numbers are sampled, and epsilon is computed from them.

Source: inverse sampling from a cumulative table.
"""

import math
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.mechanisms.randomized_response import WORDS

Floats = NDArray[np.float64]


class ResponseTable:
    """Numbers of the 2^64 `words` that give each output for each label, and the `epsilon` of these
    numbers.

    It is built from probabilities >= 0 of shape (labels, outputs); each column is all zeros or has
    none.
    """

    def __init__(self, probabilities: Floats) -> None:
        is_possible = probabilities.max(axis=0) > 0
        if not np.all(probabilities[:, is_possible] > 0):
            raise InputError(
                "a table has a column with zeros and others, which no epsilon allows; repair it"
            )
        self.words = [_words_in_proportion(row.tolist()) for row in probabilities]

        # Epsilon as sampled, after rounding.
        columns = [column for column in zip(*self.words, strict=True) if max(column) > 0]
        self.epsilon = max(math.log(max(column) / min(column)) for column in columns)

        # The last possible output of each label, and the word at which each output ends.
        # The last end is 2^64, which a word cannot hold: 2^64 - 1 stands for it.
        self._last_outputs = [int(np.flatnonzero(row)[-1]) for row in self.words]
        self._ends = []
        for row in self.words:
            ends = [min(end, WORDS - 1) for end in accumulate(row)]
            self._ends.append(np.array(ends, dtype=np.uint64))

    def matrix(self) -> Floats:
        """Return the probabilities as sampled, of shape (labels, outputs)."""
        return np.array([[words / WORDS for words in row] for row in self.words])

    def sample(self, labels: Integers, noise: NoiseSource) -> Integers:
        """Draw the index of an output for each label, of shape (n,)."""
        words = noise.words(len(labels))
        result = np.empty(len(labels), dtype=np.int64)

        for label, ends in enumerate(self._ends):
            has_label = labels == label
            outputs = np.searchsorted(ends, words[has_label], side="right")
            # The word 2^64 - 1 lies beyond the end that stands for 2^64.
            result[has_label] = np.minimum(outputs, self._last_outputs[label])

        return result


def _words_in_proportion(row: list[float]) -> list[int]:
    """Integers in proportion to the row, positive where it is, with sum 2^64; the largest absorbs
    the rounding.
    """
    total = math.fsum(row)
    words = []
    for value in row:
        if value > 0:
            words.append(max(int(value / total * WORDS), 1))
        else:
            words.append(0)

    words[row.index(max(row))] += WORDS - sum(words)
    return words
