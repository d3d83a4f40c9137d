"""Gaussian noise on a sum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.privacy.events.base import CAUTIOUS, Event, Floats, Losses, Rounding, check_not_negative


@dataclass(frozen=True)
class Gaussian(Event):
    """Gaussian noise on a sum of L2-bounded contributions.

    The noise multiplier is the standard deviation divided by the L2 sensitivity; 0 is no noise at
    all.

    Notes
    -----
    rho = 1/(2 z^2) [Bun and Steinke 2016, Prop. 1.6]; mu = 1/z [Dong, Roth and Su 2019, Thm 2.7].
    """

    noise_multiplier: float

    assumption: ClassVar[str | None] = (
        "discrete Gaussian noise is priced as continuous: holds up to an addition to epsilon below"
        " 1e-8"
    )
    assumes_discrete_noise = True
    exact_mu = True

    def __post_init__(self) -> None:
        check_not_negative("noise_multiplier", self.noise_multiplier)

    @property
    def pure(self) -> float:
        return 0.0 if math.isinf(self.noise_multiplier) else math.inf

    @property
    def rho(self) -> float:
        return 0.5 * self.mu**2 if self.mu < 1e150 else math.inf

    @property
    def mu(self) -> float:
        return 1.0 / self.noise_multiplier if self.noise_multiplier > 0 else math.inf

    def for_group(self, size: int) -> Gaussian:
        return Gaussian(self.noise_multiplier / size)

    def describe(self, rounding: Rounding = CAUTIOUS) -> str:
        return f"Gaussian noise of {rounding.down(self.noise_multiplier)} times the L2 sensitivity"

    def _renyi(self, orders: Floats) -> Floats:
        return np.asarray(self.rho * orders)

    def losses(self, uses: int) -> Losses:
        # several uses have the losses of one use with less noise
        standard_deviation = self.noise_multiplier / math.sqrt(uses)
        return Losses("gaussian", {"standard_deviation": standard_deviation}, uses=None)
