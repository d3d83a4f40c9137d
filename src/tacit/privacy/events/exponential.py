"""The exponential mechanism, by its bounded range."""

import math
from dataclasses import dataclass

import numpy as np

from tacit.privacy.events.base import CAUTIOUS, Event, Floats, Losses, Rounding
from tacit.privacy.events.pure import PureDP


@dataclass(frozen=True)
class Exponential(PureDP):
    """An exponential mechanism: privacy losses lie in an interval of width epsilon (bounded range).

    Notes
    -----
    epsilon-bounded range implies epsilon^2/8-zCDP [Cesar and Rogers 2021, Lemma 3.4]. Ranges add
    over the records of a group. The privacy profile is delta(e) = (exp(epsilon/2) - exp(e/2))^2 /
    (exp(epsilon) - 1) for |e| <= epsilon [Dong, Durfee and Rogers 2020].

    A loss l then has density c exp(l/2) on [-epsilon, epsilon], with c = exp(epsilon/2) / (2
    (exp(epsilon) - 1)). The sum s of two losses has density c^2 exp(s/2) (2 epsilon - |s|); the
    integral of 1 - exp(e - s) over s > e >= 0 is delta(e) = (1 - 2x exp(-x) - exp(-2x)) / (1 -
    exp(-epsilon))^2 with x = epsilon - e/2. Pairs with the worst profile dominate adaptive
    composition [Zhu, Dong and Wang 2022, Theorem 10].

    Attacks on one use: losses in an interval [t - epsilon, t] give P(S) <= exp(t) Q(S) and 1 - P(S)
    >= exp(t - epsilon) (1 - Q(S)) for each set S of outputs. So the odds of P(S) are at most
    exp(epsilon) times those of Q(S). Two outputs with the losses t and t - epsilon reach this, at a
    rate that depends on t; so do utilities of two candidates that a record moves apart. The largest
    difference of the two rates is tanh(epsilon/4), where their sum is 1.
    """

    attained = True

    @property
    def rho(self) -> float:
        # epsilon**2 would raise an error where the product overflows to inf
        return self.epsilon * self.epsilon / 8

    def for_group(self, size: int) -> Event:
        return Exponential(size * self.epsilon)

    def describe(self, rounding: Rounding = CAUTIOUS) -> str:
        return f"an exponential mechanism of epsilon {rounding.up(self.epsilon)} (bounded range)"

    def _renyi(self, orders: Floats) -> Floats:
        return np.asarray(self.rho * orders)

    def exact_epsilon(self, uses: int, delta: float) -> float | None:
        """Of one use by the inverse of the profile; of two by bisection over x (see the class),
        rounded up.
        """
        if uses == 1:
            # exp((e - epsilon)/2) is 1 less this root
            root = math.sqrt(-delta * math.expm1(-self.epsilon))
            return max(self.epsilon + 2 * math.log1p(-root), 0.0)

        if uses != 2 or not math.isfinite(self.epsilon):
            return None

        # Solve delta(e) = delta for x = epsilon - e/2; delta(e) grows with x.
        log_goal = math.log(delta) + 2 * math.log(-math.expm1(-self.epsilon))
        low = 0.0
        high = self.epsilon
        if _log_numerator(high) <= log_goal:
            return 0.0

        x = (low + high) / 2
        while low < x < high:
            if _log_numerator(x) > log_goal:
                high = x
            else:
                low = x
            x = (low + high) / 2
        return 2 * (self.epsilon - low)

    def attack_rate(self, false_positive_rate: float) -> float:
        """The odds of the false-positive rate, times exp(epsilon), as a rate."""
        if false_positive_rate == 0:
            return 0.0
        # exp(-epsilon) beside the negatives, since exp(epsilon) may overflow
        negatives = (1 - false_positive_rate) * math.exp(-self.epsilon)
        return false_positive_rate / (false_positive_rate + negatives)

    def total_variation(self) -> float:
        return math.tanh(self.epsilon / 4)

    def losses(self, uses: int) -> Losses:
        return Losses("profile", {"profile": self._profile, "width": self.epsilon}, uses)

    def _profile(self, epsilons: Floats) -> Floats:
        return np.asarray(
            (np.exp(self.epsilon / 2) - np.exp(epsilons / 2)) ** 2 / np.expm1(self.epsilon)
        )


def _log_numerator(x: float) -> float:
    """Logarithm of 1 - 2x exp(-x) - exp(-2x) = 2 exp(-x) (sinh(x) - x), for x above 0."""
    if x > 0.1:
        return math.log(-math.expm1(-2 * x) - 2 * x * math.exp(-x))

    # 6 (sinh(x) - x) / x^3 as a series, to 1e-15
    series = 1 + x * x / 20 * (1 + x * x / 42 * (1 + x * x / 72))
    return 3 * math.log(x) + math.log(series / 3) - x
