"""The largest of several counts under Gaussian noise, where nothing else is released."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.privacy.events.base import CAUTIOUS, Rounding
from tacit.privacy.events.gaussian import Gaussian
from tacit.privacy.events.priced import Priced


@dataclass(frozen=True)
class NoisyArgmax(Priced):
    """The class with the largest noisy count, priced at one Renyi order.

    The noise multiplier is the standard deviation divided by the votes that may move from one class
    to another; 0 is no noise at all. `order` is public: at it, and below, the certified price of
    the argmax holds (`tacit.privacy.prices.three_outcomes`).

    Notes
    -----
    The noisy counts cost rho = 1/z^2 and mu = sqrt(2)/z, and so does their argmax at most. At
    `order` its Renyi divergence is c order/z^2 with a price c of about .64.
    """

    noise_multiplier: float
    order: float

    assumption = (
        "a label is priced without its counts, by bounds computed to a stated error in floating"
        " point"
    )
    curve_work = 3e4  # a price takes longer, and is kept

    def behind(self) -> Gaussian:
        return Gaussian(self.noise_multiplier / math.sqrt(2))

    def at_order(self) -> float:
        from tacit.privacy.prices.three_outcomes import price_of_argmax

        return (
            self.rho
            * self.order
            * (
                1.0
                if math.isinf(self.rho)
                else price_of_argmax(self.order, 1 / self.noise_multiplier)
            )
        )

    def for_group(self, size: int) -> NoisyArgmax:
        return NoisyArgmax(self.noise_multiplier / size, self.order)

    def describe(self, rounding: Rounding = CAUTIOUS) -> str:
        multiplier = rounding.down(self.noise_multiplier)
        noise = f"Gaussian noise of {multiplier} times the votes that may move"
        return f"the class with most votes, by {noise}, priced at Renyi order {self.order:.6g}"
