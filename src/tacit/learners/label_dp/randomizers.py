"""Randomizers of labels: from class indices to something that may be published.

Each says what it costs (`event`), draws (`sample`), and says how likely its outputs are under each true class
(`log_likelihood`), which is all that learning from them needs. Those that return a class have an exact `matrix`.
A new randomizer is a class with these methods and its line in RANDOMIZERS (`randomize.py`).

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
        Among which each label has one; `which` says which, where there are several.
    """

    n_classes: int
    n_priors: int = 1

    @property
    @abstractmethod
    def event(self) -> Event:
        """What one answer for each label costs."""

    @abstractmethod
    def sample(self, labels: Integers, noise: NoiseSource, which: Integers | None = None) -> NDArray[Any]:
        """One output for each label: class indices of shape (n,), or an array of shape (n, n_classes).

        `which` is the prior of each label, where the randomizer has several.
        """

    @abstractmethod
    def log_likelihood(self, outputs: NDArray[Any], which: Integers | None = None) -> Floats:
        """Log probability of each output under each true class, up to a constant by row; (n, n_classes)."""

    def unbiased(self, outputs: NDArray[Any]) -> Floats:
        """An estimate of the one-hot label of each record whose mean is right, of shape (n, n_classes).

        Raises
        ------
        InputError
            If outputs do not tell all classes apart, so that there is none.
        """
        raise InputError(f"{self} has no unbiased estimate; use correction='forward'")

    def counts(self, outputs: NDArray[Any]) -> Floats:
        """Unbiased estimate of how many labels each class has, of shape (n_classes,)."""
        return np.asarray(self.unbiased(outputs).sum(axis=0))

    def __str__(self) -> str:
        return type(self).__name__


class _Response(Randomizer):
    """Randomized response on the first k classes of each prior's order.

    Its event is that of the smallest k above 1 of any prior, which costs the most; see `randomized_response`.
    """

    def __init__(self, epsilon: float, n_classes: int, orders: Integers, k: Integers) -> None:
        self.epsilon = epsilon if epsilon == math.inf else real("epsilon", epsilon, LEAST, MOST)
        self.n_classes, self.n_priors, self.orders = n_classes, len(orders), orders
        self.k = np.full_like(k, n_classes) if self.epsilon == math.inf else k
        self._responses = Responses(self.epsilon, orders, self.k)

    @property
    def event(self) -> Event:
        return RandomizedResponse(self.epsilon, max(int(self.k[self.k > 1].min(initial=self.n_classes)), 2))

    def sample(self, labels: Integers, noise: NoiseSource, which: Integers | None = None) -> Integers:
        self._check(which)
        if self.epsilon == math.inf:
            return labels.copy()
        return self._responses.sample(labels, which, noise)

    def log_likelihood(self, outputs: Integers, which: Integers | None = None) -> Floats:
        self._check(which)
        if self.epsilon == math.inf:
            return np.where(np.eye(self.n_classes, dtype=bool)[outputs], 0.0, NEVER)
        places = np.empty_like(self.orders)
        np.put_along_axis(places, self.orders, np.arange(self.n_classes)[None], axis=1)
        each, kind = np.unique(self.k, return_inverse=True)
        words = [words_of(self.epsilon, k, self.n_classes) for k in each.tolist()]
        of_kind = np.array([[own[0], own[-1], (other or own)[0]] for own, other in words], dtype=np.float64)
        of_kind = np.log(of_kind / WORDS)
        prior = np.zeros(len(outputs), dtype=np.int64) if which is None else which
        kept, moved, outside = (of_kind[kind[prior], i][:, None] for i in range(3))
        result = np.where(places[prior] < self.k[prior, None], moved, outside)
        np.put_along_axis(result, outputs[:, None], kept, axis=1)
        return np.asarray(result)

    def unbiased(self, outputs: Integers) -> Floats:
        if len(self.k) > 1 or self.k[0] < self.n_classes:
            raise InputError(
                f"{self} answers with the first k={int(self.k.min())} of {self.n_classes} classes, so its matrix has "
                "no inverse; use correction='forward', or the randomizer 'rr'"
            )
        onehot = np.eye(self.n_classes)[outputs]
        if self.epsilon == math.inf:
            return onehot
        kept, other = self._kept()
        return np.asarray((onehot - other) / (kept - other))

    def matrix(self) -> Floats:
        """Probability of each output for each true class, as sampled: (true, output), or one such for each prior."""
        result = self._matrices()
        return result[0] if len(self.k) == 1 else result

    @property
    def realised_epsilon(self) -> float:
        """Largest log ratio of the probabilities of an output under two labels; `epsilon` or a little below."""
        if self.epsilon == math.inf:
            return math.inf
        worst = 0.0
        for k in np.unique(self.k).tolist():
            own, other = words_of(self.epsilon, k, self.n_classes)
            if k > 1:
                least, most = min(own[1:] + other), max([own[0], *other])
                worst = max(worst, math.log(most / least))
        return worst

    def _matrices(self) -> Floats:
        """Of shape (priors, true, output)."""
        size = self.n_classes
        if self.epsilon == math.inf:
            return np.broadcast_to(np.eye(size), (len(self.k), size, size))
        result = np.zeros((len(self.k), size, size))
        for number, (order, k) in enumerate(zip(self.orders, self.k.tolist(), strict=True)):
            own, other = words_of(self.epsilon, k, size)
            result[number][:, order[:k]] = (np.array(other or own, dtype=float) / WORDS)[None]
            for place, label in enumerate(order[:k]):
                row = np.array(own, dtype=float) / WORDS
                row[[0, place]] = row[[place, 0]]
                result[number][label, order[:k]] = row
        return result

    def _kept(self) -> tuple[float, float]:
        own, _ = words_of(self.epsilon, self.n_classes, self.n_classes)
        return own[0] / WORDS, own[-1] / WORDS

    def _check(self, which: Integers | None) -> None:
        if which is None and len(self.k) > 1:
            raise InputError(f"{self} has {len(self.k)} priors; pass which= one of them each label has")
        if which is not None and len(which) and not 0 <= which.min() <= which.max() < len(self.k):
            raise InputError(f"which={int(which.max())} must be from 0 to {len(self.k) - 1}; correct it")


class RR(_Response):
    """Randomized response over all classes [Warner 1965].

    Parameters
    ----------
    epsilon : float
        Above 0; infinity keeps the label.
    n_classes : int

    Notes
    -----
    Guarantee: epsilon-DP under change of one label. A label is kept with probability E/(E + K - 1), E = e^epsilon.

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


class RRTopK(_Response):
    """Randomized response over the k likeliest classes of a prior [Ghazi et al. 2021, Algorithm 2].

    Parameters
    ----------
    epsilon : float
    prior : array of shape (n_classes,) or (priors, n_classes)
        Public, or paid for. Rows are not negative and add up to 1. Ties are broken by class index.
    k : int

    Notes
    -----
    Guarantee: epsilon-DP under change of one label. A label that is not among the k likeliest becomes any of them.
    """

    def __init__(self, epsilon: float, prior: Any, k: int) -> None:
        rows = checked_prior(prior)
        size = rows.shape[1]
        super().__init__(epsilon, size, falling(rows), np.full(len(rows), whole("k", k, 1, size)))


class RRWithPrior(_Response):
    """Randomized response over as many of the likeliest classes as keeps a label most often.

    Parameters
    ----------
    epsilon : float
    prior : array of shape (n_classes,) or (priors, n_classes)
        As in `RRTopK`.

    Attributes
    ----------
    k : int64 array of shape (priors,)
        The k that maximises S_k/(1 + (k - 1) e^-epsilon), S_k the sum of the k largest entries; the smallest of equals.

    Notes
    -----
    Guarantee: epsilon-DP under change of one label. No epsilon-DP randomizer of a label with this prior is right more
    often [Ghazi et al. 2021, Theorem 3].

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
        given = real("epsilon", epsilon, LEAST, MOST) if epsilon != math.inf else epsilon
        orders = falling(rows)
        sums = np.cumsum(np.take_along_axis(rows, orders, axis=1), axis=1)
        kept = sums / (1 + np.arange(size) * math.exp(-given))
        super().__init__(given, size, orders, np.argmax(kept, axis=1) + 1)


def falling(rows: Floats) -> Integers:
    """Classes of each prior, the likeliest first; equal ones by index, whatever the labels."""
    return np.asarray(np.argsort(-rows, axis=1, kind="stable"))


def checked_prior(prior: Any) -> Floats:
    """A prior, or one in each row, as an array of shape (priors, n_classes)."""
    try:
        given = np.asarray(prior, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("prior is not an array of numbers; pass one probability for each class") from error
    rows = given[None] if given.ndim == 1 else given
    if rows.ndim != 2 or 0 in rows.shape:
        raise InputError(f"prior has shape {given.shape}; pass (classes,), or (priors, classes)")
    bad = ~np.all(rows >= 0, axis=1)
    if bad.any():
        raise InputError(f"prior {int(np.argmax(bad))} has a negative or NaN entry; pass probabilities")
    off = np.abs(rows.sum(axis=1) - 1) > 1e-6
    if off.any():
        row = int(np.argmax(off))
        raise InputError(f"prior {row} adds up to {rows[row].sum():g}, not 1; divide it by its sum")
    return rows
