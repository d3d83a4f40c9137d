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
from tacit.privacy.decimals import rounded_up
from tacit.privacy.events import Event, PureDP

Floats = NDArray[np.float64]

LOSSES = ("squared", "absolute")
MOST_EPSILON = 30.0

# The largest value, and how many there may be: tables of all pairs of values must fit in memory.
MOST_VALUE = 1e100
MOST_VALUES = 4000

# Outputs that no value has with more than this probability are left out of a solver's table.
_TINY = 1e-9

# The relative margin by which the linear program is solved for less than epsilon, so that its
# rounding errors stay within epsilon.
_MARGIN = 1e-7


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
        self.epsilon = epsilon
        if epsilon != math.inf:
            self.epsilon = real("epsilon", epsilon, LEAST, MOST_EPSILON)
        if len(self.values) > MOST_VALUES:
            raise InputError(
                f"{len(self.values)} values are more than {MOST_VALUES}; pass a coarser list"
            )
        if loss not in LOSSES:
            raise InputError(f"loss={loss!r} must be one of {', '.join(LOSSES)}; leave it out")

        if self.epsilon == math.inf:
            self.outputs = self.values
            self.bins = np.arange(len(self.values))
            self.expected_loss = 0.0
        else:
            growth = math.exp(self.epsilon)
            best = _best_bins(self.values, self.prior, growth, loss)
            self.outputs, self.bins, self.expected_loss = best

        # Randomized response over all bins; the order of the classes plays no part.
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

        # The words of the first answer, the bin itself, and of the last.
        words, _ = words_of(self.epsilon, size, size)
        own_bin = words[0]
        other_bin = words[-1]
        table = np.full((size, size), other_bin / WORDS)
        table += np.eye(size) * (own_bin - other_bin) / WORDS
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
        if outputs is None:
            self.outputs = self._default_outputs()
        else:
            self.outputs, _ = checked_values(outputs, None)

        stricter_epsilon = self.epsilon * (1 - _MARGIN)
        table = _least_variance(self.values, self.prior, self.outputs, stricter_epsilon)
        self._table = ResponseTable(_repaired(table, math.exp(self.epsilon)))
        self.realised_epsilon = self._table.epsilon
        if self.realised_epsilon > self.epsilon:
            raise InputError(
                f"epsilon={rounded_up(self.epsilon)} is not met by the solver's table; pass fewer"
                " values or outputs"
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
        """Steps of half the smallest gap, beyond the values on both sides."""
        if len(self.values) == 1:
            return self.values
        low = self.values[0]
        high = self.values[-1]
        step = float(np.diff(self.values).min()) / 2

        # Randomized response on two values is unbiased with outputs that are this many times as far
        # apart. Outputs go as far beyond the values on each side.
        growth = (math.exp(self.epsilon) + 1) / math.expm1(self.epsilon)
        reach = (high - low) * max(growth, 1.0) / step
        if not reach * len(self.values) < 1_000_000:
            raise InputError(
                f"{len(self.values)} values ask for too many outputs; pass outputs=... of your own"
            )

        beyond = math.ceil(reach)
        between = round((high - low) / step)
        return np.asarray(low + step * np.arange(-beyond, beyond + between + 1))


def checked_values(values: Any, prior: Any) -> tuple[Floats, Floats]:
    """Return rising values, and their prior, by default uniform."""
    array = numbers_of(values, "values", "pass the values that a label may have")
    is_list = array.ndim == 1 and len(array) > 0
    # NaN is in no range
    if not is_list or not np.all(np.abs(array) <= MOST_VALUE) or np.any(np.diff(array) <= 0):
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
    """Find the intervals of values, or bins, of the least expected loss, by dynamic programming.

    `growth` is e^epsilon. Returns the output of each bin, the bin of each value, and the expected
    loss.
    """
    size = len(values)
    cost, output = _intervals(values, prior, growth - 1, loss)

    # For each number of bins, 1 first, and each value: the least cost of as many bins that end with
    # it, and where the last of them starts.
    least_costs = [cost[0]]
    starts = [np.zeros(size, dtype=np.int64)]
    for _ in range(1, size):
        # The cost of bins that end right before each value; nothing ends before the first.
        cost_before = np.concatenate([[np.inf], least_costs[-1][:-1]])
        costs = cost_before[:, None] + cost
        starts.append(np.argmin(costs, axis=0))
        least_costs.append(np.min(costs, axis=0))

    # With d bins, probabilities are multiples of 1 / (e^epsilon + d - 1).
    totals = [float(costs[-1]) / (growth + number) for number, costs in enumerate(least_costs)]
    n_others = int(np.argmin(totals))

    # Backwards from the last bin.
    bins = np.zeros(size, dtype=np.int64)
    outputs = []
    end = size - 1
    for number in range(n_others, -1, -1):
        start = int(starts[number][end])
        bins[start : end + 1] = number
        outputs.append(output[start, end])
        end = start - 1
    return np.array(outputs[::-1]), bins, totals[n_others]


def _intervals(values: Floats, prior: Floats, extra: float, loss: str) -> tuple[Floats, Floats]:
    """Return the cost of each interval of values as a bin, and the output that attains it.

    Both have the shape (n, n), first value by last; costs are infinite below the diagonal. All
    values answer with a bin's output, those of the bin e^epsilon times as often: the cost is the
    loss of the output over all values, weighted by the prior, and `extra`, e^epsilon - 1, times its
    loss over the bin.
    """
    size = len(values)
    cost = np.full((size, size), np.inf)
    output = np.zeros((size, size))

    if loss == "squared":
        # About the mean, since differences of large squares would lose digits.
        shifted = values - values.mean()
        # Cumulative moments of order 0, 1 and 2, which start with 0.
        moments = [np.concatenate([[0.0], np.cumsum(prior * shifted**power)]) for power in range(3)]
        for i in range(size):
            weight, first, second = (
                total[-1] + extra * (total[i + 1 :] - total[i]) for total in moments
            )
            cost[i, i:] = np.maximum(second - first**2 / weight, 0.0)
            output[i, i:] = first / weight + values.mean()
        return cost, output

    # Losses of an output, by row, at a value: some value is a best output, a weighted median.
    losses = np.abs(values[:, None] - values[None])
    cumulative = np.concatenate([np.zeros((size, 1)), np.cumsum(prior * losses, axis=1)], axis=1)
    for i in range(size):
        over_bins = cumulative[:, i + 1 :] - cumulative[:, i : i + 1]
        totals = cumulative[:, -1:] + extra * over_bins
        cost[i, i:] = totals.min(axis=0)
        output[i, i:] = values[np.argmin(totals, axis=0)]
    return cost, output


def _least_variance(values: Floats, prior: Floats, outputs: Floats, epsilon: float) -> Floats:
    """Solve for the unbiased table of the least variance: probabilities of outputs, (n, m).

    The variables of the linear program are the entries of the table, row by row, and the least
    entry of each column. Entries lie between the least of their column and e^epsilon times it; each
    row adds up to 1 and has its value as mean.
    """
    from scipy import sparse
    from scipy.optimize import linprog

    n = len(values)
    m = len(outputs)
    scale = max(float(np.abs(outputs).max()), 1e-300)
    squares = ((outputs[None] - values[:, None]) / scale) ** 2

    # Inequalities, of left sides at most 0.
    every = sparse.identity(n * m)
    least = sparse.vstack([sparse.identity(m)] * n)
    at_most = sparse.hstack([every, -math.exp(epsilon) * least])
    at_least = sparse.hstack([-every, least])
    ratios = sparse.vstack([at_most, at_least])

    # Sums of the rows, then their means.
    sums = sparse.kron(sparse.identity(n), np.ones(m)[None])
    means = sparse.kron(sparse.identity(n), (outputs / scale)[None])
    no_least = sparse.csr_matrix((2 * n, m))
    equalities = sparse.hstack([sparse.vstack([sums, means]), no_least])

    solution = linprog(
        np.concatenate([(prior[:, None] * squares).ravel(), np.zeros(m)]),
        ratios.tocsr(),
        np.zeros(2 * n * m),
        equalities.tocsr(),
        np.concatenate([np.ones(n), values / scale]),
        bounds=(0, None),
        method="highs",
    )
    if solution.x is None:
        fault = (
            f"no table over outputs from {outputs[0]:g} to {outputs[-1]:g} is unbiased within"
            f" epsilon={rounded_up(epsilon)}"
        )
        raise InputError(f"{fault}; pass outputs that reach further")
    return np.asarray(solution.x[: n * m].reshape(n, m))


def _repaired(table: Floats, growth: float) -> Floats:
    """Remove tiny entries from a solver's table.

    Each column is then 0, or its entries are within a ratio of `growth`; each row adds up to 1.
    """
    without_tiny_columns = table * (table.max(axis=0) >= _TINY)
    floor = without_tiny_columns.max(axis=0) / growth
    raised = np.maximum(without_tiny_columns, floor)
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))
