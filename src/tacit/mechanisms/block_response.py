"""Randomized response on a block of classes, by a partition of the classes that each record has.

Unit: change one label.
A record has a partition of the C classes into g blocks. If its label is in block a, the answer is a
with probability E/(E + g - 1), E = e^epsilon, and each other block with probability 1/(E + g - 1).
Theorem: epsilon-DP, if partitions do not depend on labels: a label decides on the block, the block
is answered by randomized response [Warner 1965], and two blocks' probabilities of any answer differ
by a factor E at most. The event is randomized response over g labels, since two labels of one block
have the same answers, and two labels of different blocks have those of two labels among g. Its
privacy profile falls with g, so the smallest g bounds all records. Before partitions are known,
that is 2.
Sampling: the block is the class of `randomized_response.py`, among g outcomes: one 64-bit word,
without rounding error.
Partitions by public priors: `partitions.py`.
Source: Warner 1965; the choice of partitions by mutual information is tacit's.
"""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.compiled import compiled
from tacit.mechanisms.noise import Integers
from tacit.mechanisms.randomized_response import Responses, inside
from tacit.privacy.events import Event, RandomizedResponse


def event(epsilon: float, counts: Integers) -> Event:
    """Return the privacy cost of one answer for each label.

    `counts` has the number of blocks of each partition in use; the smallest bounds all records.
    """
    return RandomizedResponse(epsilon, max(int(counts.min()), 2))


class BlockResponses(Responses):
    """Sample answers; each label has a row, which is its partition.

    Parameters
    ----------
    epsilon : float
        Above 0 and finite.
    blocks : ndarray of shape (partitions, n_classes)
        The block of each class, from 0.
    counts : ndarray of shape (partitions,)
        Number of blocks of each partition.
    """

    def __init__(self, epsilon: float, blocks: NDArray[Any], counts: Integers) -> None:
        self.n_classes = blocks.shape[1]
        self._blocks = blocks
        self._counts = counts

        # the words that give one other block, for each number g of blocks that occurs
        block_counts = np.flatnonzero(np.bincount(counts))
        self._words_per_block = np.zeros(block_counts[-1] + 1, dtype=np.uint64)
        self._words_per_block[block_counts] = [inside(epsilon, g) for g in block_counts.tolist()]

    def _responses(self, labels: Integers, prior: Integers, words: NDArray[np.uint64]) -> Integers:
        answers = np.empty(len(labels), dtype=np.int64)
        answer(self._blocks, self._counts, self._words_per_block, labels, prior, words, answers)
        return answers


@partial(compiled, error_model="numpy", boundscheck=True)
def answer(
    blocks: Any, counts: Any, words_per_block: Any, labels: Any, rows: Any, words: Any, answers: Any
) -> None:
    """Answer each label by its partition and its random word.

    `rows` has the partition of each label, or a single entry for all labels.
    """
    for i in range(len(labels)):
        if labels[i] < 0:
            raise IndexError("a label is below 0")
        row = rows[i] if len(rows) > 1 else rows[0]
        true_block = blocks[row, labels[i]]
        g = counts[row]

        # each block has as many words; those beyond the g-th share give the true block
        answers[i] = true_block
        block = words[i] // words_per_block[g]
        if block < np.uint64(g):
            answers[i] = block
