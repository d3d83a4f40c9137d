"""Laplace noise on a sum."""

import math
from dataclasses import dataclass

import numpy as np

from tacit.privacy.events.base import CAUTIOUS, Event, Floats, Losses, Rounding, check_not_negative
from tacit.privacy.events.pure import PureDP


@dataclass(frozen=True)
class Laplace(Event):
    """Laplace noise on a sum of L1-bounded contributions.

    The noise multiplier is the scale divided by the L1 sensitivity; 0 is no noise at all.

    Notes
    -----
    Pure epsilon 1/b; rho = epsilon + exp(-epsilon) - 1 [Harrison and Manurangsi 2025]. Renyi
    divergence of order a: epsilon + ln(1 + (a-1) expm1((1-2a) epsilon)/(2a-1))/(a-1) [Mironov 2017,
    Prop. 6].

    The privacy profile is delta(e) = 1 - exp((e - epsilon)/2) for |e| <= epsilon, and the trade-off
    function follows from the densities [Dong, Roth and Su 2019, section 2.4]. One number that moves
    by the whole sensitivity is the worst case. Proof for two numbers that cost a >= b: with the
    loss L of the second, under the first data set, delta(e) is the mean of delta_a(e - L). Where e
    - L <= a that is 1 - exp((e - L - a)/2), and else 0. The mean of exp(-L/2) is exp(-b/2) (1 +
    b/2), so with c = (a + b - e)/2 the mean is 1 - exp(-c) (1 + b/2) + (b - c)^+ exp(-c)/2, which
    is at most 1 - exp(-c). More numbers follow by induction.
    """

    noise_multiplier: float

    attained = True

    assumption = (
        "discrete Laplace noise is priced as continuous: holds for pure epsilon, and else up to an"
        " addition to epsilon below 1e-8"
    )
    assumes_discrete_noise = True

    def __post_init__(self) -> None:
        check_not_negative("noise_multiplier", self.noise_multiplier)

    @property
    def pure(self) -> float:
        return 1.0 / self.noise_multiplier if self.noise_multiplier > 0 else math.inf

    @property
    def rho(self) -> float:
        return self.pure + math.expm1(-self.pure)

    @property
    def mu(self) -> float:
        return PureDP(self.pure).mu

    def for_group(self, size: int) -> Event:
        return Laplace(self.noise_multiplier / size)

    def describe(self, rounding: Rounding = CAUTIOUS) -> str:
        return f"Laplace noise of {rounding.down(self.noise_multiplier)} times the L1 sensitivity"

    def _renyi(self, orders: Floats) -> Floats:
        if math.isinf(self.pure):
            return np.full(np.shape(orders), math.inf)
        share = (orders - 1) / (2 * orders - 1)
        curve = self.pure + np.log1p(share * np.expm1((1 - 2 * orders) * self.pure)) / (orders - 1)
        return np.maximum(curve, 0.0)

    def losses(self, uses: int) -> Losses:
        return Losses("laplace", {"parameter": self.noise_multiplier}, uses)

    def exact_epsilon(self, uses: int, delta: float) -> float | None:
        if uses != 1:
            return None
        return max(self.pure + 2 * math.log1p(-delta), 0.0)

    def attack_rate(self, false_positive_rate: float) -> float:
        """Three pieces: alarms where the loss is epsilon, where it falls from there, and where it
        is -epsilon.
        """
        corner = math.exp(-self.pure) / 2
        if false_positive_rate <= corner:
            return math.exp(min(self.pure, 700.0)) * false_positive_rate
        if false_positive_rate <= 0.5:
            return 1 - corner / (2 * false_positive_rate)
        return 1 - 2 * corner * (1 - false_positive_rate)

    def total_variation(self) -> float:
        return -math.expm1(-self.pure / 2)
