"""Randomizers of labels: from class indices to outputs that may be published.

A randomizer states its privacy cost (`event`), draws outputs (`sample`), and states how likely they
are under each true class (`log_likelihood`), which is all that learning from them needs. Those that
return a class have an exact `matrix`. A new randomizer is a class with these methods and its line
in RANDOMIZERS (`randomize.py`).

Unit of all: change one label.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.learners.common.parameters import real, whole
from tacit.learners.label_dp.priors import checked_prior
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.mechanisms.randomized_response import WORDS, Responses, words_of
from tacit.privacy.events import Event, RandomizedResponse

Floats = NDArray[np.float64]

LEAST, MOST = 1e-9, 700.0
NEVER = -1e6  # log probability of what cannot be


class Randomizer(ABC):
    """Base of the randomizers.

    Attributes
    ----------
    n_classes : int
    n_priors : int
        Number of priors; where there are several, `which` is the prior of each label.
    outputs : None
        Randomizers of numbers (`tacit.learners.label_dp.regression`) have their outputs here.
    """

    n_classes: int
    n_priors: int = 1
    outputs: None = None

    @property
    @abstractmethod
    def event(self) -> Event:
        """Privacy cost of one output for each label."""

    @abstractmethod
    def sample(
        self, labels: Integers, noise: NoiseSource, which: Integers | None = None
    ) -> NDArray[Any]:
        """One output for each label: class indices or blocks of shape (n,), or an array of shape
        (n, n_classes).
        """

    @abstractmethod
    def log_likelihood(self, outputs: NDArray[Any], which: Integers | None = None) -> Floats:
        """Log probability of each output under each true class, up to a constant by row; (n,
        n_classes).
        """

    def unbiased(self, outputs: NDArray[Any]) -> Floats:
        """Unbiased estimates of the one-hot labels, of shape (n, n_classes).

        Raises
        ------
        InputError
            If outputs do not tell all classes apart, so that there is no such estimate.
        """
        raise InputError(f"{self} has no unbiased estimate; use correction='forward'")

    def counts(self, outputs: NDArray[Any]) -> Floats:
        """Unbiased estimate of how many labels each class has, of shape (n_classes,)."""
        return np.asarray(self.unbiased(outputs).sum(axis=0))

    def check_which(self, which: Integers | None, n: int) -> None:
        """Refuse a missing or wrong row of the prior, and rows for another number than n."""
        if which is None and self.n_priors > 1:
            raise InputError(
                f"{self} has {self.n_priors} priors; pass which= one of them each label has"
            )
        if which is not None and len(which) and not 0 <= which.min() <= which.max() < self.n_priors:
            raise InputError(
                f"which={int(which.max())} must be from 0 to {self.n_priors - 1}; correct it"
            )
        if which is not None and len(which) != n:
            raise InputError(f"which has {len(which)} entries for {n} labels; pass one for each")

    def __str__(self) -> str:
        return type(self).__name__


class Response(Randomizer):
    """Randomized response on the first k classes of each prior's order.

    Its event is that of the smallest k above 1 of any prior, which costs the most; see
    `randomized_response`.
    """

    def __init__(self, epsilon: float, n_classes: int, orders: Integers, k: Integers) -> None:
        self.n_classes = n_classes
        self.n_priors = len(orders)
        self.orders = orders
        if epsilon == math.inf:
            # Labels are kept, so no class may be left out.
            self.epsilon = epsilon
            self.k = np.full_like(k, n_classes)
        else:
            self.epsilon = real("epsilon", epsilon, LEAST, MOST)
            self.k = k
        self._responses = Responses(self.epsilon, orders, self.k)

    @property
    def event(self) -> Event:
        # With k = 1 the answer says nothing.
        smallest = int(self.k[self.k > 1].min(initial=self.n_classes))
        return RandomizedResponse(self.epsilon, max(smallest, 2))

    def sample(
        self, labels: Integers, noise: NoiseSource, which: Integers | None = None
    ) -> Integers:
        self.check_which(which, len(labels))
        if self.epsilon == math.inf:
            return labels.copy()
        return self._responses.sample(labels, which, noise)

    def log_likelihood(self, outputs: Integers, which: Integers | None = None) -> Floats:
        self.check_which(which, len(outputs))
        if self.epsilon == math.inf:
            return np.where(np.eye(self.n_classes, dtype=bool)[outputs], 0.0, NEVER)

        # The place of each class in the order of each prior, (priors, C).
        places = np.empty_like(self.orders)
        np.put_along_axis(places, self.orders, np.arange(self.n_classes)[None], axis=1)

        # For each k that occurs, log probabilities of an output: of its own class, of another of
        # the first k, and of a class beyond these.
        sizes, size_of_prior = np.unique(self.k, return_inverse=True)
        words = []
        for k in sizes.tolist():
            within, beyond = words_of(self.epsilon, k, self.n_classes)
            words.append([within[0], within[-1], (beyond or within)[0]])
        log_probabilities = np.log(np.array(words, dtype=float) / WORDS)

        prior = which
        if prior is None:
            prior = np.zeros(len(outputs), dtype=np.int64)
        same, other, outside = log_probabilities[size_of_prior[prior]].T[:, :, None]
        result = np.where(places[prior] < self.k[prior, None], other, outside)
        np.put_along_axis(result, outputs[:, None], same, axis=1)
        return np.asarray(result)

    def unbiased(self, outputs: Integers) -> Floats:
        if len(self.k) > 1 or self.k[0] < self.n_classes:
            fault = (
                f"{self} answers with the first k={int(self.k.min())} of {self.n_classes} classes"
            )
            remedy = "use correction='forward', or the randomizer 'rr'"
            raise InputError(f"{fault}, so its matrix has no inverse; {remedy}")
        onehot = np.eye(self.n_classes)[outputs]
        if self.epsilon == math.inf:
            return onehot
        words, _ = words_of(self.epsilon, self.n_classes, self.n_classes)
        # probabilities of the true label, and of each other one
        same = words[0] / WORDS
        other = words[-1] / WORDS
        return np.asarray((onehot - other) / (same - other))

    @property
    def realised_epsilon(self) -> float:
        """Largest log ratio of the probabilities of an output under two labels; `epsilon` or a
        little below.
        """
        if self.epsilon == math.inf:
            return math.inf
        worst = 0.0
        for k in np.unique(self.k).tolist():
            within, beyond = words_of(self.epsilon, k, self.n_classes)
            if k > 1:
                least = min(within[1:] + beyond)
                most = max([within[0], *beyond])
                worst = max(worst, math.log(most / least))
        return worst

    def matrix(self) -> Floats:
        """Probabilities as sampled, of shape (true classes, outputs), or (priors, true classes,
        outputs).
        """
        size = self.n_classes
        result = np.zeros((len(self.k), size, size))
        for number, (order, k) in enumerate(zip(self.orders, self.k.tolist(), strict=True)):
            if self.epsilon == math.inf:
                result[number] = np.eye(size)
                continue

            within, beyond = words_of(self.epsilon, k, size)
            outputs = order[:k]
            result[number][:, outputs] = (np.array(beyond or within, dtype=float) / WORDS)[None]
            for place, label in enumerate(outputs):
                # The label itself has the probability that stands first.
                row = np.array(within, dtype=float) / WORDS
                row[[0, place]] = row[[place, 0]]
                result[number][label, outputs] = row
        return result[0] if len(self.k) == 1 else result


class RR(Response):
    """Randomized response over all classes [Warner 1965].

    Parameters
    ----------
    epsilon : float
        Above 0; infinity keeps the label.
    n_classes : int

    Notes
    -----
    Guarantee: epsilon-DP under change of one label. A label is kept with probability E/(E + K - 1),
    E = e^epsilon.

    Examples
    --------
    >>> import tacit
    >>> tacit.label_dp.RR(1.0, 3).matrix().round(4)
    array([[0.5761, 0.2119, 0.2119],
           [0.2119, 0.5761, 0.2119],
           [0.2119, 0.2119, 0.5761]])
    """

    def __init__(self, epsilon: float, n_classes: int) -> None:
        size = whole("n_classes", n_classes, 2, 2**31)
        super().__init__(epsilon, size, np.arange(size)[None], np.array([size]))


class RRTopK(Response):
    """Randomized response over the k likeliest classes of a prior [Ghazi et al. 2021, Algorithm 2].

    Parameters
    ----------
    epsilon : float
    prior : array of shape (n_classes,) or (priors, n_classes)
        Public, or paid for. Rows are not negative and add up to 1. Ties are broken by class index.
    k : int

    Notes
    -----
    Guarantee: epsilon-DP under change of one label. A label that is not among the k likeliest
    classes becomes one of them, each with the same probability.
    """

    def __init__(self, epsilon: float, prior: Any, k: int) -> None:
        rows = checked_prior(prior)
        size = rows.shape[1]
        super().__init__(epsilon, size, falling(rows), np.full(len(rows), whole("k", k, 1, size)))


class RRWithPrior(Response):
    """Randomized response over the k likeliest classes, with the k that keeps a label most often.

    Parameters
    ----------
    epsilon : float
    prior : array of shape (n_classes,) or (priors, n_classes)
        As in `RRTopK`.

    Attributes
    ----------
    k : int64 array of shape (priors,)
        The k that maximises S_k/(1 + (k - 1) e^-epsilon), S_k the sum of the k largest entries; the
        smallest of equals.

    Notes
    -----
    Guarantee: epsilon-DP under change of one label. No epsilon-DP randomizer of a label with this
    prior is right more often [Ghazi et al. 2021, Theorem 3].

    Examples
    --------
    >>> import tacit
    >>> tacit.label_dp.RRWithPrior(epsilon=1.0, prior=[0.5, 0.4, 0.1]).matrix().round(4)
    array([[0.7311, 0.2689, 0.    ],
           [0.2689, 0.7311, 0.    ],
           [0.5   , 0.5   , 0.    ]])
    """

    def __init__(self, epsilon: float, prior: Any) -> None:
        rows = checked_prior(prior)
        size = rows.shape[1]
        if epsilon != math.inf:
            epsilon = real("epsilon", epsilon, LEAST, MOST)

        # For each k, the probability to keep a label: S_k / (1 + (k - 1) e^-epsilon).
        orders = falling(rows)
        sums = np.cumsum(np.take_along_axis(rows, orders, axis=1), axis=1)
        keeps = sums / (1 + np.arange(size) * math.exp(-epsilon))
        super().__init__(epsilon, size, orders, np.argmax(keeps, axis=1) + 1)


def falling(rows: Floats) -> Integers:
    """Classes of each prior, the likeliest first; equally likely classes by index, whatever the
    labels.
    """
    return np.asarray(np.argsort(-rows, axis=1, kind="stable"))
