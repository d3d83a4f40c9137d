"""Randomized response on a label, over all classes or over the likeliest of a prior.

Unit: change one label.

Mechanism: a response is given by an order of the classes and a number k. With E = e^epsilon, a
label among the first k classes of the order is kept with probability E/(E + k - 1), and becomes
each other of the k classes with probability 1/(E + k - 1). Any other label becomes one of the k
classes, uniformly.

Theorem: epsilon-DP. For any output the probabilities of two labels differ by a factor E at most
[Warner 1965; Ghazi et al. 2021, Lemma 2]. For k = 1 the output is the same for all labels.

Theorem, curves: the event is randomized response over k labels, with privacy profile (E - e^t)/(E +
k - 1) for 0 <= t <= epsilon, for any number of classes. Two labels among the k have this profile.
For a label among the k and a label outside, let p = E/(E + k - 1), q = 1/(E + k - 1) and u = 1/k,
which is between q and p. The profile is max(p - u e^t, 0) one way and (k - 1) max(u - q e^t, 0) the
other. The first is at most p - q e^t since u >= q. The second is p - u <= p - q at t = 0 and falls
with slope (k - 1) q e^t >= q e^t. Profiles at t < 0 follow by symmetry. The profile falls with k,
so if labels have priors of different k, the smallest k above 1 bounds all [checked against the
matrices in tests/contracts/test_randomizers.py].

Sampling: one 64-bit word u for each label, without rounding error. Label y becomes the class at
place u // m of the order, or stays y if that place is k or more, with m = ceil(2^64/(E + k - 1)),
so the probability to keep is rounded down. A label outside the first k has m = floor(2^64/k), and
each of the last words, fewer than k, gives another class. The running time does not depend on the
number of classes. An epsilon below 16 k^2/2^64, where one word would matter, is refused.

Source: RRTop-k and RRWithPrior of Ghazi et al. 2021; k = all classes is Warner's.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tacit.compute.progress import progress
from tacit.compute.threads import in_threads
from tacit.errors import InputError
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.privacy.decimals import rounded_up

WORDS = 2**64

# Only words from here on may be among the last 2^64 mod k, which is below k < 2^32.
LAST = np.uint64(WORDS - 2**32)

_BLOCK = 1 << 16


@lru_cache(maxsize=4096)
def inside(epsilon: float, k: int) -> int:
    """m of a label among the k: the smallest number of words for each other class that keeps
    epsilon.
    """
    # E - 1, rounded down: the error of expm1 is below 2^-50.
    if epsilon < 700:
        excess = Fraction(math.expm1(epsilon)) * (1 - Fraction(1, 2**50))
    else:
        # expm1 would soon overflow.
        excess = Fraction(2) ** 1000

    return max(math.ceil(WORDS / (excess + k)), 1)


def outside(k: int) -> int:
    """m of any other label; each remaining word gives another class."""
    return WORDS // k


def words_of(epsilon: float, k: int, n_classes: int) -> tuple[list[int], list[int]]:
    """Number of the 2^64 words that give each place of the order, for a label at place 0 and for a
    label outside.

    For a label at place i below k swap entries 0 and i. If no label is outside, the second list is
    empty.
    """
    if k == 1:
        # Both kinds of labels give the only class. A single class has no label outside.
        words_outside = [WORDS] if n_classes > 1 else []
        return [WORDS], words_outside

    m = inside(epsilon, k)
    words_inside = [WORDS - (k - 1) * m] + [m] * (k - 1)
    if k == n_classes:
        return words_inside, []

    m, remainder = divmod(WORDS, k)
    words_outside = [m + 1] * remainder + [m] * (k - remainder)
    return words_inside, words_outside


class Responses:
    """Samples responses by order and k.

    Parameters
    ----------
    epsilon : float
        Above 0; infinity keeps every label among its first k.
    orders : ndarray of shape (priors, n_classes)
        Class indices, the likeliest first.
    k : ndarray of shape (priors,)
    """

    def __init__(self, epsilon: float, orders: Integers, k: Integers) -> None:
        n_priors, self.n_classes = orders.shape
        largest = int(k[k < self.n_classes].max(initial=0))
        if epsilon < 16 * largest**2 / WORDS:
            words = f"{largest} of {self.n_classes} classes"
            fault = f"epsilon={rounded_up(epsilon)} is too small for {words}"
            raise InputError(f"{fault}; use fewer classes, by merging some before the fit")

        # Without a prior the order does not matter, and one m serves all labels.
        self._all_classes = n_priors == 1 and k[0] == self.n_classes > 1
        if self._all_classes:
            self._m = np.uint64(inside(epsilon, self.n_classes))
            return

        # The place of each class in each order, (priors, n_classes).
        places = np.empty_like(orders)
        np.put_along_axis(places, orders, np.arange(self.n_classes)[None], axis=1)

        # m of each label under each prior.
        m_inside = _by_prior(lambda size: inside(epsilon, size), k)
        m_outside = _by_prior(outside, k)
        m = np.where(places < k[:, None], m_inside[:, None], m_outside[:, None])

        # For k = 1, 2^64 words do not fit into 64 bits: with m = 2^64 - 1 one word gives place 1,
        # so place 1 counts as among the first, and below it holds the same class as place 0.
        constant = k == 1
        m[constant] = WORDS - 1
        self._m_by_label = m.ravel()
        self._limits = np.where(constant, 2, k).astype(np.uint64)

        # The class at each place of each order.
        classes = orders.astype(np.int64)
        if self.n_classes > 1:
            classes[constant, 1] = classes[constant, 0]
        self._classes = classes.ravel()

    def sample(self, labels: Integers, priors: Integers | None, noise: NoiseSource) -> Integers:
        """Draw the response to each label, of shape (n,); `priors` has the index of each label's
        prior, None for a single prior.
        """
        if self.n_classes == 1:
            return np.zeros_like(labels)
        result = np.empty(len(labels), dtype=np.int64)

        def respond(block: tuple[slice, NDArray[np.uint64]]) -> int:
            part, words = block
            block_priors = np.zeros(1, dtype=np.int64)
            if priors is not None:
                block_priors = priors[part]
            result[part] = self._responses(labels[part], block_priors, words)
            return len(words)

        parts = (slice(start, start + _BLOCK) for start in range(0, len(labels), _BLOCK))
        blocks = ((part, noise.words(len(labels[part]))) for part in parts)
        for _ in progress(in_threads(respond, blocks), "randomising labels", len(labels), int):
            pass
        return result

    def _responses(self, labels: Integers, priors: Integers, words: NDArray[np.uint64]) -> Integers:
        """Responses to labels (b,) by a word each; `priors` has shape (b,), or (1,) for all."""
        if self._all_classes:
            place = words // self._m
            keeps_label = place >= np.uint64(self.n_classes)
            return np.where(keeps_label, labels, place.astype(np.int64))

        # Where the entries of each label's prior begin in the flat arrays.
        first = priors * self.n_classes
        place = words // self._m_by_label[first + labels]
        keeps_label = place >= self._limits[priors]

        # The last words of a label outside the first k give one class each.
        for i in np.flatnonzero(words >= LAST).tolist():
            prior = int(priors[i if len(priors) > 1 else 0])
            k = int(self._limits[prior])
            m = self._m_by_label[prior * self.n_classes + int(labels[i])]
            if keeps_label[i] and m == outside(k):
                place[i] = int(words[i]) - k * outside(k)
                keeps_label[i] = False

        # Any place will do where the label is kept.
        place[keeps_label] = 0
        return np.where(keeps_label, labels, self._classes[first + place.astype(np.int64)])


def _by_prior(words: Callable[[int], int], k: Integers) -> NDArray[np.uint64]:
    """`words` of each prior's k, at most 2^64 - 1, of shape (priors,)."""
    distinct, positions = np.unique(k, return_inverse=True)
    numbers = [min(words(size), WORDS - 1) for size in distinct.tolist()]
    return np.array(numbers, dtype=np.uint64)[positions]
