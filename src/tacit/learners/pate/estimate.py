"""A paid estimate of what voting really cost, beside its guarantee.

The data-dependent Renyi cost at one order, released with noise that follows its smooth sensitivity. Its price is part
of the promise, so less is left to buy labels with. See `tacit.mechanisms.smooth_votes` for unit, theorem and source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.errors import BudgetError, InputError
from tacit.learners.common.parameters import real
from tacit.learners.pate.aggregators import Aggregator, Confident, GNMax
from tacit.learners.pate.voting import Voting
from tacit.mechanisms import votes as mechanism
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.mechanisms.smooth_votes import LabelCost, noisy_cost
from tacit.privacy import accounting
from tacit.privacy.budget import Budget, calibrate
from tacit.privacy.events import ZCDP, Event, SmoothGaussian, compose

NAMES = ("order", "smoothness", "scale")
_LEAST_RHO = 1e-12


@dataclass(frozen=True)
class Estimate:
    """An estimate with noise of mean zero: half the time the true figure is larger. It guarantees nothing.

    Attributes
    ----------
    order : float
    cost : float
        Renyi cost at that order.
    epsilon, delta : float
        What this cost would mean, by that order alone.
    """

    order: float
    cost: float
    epsilon: float
    delta: float


@dataclass(frozen=True)
class PaidEstimate:
    """What the owner asks for: the Renyi order, b and s of the noise, all chosen on public or simulated votes."""

    order: float
    smoothness: float
    scale: float

    @classmethod
    def of(cls, given: Any) -> PaidEstimate:
        """From a dict of order, smoothness and scale.

        Raises
        ------
        InputError
            If one is missing or out of range.
        """
        if not isinstance(given, Mapping) or set(given) != set(NAMES):
            raise InputError(f"estimate={given!r:.60} must be a dict of {', '.join(NAMES)}; see the guide to PATE")
        return cls(
            real("order", given["order"], 1.001, 1e4),
            real("smoothness", given["smoothness"], 1e-6, 10),
            real("scale", given["scale"], 1e-3, 1e6),
        )

    @property
    def event(self) -> SmoothGaussian:
        """Its price."""
        return SmoothGaussian(self.smoothness, self.scale)

    def rest(self, budget: Budget) -> float:
        """The largest rho for votes that fits in the budget beside the estimate.

        Raises
        ------
        BudgetError
            If the budget is of another kind than epsilon and delta, or the estimate alone exceeds it.
        """
        if budget.epsilon is None or not budget.delta:
            raise BudgetError(
                f"estimate= has a price in epsilon and delta alone; pass epsilon=1,delta=1e-5, not {budget}"
            )

        def cost(rho: float) -> Event:
            return compose([ZCDP(rho), self.event])

        try:
            return calibrate(budget, cost, _LEAST_RHO, accounting.largest_rho(budget.epsilon, budget.delta), 1e-9)
        except BudgetError as error:
            alone = accounting.epsilon(self.event, budget.delta)
            raise BudgetError(
                f"the estimate alone costs epsilon {alone:.4g} of {budget.epsilon:g}; pass a larger scale, a smaller "
                "smoothness, or a larger budget"
            ) from error

    def check(self, aggregator: Aggregator, n_classes: int) -> None:
        """Refuse what the theorem does not cover.

        Raises
        ------
        InputError
            If this is not GNMax or Confident, or the sensitivity is not monotone.
        """
        if n_classes < 2:
            raise InputError("estimate= needs two classes or more; leave it out")
        if not isinstance(aggregator, GNMax | Confident):
            raise InputError(f"estimate= is for gnmax and confident, not {aggregator}; leave it out")
        if not LabelCost(aggregator.sigma, self.order, n_classes).conditions_hold():
            raise InputError(
                f"at sigma {aggregator.sigma:g} and order {self.order:g} the sensitivity of the cost is not monotone, "
                "so nothing is proven; choose another order"
            )

    def draw(self, voting: Voting, votes: Integers, noise: NoiseSource) -> float:
        """The noisy Renyi cost of what was asked."""
        own = voting.plan.aggregator
        assert isinstance(own, GNMax | Confident)
        weights = voting.plan.collector.weights(slice(0, voting.asked))
        counts = mechanism.vote_counts(votes[: voting.asked], weights, len(voting.classes)) / mechanism.UNIT
        check = {} if isinstance(own, GNMax) else {"sigma1": own.sigma1, "threshold": own.threshold}
        return noisy_cost(
            np.asarray(counts),
            voting.paid[: voting.asked],
            sigma=own.sigma,
            order=self.order,
            event=self.event,
            noise=noise,
            **check,
        )

    def stated(self, cost: float, delta: float) -> Estimate:
        """This cost as an epsilon at delta."""
        epsilon = accounting.renyi_epsilons(np.array([cost]), np.array([self.order]), delta)
        return Estimate(self.order, cost, float(epsilon), delta)
