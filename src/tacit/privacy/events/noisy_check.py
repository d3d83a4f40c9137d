"""Whether a number reaches a threshold under Gaussian noise, where nothing else is released."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.privacy.events.base import Event, Floats, Losses, check_above_one, check_not_negative, lower_to


@dataclass(frozen=True)
class NoisyCheck(Event):
    """Whether a noisy number reaches a public threshold, priced at one Renyi order.

    The noise multiplier is the standard deviation divided by the sensitivity; 0 is no noise at all. `order` is public:
    at it, and below, the certified price of one bit holds (`tacit.privacy.prices.two_outcomes`).

    Notes
    -----
    The noisy number costs rho = 1/(2 z^2) and mu = 1/z, and so does the bit at most. At `order` its Renyi divergence is
    c order/(2 z^2) with a price c of about .64.
    """

    noise_multiplier: float
    order: float

    assumption = "a check is priced without its number, by bounds computed to a stated error in floating point"
    curve_work = 1e4

    def __post_init__(self) -> None:
        check_not_negative("noise_multiplier", self.noise_multiplier)
        check_above_one("order", self.order)

    @property
    def pure(self) -> float:
        return 0.0 if math.isinf(self.noise_multiplier) else math.inf

    @property
    def rho(self) -> float:
        return 0.5 * self.noise_multiplier**-2 if self.noise_multiplier > 1e-150 else math.inf

    @property
    def mu(self) -> float:
        return 1.0 / self.noise_multiplier if self.noise_multiplier > 0 else math.inf

    @property
    def best_orders(self) -> tuple[float, ...]:  # type: ignore[override]
        return (self.order,)

    def for_group(self, size: int) -> NoisyCheck:
        return NoisyCheck(self.noise_multiplier / size, self.order)

    def describe(self) -> str:
        noise = f"Gaussian noise of {self.noise_multiplier:.6g} times the sensitivity"
        return f"a check of a threshold, by {noise}, priced at Renyi order {self.order:.6g}"

    def _renyi(self, orders: Floats) -> Floats:
        from tacit.privacy.prices.two_outcomes import price_of_bit

        if math.isinf(self.rho):
            return orders * math.inf
        price = price_of_bit(self.order, 1 / self.noise_multiplier)
        return lower_to(price * self.rho * self.order, self.order, self.rho, orders)

    def losses(self, uses: int) -> Losses:
        """Those of the noisy number, of which the bit is a function."""
        return Losses("gaussian", {"standard_deviation": self.noise_multiplier / math.sqrt(uses)}, uses=None)
