"""The sanitised data-dependent cost: its sensitivity bound holds and is smooth, by trying neighbours."""

import math

import numpy as np
import pytest

from mechanisms.exact_votes import divergence, log_check_chances
from tacit.errors import InputError
from tacit.mechanisms import smooth_votes
from tacit.mechanisms.noise import ResearchNoise, SecureNoise
from tacit.mechanisms.smooth_votes import LabelCost
from tacit.mechanisms.vote_bounds import log_q_union
from tacit.privacy.events import SmoothGaussian


@pytest.mark.parametrize(
    ("sigma", "order", "published"), [(40, 20, -3.15687305), (100, 8.5, -4.72280947), (15, 2.5, -4.04627683)]
)
def test_published_crossovers(sigma, order, published):
    assert LabelCost(sigma, order, 10).log_q0 == pytest.approx(published, abs=1e-8)


def neighbour(counts, rng):
    """One vote of every query moved."""
    other = counts.copy()
    for row in other:
        loses = rng.choice(np.flatnonzero(row > 0))
        gains = rng.integers(len(row))
        row[loses] -= 1
        row[gains] += 1
    return other


def votings(rng, n_queries, n_classes, n_teachers):
    return rng.multinomial(n_teachers, rng.dirichlet(np.full(n_classes, 0.2), n_queries)).astype(float)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_one_vote_moves_q_no_further_than_its_bounds(n_classes):
    rng = np.random.default_rng(n_classes)
    cost = LabelCost(12.0, 6.0, n_classes)
    for _ in range(30):
        counts = votings(rng, 50, n_classes, 100)
        before, after = (log_q_union(own, 12.0) for own in (counts, neighbour(counts, rng)))
        assert np.all(after <= cost.moved(before, 1) + 1e-9)
        assert np.all(after >= cost.moved(before, -1) - 1e-9)


@pytest.mark.parametrize("checks", [False, True])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_bound_holds_and_is_smooth(n_classes, checks):
    rng = np.random.default_rng(7)
    sigma, sigma1, threshold, order, b = 12.0, 20.0, 60.0, 6.0, 0.05
    cost = LabelCost(sigma, order, n_classes)
    assert cost.conditions_hold()

    def figures(counts):
        log_q, largest = log_q_union(counts, sigma), counts.max(axis=1)
        total, local = cost.cost(log_q).sum(), cost.sensitivities(log_q, 100)
        if checks:
            total += smooth_votes.check_costs(largest, threshold, sigma1, order).sum()
            local = np.concatenate([local, smooth_votes.check_sensitivities(largest, threshold, sigma1, order, 100)])
        return total, smooth_votes.smooth_sensitivity(local, b)

    used = []
    for _ in range(60):
        counts = votings(rng, rng.integers(1, 12), n_classes, 100)
        (one, of_one), (two, of_two) = figures(counts), figures(neighbour(counts, rng))
        assert abs(one - two) <= min(of_one, of_two) * (1 + 1e-9)
        assert math.exp(-b) - 1e-9 <= of_two / of_one <= math.exp(b) + 1e-9
        used.append(abs(one - two) / of_one)
    assert max(used) > 0.2


@pytest.mark.thorough
@pytest.mark.parametrize("noise", [SecureNoise(), ResearchNoise(0)])
def test_noise_follows_the_bound(noise):
    counts = votings(np.random.default_rng(0), 30, 10, 100)
    event = SmoothGaussian(0.05, 8.0)
    answered = np.arange(30) < 20
    facts = {"sigma": 12.0, "order": 6.0, "sigma1": 20.0, "threshold": 60.0}
    draws = np.array([smooth_votes.noisy_cost(counts, answered, event=event, noise=noise, **facts) for _ in range(200)])
    label = LabelCost(12.0, 6.0, 10)
    log_q = log_q_union(counts[:20], 12.0)
    checks = [smooth_votes.check_costs(counts.max(axis=1), 60.0, 20.0, 6.0)]
    total = label.cost(log_q).sum() + checks[0].sum()
    local = [
        label.sensitivities(log_q, 100),
        smooth_votes.check_sensitivities(counts.max(axis=1), 60.0, 20.0, 6.0, 100),
    ]
    deviation = 8.0 * smooth_votes.smooth_sensitivity(np.concatenate(local), 0.05)
    assert abs(draws.mean() - total) < 5 * deviation / math.sqrt(200)
    assert draws.std() == pytest.approx(deviation, rel=0.25)


@pytest.mark.parametrize(
    ("sigma", "order", "n_classes", "holds"),
    [
        (3, 4, 2, False),
        (8, 8, 3, False),
        (8, 150, 10, False),
        (3, 70, 3, False),
        (20, 6, 10, True),
        (40, 12, 100, True),
    ],
)
def test_the_proof_is_claimed_where_the_sensitivity_is_monotone(sigma, order, n_classes, holds):
    """By a search of its own: LS rises up to q1, one vote before q0, and falls from q0 on."""
    one = LabelCost(float(sigma), float(order), n_classes)

    def local(log_q):
        own = one.cost(log_q)
        return np.maximum(one.cost(one.moved(log_q, 1)) - own, own - one.cost(one.moved(log_q, -1)))

    q1 = one.moved(np.array([one.log_q0]), -1)[0]
    rising = local(np.append(np.linspace(-700, q1, 9000), np.linspace(1.5 * q1, q1, 9000)))
    falling = local(np.linspace(one.log_q0, 0, 9000)[1:-1])
    top = max(rising.max(), falling.max())
    worst = max(-np.diff(rising[:9000]).min(), -np.diff(rising[9000:]).min(), np.diff(falling).max())
    assert (worst <= 1e-9 * top) == holds
    assert one.conditions_hold() == holds


def test_costs_of_checks_cover_their_divergence():
    threshold, sigma1, order = 60.0, 20.0, 6.0
    largest = np.arange(0.0, 150.0)
    costs = smooth_votes.check_costs(largest, threshold, sigma1, order)
    for one, cost in zip(largest, costs, strict=True):
        for beside in (one - 1, one + 1):
            logs = [log_check_chances(top, threshold, sigma1) for top in (one, beside)]
            assert divergence(*logs, order) <= cost * (1 + 1e-9)
    assert costs.max() == pytest.approx(order / (2 * sigma1**2))  # what no votes change
    assert costs.min() < 0.1 * costs.max()


def test_parameters_without_a_proof_are_refused():
    counts = votings(np.random.default_rng(0), 5, 10, 100)
    with pytest.raises(InputError, match="not monotone"):
        smooth_votes.noisy_cost(
            counts, np.ones(5, bool), sigma=20.0, order=40.0, event=SmoothGaussian(0.01, 5.0), noise=ResearchNoise(0)
        )
    with pytest.raises(InputError, match="no votes cost less"):
        _ = LabelCost(0.5, 500.0, 10).log_q0
