"""Randomizers that answer with a vector: bits, or a noisy one-hot label (ALIBI). Unit: change one
label.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tacit.learners.common.parameters import real, whole
from tacit.learners.label_dp.randomizers import LEAST, Floats, Randomizer
from tacit.mechanisms import one_hot, unary
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.mechanisms.randomized_response import WORDS
from tacit.privacy.events import Event, Gaussian, PureDP

MOST = 60.0  # epsilon, beyond which bits do not flip


class SymmetricUnary(Randomizer):
    """Each bit of the one-hot label is flipped with probability 1/(1 + e^(epsilon/2)).

    Guarantee: epsilon-DP under change of one label; see `tacit.mechanisms.unary`.
    """

    _words = staticmethod(unary.symmetric)

    def __init__(self, epsilon: float, n_classes: int) -> None:
        self.epsilon = real("epsilon", epsilon, LEAST, MOST)
        self.n_classes = whole("n_classes", n_classes, 2, 2**31)
        self.words = self._words(self.epsilon)

    @property
    def event(self) -> Event:
        return PureDP(self.epsilon)

    @property
    def realised_epsilon(self) -> float:
        """Epsilon of the bits as sampled; `epsilon` or a little below."""
        return unary.epsilon_of(self.words)

    def sample(
        self, labels: Integers, noise: NoiseSource, which: Integers | None = None
    ) -> NDArray[np.bool_]:
        return unary.sample(labels, self.n_classes, self.words, noise)

    def log_likelihood(self, outputs: NDArray[np.bool_], which: Integers | None = None) -> Floats:
        p, q = self._probabilities()
        return np.asarray(np.where(outputs, math.log(p / q), math.log((1 - p) / (1 - q))))

    def unbiased(self, outputs: NDArray[np.bool_]) -> Floats:
        p, q = self._probabilities()
        return np.asarray((outputs - q) / (p - q))

    def _probabilities(self) -> tuple[float, float]:
        one, zero = self.words
        return one / WORDS, zero / WORDS


class OptimisedUnary(SymmetricUnary):
    """Bit 1 stays with probability 1/2, bit 0 becomes 1 with probability 1/(e^epsilon + 1) [Wang et
    al. 2017].
    """

    _words = staticmethod(unary.optimised)


class NoisyOneHot(Randomizer):
    """The one-hot label with noise on each entry, released once (ALIBI) [Malek et al. 2021].

    Parameters
    ----------
    n_classes : int
    epsilon : float, optional
        For discrete Laplace noise of scale 2/epsilon; infinity is no noise.
    rho : float, optional
        Instead: for discrete Gaussian noise of variance 1/rho.

    Notes
    -----
    Guarantee: epsilon-DP or rho-zCDP under change of one label; see `tacit.mechanisms.one_hot`.
    """

    def __init__(
        self, n_classes: int, *, epsilon: float | None = None, rho: float | None = None
    ) -> None:
        self.n_classes = whole("n_classes", n_classes, 2, 2**31)
        self.epsilon = epsilon
        self.rho = None
        if epsilon is None:
            self.rho = real("rho", rho, LEAST, 1e6)
        elif epsilon != math.inf:
            self.epsilon = real("epsilon", epsilon, LEAST, 1e6)

    @property
    def event(self) -> PureDP | Gaussian:
        if self.rho is not None:
            return Gaussian(1 / math.sqrt(2 * self.rho))
        return PureDP(float(self.epsilon or 0))

    def sample(self, labels: Integers, noise: NoiseSource, which: Integers | None = None) -> Floats:
        return one_hot.noisy_one_hot(labels, self.n_classes, self.event, noise)

    def log_likelihood(self, outputs: Floats, which: Integers | None = None) -> Floats:
        if self.rho is not None:
            return np.asarray(outputs * self.rho)

        # The log ratio of densities at an entry of 1 and of 0, for Laplace noise of scale
        # 2 / epsilon; infinite epsilon is bounded, since likelihoods are multiplied.
        epsilon = min(float(self.epsilon or 0), 1e6)
        return np.asarray(np.clip(2 * outputs - 1, -1, 1) * epsilon / 2)

    def unbiased(self, outputs: Floats) -> Floats:
        return np.asarray(outputs, dtype=np.float64)
