"""Test of a number against a threshold under Gaussian noise, where nothing else is released."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.privacy.events.base import CAUTIOUS, Rounding
from tacit.privacy.events.gaussian import Gaussian
from tacit.privacy.events.priced import Priced


@dataclass(frozen=True)
class NoisyCheck(Priced):
    """Test of a noisy number against a public threshold, priced at one Renyi order.

    The noise multiplier is the standard deviation divided by the sensitivity; 0 is no noise at all.
    `order` is public: at it, and below, the certified price of one bit holds
    (`tacit.privacy.prices.two_outcomes`).

    Notes
    -----
    The noisy number costs rho = 1/(2 z^2) and mu = 1/z, and so does the bit at most. At `order` its
    Renyi divergence is c order/(2 z^2) with a price c of about .64.
    """

    noise_multiplier: float
    order: float

    assumption = (
        "a check is priced without its number, by bounds computed to a stated error in floating"
        " point"
    )
    curve_work = 1e4

    def behind(self) -> Gaussian:
        return Gaussian(self.noise_multiplier)

    def at_order(self) -> float:
        from tacit.privacy.prices.two_outcomes import price_of_bit

        return (
            self.rho
            * self.order
            * (1.0 if math.isinf(self.rho) else price_of_bit(self.order, 1 / self.noise_multiplier))
        )

    def for_group(self, size: int) -> NoisyCheck:
        return NoisyCheck(self.noise_multiplier / size, self.order)

    def describe(self, rounding: Rounding = CAUTIOUS) -> str:
        noise = f"Gaussian noise of {rounding.down(self.noise_multiplier)} times the sensitivity"
        return f"a check of a threshold, by {noise}, priced at Renyi order {self.order:.6g}"
