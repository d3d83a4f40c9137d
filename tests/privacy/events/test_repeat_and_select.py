"""The privacy cost of a private search, against searches whose distribution is computed in full."""

import math

import mpmath
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import gammaln
from scipy.stats import norm

from messages import lacking, stating
from tacit.errors import InputError
from tacit.privacy import accounting, attack_rates
from tacit.privacy.account import figure
from tacit.privacy.budget import Budget
from tacit.privacy.events import (
    ZCDP,
    Exponential,
    Gaussian,
    Parallel,
    PureDP,
    RepeatAndSelect,
    event_from_json,
)
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit

SHAPES = [0.0, 0.5, 1.0, 3.0, math.inf]
RUNS = np.arange(1, 2001)


def probabilities(mean, shape):
    """P(k runs) for k = 1, 2, ..., from the definition; Poisson has some mass at none."""
    if math.isinf(shape):
        return np.exp(RUNS * math.log(mean) - mean - gammaln(RUNS + 1))

    def of(halt):
        rising = gammaln(RUNS + shape) - gammaln(1 + shape) - gammaln(RUNS + 1)
        weights = np.exp(RUNS * math.log1p(-halt) + rising)
        return weights / weights.sum()

    return of(brentq(lambda halt: (of(halt) * RUNS).sum() - mean, 2e-2, 1 - 1e-9, xtol=1e-14))


def selected(one, mean, shape):
    """Probability of each output of the search, from that of one run; outputs in order from worst
    to best.
    """
    chances = probabilities(mean, shape)
    upto = np.concatenate([[0.0], np.cumsum(one)])
    powers = np.array([(chances * t**RUNS).sum() for t in upto])
    none = [math.exp(-mean)] if math.isinf(shape) else []
    return np.concatenate([np.diff(powers), none])


def response(epsilon, pieces=150):
    """Two neighbours' outputs under binary randomized response, each answer split into equally
    likely pieces.
    """
    low, high = 1 / (1 + math.exp(epsilon)), 1 / (1 + math.exp(-epsilon))
    return np.repeat([low / pieces, high / pieces], pieces), np.repeat(
        [high / pieces, low / pieces], pieces
    )


def divergence(p, q, order):
    return math.log((p**order * q ** (1 - order)).sum()) / (order - 1)


@pytest.mark.parametrize("shape", [0.0, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("mean", [1.5, 5.0])
def test_the_distribution_has_the_declared_mean(mean, shape):
    event = RepeatAndSelect(Gaussian(1.0), mean, shape)
    chances = probabilities(mean, shape)
    if shape:
        assert chances[0] == pytest.approx(
            shape * (1 - event.halt) * event.halt**shape / (1 - event.halt**shape)
        )
    assert chances[1] / chances[0] == pytest.approx((1 - event.halt) * (1 + shape) / 2, rel=1e-6)
    assert RepeatAndSelect(Gaussian(1.0), mean, 1.0).halt == pytest.approx(1 / mean, rel=1e-12)


@pytest.mark.parametrize("shape", [0.0, 1e-3, 0.5, 1.0, 2.0, 30.0, 1000.0])
@pytest.mark.parametrize("mean", [1.0001, 2.0, 3.0, 300.0, 1e6])
def test_every_mean_has_its_parameter(mean, shape):
    """Over the whole range: the closed form of the mean, from g back to it."""
    with mpmath.workdps(50):
        g, s = mpmath.mpf(RepeatAndSelect(Gaussian(1.0), mean, shape).halt), mpmath.mpf(shape)
        found = s * (1 / g - 1) / (1 - g**s) if shape else (1 / g - 1) / -mpmath.log(g)
        assert float(found) == pytest.approx(mean, rel=1e-9)
    assert RepeatAndSelect(Gaussian(1.0), 1.0, shape).halt == 1


@pytest.mark.thorough
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mean", [1.5, 5.0, 12.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_pure_epsilon_holds_and_is_attained(shape, mean, epsilon):
    event = RepeatAndSelect(PureDP(epsilon), mean, shape)
    one, other = response(epsilon)
    p, q = selected(one, mean, shape), selected(other, mean, shape)
    worst = np.abs(np.log(p / q)).max()
    assert worst <= event.pure * (1 + 1e-9)
    assert worst >= (0.98 if math.isfinite(shape) else 0.95) * event.pure
    if math.isfinite(shape):
        assert event.pure <= (2 + shape) * epsilon
    assert event.rho == PureDP(event.pure).rho
    assert event.mu == PureDP(event.pure).mu


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mean", [1.5, 5.0])
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_the_renyi_curve_holds(shape, mean, epsilon):
    orders = np.array([1.1, 1.5, 2.0, 5.0, 20.0])
    stated = RepeatAndSelect(PureDP(epsilon), mean, shape).renyi(orders)
    one, other = response(epsilon)
    p, q = selected(one, mean, shape), selected(other, mean, shape)
    for order, bound in zip(orders, stated, strict=True):
        assert max(divergence(p, q, order), divergence(q, p, order)) <= bound * (1 + 1e-9)


def gaussian_search(mu, mean, shape):
    """The best of several N(0, 1) and of several N(mu, 1), on a fine grid."""
    edges = np.linspace(-9, 9 + mu, 1201)
    return [selected(np.diff(norm.cdf(edges - shift)), mean, shape) for shift in (0.0, mu)]


def delta_of(p, q, epsilon):
    return max(
        np.maximum(p - math.exp(epsilon) * q, 0).sum(),
        np.maximum(q - math.exp(epsilon) * p, 0).sum(),
    )


@pytest.mark.thorough
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("z", [1.0, 4.0])
def test_epsilon_of_gaussian_runs_holds_and_is_near(shape, z):
    mean, delta = 5.0, 1e-6
    p, q = gaussian_search(1 / z, mean, shape)
    stated = accounting.epsilon(RepeatAndSelect(Gaussian(z), mean, shape), delta)
    assert delta_of(p, q, stated) <= delta
    assert delta_of(p, q, stated * (0.4 if shape == 3 else 0.5)) > delta
    # the cost of one run is not enough
    assert delta_of(p, q, accounting.epsilon(Gaussian(z), delta)) > delta


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("z", "mean"), [(1.0, 1.5), (4.0, 5.0), (30.0, 300.0)])
def test_the_library_agrees(shape, z, mean):
    from dp_accounting import GaussianDpEvent, NeighboringRelation
    from dp_accounting.dp_event import RepeatAndSelectDpEvent
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant(
        list(1 + np.logspace(-3, 4, 300)), NeighboringRelation.ADD_OR_REMOVE_ONE
    )
    accountant.compose(RepeatAndSelectDpEvent(GaussianDpEvent(z), mean, shape))
    for delta in (1e-5, 1e-9):
        ours = accounting.epsilon(RepeatAndSelect(Gaussian(z), mean, shape), delta)
        assert ours == pytest.approx(accountant.get_epsilon(delta), rel=3e-3)


def test_one_run_for_certain_is_one_run():
    event = RepeatAndSelect(PureDP(0.7), 1, 1)
    assert event.pure == pytest.approx(0.7, rel=1e-12)
    assert accounting.epsilon(RepeatAndSelect(ZCDP(0.1), 1, 0), 1e-6) == accounting.epsilon(
        ZCDP(0.1), 1e-6
    )


def test_facts_of_a_search_without_rho():
    event = RepeatAndSelect(Parallel(Gaussian(4.0), "classes") + Gaussian(9.0), 5, 1)
    assert event.bounded
    assert (event.pure, event.rho, event.mu) == (math.inf,) * 3
    assert 0 < accounting.epsilon(event, 1e-6) < accounting.epsilon(event + event, 1e-6) < math.inf
    assert event.for_group(2) == RepeatAndSelect(
        Parallel(Gaussian(2.0), "classes") + Gaussian(4.5), 5, 1
    )
    assert event.for_label_change() == RepeatAndSelect(
        2 * Parallel(Gaussian(4.0), "classes") + Gaussian(4.5), 5, 1
    )
    assert event.base() == RepeatAndSelect(Gaussian(4.0) + Gaussian(9.0), 5, 1)
    assert [part for part, _ in event.contained()] == [event, Gaussian(4.0), Gaussian(9.0)]
    assert event_from_json(event.to_json()) == event
    assert event_from_json(RepeatAndSelect(PureDP(1.0), 5, math.inf).to_json()).shape == math.inf
    assert 0.01 < attack_rates.attack_rate(event, 0.01) < 1


def test_no_bound_stays_no_bound():
    event = RepeatAndSelect(Gaussian(0.0), 5, 1)
    assert not event.bounded
    assert (
        accounting.epsilon(event, 1e-6)
        == accounting.epsilon(Gaussian(1.0) + event, 1e-6)
        == math.inf
    )
    assert not lacking(Guarantee(Unit.ADD_REMOVE, event).figures(), "no bound", "not private")
    assert not Guarantee(Unit.ADD_REMOVE, Gaussian(1.0), groups=(("some", Gaussian(0.0)),)).bounded


def test_the_statement_gives_epsilon_and_claims_no_rho():
    guarantee = Guarantee(Unit.ADD_REMOVE, RepeatAndSelect(Gaussian(4.0), 5, 1))
    assert guarantee.bounded
    assert guarantee.rho is None
    assert guarantee.figures() == "epsilon = 2.06103 at delta = 1e-06"
    assert "not private" not in guarantee.statement()


@pytest.mark.parametrize(
    ("budget", "permitted"), [("rho=100", False), ("epsilon=2.07,delta=1e-6", True)]
)
def test_budgets_permit_exactly_the_searches_within_them(budget, permitted):
    search = RepeatAndSelect(Gaussian(4.0), 5, 1)
    assert Budget.parse(budget).permits(search) == permitted
    assert not Budget.parse("epsilon=2.06,delta=1e-6").permits(search)
    assert not Budget.parse("epsilon=1000").permits(search)
    pure = RepeatAndSelect(Exponential(0.3), 5, 1)
    assert Budget.pure(pure.pure).permits(pure)
    assert Budget.zcdp(pure.rho).permits(pure)


def test_a_ledger_records_a_search(tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl", "data")
    guarantee = Guarantee(Unit.ADD_REMOVE, RepeatAndSelect(Gaussian(4.0), 5, 1))
    ledger.allow("epsilon=3,delta=1e-6")
    ledger.charge(guarantee, what="search")
    assert ledger.account().charges[0].guarantee == guarantee
    # the first charge counts by its exact curve
    assert figure(ledger.account(), guarantee) == "epsilon=2.06103 at delta=1e-06"
    with pytest.raises(ValueError, match="allowance rho=9"):
        ledger.allow("rho=9")
    with pytest.raises(ValueError, match=stating("mu", "privacy cost")):
        ledger.charge(guarantee, what="again")


def test_a_ledger_that_counts_renyi_divergence_prices_searches(tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl", "data")
    ledger.allow("epsilon=5,delta=1e-6", currency="renyi")
    guarantee = Guarantee(Unit.ADD_REMOVE, RepeatAndSelect(Gaussian(4.0), 5, 1))
    ledger.charge(guarantee, what="search")
    ledger.charge(guarantee, what="again")
    with pytest.raises(ValueError, match="would overdraw"):
        ledger.charge(guarantee, what="a third time")


@pytest.mark.parametrize("mean", [0.5, math.nan, math.inf, -1])
def test_bad_means_are_refused(mean):
    with pytest.raises(InputError, match="mean="):
        RepeatAndSelect(Gaussian(1.0), mean, 1)


@pytest.mark.parametrize("shape", [-0.5, math.nan, 1e9])
def test_bad_shapes_are_refused(shape):
    with pytest.raises(InputError, match="shape="):
        RepeatAndSelect(Gaussian(1.0), 5, shape)


def test_nested_events_are_counted():
    search = RepeatAndSelect(2 * Gaussian(4.0) + Exponential(0.1), 5, 1)
    total = 3 * Parallel(search, "splits") + Gaussian(9.0)
    assert dict(total.contained()) == {
        search: 3,
        Gaussian(4.0): 6,
        Exponential(0.1): 3,
        Gaussian(9.0): 1,
    }


def test_a_search_inside_a_search_is_refused():
    with pytest.raises(InputError, match="search inside a search"):
        RepeatAndSelect(
            Gaussian(1.0) + Parallel(RepeatAndSelect(Gaussian(1.0), 5, 1), "splits"), 5, 1
        )
    with pytest.raises(InputError, match="must be an event"):
        RepeatAndSelect(1.0, 5, 1)
