"""A mechanism of which only a pure epsilon is known."""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from tacit.privacy.events.base import CAUTIOUS, Event, Floats, Losses, Rounding, check_not_negative


@dataclass(frozen=True)
class PureDP(Event):
    """Any epsilon-DP mechanism about which nothing more is known.

    Notes
    -----
    The worst case is binary randomized response, so its privacy cost is used. Its Renyi divergence
    of order a, divided by a, is largest as a -> 1: there it is epsilon tanh(epsilon/2) <=
    epsilon^2/2. mu is the parameter of the Gaussian trade-off curve through the corner of the
    trade-off curve of epsilon-DP [Dong, Roth and Su 2019]. The rates of attacks are those against
    binary randomized response too; a particular mechanism may allow less.
    """

    epsilon: float

    def __post_init__(self) -> None:
        check_not_negative("epsilon", self.epsilon)

    @property
    def pure(self) -> float:
        return self.epsilon

    @property
    def rho(self) -> float:
        return self.epsilon * math.tanh(self.epsilon / 2)

    @property
    def mu(self) -> float:
        # The trade-off curve of epsilon-DP has its corner at the rate 1/(1 + e^epsilon); the
        # Gaussian one crosses the diagonal at Phi(-mu/2).
        if self.epsilon > 700:
            # e^epsilon would overflow
            return math.inf

        if self.epsilon < 0.02:
            # The rate (1 - x)/2 is too close to 1/2 for the quantile, so its series is used. It is
            # rounded up: 0.2 stands for 7 pi^2/480, and for all later terms.
            x = math.tanh(self.epsilon / 2)
            return math.sqrt(2 * math.pi) * (x + math.pi / 12 * x**3 + 0.2 * x**5) * (1 + 1e-15)

        corner = 1.0 / (1.0 + math.exp(self.epsilon))
        return -2.0 * NormalDist().inv_cdf(corner)

    def for_group(self, size: int) -> Event:
        return PureDP(size * self.epsilon)

    def describe(self, rounding: Rounding = CAUTIOUS) -> str:
        return f"a mechanism that is {rounding.up(self.epsilon)}-DP"

    def _renyi(self, orders: Floats) -> Floats:
        return response_renyi(self.epsilon, 2, orders)

    def losses(self, uses: int) -> Losses:
        return response_losses(self.epsilon, 2, uses)

    def exact_epsilon(self, uses: int, delta: float) -> float | None:
        if uses != 1:
            return None
        return response_epsilon(self.epsilon, 2, delta)

    def attack_rate(self, false_positive_rate: float) -> float:
        return response_attack_rate(self.epsilon, 2, false_positive_rate)

    def total_variation(self) -> float:
        return response_total_variation(self.epsilon, 2)


def response_renyi(epsilon: float, n_classes: int, orders: Floats) -> Floats:
    """Renyi divergence of randomized response over `n_classes` labels, exact.

    Between two labels the sum is q e^(aE) + q e^((1-a)E) + (K-2) q, with q e^E + (K-1) q = 1.
    Without cancellation that is 1 + q expm1(aE) expm1((a-1)E) exp(-(a-1)E). The divergence is the
    logarithm of the sum, divided by a-1.
    """
    # (a-1) E
    exponent = (orders - 1) * epsilon
    log_q = -np.logaddexp(epsilon, math.log(n_classes - 1))

    # the sum is 1 + exp(log_rise)
    log_rise = log_q + _log_expm1(orders * epsilon) + _log_expm1(exponent) - exponent
    return np.asarray(np.logaddexp(0.0, log_rise) / (orders - 1))


def response_losses(epsilon: float, n_classes: int, uses: int) -> Losses:
    """Randomized response as a mixture: `noise_parameter` is the probability to draw uniformly from
    all labels.
    """
    uniform = n_classes * math.exp(-epsilon) / (1 + (n_classes - 1) * math.exp(-epsilon))
    return Losses(
        "randomized response", {"noise_parameter": uniform, "num_buckets": n_classes}, uses
    )


def response_total_variation(epsilon: float, n_classes: int) -> float:
    """Total variation between two labels' answers: (e^E - 1)/(e^E + K - 1), E = epsilon.

    With q = 1/(e^E + K - 1), an answer is the first label with probability q e^E under that label
    and q under the other one, and conversely for the second label. All other answers have the same
    probability under both.
    """
    return -math.expm1(-epsilon) / (1 + (n_classes - 1) * math.exp(-epsilon))


def response_attack_rate(epsilon: float, n_classes: int, false_positive_rate: float) -> float:
    """Largest true-positive rate against randomized response over `n_classes` labels, exact.

    By Neyman and Pearson's lemma the best attack raises an alarm at the first label first, then at
    the labels that tell nothing, then at the second label. So the curve has the slopes e^E, 1 and
    e^-E, and is the smallest of three lines.
    """
    rising = math.exp(min(epsilon, 700.0)) * false_positive_rate
    level = false_positive_rate + response_total_variation(epsilon, n_classes)
    falling = 1 - math.exp(-epsilon) * (1 - false_positive_rate)
    return min(rising, level, falling)


def response_epsilon(epsilon: float, n_classes: int, delta: float) -> float:
    """Epsilon at delta of one randomized response over `n_classes` labels, exact.

    For 0 <= e <= E only the first label has a loss above e, so delta(e) = q (e^E - e^e), q = 1/(e^E
    + K - 1). The solution is e = E + ln(1 - share), where share = delta / (q e^E).
    """
    share = delta * (1 + (n_classes - 1) * math.exp(-epsilon))
    if share >= 1:
        # even epsilon 0 holds at a smaller delta
        return 0.0
    return max(epsilon + math.log1p(-share), 0.0)


def _log_expm1(x: Floats) -> Floats:
    """ln(e^x - 1) for x above 0, without overflow."""
    return np.asarray(x + np.log(-np.expm1(-x)))
