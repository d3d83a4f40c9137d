"""Data-dependent bounds against published numbers, against high precision, and against exact
divergences.
"""

import math

import mpmath
import numpy as np
import pytest

from mechanisms.exact_votes import divergence, log_check_chances, log_label_chances
from tacit.mechanisms import vote_bounds
from tacit.privacy.events import PureDP

ORDERS = np.array([2.0, 5.0, 10.0, 20.0, 50.0])


def test_published_numbers():
    votes = np.array([[250.0] + [0] * 9])
    log_q = vote_bounds.log_q_union(votes, 40.0)
    assert log_q[0] == pytest.approx(-10.0192282943, rel=1e-11)
    expected = [1.5273572628e-5, 1.7491529355e-5, 2.3331778567e-5, 5.3213177518e-5, 2.0832737880e-3]
    assert vote_bounds.gaussian_renyi(log_q, 40.0, ORDERS)[0] == pytest.approx(expected, rel=1e-9)
    log_q = vote_bounds.log_q_union(np.array([[200.0, 30, 20] + [0] * 7]), 40.0)
    assert log_q[0] == pytest.approx(-5.6599459785, rel=1e-10)
    expected = [8.796578e-4, 9.701e-4, 1.1803544e-3, 1.9955508e-3, 1.64481537e-2]
    assert vote_bounds.gaussian_renyi(log_q, 40.0, ORDERS)[0] == pytest.approx(expected, rel=1e-4)
    assert vote_bounds.log_q_union(np.array([[180.0, 70]]), 20.0)[0] == pytest.approx(
        -9.8972875909, rel=1e-11
    )


def precise_renyi(log_q, sigma, order):
    """The bound in 400 digits, straight from the theorem; the independent cost where it does not
    hold.
    """
    with mpmath.workdps(400):
        log_q, sigma, order = mpmath.mpf(log_q), mpmath.mpf(sigma), mpmath.mpf(order)
        independent = order / sigma**2
        mu2 = sigma * mpmath.sqrt(-log_q)
        mu1 = mu2 + 1
        e1, e2 = mu1 / sigma**2, mu2 / sigma**2
        q = mpmath.exp(log_q)
        if not (mu2 > 1 and order <= mu1 and -log_q > e2):
            return float(independent)
        if log_q > (mu2 - 1) * e2 - mu2 * (
            mpmath.log(mu1 / (mu1 - 1)) + mpmath.log(mu2 / (mu2 - 1))
        ):
            return float(independent)
        a = (1 - q) / (1 - (q * mpmath.exp(e2)) ** ((mu2 - 1) / mu2))
        b = mpmath.exp(e1) / q ** (1 / (mu1 - 1))
        bound = mpmath.log((1 - q) * a ** (order - 1) + q * b ** (order - 1)) / (order - 1)
        return float(min(bound, independent))


@pytest.mark.thorough
def test_it_agrees_with_high_precision_over_the_whole_range():
    rng = np.random.default_rng(0)
    log_q = np.concatenate([-np.geomspace(0.1, 690, 60), np.log(rng.uniform(0.01, 0.9, 30))])
    inside = 0
    for sigma in (0.7, 1.15, 1.2, 5.0, 40.0, 300.0):
        orders = np.array([1.01, 1.5, 2.0, 7.3, 20.0, 150.0])
        found = vote_bounds.gaussian_renyi(log_q, sigma, orders)
        for row, own in zip(log_q, found, strict=True):
            for order, value in zip(orders, own, strict=True):
                precise = precise_renyi(row, sigma, order)
                inside += precise < order / sigma**2 * (1 - 1e-9)
                assert value == pytest.approx(precise, rel=1e-9, abs=1e-305)
    assert inside > 500


def precise_log_q(counts, sigma):
    with mpmath.workdps(40):
        top, *others = sorted(counts, reverse=True)
        gaps = [mpmath.mpf(top - other) / sigma for other in others]

        def other_wins(x):
            below = mpmath.mpf(1)
            for gap in gaps:
                below *= mpmath.ncdf(x + gap)
            return mpmath.npdf(x) * (1 - below)

        centre = -gaps[0] / 2
        return float(mpmath.log(mpmath.quad(other_wins, [-40, centre - 8, centre, centre + 8, 40])))


@pytest.mark.thorough
@pytest.mark.parametrize(
    "counts", [[200, 30, 20], [90, 85, 75, 0], [10, 10, 10], [250, 0, 0, 0], [3, 2, 1]]
)
@pytest.mark.parametrize("sigma", [3.0, 40.0])
def test_exact_q(counts, sigma):
    exact = vote_bounds.log_q_exact(np.array([counts], dtype=float), sigma)[0]
    union = vote_bounds.log_q_union(np.array([counts], dtype=float), sigma)[0]
    assert exact <= union
    if union > -690:
        assert exact == pytest.approx(precise_log_q(counts, sigma), rel=1e-8, abs=1e-10)


@pytest.mark.thorough
@pytest.mark.parametrize("sensitivity", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("log_q_of", [vote_bounds.log_q_union, vote_bounds.log_q_exact])
def test_bounds_cover_the_exact_divergence(sensitivity, log_q_of):
    rng = np.random.default_rng(1)
    orders = np.array([1.5, 2.0, 6.0, 20.0])
    smaller = 0
    for _ in range(25):
        sigma = rng.uniform(1.5, 6)
        counts = rng.dirichlet([0.4] * 4) * 40 + sensitivity
        bound = vote_bounds.gaussian_renyi(
            log_q_of(counts[None], sigma), sigma / sensitivity, orders
        )[0]
        smaller += np.any(bound < 0.9 * orders * (sensitivity / sigma) ** 2)
        log_p = log_label_chances(counts, sigma)
        for gains in range(4):
            for loses in range(4):
                if gains == loses:
                    continue
                change = np.zeros(4)
                change[gains], change[loses] = sensitivity, -sensitivity
                log_q = log_label_chances(counts + change, sigma)
                for order, cost in zip(orders, bound, strict=True):
                    assert divergence(log_p, log_q, order) <= cost + 1e-9
    assert smaller > 10


def test_bounds_of_a_check_cover_the_exact_divergence():
    rng = np.random.default_rng(2)
    orders = np.array([1.5, 2.0, 6.0, 20.0])
    smaller = 0
    for _ in range(300):
        sigma1, largest, threshold, s = (
            rng.uniform(2, 8),
            rng.uniform(0, 60),
            rng.uniform(0, 60),
            rng.uniform(0.3, 2),
        )
        log_q = vote_bounds.log_q_check(np.array([largest]), threshold, sigma1)
        bound = vote_bounds.gaussian_renyi(log_q, math.sqrt(2) * sigma1 / s, orders)[0]
        smaller += np.any(bound < 0.9 * orders * s**2 / (2 * sigma1**2))
        for change in (-s, s):
            logs = [
                log_check_chances(top, threshold, sigma1) for top in (largest, largest + change)
            ]
            for order, cost in zip(orders, bound, strict=True):
                assert divergence(*logs, order) <= cost + 1e-9
    assert smaller > 30


def test_laplace_bounds_cover_the_exact_divergence():
    rng = np.random.default_rng(3)
    orders = np.array([1.5, 2.0, 6.0, 20.0])
    smaller = 0
    for _ in range(300):
        gamma, s = rng.uniform(0.05, 2), rng.uniform(0.5, 1.5)
        lead = rng.uniform(0, 30 / gamma)
        bound = vote_bounds.laplace_renyi(
            vote_bounds.log_q_laplace(np.array([[lead, 0.0]]), gamma), gamma * s, orders
        )[0]
        smaller += np.any(bound < 0.9 * np.minimum(2 * (gamma * s) ** 2 * orders, 2 * gamma * s))

        def chances(gap, gamma=gamma):
            loses = (2 + gamma * abs(gap)) / (4 * math.exp(gamma * abs(gap)))
            return np.array([1 - loses, loses] if gap > 0 else [loses, 1 - loses])

        p = chances(lead)
        for change in (-2 * s, 2 * s):
            q = chances(lead + change)
            for order, cost in zip(orders, bound, strict=True):
                assert np.log(np.sum(p**order * q ** (1 - order))) / (order - 1) <= cost + 1e-9
    assert smaller > 30


def precise_laplace(log_q, pure, order):
    """The bound in 400 digits, straight from the theorem; the independent cost where it does not
    hold.
    """
    with mpmath.workdps(400):
        q, pure, order = mpmath.exp(log_q), mpmath.mpf(pure), mpmath.mpf(order)
        cost = min(pure**2 * order / 2, pure)
        if q < mpmath.expm1(pure) / mpmath.expm1(2 * pure):
            a, b = (1 - q) / (1 - mpmath.exp(pure) * q), mpmath.exp(pure)
            cost = min(
                cost, mpmath.log((1 - q) * a ** (order - 1) + q * b ** (order - 1)) / (order - 1)
            )
        return float(cost)


@pytest.mark.parametrize("gamma", [0.02, 0.3, 1.0])
def test_laplace_costs_agree_with_high_precision(gamma):
    log_q, orders = (
        np.log(np.append(np.linspace(0.01, 0.6, 40), np.geomspace(1e-200, 0.01, 20))),
        ORDERS,
    )
    found = vote_bounds.laplace_renyi(log_q, gamma, orders)
    for row, own in zip(log_q, found, strict=True):
        expected = [precise_laplace(row, 2 * gamma, order) for order in orders]
        assert own == pytest.approx(expected, rel=1e-9, abs=1e-305)


@pytest.mark.parametrize("gamma", [0.05, 0.5, 2.0])
def test_the_probability_of_another_label_under_laplace_noise(gamma):
    """Exact for two classes, their sum for more."""
    leads = np.array([0.5, 3.0, 20.0])
    exact = (2 + gamma * leads) / (4 * np.exp(gamma * leads))
    counts = np.stack([30 - leads, np.full(3, 30.0)], axis=1)
    assert np.exp(vote_bounds.log_q_laplace(counts, gamma)) == pytest.approx(np.minimum(exact, 0.5))
    more = np.stack([30 - leads, np.full(3, 30.0), np.full(3, 30.0 - 20 / gamma)], axis=1)
    beside = (2 + 20) / (4 * math.exp(20))
    assert np.exp(vote_bounds.log_q_laplace(more, gamma)) == pytest.approx(
        np.minimum(exact + beside, 2 / 3)
    )


@pytest.mark.parametrize("gamma", [0.01, 0.2, 0.6, 3.0])
def test_without_a_lead_a_laplace_label_costs_its_pure_epsilon(gamma):
    """At least the divergence of binary randomized response, the worst of all pure mechanisms."""
    orders = np.array([1.1, 2.0, 10.0, 100.0])
    worst = PureDP(2 * gamma).renyi(orders)
    cost = vote_bounds.laplace_renyi(np.log([0.5]), gamma, orders)[0]
    assert np.all(cost >= worst)
    assert cost == pytest.approx(np.minimum((2 * gamma) ** 2 * orders / 2, 2 * gamma))


def test_certain_and_single_classes():
    assert vote_bounds.gaussian_renyi(np.array([-np.inf]), 3.0, ORDERS)[0] == pytest.approx(0)
    assert np.all(np.isneginf(vote_bounds.log_q_union(np.array([[3.0], [0.0]]), 2.0)))
    ties = vote_bounds.log_q_union(np.zeros((1, 10)), 40.0)
    assert ties[0] == pytest.approx(math.log(0.9))
