"""Randomizers of numbers, for regression: the label is one of finitely many declared values.

`RROnBins` has the smallest expected loss under a prior; `UnbiasedResponse` is right on average,
whatever the label, so that means of many labels are right too, but it has more noise. Unit: change
one label.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.learners.common.parameters import numbers_of, real
from tacit.learners.label_dp.priors import checked_prior
from tacit.learners.label_dp.randomizers import LEAST, Response
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.mechanisms.randomized_response import WORDS, words_of
from tacit.mechanisms.response_table import ResponseTable
from tacit.privacy.events import Event, PureDP

Floats = NDArray[np.float64]

LOSSES = ("squared", "absolute")
MOST_EPSILON = 30.0
MOST_VALUE, MOST_VALUES = 1e100, 4000
_TINY = 1e-9  # columns of a solver's matrix that are less are none
_MARGIN = 1e-7  # relative, by which the linear program is solved more strictly


class ValueRandomizer(ABC):
    """Base of the randomizers of numbers: labels are places in `values`."""

    n_priors = 1
    values: Floats
    outputs: Floats

    @property
    @abstractmethod
    def event(self) -> Event:
        """Privacy cost of one output for each label."""

    @abstractmethod
    def sample(self, places: Integers, noise: NoiseSource) -> Floats:
        """Draw one output for each label, from the places of the labels in `values`; both of shape
        (n,).
        """

    @abstractmethod
    def matrix(self) -> Floats:
        """Return the probability of each output for each value, of shape (n, m)."""


class RROnBins(ValueRandomizer):
    """Randomized response on intervals of values, the best for a prior and a loss [Ghazi et al.
    2022, RR-on-Bins].

    Parameters
    ----------
    epsilon : float
        Above 0; infinity returns the value.
    values : array of shape (n,)
        The values that a label may have, rising.
    prior : array of shape (n,), optional
        Public, or paid for elsewhere; uniform by default.
    loss : {"squared", "absolute"}

    Attributes
    ----------
    outputs : ndarray of shape (d,)
    bins : ndarray of shape (n,)
        Place of the output that each value keeps.
    expected_loss : float
        Under the prior.

    Notes
    -----
    Guarantee: epsilon-DP under change of one label. No epsilon-DP randomizer has a smaller expected
    loss. Takes time O(n^3): 401 values in about a second.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> round(tacit.label_dp.RROnBins(1.0, np.arange(11)).expected_loss, 6)
    8.408786
    """

    def __init__(
        self, epsilon: float, values: Any, prior: Any = None, loss: str = "squared"
    ) -> None:
        self.values, self.prior = checked_values(values, prior)
        self.epsilon = (
            epsilon if epsilon == math.inf else real("epsilon", epsilon, LEAST, MOST_EPSILON)
        )
        if len(self.values) > MOST_VALUES:
            raise InputError(
                f"{len(self.values)} values are more than {MOST_VALUES}; pass a coarser list"
            )
        if loss not in LOSSES:
            raise InputError(f"loss={loss!r} must be one of {', '.join(LOSSES)}; leave it out")
        if self.epsilon == math.inf:
            self.outputs, self.bins, self.expected_loss = (
                self.values,
                np.arange(len(self.values)),
                0.0,
            )
        else:
            best = _best_bins(self.values, self.prior, math.exp(self.epsilon), loss)
            self.outputs, self.bins, self.expected_loss = best
        size = len(self.outputs)
        self._response = Response(self.epsilon, size, np.arange(size)[None], np.array([size]))

    @property
    def event(self) -> Event:
        """Privacy cost of one output for each label."""
        return self._response.event

    def sample(self, places: Integers, noise: NoiseSource) -> Floats:
        """One output for each label, from the places of the labels in `values`; both of shape
        (n,).
        """
        return np.asarray(self.outputs[self._response.sample(self.bins[places], noise)])

    def matrix(self) -> Floats:
        """Probability of each output for each value, of shape (n, d)."""
        size = len(self.outputs)
        if self.epsilon == math.inf:
            return np.eye(size)
        words, _ = words_of(self.epsilon, size, size)
        table = (
            np.full((size, size), words[-1] / WORDS) + np.eye(size) * (words[0] - words[-1]) / WORDS
        )
        return np.asarray(table[self.bins])


class UnbiasedResponse(ValueRandomizer):
    """The unbiased randomizer of least variance under a prior, by linear programming [Badanidiyuru
    et al. 2023].

    Parameters
    ----------
    epsilon, values, prior
        As in `RROnBins`; epsilon is finite.
    outputs : array of shape (m,), optional
        By default steps of half the smallest gap, beyond the values on both sides as far as epsilon
        needs.

    Attributes
    ----------
    realised_epsilon : float
        Of the table that is sampled; `epsilon` or less.
    expected_loss : float
        Mean squared error under the prior.

    Notes
    -----
    Guarantee: epsilon-DP under change of one label. The mean of the output is the label.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> outputs = np.arange(-10, 21)
    >>> response = tacit.label_dp.UnbiasedResponse(2.0, np.arange(11), outputs=outputs)
    >>> round(response.expected_loss, 3)
    19.915
    """

    def __init__(self, epsilon: float, values: Any, prior: Any = None, outputs: Any = None) -> None:
        self.values, self.prior = checked_values(values, prior)
        self.epsilon = real("epsilon", epsilon, 0.01, MOST_EPSILON)
        self.outputs = (
            self._default_outputs() if outputs is None else checked_values(outputs, None)[0]
        )
        table = _least_variance(self.values, self.prior, self.outputs, self.epsilon * (1 - _MARGIN))
        self._table = ResponseTable(_repaired(table, math.exp(self.epsilon)))
        self.realised_epsilon = self._table.epsilon
        if self.realised_epsilon > self.epsilon:
            raise InputError(
                f"epsilon={self.epsilon:g} is not met by the solver's table; pass fewer values or"
                " outputs"
            )
        squares = (self.outputs[None] - self.values[:, None]) ** 2
        self.expected_loss = float(self.prior @ (self.matrix() * squares).sum(axis=1))

    @property
    def event(self) -> Event:
        """Privacy cost of one output for each label."""
        return PureDP(self.realised_epsilon)

    def sample(self, places: Integers, noise: NoiseSource) -> Floats:
        """One output for each label, from the places of the labels in `values`; both of shape
        (n,).
        """
        return np.asarray(self.outputs[self._table.sample(places, noise)])

    def matrix(self) -> Floats:
        """Probability of each output for each value, of shape (n, m)."""
        return self._table.matrix()

    def _default_outputs(self) -> Floats:
        low, high = self.values[0], self.values[-1]
        if len(self.values) == 1:
            return self.values
        step = float(np.diff(self.values).min()) / 2
        growth = (math.exp(self.epsilon) + 1) / math.expm1(self.epsilon)
        reach = (high - low) * max(growth, 1.0) / step
        if not reach * len(self.values) < 1_000_000:
            raise InputError(
                f"{len(self.values)} values ask for too many outputs; pass outputs=... of your own"
            )
        beyond = math.ceil(reach)
        return np.asarray(low + step * np.arange(-beyond, beyond + round((high - low) / step) + 1))


def checked_values(values: Any, prior: Any) -> tuple[Floats, Floats]:
    """Rising values, and their prior, by default uniform."""
    array = numbers_of(values, "values", "pass the values that a label may have")
    if (
        array.ndim != 1
        or not len(array)
        or not np.all(np.abs(array) <= MOST_VALUE)
        or np.any(np.diff(array) <= 0)
    ):
        raise InputError(
            f"values of shape {array.shape} must be finite and rising, within 1e100; sort them,"
            " each once"
        )
    if prior is None:
        return array, np.full(len(array), 1 / len(array))
    rows = checked_prior(prior)
    if rows.shape != (1, len(array)):
        raise InputError(
            f"prior has shape {np.shape(prior)} for {len(array)} values; pass one probability for"
            " each"
        )
    return array, rows[0]


def _best_bins(
    values: Floats, prior: Floats, growth: float, loss: str
) -> tuple[Floats, NDArray[np.int64], float]:
    """Outputs, the place of each value's, and the expected loss; by dynamic programming over
    intervals.
    """
    size = len(values)
    cost, output = _intervals(values, prior, growth - 1, loss)
    # by number of bins less one: intervals that end at j
    best, came = [cost[0]], [np.zeros(size, dtype=np.int64)]
    for _ in range(1, size):
        before = np.concatenate([[np.inf], best[-1][:-1]])  # bins that end right before i
        ways = before[:, None] + cost
        came.append(np.argmin(ways, axis=0))
        best.append(np.min(ways, axis=0))
    totals = [float(costs[-1]) / (growth + number) for number, costs in enumerate(best)]
    count = int(np.argmin(totals))
    bins, outputs, end = np.zeros(size, dtype=np.int64), [], size - 1
    for number in range(count, -1, -1):
        start = int(came[number][end])
        bins[start : end + 1] = number
        outputs.append(output[start, end])
        end = start - 1
    return np.array(outputs[::-1]), bins, totals[count]


def _intervals(values: Floats, prior: Floats, extra: float, loss: str) -> tuple[Floats, Floats]:
    """L(i..j) and the output that attains it, of shape (n, n); infinite below the diagonal."""
    size = len(values)
    cost, output = np.full((size, size), np.inf), np.zeros((size, size))
    shifted = values - values.mean()
    if loss == "squared":
        sums = [np.concatenate([[0.0], np.cumsum(prior * shifted**power)]) for power in range(3)]
        for i in range(size):
            weight, first, second = (
                total[-1] + extra * (total[i + 1 :] - total[i]) for total in sums
            )
            cost[i, i:] = np.maximum(second - first**2 / weight, 0.0)
            output[i, i:] = first / weight + values.mean()
        return cost, output
    # of an output, at a value; the best output is a value
    losses = np.abs(values[:, None] - values[None])
    sums_of = np.concatenate([np.zeros((size, 1)), np.cumsum(prior * losses, axis=1)], axis=1)
    for i in range(size):
        totals = sums_of[:, -1:] + extra * (sums_of[:, i + 1 :] - sums_of[:, i : i + 1])
        cost[i, i:], output[i, i:] = totals.min(axis=0), values[np.argmin(totals, axis=0)]
    return cost, output


def _least_variance(values: Floats, prior: Floats, outputs: Floats, epsilon: float) -> Floats:
    """The solver's table, of shape (n, m)."""
    from scipy import sparse
    from scipy.optimize import linprog

    n, m = len(values), len(outputs)
    scale = max(float(np.abs(outputs).max()), 1e-300)
    squares = ((outputs[None] - values[:, None]) / scale) ** 2
    # least entry of each column
    every, least = sparse.identity(n * m), sparse.vstack([sparse.identity(m)] * n)
    ratios = sparse.vstack(
        [sparse.hstack([every, -math.exp(epsilon) * least]), sparse.hstack([-every, least])]
    )
    means = [sparse.kron(sparse.identity(n), row[None]) for row in (np.ones(m), outputs / scale)]
    equal = sparse.hstack([sparse.vstack(means), sparse.csr_matrix((2 * n, m))])
    solution = linprog(
        np.concatenate([(prior[:, None] * squares).ravel(), np.zeros(m)]),
        ratios.tocsr(),
        np.zeros(2 * n * m),
        equal.tocsr(),
        np.concatenate([np.ones(n), values / scale]),
        bounds=(0, None),
        method="highs",
    )
    if solution.x is None:
        fault = (
            f"no table over outputs from {outputs[0]:g} to {outputs[-1]:g} is unbiased within"
            f" epsilon={epsilon:.4g}"
        )
        raise InputError(f"{fault}; pass outputs that reach further")
    return np.asarray(solution.x[: n * m].reshape(n, m))


def _repaired(table: Floats, growth: float) -> Floats:
    """A solver's table without tiny entries: each column is none or within the ratio, each row adds
    up to 1.
    """
    kept = table * (table.max(axis=0) >= _TINY)
    floor = kept.max(axis=0) / growth
    kept = np.maximum(kept, floor)
    return np.asarray(kept / kept.sum(axis=1, keepdims=True))
