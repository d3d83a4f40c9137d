"""Labels and checks that a Renyi filter let through."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.privacy.events.base import Event, Floats, Losses, check_above_one, check_not_negative, lower_to
from tacit.privacy.events.gaussian import Gaussian


@dataclass(frozen=True)
class FilteredVotes(Event):
    """Noisy argmaxes and checks, until the sum of their Renyi divergences at one public order would exceed a limit.

    Parameters
    ----------
    order, divergence : float
        The order, and the limit at it.
    noise_multiplier : float
        A Gaussian release of this noise multiplier costs at least as much in zCDP and in Gaussian differential privacy
        as all the noisy numbers behind the outcomes. Since no price is below 2/pi, rho = divergence pi/(2 order) holds.

    Notes
    -----
    A sum of Renyi divergences at a fixed order is a privacy filter [Feldman and Zrnic 2021; Lecuyer 2021]; so are sums
    of rho [Whitehouse et al. 2023] and of mu^2 [Smith and Thakurta 2022].
    """

    order: float
    divergence: float
    noise_multiplier: float

    assumption = "labels and checks are priced without their counts, by bounds computed to a stated error"

    def __post_init__(self) -> None:
        check_above_one("order", self.order)
        check_not_negative("divergence", self.divergence)
        check_not_negative("noise_multiplier", self.noise_multiplier)

    @property
    def pure(self) -> float:
        return Gaussian(self.noise_multiplier).pure

    @property
    def rho(self) -> float:
        return Gaussian(self.noise_multiplier).rho

    @property
    def mu(self) -> float:
        return Gaussian(self.noise_multiplier).mu

    @property
    def best_orders(self) -> tuple[float, ...]:  # type: ignore[override]
        return (self.order,)

    def for_group(self, size: int) -> Event:
        return self if size == 1 else Gaussian(self.noise_multiplier / size)

    def describe(self) -> str:
        return f"noisy votes, up to a Renyi divergence of {self.divergence:.6g} at order {self.order:.6g}"

    def _renyi(self, orders: Floats) -> Floats:
        return lower_to(self.divergence, self.order, self.rho, orders)

    def losses(self, uses: int) -> Losses:
        """Those of a Gaussian release that costs as much as the noisy numbers."""
        return Losses("gaussian", {"standard_deviation": self.noise_multiplier / math.sqrt(uses)}, uses=None)
