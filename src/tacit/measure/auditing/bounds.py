"""Lower bounds on what a mechanism reveals, from counts of an attacker's guesses.

Pairs. An attack on n runs on each of two neighbouring data sets has a true and a false positive
rate. Clopper-Pearson intervals bound both, each at half of the error. A mechanism that is
(epsilon, delta)-DP has TPR <= e^epsilon FPR + delta, and the same for the rates of negatives; one
that is mu-GDP has Phi^-1(TPR) - Phi^-1(FPR) <= mu.

One run. Of m canaries, each in the data or not by an independent fair coin, an attacker guesses c
from one release, and N guesses are right. Let 1 - f be the trade-off curve that the mechanism is
held against: P'(E) <= B(P(E)) with B(x) = 1 - f(x), concave, for any event E and neighbouring data
sets in either order. For a canary i and a number n take as E that i is guessed in one direction and
that at least n of the other guesses are right. Given the other coins E is an event of the release,
so that

    P(i right, at least n others right) <= B(P(i wrong, at least n others right)),

where concavity allows the averages over both directions and the other coins. The average over all m
canaries gives, with p_j = P(N = j),

    (1/m) sum_{j > n} j p_j  <=  B((1/m) sum_{j >= n} (c - j) p_j)   for all n.

Let r_n and h_n be the two sums over j >= n. If P(N >= v) were t, the easiest way to satisfy
all of them is to put mass t on v and as little as possible on each smaller j: h_n is the larger of
h_{n+1} and B^-1(r_{n+1}), and r_n = r_{n+1} + (h_n - h_{n+1}) n/(c - n). All mass is 1, that is
r_0 + h_0 <= c/m. Where this fails, v right guesses have a probability below t under the curve
[Mahloujifar, Melis and Chaudhuri 2024]. No independence of the scores of canaries is needed.
`epsilon_of_guesses_by_randomized_response` is the earlier bound, by comparison with independent
randomized responses [Steinke, Nasr and Jagielski 2023].

Several bounds from the same draws share the error: `share`.
"""

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol

from tacit.privacy.accounting import gaussian_epsilon

LEVEL = 0.95
"""Confidence of the lower bounds that are shown."""

ALARM_ERROR = 1e-6
"""Probability of a false alarm of all audits together."""

AUDITS = 100
"""Number of audits that the error of alarms is divided by: more than `make audit` runs."""

# Delta of alarms by one run, far below their error.
_DELTA_OF_ALARM = 1e-12

# Epsilon and mu of bisections; beyond them nothing is claimed.
_MOST = 50.0
_STEPS = 40


class Rates(NamedTuple):
    """Positive guesses among runs on the data with the canary, and among those without it."""

    true_positives: int
    with_canary: int
    false_positives: int
    without_canary: int

    def bounds(self, error: float) -> tuple[float, float]:
        """A lower bound on the true-positive rate and an upper one on the false-positive rate.

        Both hold together with probability 1 - error, if runs are independent.
        """
        lower = lower_share(self.true_positives, self.with_canary, error / 2)
        upper = upper_share(self.false_positives, self.without_canary, error / 2)
        return lower, upper


class BoundedRates(Protocol):
    """Rates of an attack of which bounds are known, such as `Rates`."""

    def bounds(self, error: float) -> tuple[float, float]:
        """A lower bound on the true-positive rate and an upper one on the false-positive rate.

        Both hold together with probability 1 - error.
        """


class Guesses(NamedTuple):
    """Right guesses of all guesses about so many canaries in one run."""

    right: int
    made: int
    canaries: int


def share(error: float, bounds: int) -> float:
    """The error of each of so many bounds, so that all hold together (Bonferroni)."""
    return error / bounds


def delta_of_alarm(delta: float, *, is_pure: bool) -> float:
    """The delta at which an alarm by one run holds the promise; `delta` is that of the audit.

    One run may reveal all with probability delta, so it is smaller than the error of an alarm; 0
    where the promise is pure.
    """
    if is_pure:
        return 0.0
    return min(_DELTA_OF_ALARM, delta)


def lower_share(successes: int, n: int, error: float) -> float:
    """Clopper-Pearson lower bound on a probability."""
    from scipy.special import betaincinv

    if successes == 0:
        return 0.0
    return float(betaincinv(successes, n - successes + 1, error))


def upper_share(successes: int, n: int, error: float) -> float:
    """Clopper-Pearson upper bound on a probability."""
    return 1 - lower_share(n - successes, n, error)


def epsilon_of_rates(rates: BoundedRates, delta: float, error: float) -> float:
    """Lower bound on epsilon at delta from independent runs on a pair of data sets."""
    true_rate, false_rate = rates.bounds(error)
    ratios = []
    if false_rate > 0:
        ratios.append((true_rate - delta) / false_rate)
    if true_rate < 1:
        ratios.append((1 - false_rate - delta) / (1 - true_rate))
    return math.log(max([1.0, *ratios]))


def mu_of_rates(rates: BoundedRates, error: float) -> float:
    """Lower bound on mu from independent runs: the release is mu-GDP for no smaller mu."""
    from scipy.special import ndtri

    true_rate, false_rate = rates.bounds(error)
    if true_rate <= false_rate:
        return 0.0
    return float(ndtri(true_rate) - ndtri(false_rate))


def epsilon_of_mu(mu: float, delta: float) -> float:
    """Epsilon at delta of a mu-GDP release."""
    if mu == 0:
        return 0.0
    return gaussian_epsilon(mu, delta)


def epsilon_of_guesses(guesses: Guesses, delta: float, error: float) -> float:
    """Lower bound on epsilon at delta from one run, whatever the dependence of canaries."""

    def refuted(epsilon: float) -> bool:
        factor = math.exp(-epsilon)

        def inverse(probability: float) -> float:
            by_ratio = factor * (probability - delta)
            by_negatives = 1 - delta - (1 - probability) / factor
            return max(0.0, by_ratio, by_negatives)

        return is_refuted(guesses, inverse, error)

    return _largest_refuted(refuted)


def mu_of_guesses(guesses: Guesses, error: float) -> float:
    """Lower bound on mu from one run, whatever the dependence of canaries."""
    from scipy.special import ndtr, ndtri

    def refuted(mu: float) -> bool:
        def inverse(probability: float) -> float:
            return float(ndtr(ndtri(probability) - mu))

        return is_refuted(guesses, inverse, error)

    return _largest_refuted(refuted)


def is_refuted(guesses: Guesses, inverse: Callable[[float], float], error: float) -> bool:
    """Return whether so many right guesses have a probability below `error` under a curve.

    Parameters
    ----------
    inverse : callable
        B^-1 of the module's docstring: from the probability of an event to the smallest that it may
        have on the other data set.
    """
    right, made, canaries = guesses
    most = made / canaries
    right_mass = error * right / canaries
    wrong_mass = error * (made - right) / canaries
    for j in range(right - 1, -1, -1):
        least = inverse(right_mass)
        if least > wrong_mass:
            right_mass += (least - wrong_mass) * j / (made - j)
            wrong_mass = least
        if right_mass + wrong_mass > most:
            return True
    return False


def epsilon_of_guesses_by_randomized_response(
    guesses: Guesses, delta: float, error: float
) -> float:
    """Lower bound on epsilon at delta from one run, of Steinke, Nasr and Jagielski 2023.

    The number of right guesses is at most that of randomized responses, but for a probability of
    2 m delta max_i P(v > right responses >= v - i)/i.
    """
    import numpy as np
    from scipy.stats import binom

    right, made, canaries = guesses

    def refuted(epsilon: float) -> bool:
        rate = 1 / (1 + math.exp(-epsilon))
        tail = float(binom.sf(right - 1, made, rate))
        if tail >= error:
            return False
        below = np.cumsum(binom.pmf(np.arange(right - 1, -1, -1), made, rate))
        slope = float((below / np.arange(1, right + 1)).max(initial=0.0))
        return tail + 2 * canaries * delta * slope < error

    return _largest_refuted(refuted)


def _largest_refuted(refuted: Callable[[float], bool]) -> float:
    """The largest parameter that is refuted, from below; 0 if none is."""
    if not refuted(0.0):
        return 0.0
    low = 0.0
    high = 1.0
    while high < _MOST and refuted(high):
        low = high
        high *= 2
    return bisected(refuted, low, high, _STEPS)


def bisected(refuted: Callable[[float], bool], low: float, high: float, steps: int) -> float:
    """Halve an interval so often, of which the lower end is refuted; return its last lower end."""
    for _ in range(steps):
        middle = (low + high) / 2
        if refuted(middle):
            low = middle
        else:
            high = middle
    return low
