"""A mechanism of which only rho is known."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.privacy.events.base import CAUTIOUS, Event, Floats, Rounding, check_not_negative


@dataclass(frozen=True)
class ZCDP(Event):
    """Any rho-zCDP mechanism about which nothing more is known.

    Group privacy for k records multiplies rho by k^2 [Bun and Steinke 2016, Prop. 1.9].
    """

    rho: float

    def __post_init__(self) -> None:
        check_not_negative("rho", self.rho)

    @property
    def pure(self) -> float:
        return math.inf if self.rho > 0 else 0.0

    @property
    def mu(self) -> float:
        return math.inf if self.rho > 0 else 0.0

    def for_group(self, size: int) -> ZCDP:
        return ZCDP(size**2 * self.rho)

    def describe(self, rounding: Rounding = CAUTIOUS) -> str:
        return f"a mechanism that is {rounding.up(self.rho)}-zCDP"

    def _renyi(self, orders: Floats) -> Floats:
        return np.asarray(self.rho * orders)
