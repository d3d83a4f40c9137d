"""Randomized response on a label, over all classes or over the likeliest of a prior.

Unit: change one label.
A response is given by an order of the classes and a number k. A label among the first k classes of
the order is kept with probability E/(E + k - 1), E = e^epsilon, and becomes each other of the k
classes with probability 1/(E + k - 1). Any other label becomes one of the k classes, uniformly.
Theorem: epsilon-DP: for any output the probabilities of two labels differ by a factor E at most
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
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tacit.compute.progress import progress
from tacit.compute.threads import in_threads
from tacit.errors import InputError
from tacit.mechanisms.noise import Integers, NoiseSource

WORDS = 2**64
# words from here on may be among the last k, as long as k is below 2^32
LAST = np.uint64(WORDS - 2**32)
_BLOCK = 1 << 16


@lru_cache(maxsize=4096)
def inside(epsilon: float, k: int) -> int:
    """m of a label among the k: the smallest number of words for each other class that keeps
    epsilon.
    """
    rest = (
        Fraction(math.expm1(epsilon)) * (1 - Fraction(1, 2**50))
        if epsilon < 700
        else Fraction(2) ** 1000
    )
    return max(math.ceil(WORDS / (rest + k)), 1)


def outside(k: int) -> int:
    """m of any other label; each remaining word gives another class."""
    return WORDS // k


def words_of(epsilon: float, k: int, n_classes: int) -> tuple[list[int], list[int]]:
    """How many of the 2^64 words give each place of the order, for a label at place 0 and for a
    label outside.

    For a label at place i below k swap entries 0 and i. If no label is outside, the second list is
    empty.
    """
    if k == 1:
        return [WORDS], [WORDS] * (n_classes > 1)
    m, (c, more) = inside(epsilon, k), divmod(WORDS, k)
    return [WORDS - (k - 1) * m] + [m] * (k - 1), [c + 1] * more + [c] * (
        k - more
    ) if k < n_classes else []


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
            fault = f"epsilon={epsilon:g} is too small for {largest} of {self.n_classes} classes"
            raise InputError(f"{fault}; use fewer classes, by merging some before the fit")
        self._plain = n_priors == 1 and k[0] == self.n_classes > 1
        if self._plain:
            self._share = np.uint64(inside(epsilon, self.n_classes))
            return
        places = np.empty_like(orders)
        np.put_along_axis(places, orders, np.arange(self.n_classes)[None], axis=1)
        distinct, kind = np.unique(k, return_inverse=True)
        among = np.array(
            [min(inside(epsilon, int(size)), WORDS - 1) for size in distinct], dtype=np.uint64
        )[kind]
        beyond = np.array(
            [min(outside(int(size)), WORDS - 1) for size in distinct], dtype=np.uint64
        )[kind]
        shares = np.where(places < k[:, None], among[:, None], beyond[:, None])
        # a share of 2^64 - 1 leaves one word for place 1, which holds the same class
        constant = k == 1
        shares[constant] = WORDS - 1
        self._shares = shares.ravel()
        self._limits = np.where(constant, 2, k).astype(np.uint64)
        outputs = orders.astype(np.int64)
        if self.n_classes > 1:
            outputs[constant, 1] = outputs[constant, 0]
        self._outputs = outputs.ravel()

    def sample(self, labels: Integers, which: Integers | None, noise: NoiseSource) -> Integers:
        """The response to each label, of shape (n,); `which` is the prior of each label, None for a
        single prior.
        """
        if self.n_classes == 1:
            return np.zeros_like(labels)
        result = np.empty(len(labels), dtype=np.int64)

        def respond(block: tuple[slice, NDArray[np.uint64]]) -> int:
            part, words = block
            prior = np.zeros(1, dtype=np.int64) if which is None else which[part]
            result[part] = self._responses(labels[part], prior, words)
            return len(words)

        parts = (slice(start, start + _BLOCK) for start in range(0, len(labels), _BLOCK))
        blocks = ((part, noise.words(len(labels[part]))) for part in parts)
        for _ in progress(in_threads(respond, blocks), "randomising labels", len(labels), int):
            pass
        return result

    def _responses(self, labels: Integers, prior: Integers, words: NDArray[np.uint64]) -> Integers:
        if self._plain:
            place = words // self._share
            return np.where(place >= np.uint64(self.n_classes), labels, place.astype(np.int64))
        first = prior * self.n_classes
        place = words // self._shares[first + labels]
        kept = place >= self._limits[prior]
        # the last words of a label outside the first k
        for i in np.flatnonzero(words >= LAST).tolist():
            row = int(prior[i if len(prior) > 1 else 0])
            k = int(self._limits[row])
            if kept[i] and self._shares[row * self.n_classes + int(labels[i])] == outside(k):
                place[i], kept[i] = int(words[i]) - k * outside(k), False  # one class each
        place[kept] = 0
        return np.where(kept, labels, self._outputs[first + place.astype(np.int64)])
