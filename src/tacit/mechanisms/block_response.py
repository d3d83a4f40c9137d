"""Randomized response on a block of classes, by a partition of the classes that each record has.

Unit: change one label.
A record has a partition of the C classes into g blocks. If its label is in block a, the answer is a with probability
E/(E + g - 1), E = e^epsilon, and each other block with probability 1/(E + g - 1).
Theorem: epsilon-DP, if partitions do not depend on labels: a label decides on the block, the block is answered by
randomized response [Warner 1965], and two blocks' probabilities of any answer differ by a factor E at most. The event
is randomized response over g labels, since two labels of one block have the same answers, and two labels of different
blocks have those of two labels among g. Its privacy profile falls with g, so the smallest g bounds all records. Before
partitions are known, that is 2.
Sampling: the block is the class of `randomized_response.py`, among g outcomes: one 64-bit word, without rounding error.
Partitions by public priors: `partitions.py`.
Source: Warner 1965; the choice of partitions by mutual information is tacit's.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.mechanisms.randomized_response import Responses
from tacit.privacy.events import Event, RandomizedResponse


def event(epsilon: float, counts: Integers) -> Event:
    """Privacy cost of one answer for each label, by the number of blocks of each partition in use."""
    return RandomizedResponse(epsilon, max(int(counts.min()), 2))


class BlockResponses:
    """Samples answers.

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
        self._blocks = blocks
        distinct = np.flatnonzero(np.bincount(counts))
        self._kind = np.searchsorted(distinct, counts)  # faster than sorting all counts
        orders = np.tile(np.arange(distinct[-1]), (len(distinct), 1))
        self._responses = Responses(epsilon, orders, distinct)

    def sample(self, labels: Integers, which: Integers | None, noise: NoiseSource) -> Integers:
        """The answer to each label, of shape (n,); `which` is the partition of each label, None for a single one."""
        own = self._blocks[0 if which is None else which, labels].astype(np.int64)
        return self._responses.sample(own, None if which is None else self._kind[which], noise)
