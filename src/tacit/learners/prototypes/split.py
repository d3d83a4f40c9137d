"""Split of a budget over the events of `ProjectedPrototypes`, and the noise that keeps it."""

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
    """Split of a budget over the events of a fit.

    All parts follow from z, the noise multiplier of a Gaussian sum that would cost the whole
    budget: rho = 1/(2 z^2), so a share p of rho permits the noise multiplier z/sqrt(p). The
    prototypes get `share` of that rho, noisy class counts get `count_share` (0 without them), and
    the steps get the remainder, which is above 0. If `selects_rows`, prototypes are public rows
    selected by exponential mechanisms; otherwise they are noisy sums.

    `sums`, `epsilon`, `counts` and `step` return the noise of a part from z.
    """

    share: float
    count_share: float
    steps: int
    selects_rows: bool

    def sums(self, z: float) -> float:
        """Return the noise multiplier of the class sums."""
        return z / math.sqrt(self.share)

    def epsilon(self, z: float) -> float:
        """Return the epsilon of the selection of a public row.

        An exponential mechanism costs rho = epsilon^2/8, which is to be share/(2 z^2).
        """
        # an infinite budget
        if z == 0:
            return math.inf
        return 2 * math.sqrt(self.share) / z

    def counts(self, z: float) -> float:
        """Return the noise multiplier of the class counts; 0 without them."""
        if self.count_share == 0:
            return 0.0
        return z / math.sqrt(self.count_share)

    def step(self, z: float) -> float:
        """Return the noise multiplier of a step, of which all together get the remainder."""
        return z * math.sqrt(self.steps / (1 - self.share - self.count_share))

    def event(self, z: float) -> Event:
        """Return the privacy cost of the fit."""
        if self.selects_rows:
            prototypes = exponential.event(self.epsilon(z), "exponential")
        else:
            prototypes = gaussian.event(self.sums(z))

        steps = self.steps * outer_products.event(self.step(z))
        events = [prototypes, steps]
        if self.count_share:
            events.append(gaussian.event(self.counts(z)))
        return compose(events)


@lru_cache(maxsize=1024)
def calibrated(budget: Budget, unit: Unit, split: Split) -> float:
    """Return the least z at which all events together keep the budget."""

    # The cost grows with 1/z, as `calibrate` needs. `event` is that of one record added or removed;
    # the budget is read under `unit`.
    def cost(inverse: float) -> Event:
        return guarantee_under(split.event(1 / inverse), unit).event

    # Relative. An approximate budget needs a loss distribution for each trial, a tenth of a second
    # each, so it is met less closely, and never exceeded.
    precision = 1e-12
    if budget.kind == "approx":
        precision = 1e-6
    return 1 / calibrate(budget, cost, low=1e-12, high=1e6, precision=precision)
