"""The largest of several counts under Gaussian noise, where nothing else is released."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.privacy.events.base import Event, Floats, Losses, check_above_one, check_not_negative, lower_to


@dataclass(frozen=True)
class NoisyArgmax(Event):
    """The class with the largest noisy count, priced at one Renyi order.

    The noise multiplier is the standard deviation divided by the votes that may move from one class to another; 0 is no
    noise at all. `order` is public: at it, and below, the certified price of the argmax holds
    (`tacit.privacy.prices.three_outcomes`).

    Notes
    -----
    The noisy counts cost rho = 1/z^2 and mu = sqrt(2)/z, and so does their argmax at most. At `order` its Renyi
    divergence is c order/z^2 with a price c of about .64.
    """

    noise_multiplier: float
    order: float

    assumption = "a label is priced without its counts, by bounds computed to a stated error in floating point"
    curve_work = 3e5

    def __post_init__(self) -> None:
        check_not_negative("noise_multiplier", self.noise_multiplier)
        check_above_one("order", self.order)

    @property
    def pure(self) -> float:
        return 0.0 if math.isinf(self.noise_multiplier) else math.inf

    @property
    def rho(self) -> float:
        return self.noise_multiplier**-2 if self.noise_multiplier > 1e-150 else math.inf

    @property
    def mu(self) -> float:
        return math.sqrt(2) / self.noise_multiplier if self.noise_multiplier > 0 else math.inf

    @property
    def best_orders(self) -> tuple[float, ...]:  # type: ignore[override]
        return (self.order,)

    def for_group(self, size: int) -> NoisyArgmax:
        return NoisyArgmax(self.noise_multiplier / size, self.order)

    def describe(self) -> str:
        noise = f"Gaussian noise of {self.noise_multiplier:.6g} times the votes that may move"
        return f"the class with most votes, by {noise}, priced at Renyi order {self.order:.6g}"

    def _renyi(self, orders: Floats) -> Floats:
        from tacit.privacy.prices.three_outcomes import price_of_argmax

        if math.isinf(self.rho):
            return orders * math.inf
        price = price_of_argmax(self.order, 1 / self.noise_multiplier)
        return lower_to(price * self.rho * self.order, self.order, self.rho, orders)

    def losses(self, uses: int) -> Losses:
        """Those of the noisy counts, of which the class is a function."""
        return Losses("gaussian", {"standard_deviation": self.noise_multiplier / math.sqrt(2 * uses)}, uses=None)
