"""Base of events that release a function of a Gaussian release, at a lower price at one Renyi
order.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from tacit.errors import InputError
from tacit.privacy.events.base import Event, Floats, Losses
from tacit.privacy.events.gaussian import Gaussian


class Priced(Event):
    """A function of a Gaussian release, which states all but the divergence at `order`.

    Renyi divergences grow with the order, so what holds at `order` holds below it too.
    """

    if TYPE_CHECKING:
        order: float

    def __post_init__(self) -> None:
        if not 1 < self.order < math.inf:
            raise InputError(
                f"order={self.order} must be above 1 and finite; pass a number such as order=20.0"
            )
        self.behind()

    @abstractmethod
    def behind(self) -> Gaussian:
        """The Gaussian release."""

    @abstractmethod
    def at_order(self) -> float:
        """Renyi divergence at `order`."""

    @property
    def pure(self) -> float:
        return self.behind().pure

    @property
    def rho(self) -> float:
        return self.behind().rho

    @property
    def mu(self) -> float:
        return self.behind().mu

    @property
    def best_orders(self) -> tuple[float, ...]:  # type: ignore[override]
        return (self.order,)

    def _renyi(self, orders: Floats) -> Floats:
        return np.minimum(
            self.rho * orders, np.where(orders <= self.order, self.at_order(), math.inf)
        )

    def losses(self, uses: int) -> Losses:
        """Those of the Gaussian release."""
        return self.behind().losses(uses)
