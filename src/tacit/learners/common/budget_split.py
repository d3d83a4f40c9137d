"""Split of a fit's budget over several kinds of noisy sums.

Gaussian releases with noise multipliers z_i compose to one with 1/z^2 = sum 1/z_i^2, where a noise
multiplier is the standard deviation divided by the L2 sensitivity under the neighbouring relation.
So a share s of the budget, spent on m releases, buys multipliers z sqrt(m/s). The standard
deviation follows from the sensitivity, which differs between sums and between neighbouring
relations (`tacit.privacy.sensitivity`). Sums that do not depend on what the relation changes are
released without noise and cost nothing; their share goes to the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tacit.mechanisms.rounding import product_up
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event, Gaussian, Parallel, compose
from tacit.privacy.sensitivity import Sensitivity
from tacit.privacy.unit import Unit

SHARE_OF_MOMENTS = 0.3
"""Share of the budget for second moments, beside class sums. Chosen on CIFAR-10."""


@dataclass(frozen=True)
class Part:
    """Noisy sums of one kind that a fit releases.

    Parameters
    ----------
    share : float
        Of the budget, for all releases of this kind together; the shares of all kinds add up to 1.
    sensitivity : Sensitivity
        Of one release.
    releases : int, default=1
    by_class : bool, default=False
        Whether a record is in the sum of one class only, so that the classes are disjoint.
    """

    share: float
    sensitivity: Sensitivity
    releases: int = 1
    by_class: bool = False


@dataclass(frozen=True)
class BudgetSplit:
    """The noise of each kind of sum, and what all of them cost together.

    Examples
    --------
    >>> from tacit.mechanisms import gaussian, outer_products
    >>> moments = Part(0.5, outer_products.MOMENTS)
    >>> sums = Part(0.5, gaussian.CLASS_SUMS)
    >>> parts = {"moments": moments, "sums": sums}
    >>> split = BudgetSplit(Budget.zcdp(0.5), Unit.CHANGE_LABEL, parts)
    >>> split.noise("moments"), round(split.noise("sums"), 6), round(split.event().rho, 6)
    (0.0, 1.414214, 0.5)
    """

    budget: Budget
    unit: Unit
    parts: Mapping[str, Part]

    def free(self, name: str) -> bool:
        """Return whether these sums do not depend on what the unit changes."""
        return self.parts[name].sensitivity.under(self.unit) == 0

    def noise_multiplier(self, name: str) -> float:
        """Return the standard deviation of the noise of one release over its sensitivity.

        It is 0 without noise.
        """
        if self.free(name):
            return 0.0

        part = self.parts[name]
        share_of_free = self._share_of_free()
        z = self.budget.gaussian(split=True)
        return z * math.sqrt(part.releases * (1 - share_of_free) / part.share)

    def _share_of_free(self) -> float:
        return sum(part.share for name, part in self.parts.items() if self.free(name))

    def noise(self, name: str, sensitivity: float | None = None) -> float:
        """Return the standard deviation of the noise of one release; 0 without noise.

        It is in units of the bound on a contribution. This is what the mechanisms call the noise
        multiplier, since they state sensitivity 1 under add/remove.

        Parameters
        ----------
        name : str
        sensitivity : float, optional
            Under the unit, where it is known to be smaller than what the part states.
        """
        if sensitivity is None:
            sensitivity = self.parts[name].sensitivity.under(self.unit)
        return product_up(self.noise_multiplier(name), sensitivity)

    def event(self) -> Event:
        """Return the privacy cost of all releases under the unit."""
        return compose(self._event_of(name) for name in self.parts if not self.free(name))

    def _event_of(self, name: str) -> Event:
        part = self.parts[name]
        event: Event = Gaussian(self.noise_multiplier(name))
        # Parallel composition holds under add/remove alone: other relations change two classes at
        # once, and a person may be in several.
        if part.by_class and self.unit is Unit.ADD_REMOVE:
            event = Parallel(event, over="classes")
        return part.releases * event
