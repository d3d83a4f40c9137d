"""Certified prices: never below what neighbouring votes can cost, close to it, and those of an
independent table.
"""

import json
import math

import mpmath
import numpy as np
import pytest
from scipy.optimize import minimize

import tacit
from conftest import SHARED
from mechanisms.exact_votes import divergence, log_label_chances, share_of_argmax, share_of_check
from tacit.learners.pate.filter import allowance_of, query_event
from tacit.privacy.budget import Budget
from tacit.privacy.prices import LEAST, MOST_PRODUCT, MOST_STEP
from tacit.privacy.prices import three_outcomes as argmax
from tacit.privacy.prices import two_outcomes as bit
from tacit.privacy.prices.three_outcomes import estimate_of_argmax, price_of_argmax, tolerance
from tacit.privacy.prices.two_outcomes import estimate_of_bit, price_of_bit

QUICK = [(1.5, 0.1), (2.0, 0.005), (5.0, 0.05), (17.75, 0.025), (50.0, 0.01)]


@pytest.mark.parametrize(("order", "step"), QUICK)
def test_prices_are_just_above_the_largest_cost_on_a_grid(order, step):
    for price, share in ((price_of_argmax, share_of_argmax), (price_of_bit, share_of_check)):
        assert share(order, step) <= price(order, step) <= share(order, step) * 1.002


def test_prices_of_small_steps_are_those_of_the_limit():
    assert price_of_bit(2.0, 1e-4) == pytest.approx(2 / math.pi * 1.001, rel=1e-6)
    assert price_of_argmax(2.0, 1e-4) == pytest.approx(0.63997 * 1.001, rel=1e-5)


def test_an_argmax_costs_more_than_two_classes_do():
    """The worst case is not that of two classes."""
    assert estimate_of_argmax(5.0, 0.01) > 1.005 * estimate_of_bit(5.0, math.sqrt(2) * 0.01)


@pytest.mark.parametrize("product", [0.9, 1.1, 1.24, 1.26, 2.0, 3.0])
def test_prices_are_certified_for_larger_steps_too(product):
    """To a tolerance of a hundredth instead of a thousandth where they take long."""
    for order in (4.0, 17.75):
        price, found = (
            price_of_argmax(order, product / order),
            estimate_of_argmax(order, product / order),
        )
        assert found < price <= found * 1.0101 < 1


def certifies(monkeypatch, of_votes, order, step, price):
    """Whether the price of a bit or an argmax may be this one: 1 stands where nothing is
    certified.
    """
    with monkeypatch.context() as planned:
        if of_votes is argmax:
            planned.setattr(argmax, "planned_price", lambda *_: price)
            return price_of_argmax.__wrapped__(order, step) == price
        planned.setattr(bit, "estimate_of_bit", lambda *_: price / (1 + bit.TOLERANCE))
        return price_of_bit.__wrapped__(order, step) == pytest.approx(price)


def test_a_certificate_checks_cells_at_the_smallest_costs_too(monkeypatch):
    order, step = 1.05, math.sqrt(1.01e-9 / (1.05 * 0.05))
    assert price_of_argmax(order, step) < 0.65
    assert not certifies(monkeypatch, argmax, order, step, 0.6395)


@pytest.mark.parametrize(
    ("order", "step"), [(1.01, 0.1), (5000.0, 0.1), (2.0, 1e-7), (2.0, 2.5), (100.0, 0.5)]
)
def test_where_nothing_is_certified_the_price_is_that_of_the_counts(order, step):
    assert price_of_argmax(order, step) == price_of_bit(order, step) == 1.0


def test_prices_lie_between_the_least_and_the_whole():
    for order in (1.05, 3.0, 40.0):
        for step in (1e-3, 0.02, 0.05):
            assert LEAST <= price_of_bit(order, step) <= price_of_argmax(order, step) * 1.001
            assert price_of_argmax(order, step) <= 1


def test_the_cost_grows_with_the_step():
    steps = np.geomspace(0.01, 0.2, 8)
    costs = [price_of_argmax(10.0, float(step)) * step**2 for step in steps]
    assert np.all(np.diff(costs) > 0)


@pytest.mark.parametrize(("order", "step"), [(2.0, 0.1), (17.75, 0.025), (2.0, 1.2), (100.0, 0.03)])
def test_no_price_below_the_largest_cost_is_certified(monkeypatch, order, step):
    largest = estimate_of_argmax(order, step)
    assert certifies(monkeypatch, argmax, order, step, largest * (1 + 0.8 * tolerance(order, step)))
    assert not certifies(monkeypatch, argmax, order, step, largest * 0.9999)
    largest = estimate_of_bit(order, step)
    assert certifies(monkeypatch, bit, order, step, largest * 1.0005)
    assert not certifies(monkeypatch, bit, order, step, largest * 0.9999)


def test_laws_are_accurate_relative_to_their_size():
    """The error that every bound is widened by, against integration with 40 digits."""
    rng = np.random.default_rng(0)
    points = [(rng.uniform(-8, 8), rng.uniform(-8, 4)) for _ in range(3)] + [
        (0.74, 0.74),
        (-7.5, 9.0),
        (5.9, -5.9),
    ]
    law = np.empty(3)
    with mpmath.workdps(30):
        for u, v in points:
            argmax.outcome_laws(u, v, *argmax.quadrature_rules(), law)
            for found, (a, b) in zip(law[1:], [(u, v), (v, u)], strict=True):
                pieces = [*np.arange(0, 12, 0.25), 12, 16, 40]
                exact = mpmath.quad(
                    lambda x, a=a, b=b: mpmath.npdf(x - a) * mpmath.ncdf(x - b), pieces
                )
                assert abs(found / exact - 1) < 1e-12
            assert law.sum() == pytest.approx(1, abs=1e-13)


def laws_at(u, v, step):
    """p and q, and the derivatives of their logs."""
    laws, slopes = np.empty((2, 3)), np.empty((2, 3, 2))
    for side, own, of_own in zip((0, 1), laws, slopes, strict=True):
        argmax.outcome_laws(u - side * step, v + side * step, *argmax.quadrature_rules(), own)
        argmax.log_slopes(u - side * step, v + side * step, own, of_own)
    return *laws, *slopes


def cost_at(u, v, order, step):
    p, q, _, _ = laws_at(u, v, step)
    return sum(
        share * bit.excess(math.log(one / share), order) for one, share in zip(p, q, strict=True)
    )


def bound_of(u, v, half, order, step):
    return argmax.bound_of_cell(
        u, v, half, order, step, *argmax.quadrature_rules(), np.empty((6, 3))
    )[0]


def random_cells(n, rng):
    """Of all orders and steps, near the worst case and far from it."""
    for _ in range(n):
        order = log_uniform(rng, 1.1, 200)
        step = log_uniform(rng, 1e-3, min(MOST_STEP, MOST_PRODUCT / order) / math.sqrt(2))
        yield *rng.uniform(-8, 5, 2), log_uniform(rng, 1e-4, 0.5) / 2, order, step


def log_uniform(rng, low, high):
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def test_no_votes_of_a_cell_cost_more_than_its_bound():
    """At corners and between them."""
    rng = np.random.default_rng(0)
    for u, v, half, order, step in random_cells(1500, rng):
        points = [(1, 1), (1, -1), (-1, 1), (-1, -1), *rng.uniform(-1, 1, (4, 2))]
        largest = max(cost_at(u + a * half, v + b * half, order, step) for a, b in points)
        assert largest <= bound_of(u, v, half, order, step)


def test_bounds_are_those_of_their_theorem():
    """Every term of the second derivative is bounded by itself, though terms of different sign
    would cancel.
    """
    rng = np.random.default_rng(0)
    for u, v, half, order, step in random_cells(500, rng):
        slope, terms = terms_at(u, v, 0, 0, order, step)[0], []
        for a, b in [(half, half), (half, -half), (-half, half), (-half, -half)]:
            terms.append(terms_at(u, v, a, b, order, step)[1])
        parts = cost_at(u, v, order, step), half * np.abs(slope).sum(), max(terms) / 2
        assert sum(parts) <= bound_of(u, v, half, order, step)


def terms_at(u, v, a, b, order, step):
    """The slope of (1) at a place of a cell about (u, v), and a bound on its second derivative in
    this direction.
    """
    p, q, of_p, of_q = laws_at(u + a, v + b, step)
    z = np.log(p / q)
    excess = np.vectorize(bit.excess)(z, order)
    rise, bend = (order**n * np.exp(order * z) - order * np.exp(z) for n in (1, 2))
    slope = q @ (of_q * excess[:, None] + (of_p - of_q) * rise[:, None])
    of_q, of_z = np.abs(of_q @ [a, b]), np.abs((of_p - of_q) @ [a, b])
    third = math.sqrt(2) * step * (a**2 + b**2)
    return slope, q @ (
        of_q**2 * excess + (2 * of_q * of_z + third) * abs(rise) + of_z**2 * np.maximum(bend, 0)
    )


@pytest.mark.parametrize(
    ("order", "step"), [(1.1, 1.5), (2.0, 0.01), (17.75, 0.025), (20.0, 0.15), (200.0, 0.015)]
)
def test_bounds_of_small_cells_are_close(order, step):
    """By the square of the width at the worst case, where the slope is 0, and by the width
    elsewhere.
    """
    worst = minimize(
        lambda at: -cost_at(*at, order, step), [0.7, 1.5], method="Nelder-Mead", tol=1e-12
    ).x
    for half in (0.005, 0.0005):
        assert bound_of(*worst, half, order, step) <= cost_at(*worst, order, step) * (
            1 + 100 * half**2 + 1e-7
        )
        assert bound_of(0.0, -1.0, half, order, step) <= cost_at(0.0, -1.0, order, step) * (
            1 + 5 * half
        )


def test_derivatives_of_log_probabilities_obey_their_theorem():
    """Slopes are those of the logs; Hessians lie in [-I, 0]; and log ratios are as smooth as the
    step is small.
    """
    rng = np.random.default_rng(0)
    for _ in range(300):
        (u, v), move, step = rng.uniform(-6, 5, 2), 1e-3 * rng.normal(size=2), 0.5
        *laws, of_p, of_q = laws_at(u, v, step)
        *later, later_p, later_q = laws_at(u + move[0], v + move[1], step)
        slopes, length = np.array([of_p, of_q, later_p, later_q]) @ move, math.hypot(*move)
        first, second = (slopes[:2] + slopes[2:]) / 2, slopes[2:] - slopes[:2]
        assert np.allclose(np.log(later) - np.log(laws), first, rtol=0, atol=1e-9)
        assert np.all(np.abs(second / length**2 + 0.5) <= 0.5 + 1e-8)
        assert np.all(np.abs(first[0] - first[1]) <= math.sqrt(2) * step * length)
        assert np.all(np.abs(second[0] - second[1]) <= math.sqrt(2) * step * length**2 + 1e-12)


def test_the_summand_of_costs_and_its_derivatives_are_bounded_on_intervals():
    rng = np.random.default_rng(0)
    for order in np.geomspace(1.1, 200, 100):
        z = np.sort(
            rng.normal(0, [0.1 / order, 4 / order])[:, None] * rng.uniform(-1, 1, 20), axis=1
        )
        for inside in z:
            rise, bend = (
                order**n * np.exp(order * inside) - order * np.exp(inside) for n in (1, 2)
            )
            largest = [
                max(bit.excess(one, order) for one in inside),
                abs(rise).max(),
                max(0.0, bend.max()),
            ]
            bounds = argmax.largest_excess(inside[0], inside[-1], order)
            assert bounds == pytest.approx(largest, rel=1)
            assert np.all(np.array(bounds) >= np.array(largest) * (1 - 1e-9))


def shared_table():
    path = SHARED / "argmax_price.json"
    if not path.exists():
        pytest.skip(f"the table of prices is absent: {path} does not exist")
    return [row for row in json.loads(path.read_text(encoding="utf-8")) if row.get("ok")]


def assert_prices_of(rows):
    for row in rows:
        price = price_of_argmax(float(row["lam"]), row["s"])
        assert price == pytest.approx(row["c3cert"], abs=2e-6)
        assert price_of_bit(float(row["lam"]), row["s"] * math.sqrt(2)) == pytest.approx(
            row["c2"] * 1.001, abs=2e-6
        )


def test_prices_are_those_of_the_independent_table():
    assert_prices_of(shared_table()[::9])


@pytest.mark.thorough
def test_all_prices_are_those_of_the_independent_table():
    rows = shared_table()
    same_tolerance = [row for row in rows if row["lam"] * row["s"] <= 1.25]
    assert len(same_tolerance) > 60
    assert_prices_of(same_tolerance)


@pytest.mark.thorough
@pytest.mark.parametrize("order", [1.5, 2.0, 3.5, 7.0, 17.75, 50.0])
def test_no_neighbouring_votes_cost_more_than_the_price(order):
    """2 to 10 classes, 1 to 5 votes that move: 17,000 pairs for each order, of which many are near
    the worst case.
    """
    rng = np.random.default_rng(round(order * 10))
    sigma = 5 + 4 * order
    for s in (1, 2, 3, 5):
        stated = price_of_argmax(order, s / sigma) * order * s**2 / sigma**2
        worst = 0.0
        for _ in range(2100):
            n_classes = int(rng.integers(2, 11))
            counts = rng.normal(0, sigma * rng.choice([0.1, 0.5, 1.5]), n_classes)
            counts[:2] = counts[2:].max(initial=-9.0) + sigma * rng.normal([0.7, 0.7], 0.4)
            move = np.zeros(n_classes)
            move[rng.permutation(n_classes)[:2] if rng.random() < 0.3 else [0, 1]] = s, -s
            laws = [log_label_chances(own, sigma) for own in (counts, counts + move)]
            worst = max(worst, divergence(*laws, order), divergence(*laws[::-1], order))
        assert 0.6 * stated < worst <= stated


@pytest.mark.parametrize(
    ("sigma", "labels", "with_checks"),
    [(40, 75, 62), (62.9, 188, 154), (100, 476, 390), (200, 1907, 1562)],
)
def test_labels_that_epsilon_1_buys(sigma, labels, with_checks):
    """The table of docs/pate.md."""
    budget = Budget.approx(1.0, 1e-5)
    for voting, bought in (
        (tacit.pate.GNMax(sigma), labels),
        (tacit.pate.Confident(sigma, 1.5 * sigma, 1.0), with_checks),
    ):
        allowed = allowance_of(budget, voting)
        assert math.floor(allowed.total / allowed.cost(query_event(voting, allowed))) == bought
