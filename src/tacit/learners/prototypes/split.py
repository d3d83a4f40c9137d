"""How `ProjectedPrototypes` splits a budget over its events, and the noise at which they keep
it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from tacit.mechanisms import exponential, gaussian, outer_products
from tacit.privacy.budget import Budget, calibrate
from tacit.privacy.events import Event, compose
from tacit.privacy.guarantee import guarantee_under
from tacit.privacy.unit import Unit


@dataclass(frozen=True)
class Split:
    """How a budget is split over the events of a fit.

    All follow from z, the noise multiplier of a Gaussian sum that would cost the whole rho. The
    prototypes get `share` of that rho, bought class counts `count_share`, and the steps the rest;
    `chosen` prototypes are public rows, by exponential mechanisms, and not noisy sums.
    """

    share: float
    count_share: float
    steps: int
    chosen: bool

    def sums(self, z: float) -> float:
        """Noise multiplier of the class sums."""
        return z / math.sqrt(self.share)

    def epsilon(self, z: float) -> float:
        """Epsilon of the choice of a public row: epsilon^2/8 = share/(2 z^2)."""
        return 2 * math.sqrt(self.share) / z if z > 0 else math.inf

    def counts(self, z: float) -> float:
        """Noise multiplier of the class counts; 0 where none are bought."""
        return z / math.sqrt(self.count_share) if self.count_share else 0.0

    def step(self, z: float) -> float:
        """Noise multiplier of a step."""
        return z * math.sqrt(self.steps / (1 - self.share - self.count_share))

    def event(self, z: float) -> Event:
        """Privacy cost of the fit."""
        selection = exponential.event(self.epsilon(z), "exponential")
        prototypes = selection if self.chosen else gaussian.event(self.sums(z))
        counts = [gaussian.event(self.counts(z))] if self.count_share else []
        return compose([prototypes, self.steps * outer_products.event(self.step(z)), *counts])


@lru_cache(maxsize=1024)
def calibrated(budget: Budget, unit: Unit, split: Split) -> float:
    """The least z at which all events together keep the budget."""

    def cost(inverse: float) -> Event:
        return guarantee_under(split.event(1 / inverse), unit).event

    # a loss distribution takes a tenth of a second
    precision = 1e-6 if budget.kind == "approx" else 1e-12
    return 1 / calibrate(budget, cost, 1e-12, 1e6, precision)
