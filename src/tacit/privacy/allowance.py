"""Allowances: the total that may be spent on a data set, in a currency that is fixed when the
allowance is stated.

The next charge may depend on what earlier charges released. A ledger that accepted a charge
whenever the smallest of several bounds on the charges so far is within (epsilon, delta) would be no
privacy filter: an analyst who chooses the next charge by an earlier output can exceed delta
(tests/privacy/test_filter.py reaches 2.8 times delta). A sum in one currency is a filter for
charges in any order, however they are chosen:

`rho`      zCDP; the default for rho=...  [Feldman and Zrnic 2021; Whitehouse et al. 2023, Thm 1]
`epsilon`  pure epsilon; for epsilon=...  [Rogers et al. 2016]
`mu`       mu^2 of Gaussian DP; for mu=... and the default for epsilon=...,delta=...  [Smith and
           Thakurta 2022]
`renyi`    Renyi divergence at an order that follows from (epsilon, delta): for events without a mu,
           such as zCDP and searches; it permits fewer Gaussian releases  [Feldman and Zrnic 2021;
           Lecuyer 2021]

The first charge is not chosen by any output, so an (epsilon, delta) allowance may count it by its
exact curve: it leaves the mu' such that the first charge composed with a mu'-GDP mechanism is
(epsilon, delta)-DP. mu' is fixed before the first charge draws noise; later charges are subtracted
from mu'^2. Hence a fit that is calibrated to exactly the allowance is accepted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache

import numpy as np

from tacit.errors import BudgetError, InputError, quoted
from tacit.privacy import accounting
from tacit.privacy.budget import Budget, calibrate
from tacit.privacy.decimals import NONE_LEFT, decimal_of, exceeds, rounded_up, subtract
from tacit.privacy.events import Event, Gaussian, compose
from tacit.privacy.guarantee import Guarantee, check_most_records
from tacit.privacy.unit import Unit

# Microseconds that the epsilon of a first charge may take; it is computed a dozen times.
_MOST_WORK = 4e5

# The currencies that count a budget, by its kind; the first is the default.
_CURRENCIES = {"zcdp": ("rho",), "pure": ("epsilon",), "approx": ("mu", "renyi"), "gdp": ("mu",)}


@dataclass(frozen=True)
class Allowance:
    """A budget for all uses of a data set, and the currency in which charges are added up.

    Parameters
    ----------
    budget : Budget
    unit : Unit
    currency : {"rho", "epsilon", "mu", "renyi"}
        See above; `Allowance.of` chooses it from the budget.
    most_records : int, optional
        Under a unit per person: the most records that a person has, declared. Charges per record
        are then converted by `Guarantee.per_person`; without it they are refused.

    Examples
    --------
    >>> allowance = Allowance.of("epsilon=1,delta=1e-5")
    >>> allowance.currency, round(allowance.total, 4)
    ('mu', 0.0719)
    >>> allowance.after([Guarantee(Unit.ADD_REMOVE, Gaussian(5.0))]) > 0
    True
    """

    budget: Budget
    unit: Unit
    currency: str
    most_records: int | None = None

    @classmethod
    def of(
        cls,
        budget: Budget | str,
        unit: Unit | str = Unit.ADD_REMOVE,
        currency: str | None = None,
        most_records: int | None = None,
    ) -> Allowance:
        """An allowance in this currency, by default that of the budget; an error if the currency
        cannot count it.
        """
        unit = Unit(unit)
        if most_records is not None:
            if not unit.per_person:
                raise InputError(
                    f"most_records={most_records} is for a unit per person, not {unit}; leave"
                    " it out"
                )
            check_most_records(most_records)

        budget = Budget.parse(budget)
        currencies = _CURRENCIES[budget.kind]
        if currency is not None and currency not in currencies:
            remedy = f"pass {' or '.join(currencies)}, or leave it out"
            raise BudgetError(
                f"currency={quoted(currency)} does not count an allowance of {budget}; {remedy}"
            )
        return cls(budget, unit, currency or currencies[0], most_records)

    def converted(self, guarantee: Guarantee) -> Guarantee:
        """The guarantee in the unit of the allowance; InputError if it does not convert to that
        unit.
        """
        if self.most_records is not None and not guarantee.unit.per_person:
            guarantee = guarantee.per_person(self.most_records)
        return guarantee.to(self.unit)

    @cached_property
    def total(self) -> float:
        """The allowance in its currency: rho, epsilon, mu^2, or Renyi divergence at `order`."""
        budget = self.budget
        if budget.infinite:
            return math.inf
        if self.currency == "mu":
            if budget.mu is not None:
                return budget.mu * budget.mu
            # the Gaussian that meets (epsilon, delta) exactly has mu = 1/z
            return budget.gaussian() ** -2
        if self.currency == "renyi":
            return accounting.largest_renyi(self.order, *self._epsilon_and_delta)
        if self.currency == "rho":
            return float(budget.rho or 0)
        return float(budget.epsilon or 0)

    @cached_property
    def order(self) -> float:
        """For the currency "renyi": the order that allows the largest rho."""
        return accounting.best_order(*self._epsilon_and_delta)

    @property
    def _epsilon_and_delta(self) -> tuple[float, float]:
        """Epsilon and delta of an approximate budget."""
        return float(self.budget.epsilon or 0), float(self.budget.delta or 0)

    def cost(self, event: Event) -> float:
        """Privacy cost of an event in the currency; inf if none is known."""
        if self.currency == "mu":
            # mu**2 would raise an error where the product overflows to inf
            return event.mu * event.mu
        if self.currency == "renyi":
            return float(event.renyi(np.array([self.order]))[0])
        if self.currency == "rho":
            return event.rho
        return event.pure

    def cost_of(self, guarantee: Guarantee) -> float:
        """Privacy cost of a guarantee in this unit and currency; with groups, that of the most
        expensive group.
        """
        return max(self.cost(total) for total in self.converted(guarantee).totals())

    def unpriced(self, guarantee: Guarantee) -> Event | None:
        """The first event without a finite privacy cost in the currency."""
        for total in self.converted(guarantee).totals():
            for event, _ in total.counted():
                if math.isinf(self.cost(event)):
                    return event
        return None

    def after(self, charges: Sequence[Guarantee]) -> Decimal | None:
        """Return what these charges leave in the currency, in this order; None if they exceed the
        allowance.
        """
        left = decimal_of(self.total)
        untouched = True
        for charge in charges:
            if untouched:
                # all charges before it were free, so their outputs do not depend on the data
                balance = self.after_first(charge)
            else:
                balance = self.after_next(charge, left)
            if balance is None:
                return None
            left = balance
            untouched = untouched and free(charge)
        return left

    def after_first(self, guarantee: Guarantee) -> Decimal | None:
        """Return what a first charge leaves; None if it exceeds the allowance."""
        left = self.after_next(guarantee, decimal_of(self.total))
        if self.budget.kind != "approx" or self.budget.infinite:
            return left

        # Compare its exact curve with (epsilon, delta), unless that takes too long.
        totals = self.converted(guarantee).totals()
        work = sum(accounting.work(total, self.budget.delta or 0.0) for total in totals)
        if work > _MOST_WORK:
            return left
        if not all(self.budget.permits(total) for total in totals):
            return left

        # The charge fits by its exact curve, even where its cost in the currency does not.
        left_by_curve = 0.0
        if self.currency == "mu":
            left_by_curve = min(_left_by_curve(self.budget, total) for total in totals)
        return max(left or NONE_LEFT, decimal_of(left_by_curve))

    def after_next(self, guarantee: Guarantee, left: Decimal) -> Decimal | None:
        """Return what a further charge leaves of `left`; None if it exceeds it."""
        if left.is_infinite():
            return left
        cost = self.cost_of(guarantee)
        if math.isinf(cost) or exceeds(decimal_of(cost), left):
            return None
        return subtract(left, decimal_of(cost))

    @property
    def kind(self) -> str:
        """Unit and currency; amounts of two kinds are never added up."""
        kind = f"{self._parameter} under unit {self.unit.value}"
        if self.most_records is not None:
            kind += f", at most {self.most_records} records a person"
        return kind

    @property
    def _parameter(self) -> str:
        """The name of the currency; with its order, if it has one."""
        if self.currency == "renyi":
            return f"Renyi divergence at order {self.order:.6g}"
        return self.currency

    def spent(self, left: Decimal) -> str:
        """Say in words what was spent if this is left."""
        if left.is_infinite():
            return "any amount"
        # exact, since a difference of floats may round up to a larger digit
        return self.amount(max(float(subtract(decimal_of(self.total), left)), 0.0))

    def amount(self, cost: float) -> str:
        """An amount of the currency in words."""
        if self.currency == "mu":
            return f"mu^2={rounded_up(cost)}"
        if self.currency == "renyi":
            return f"Renyi divergence {rounded_up(cost)}"
        return f"{self.currency}={rounded_up(cost)}"

    @property
    def rule(self) -> str:
        """Say how charges are counted, as a clause."""
        if self.budget.infinite:
            return "nothing is refused"
        if self.budget.kind != "approx":
            parameter = "mu^2" if self.currency == "mu" else self.currency
            return f"the {parameter} of every charge is subtracted"

        parameter = self._parameter
        if self.currency == "mu":
            parameter = "mu^2 (Gaussian differential privacy)"
        return (
            f"the {parameter} of each charge is subtracted from {self.amount(self.total)}, except"
            " that the first charge counts by its exact curve"
        )

    def __str__(self) -> str:
        if self.budget.kind != "approx" or self.budget.infinite:
            return str(self.budget)
        return f"{self.amount(self.total)} ({self.budget})"


def free(guarantee: Guarantee) -> bool:
    """Tell whether a guarantee has no privacy cost, so that its output does not depend on the
    data.
    """
    return all(total.pure == 0 for total in guarantee.totals())


@lru_cache(maxsize=256)
def _left_by_curve(budget: Budget, first: Event) -> float:
    """Largest mu^2 of a Gaussian that meets the budget composed with `first`, rounded down by at
    most a thousandth.
    """

    def with_gaussian(mu: float) -> Event:
        return compose([first, Gaussian(1 / mu)])

    largest_mu = 1 / budget.gaussian()
    smallest_mu = 1e-3 * largest_mu
    if not budget.permits(with_gaussian(smallest_mu)):
        return 0.0
    # a relative error of 5e-4 in mu is one of 1e-3 in its square
    return calibrate(budget, with_gaussian, smallest_mu, largest_mu, precision=5e-4) ** 2
