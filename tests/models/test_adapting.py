import math
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from messages import lacking, stating
from tacit.models import adapting
from tacit.models.adapting import FEW, Suitability, Task, moved_means, spread
from tacit.models.carried import CarriedPosterior
from tacit.models.posterior import ClassPosterior
from tacit.models.quadratic import blended, log_densities

C, P = 8, 24
TRUE = np.random.default_rng(3).normal(size=(C, P)) * 0.2
VARIANCES, WITHIN, DOUBT = np.full(P, 1 / P), 0.6, 0.04


def rows(seed, n=400, means=TRUE, noise=1.0):
    """Rows (n, P) of the classes in turn, and their classes."""
    y = np.arange(n) % len(means)
    return means[y] + noise * np.sqrt(WITHIN / P) * np.random.default_rng(seed).normal(
        size=(n, P)
    ), y


def task(u, doubt=DOUBT):
    """A task whose released means are known up to a variance of `doubt`."""
    means = TRUE + np.sqrt(doubt) * np.random.default_rng(0).normal(size=(C, P))
    posterior = ClassPosterior(means, np.full((C, P), doubt), np.full(C, 50.0), 0.5, WITHIN)
    known = CarriedPosterior(posterior, np.eye(P), VARIANCES, np.full(C, 0.5))
    return Task(
        known,
        u,
        blended(posterior, VARIANCES, rows(9)[0], known.clarity, None).times(1.5).of(u),
        linear=False,
    )


def test_one_update_in_one_dimension_by_hand():
    released = ClassPosterior(np.array([[1.0]]), np.array([[0.5]]), np.ones(1), 1.0, 1.0)
    # (1 / 0.5 + 0.1 (0.75 * 2 + 0.25 * 0) / 0.2) / (1 / 0.5 + 0.1 (0.75 + 0.25) / 0.2) = 2.75 / 2.5
    moved = moved_means(
        released, np.array([0.2]), np.array([[2.0], [0.0]]), np.array([[0.75], [0.25]])
    )
    np.testing.assert_allclose(moved, [[1.1]], rtol=1e-12)


def test_one_round_in_one_dimension_by_hand(monkeypatch):
    monkeypatch.setattr(adapting, "ROUNDS", 1)
    released = ClassPosterior(np.array([[1.0], [-1.0]]), np.full((2, 1), 0.5), np.ones(2), 1.0, 0.2)
    known = CarriedPosterior(released, np.eye(1), np.ones(1), np.ones(2))
    # their standard deviation within rows is 1
    scores = np.array([[1.0, -1.0]] * 3 + [[-1.0, 1.0]])
    posterior, shares = Task(
        known, np.array([[1.0]] * 3 + [[-1.0]]), scores, linear=False
    ).adapted()
    # a density of variance 0.2 + 0.5 to the power 0.1, and a score that is ahead by 2, times 2
    z = 1 / (1 + math.exp(-(0.1 * 2**2 / (2 * 0.7) + 2 * 2)))
    np.testing.assert_allclose(shares[:, 0], [z, z, z, 1 - z], rtol=1e-12)
    seen, weight = 3 * z - (1 - z), 3 * z + (1 - z)
    expected = (1 / 0.5 + 0.1 * seen / 0.2) / (1 / 0.5 + 0.1 * weight / 0.2)
    np.testing.assert_allclose(posterior.mean[0, 0], expected, rtol=1e-12)
    np.testing.assert_array_equal(posterior.variance, released.variance)


def test_log_densities_are_those_of_scipy_up_to_a_constant():
    rng = np.random.default_rng(0)
    u, means, variances = (
        rng.normal(size=(5, 3)),
        rng.normal(size=(2, 3)),
        rng.uniform(0.1, 2, (2, 3)),
    )
    expected = norm.logpdf(u[:, None], means, np.sqrt(variances)).sum(axis=2) + 1.5 * np.log(
        2 * np.pi
    )
    np.testing.assert_allclose(log_densities(means, variances).of(u), expected, rtol=1e-12)


def test_spread_counts_classes():
    assert spread(np.full(5, 0.2)) == pytest.approx(1)
    assert spread(np.array([1.0, 0, 0, 0, 0])) == pytest.approx(0)
    assert spread(np.array([0.5, 0.5, 0, 0, 0])) == pytest.approx(0.25)
    assert spread(np.ones(1)) == 1


def accuracy(made, seed=5):
    u, y = rows(seed, 4000)
    scores = task(u).scores
    return np.mean((scores if made is None else scores + made.of(u)).argmax(axis=1) == y)


def test_rows_of_the_task_open_the_gate_and_help():
    suited = task(rows(1)[0])
    found = suited.suitability()
    assert found.fault is None
    assert found.gain > 1
    assert found.spread > 0.99
    assert found.distance == pytest.approx(1, abs=0.2)
    assert found.width == pytest.approx(1, abs=0.1)
    before, after = accuracy(None), accuracy(suited.addition())
    assert before < 0.97
    assert after > 0.99


def test_the_order_of_the_rows_does_not_matter():
    u, y = rows(1)
    assert task(u[np.argsort(y, kind="stable")]).suitability().spread > 0.98


def test_the_likelihood_is_that_of_rows_that_nothing_was_adapted_to():
    u = rows(1)[0]
    other, held_out = u.copy(), np.random.default_rng(0).permutation(len(u))[1::2]
    other[held_out] = rows(2)[0][held_out]
    one, two = task(u).suitability(), task(other).suitability()
    assert one.gain != two.gain
    assert replace(one, gain=two.gain) == two


@pytest.mark.parametrize(
    ("u", "fault"),
    [
        (rows(1, means=TRUE[:2])[0], stating("few of the classes", "spread")),
        (
            rows(1, means=TRUE + np.where(np.arange(P) < 2, 0.9, 0))[0],
            stating("means of their classes"),
        ),
        (rows(1, noise=1.5)[0], stating("rows of their classes")),
    ],
    ids=["two classes", "moved", "wide"],
)
def test_other_rows_close_the_gate(u, fault):
    found = task(u).suitability()
    assert found.gain > 0
    assert re.search(fault, found.fault), found


def test_a_likelihood_that_falls_closes_the_gate():
    assert Suitability(0.1, 1.0, 1.0, 1.0).fault is None
    for position in range(4):
        figures = [1.0] * 4
        figures[position] = math.nan
        assert "nan" in Suitability(*figures).fault
    assert not lacking(Suitability(-0.5, 1.0, 1.0, 1.0).fault, "-0.5")
    assert not lacking(Suitability(1, 1, 1, 2).fault, "2.00 times", "1.5")


def test_few_rows_change_little():
    suited = task(rows(1, 15 * C)[0])
    assert FEW == 15
    full = suited.change(suited.adapted()[0])
    np.testing.assert_allclose(suited.addition().slopes, full.slopes / 2, rtol=1e-12)


def test_means_that_were_clear_stay():
    suited = task(rows(1)[0], doubt=1e-9)
    posterior, _ = suited.adapted()
    np.testing.assert_allclose(posterior.mean, suited.known.posterior.mean, atol=1e-6)
    np.testing.assert_allclose(suited.addition().slopes, 0, atol=1e-4)
