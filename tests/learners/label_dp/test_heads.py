"""The linear head: the minimum of the loss written out, what it knows, and how it is
regularised.
"""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from tacit.learners.label_dp import heads
from tacit.learners.label_dp.evidence import Evidence
from tacit.learners.label_dp.heads import OF_INTERCEPTS, Head, fitted_head, spaced

RNG = np.random.default_rng(0)
ROWS, VALUES = RNG.normal(size=(40, 3)), RNG.normal(size=(40, 4))
ABOUT = Head(RNG.normal(size=(4, 3)), RNG.normal(size=4))
ZERO = Head(np.zeros((4, 3)), np.zeros(4))
SEEN = np.zeros(40, dtype=bool)


@pytest.fixture(autouse=True)
def to_the_optimum(monkeypatch):
    monkeypatch.setattr(heads, "SLOPE", 3e-2)


@pytest.mark.parametrize("targets", ["none", "half", "all"])
@pytest.mark.parametrize("ridge", [0.3, 3.0])
def test_the_head_minimises_the_loss_written_out(targets, ridge):
    values, target = VALUES.copy(), np.arange(40) < {"none": 0, "half": 20, "all": 40}[targets]
    values[target] += (1 - values[target].sum(axis=1, keepdims=True)) / 4
    found = fitted_head(ROWS, Evidence(values, target), ridge, ABOUT)

    def loss(w, b):
        total = ridge * np.square(w - ABOUT.coefficients).sum() / 2
        total += OF_INTERCEPTS * np.square(b - ABOUT.intercepts).sum() / 2
        for row, own, fixed in zip(ROWS, values, target, strict=True):
            f = w @ row + b
            log_p = f - np.log(np.exp(f).sum())
            total -= own @ log_p if fixed else np.log(np.exp(log_p + own).sum())
        return total

    best = loss(found.coefficients, found.intercepts)
    for _ in range(50):
        w, b = RNG.normal(size=(4, 3)) * 0.1, RNG.normal(size=4) * 0.1
        assert loss(found.coefficients + w, found.intercepts + b) > best


def test_certain_labels_give_logistic_regression():
    y = RNG.integers(0, 4, 40)
    certain = Evidence(np.where(np.eye(4, dtype=bool)[y], 0.0, -1e6), SEEN)
    found = fitted_head(ROWS, certain, 0.5, ZERO)
    # its coefficient has the ridge of intercepts
    column = np.full((40, 1), np.sqrt(0.5 / OF_INTERCEPTS))
    exact = LogisticRegression(C=2.0, fit_intercept=False, tol=1e-10, max_iter=1000).fit(
        np.hstack([ROWS, column]), y
    )
    assert found.coefficients == pytest.approx(exact.coef_[:, :-1], abs=0.05)
    assert found.intercepts == pytest.approx(exact.coef_[:, -1] * column[0], abs=0.01)
    assert found.log_probabilities(ROWS) == pytest.approx(
        np.log(softmax(ROWS @ found.coefficients.T + found.intercepts, axis=1))
    )


def test_records_of_which_nothing_is_known_change_nothing():
    hidden = np.array([0, 3, 7, 39])
    kept = np.setdiff1d(np.arange(40), hidden)
    known = Evidence(VALUES, np.arange(40) < 0)
    without = fitted_head(ROWS, known.without(hidden), 1.0, ABOUT)
    alone = fitted_head(ROWS[kept], known.among(kept), 1.0, ABOUT)
    assert without.coefficients == pytest.approx(alone.coefficients, abs=1e-5)
    assert fitted_head(
        ROWS, known.without(np.arange(40)), 1.0, ABOUT
    ).coefficients == pytest.approx(ABOUT.coefficients)


def test_a_start_does_not_change_the_optimum():
    known = Evidence(VALUES, SEEN)
    first, second = (fitted_head(ROWS, known, 3.0, ABOUT, start) for start in (None, ZERO))
    assert first.coefficients == pytest.approx(second.coefficients, abs=0.05)


def test_spaced_positions():
    assert spaced(3, 5).tolist() == [0, 1, 2]
    assert spaced(10, 4).tolist() == [0, 2, 5, 7]


def test_posteriors_and_likelihoods():
    prior = np.log(softmax(RNG.normal(size=(40, 4)), axis=1))
    half = Evidence(np.where(np.arange(40)[:, None] < 20, 0.25, VALUES), np.arange(40) < 20)
    posterior = half.posterior(prior)
    assert posterior[:20] == pytest.approx(np.full((20, 4), 0.25))
    by_hand = np.exp(prior + VALUES)[20:]
    assert posterior[20:] == pytest.approx(by_hand / by_hand.sum(axis=1, keepdims=True))
    total = 0.25 * prior[:20].sum() + np.log(by_hand.sum(axis=1)).sum()
    assert half.mean_likelihood(prior) == pytest.approx(total / 40)
