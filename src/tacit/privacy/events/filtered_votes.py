"""Labels and checks that a Renyi filter let through."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.privacy.events.base import CAUTIOUS, Event, Rounding, check_not_negative
from tacit.privacy.events.gaussian import Gaussian
from tacit.privacy.events.priced import Priced


@dataclass(frozen=True)
class FilteredVotes(Priced):
    """Noisy argmaxes and checks, until the sum of their Renyi divergences at one public order would
    exceed a limit.

    Parameters
    ----------
    order, divergence : float
        The order, and the limit at it.
    noise_multiplier : float
        A Gaussian release of this noise multiplier costs at least as much in zCDP and in Gaussian
        differential privacy as all the noisy numbers behind the outcomes. Since no price is below
        2/pi, rho = divergence pi/(2 order) holds.

    Notes
    -----
    A sum of Renyi divergences at a fixed order is a privacy filter [Feldman and Zrnic 2021; Lecuyer
    2021]; so are sums of rho [Whitehouse et al. 2023] and of mu^2 [Smith and Thakurta 2022].
    """

    order: float
    divergence: float
    noise_multiplier: float

    assumption = (
        "labels and checks are priced without their counts, by bounds computed to a stated error"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative("divergence", self.divergence)

    def behind(self) -> Gaussian:
        return Gaussian(self.noise_multiplier)

    def at_order(self) -> float:
        return self.divergence

    def for_group(self, size: int) -> Event:
        return self if size == 1 else Gaussian(self.noise_multiplier / size)

    def describe(self, rounding: Rounding = CAUTIOUS) -> str:
        return (
            f"noisy votes, up to a Renyi divergence of {rounding.up(self.divergence)} at order"
            f" {rounding.down(self.order)}"
        )
