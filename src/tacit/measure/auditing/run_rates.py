"""Bounds on the rates of an attack on many canaries in each of many runs.

In one run the guesses about different canaries share the noise, so they are not independent, and
their number is not binomial. Runs are independent of each other, so each run counts once. The share
of its canaries that are in the data and guessed so is a number in [0, 1]. Since coins are fair, its
mean over runs is half the true-positive rate. That of canaries that are not in the data and guessed
to be in it is half the false-positive rate.

A mean of independent numbers in [0, 1] is bounded by a bet against each value that it might have:
the capital of a gambler whose stakes are predictable is a nonnegative martingale under this value,
so it ever exceeds 1/error with probability at most `error`.

A trade-off curve bounds each canary's rates, and being concave also their means over canaries.

Source: Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by betting",
section 4; Ville 1939.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.measure.auditing.bounds import bisected

Floats = NDArray[np.float64]

# of the largest stake that cannot lose all of the capital
STAKE = 0.9

# a rate of 1 would be an infinite mu
LARGEST_RATE = 1 - 1e-9

_STEPS = 50


@dataclass(frozen=True, eq=False)
class RunRates:
    """For each run, the share of canaries that are in the data and guessed so, and of those that
    are not and guessed so.
    """

    hits: Floats
    false_alarms: Floats

    def bounds(self, error: float) -> tuple[float, float]:
        """A lower bound on the true-positive rate and an upper one on the false-positive rate.

        Both hold together with probability 1 - error.
        """
        lower = 2 * lower_mean(self.hits, error / 2)
        upper = 2 * (1 - lower_mean(1 - self.false_alarms, error / 2))
        # coins that came up 1 more often than not may bring the mean above a half
        return min(lower, LARGEST_RATE), min(upper, 1.0)


def lower_mean(values: Floats, error: float) -> float:
    """Lower bound on the mean of independent values in [0, 1] that have one mean."""
    n = len(values)
    counts = np.arange(1, n + 1)
    # estimates before each value, begun with a half and a variance of a quarter
    means = (0.5 + np.cumsum(values)) / (counts + 1)
    variances = (0.25 + np.cumsum((values - means) ** 2)) / (counts + 1)
    before = np.concatenate([[0.25], variances[:-1]])
    stakes = np.sqrt(2 * np.log(1 / error) / (n * before))

    def refuted(mean: float) -> bool:
        bets = np.minimum(stakes, STAKE / mean)
        log_capital = np.cumsum(np.log1p(bets * (values - mean)))
        return bool(log_capital.max() >= np.log(1 / error))

    # capital falls with the mean that is bet against
    return bisected(refuted, 0.0, 1.0, _STEPS)
