"""Allowances: what is left follows from the allowance, is fixed before the noise, and never exceeds
the budget.
"""

import itertools
import math
from decimal import Decimal

import numpy as np
import pytest

from messages import lacking, stating
from tacit.errors import BudgetError
from tacit.privacy import accounting
from tacit.privacy.allowance import Allowance, free
from tacit.privacy.budget import Budget
from tacit.privacy.events import (
    ZCDP,
    Exponential,
    Gaussian,
    Laplace,
    Parallel,
    PureDP,
    RandomizedResponse,
    RepeatAndSelect,
    SampledGaussian,
    compose,
)
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.unit import Unit

APPROXIMATE = ("epsilon=1,delta=1e-5", "epsilon=0.2,delta=1e-9", "epsilon=6,delta=1e-3")


def of(event, unit=Unit.ADD_REMOVE):
    return Guarantee(unit, event)


def exact_first_charges(budget):
    """Events that spend an approximate budget exactly, each by its own curve."""
    budget = Budget.parse(budget)
    yield Gaussian(budget.gaussian())
    yield PureDP(budget.largest_pure())
    yield RandomizedResponse(budget.largest_pure(), 10)
    yield Exponential(budget.exponential())
    yield ZCDP(accounting.largest_rho(budget.epsilon, budget.delta))
    yield 50 * SampledGaussian(budget.sampled_gaussian(0.1, 50), 0.1)


@pytest.mark.parametrize("currency", ["mu", "renyi"])
@pytest.mark.parametrize("budget", APPROXIMATE)
def test_a_charge_calibrated_to_the_allowance_is_accepted_as_the_first(budget, currency):
    allowance = Allowance.of(budget, currency=currency)
    for event in exact_first_charges(budget):
        assert allowance.after_first(of(event)) is not None
        more = event + Gaussian(20.0 / allowance.budget.epsilon)
        if not allowance.budget.permits(more):
            assert allowance.after_first(of(more)) is None


@pytest.mark.parametrize("budget", APPROXIMATE)
def test_the_first_charge_and_what_it_leaves_keep_the_budget(budget):
    allowance = Allowance.of(budget)
    for event in (
        RandomizedResponse(0.5 * allowance.budget.epsilon, 4),
        Exponential(0.7 * allowance.budget.epsilon),
        ZCDP(0.4 * accounting.largest_rho(allowance.budget.epsilon, allowance.budget.delta)),
        Gaussian(1.5 * allowance.budget.gaussian()),
    ):
        left = allowance.after_first(of(event))
        assert left > 0
        assert allowance.budget.permits(event + Gaussian(1 / math.sqrt(left)))
        assert not allowance.budget.permits(event + Gaussian(1 / math.sqrt(left) / 1.01))


def test_gaussian_charges_can_spend_all_of_mu():
    allowance = Allowance.of("epsilon=1,delta=1e-5")
    z = allowance.budget.gaussian()
    assert allowance.after([of(Gaussian(z * 2))] * 4) is not None
    assert allowance.after([of(Gaussian(z * 2))] * 4) < Decimal("1e-9")
    assert allowance.after([of(Gaussian(z * 2))] * 5) is None


def test_a_first_charge_that_fits_only_by_its_exact_curve_leaves_nothing_in_renyi():
    allowance = Allowance.of("epsilon=1,delta=1e-5", currency="renyi")
    assert allowance.after_first(of(Gaussian(allowance.budget.gaussian()))) == 0
    assert allowance.after_first(of(Gaussian(10.0))) == Decimal(repr(allowance.total)) - Decimal(
        repr(allowance.cost(Gaussian(10.0)))
    )


def test_the_currency_mu_permits_more_gaussian_noise_than_renyi():
    mu, renyi = (
        Allowance.of("epsilon=1,delta=1e-5", currency=currency) for currency in ("mu", "renyi")
    )
    assert mu.total / 2 / (renyi.total / renyi.order) == pytest.approx(1.176, abs=0.001)
    assert accounting.renyi_epsilons(np.array([renyi.total]), np.array([renyi.order]), 1e-5) <= 1


def test_what_a_currency_cannot_price_is_named():
    unpriced = {
        "mu": [ZCDP(1e-3), RepeatAndSelect(Gaussian(50.0), 5, 1)],
        "epsilon": [
            ZCDP(1e-3),
            Gaussian(50.0),
            SampledGaussian(50.0, 0.1),
            RepeatAndSelect(Gaussian(50.0), 5, 1),
        ],
        "rho": [RepeatAndSelect(Gaussian(50.0), 5, 1)],
        "renyi": [],
    }
    everything = [
        ZCDP(1e-3),
        Gaussian(50.0),
        Exponential(0.01),
        Laplace(100.0),
        SampledGaussian(50.0, 0.1),
    ]
    everything += [RepeatAndSelect(Gaussian(50.0), 5, 1), Parallel(PureDP(0.01), "splits")]
    budgets = {
        "mu": "epsilon=9,delta=1e-5",
        "renyi": "epsilon=9,delta=1e-5",
        "rho": "rho=9",
        "epsilon": "epsilon=9",
    }
    for currency, events in unpriced.items():
        allowance = Allowance.of(budgets[currency], currency=currency)
        for event in everything:
            together = of(compose([Exponential(0.001), event]))
            assert (allowance.unpriced(together) is not None) == (event in events)
            assert (allowance.after_next(together, Decimal(9)) is None) == (event in events)
            if event in events:
                assert allowance.unpriced(together) == event


@pytest.mark.parametrize("text", ["rho=1", "epsilon=1", "epsilon=4,delta=1e-5"])
def test_what_is_left_does_not_depend_on_the_order_of_later_charges(text):
    allowance = Allowance.of(text)
    later = [of(Exponential(0.01)), of(PureDP(0.02)), of(Parallel(Exponential(0.03), "classes"))]
    results = {
        allowance.after([of(Exponential(0.3)), *order]) for order in itertools.permutations(later)
    }
    assert len(results) == 1


def test_charges_are_converted_to_the_unit():
    allowance = Allowance.of("rho=1", "replace")
    # .25, four times
    assert allowance.after([of(Gaussian(math.sqrt(2)))]) == pytest.approx(0, abs=1e-9)
    assert allowance.after([of(Gaussian(1.4))]) is None


@pytest.mark.parametrize(
    ("budget", "currency"),
    [("rho=1", "mu"), ("epsilon=1", "rho"), ("epsilon=1,delta=1e-5", "rho"), ("rho=1", "gold")],
)
def test_a_currency_that_does_not_count_the_budget_is_refused(budget, currency):
    with pytest.raises(BudgetError, match=stating("allowance", "count")):
        Allowance.of(budget, currency=currency)


def test_an_infinite_allowance_refuses_nothing():
    for text in ("epsilon=inf", "rho=inf"):
        allowance = Allowance.of(text)
        assert allowance.after(
            [of(Gaussian(0.0)), of(ZCDP(5)), of(RepeatAndSelect(Gaussian(0.1), 5, 1))]
        ).is_infinite()


def test_only_guarantees_without_privacy_cost_are_free():
    assert free(of(compose([])))
    assert free(of(Gaussian(math.inf)))
    assert not free(of(Gaussian(1e6)))
    assert not free(
        Guarantee(Unit.REPLACE, compose([]), groups=(("a", compose([])), ("b", ZCDP(1e-9))))
    )


def test_an_allowance_in_gaussian_dp_adds_up_mu_squared():
    allowance = Allowance.of("mu=1")
    assert (allowance.currency, allowance.total, str(allowance)) == ("mu", 1.0, "mu=1")
    assert allowance.after([of(Gaussian(2.0))] * 4) == 0
    assert allowance.after([of(Gaussian(2.0))] * 5) is None
    assert allowance.after([of(Gaussian(Budget.gdp(1).gaussian()))]) == 0
    assert not lacking(allowance.rule, "mu^2", "subtracted")
