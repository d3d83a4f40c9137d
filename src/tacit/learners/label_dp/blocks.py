"""Randomized response on blocks of classes: few answers, about which a record's public prior knows
least.

Unit: change one label.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.threads import in_threads
from tacit.errors import InputError
from tacit.learners.common.parameters import real
from tacit.learners.label_dp.priors import no_prior, prior_table
from tacit.learners.label_dp.randomizers import LEAST, MOST, NEVER, RR, Randomizer
from tacit.mechanisms import block_response
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.mechanisms.partitions import partitions_of
from tacit.mechanisms.randomized_response import WORDS, words_of
from tacit.privacy.events import Event

Floats = NDArray[np.float64]

_VALUES = 1 << 20  # entries that one task computes


class Blocks(Randomizer):
    """Randomized response on blocks of classes, by the partition with most information about a
    label under its prior.

    An answer is the number of a block: the block of the true class with probability E/(E + g - 1),
    E = e^epsilon, and each other of the g blocks with probability 1/(E + g - 1).

    Parameters
    ----------
    epsilon : float
        Above 0; infinity keeps the label.
    prior : array of shape (n_classes,) or (priors, n_classes)
        Public, or paid for. Rows are not negative and add up to 1. The prior is not stored.
    first : int, default=0
        Number of the first prior, for priors that are passed in parts: prior i has public random
        order i of the classes, which breaks ties and decides where unlikely classes go.

    Attributes
    ----------
    partitions : integer array of shape (priors, n_classes)
        The block of each class under each prior.
    n_blocks : int64 array of shape (priors,)
        The number g of blocks under each prior.

    Notes
    -----
    Guarantee: epsilon-DP under change of one label, since partitions follow only from priors. The
    event is randomized response over the smallest g of any prior, which costs most.
    The partition has the largest mutual information of answer and label among greedy ones into 2 to
    n_classes blocks; see `tacit.mechanisms.partitions`. With blocks of single classes it is plain
    randomized response.

    Examples
    --------
    >>> import tacit
    >>> blocks = tacit.label_dp.Blocks(epsilon=1.0, prior=[0.4, 0.3, 0.2, 0.1])
    >>> blocks.partitions
    array([[0, 1, 2, 2]], dtype=uint8)
    >>> blocks.matrix().round(4)
    array([[0.5761, 0.2119, 0.2119],
           [0.2119, 0.5761, 0.2119],
           [0.2119, 0.2119, 0.5761],
           [0.2119, 0.2119, 0.5761]])
    """

    def __init__(self, epsilon: float, prior: Any, first: int = 0) -> None:
        self.epsilon = epsilon
        if epsilon != math.inf:
            self.epsilon = real("epsilon", epsilon, LEAST, MOST)
        rows = prior_table(prior)
        self.n_priors, self.n_classes = rows.shape
        self.partitions, self.n_blocks = partitions_of(rows, self.epsilon, first)
        if not self.n_blocks.all():
            first = int(np.argmin(self.n_blocks))
            raise no_prior(rows[first].astype(np.float64), f"prior row {first}")
        self._responses = block_response.BlockResponses(
            self.epsilon, self.partitions, self.n_blocks
        )

    @property
    def event(self) -> Event:
        return block_response.event(self.epsilon, self.n_blocks)

    def sample(
        self, labels: Integers, noise: NoiseSource, which: Integers | None = None
    ) -> Integers:
        """The number of a block for each label, of shape (n,)."""
        self.check_which(which, len(labels))
        if self.epsilon == math.inf:
            return labels.copy()
        return self._responses.sample(labels, which, noise)

    def log_likelihood(self, outputs: Integers, which: Integers | None = None) -> Floats:
        self.check_which(which, len(outputs))
        prior = which
        if prior is None:
            prior = np.zeros(len(outputs), dtype=np.int64)

        # Log probabilities of an answer for each number of blocks that occurs, (numbers, 2).
        numbers, number_of_prior = np.unique(self.n_blocks, return_inverse=True)
        log_probabilities = np.array([self._logs(g) for g in numbers.tolist()])
        result = np.empty((len(outputs), self.n_classes))
        step = max(1, _VALUES // self.n_classes)

        def fill(start: int) -> None:
            part = slice(start, start + step)
            in_block, in_other = log_probabilities[number_of_prior[prior[part]]].T[:, :, None]
            is_in_block = self.partitions[prior[part]] == outputs[part, None]
            result[part] = np.where(is_in_block, in_block, in_other)

        for _ in in_threads(fill, range(0, len(outputs), step)):
            pass
        return result

    def unbiased(self, outputs: Integers) -> Floats:
        if (self.n_blocks < self.n_classes).any():
            fault = (
                f"{self} answers with as few as {int(self.n_blocks.min())} blocks of"
                f" {self.n_classes} classes"
            )
            raise InputError(
                f"{fault}, so its matrix has no inverse; use correction='forward', or the"
                " randomizer 'rr'"
            )
        return RR(self.epsilon, self.n_classes).unbiased(outputs)

    @property
    def realised_epsilon(self) -> float:
        """Largest log ratio of the probabilities of an answer under two labels; `epsilon` or a
        little below.
        """
        if self.epsilon == math.inf:
            return math.inf
        ratios = []
        for g in np.unique(self.n_blocks).tolist():
            # In words, of which probabilities are whole multiples.
            chances, _ = words_of(self.epsilon, g, g)
            ratios.append(math.log(chances[0] / chances[-1]))
        return max(ratios)

    def matrix(self) -> Floats:
        """Probabilities as sampled, of shape (classes, blocks), or (priors, classes, most blocks of
        any prior).
        """
        result = np.zeros((self.n_priors, self.n_classes, int(self.n_blocks.max())))
        for g in np.unique(self.n_blocks).tolist():
            priors = np.flatnonzero(self.n_blocks == g)
            in_block, in_other = self._chances(g)
            is_in_block = self.partitions[priors][:, :, None] == np.arange(g)
            result[priors, :, :g] = np.where(is_in_block, in_block, in_other)
        return result[0] if self.n_priors == 1 else result

    def _chances(self, g: int) -> tuple[float, float]:
        """Probability to answer with the block of the label, and with any other of g blocks."""
        if self.epsilon == math.inf:
            return 1.0, 0.0
        words, _ = words_of(self.epsilon, g, g)
        return words[0] / WORDS, words[-1] / WORDS

    def _logs(self, g: int) -> tuple[float, float]:
        if self.epsilon == math.inf:
            return 0.0, NEVER
        in_block, in_other = self._chances(g)
        return math.log(in_block), math.log(in_other)
