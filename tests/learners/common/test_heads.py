"""Softmax heads: the minimum of the loss written out, what it knows, and that the start of a fit
decides nothing but its time.
"""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from tacit.learners.common import heads
from tacit.learners.common.heads import Head, fit_head

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(40, 3))
VALUES = RNG.normal(size=(40, 4))
ABOUT = Head(RNG.normal(size=(4, 3)), RNG.normal(size=4))
ZERO = Head(np.zeros((4, 3)), np.zeros(4))
NONE = np.zeros(40, dtype=bool)
ALL = np.ones(40, dtype=bool)
TARGETS = softmax(VALUES, axis=1)


def loss(head, values, target, about, ridge, intercept_ridge):
    """The objective, record by record."""
    total = ridge * np.square(head.coefficients - about.coefficients).sum() / 2
    total += intercept_ridge * np.square(head.intercepts - about.intercepts).sum() / 2
    for row, row_values, is_target in zip(ROWS, values, target, strict=True):
        scores = head.coefficients @ row + head.intercepts
        log_p = scores - np.log(np.exp(scores).sum())
        if is_target:
            total -= row_values @ log_p
        else:
            total -= np.log(np.exp(log_p + row_values).sum())
    return total


@pytest.mark.parametrize("n_targets", [0, 20, 40])
@pytest.mark.parametrize("ridge", [0.3, 3.0])
def test_the_head_minimises_the_loss_written_out(n_targets, ridge):
    target = np.arange(40) < n_targets
    values = np.where(target[:, None], TARGETS, VALUES)
    head = fit_head(ROWS, values, target, ABOUT, ridge=ridge, intercept_ridge=10.0)
    best = loss(head, values, target, ABOUT, ridge, 10.0)
    for _ in range(50):
        other = Head(
            head.coefficients + 0.03 * RNG.normal(size=(4, 3)),
            head.intercepts + 0.03 * RNG.normal(size=4),
        )
        assert loss(other, values, target, ABOUT, ridge, 10.0) > best


def test_certain_labels_give_logistic_regression():
    y = RNG.integers(0, 4, 40)
    certain = np.where(np.eye(4, dtype=bool)[y], 0.0, -1e6)
    head = fit_head(ROWS, certain, NONE, ZERO, ridge=0.5, intercept_ridge=10.0)
    # the coefficient of this column has the ridge of intercepts
    column = np.full((40, 1), np.sqrt(0.5 / 10.0))
    exact = LogisticRegression(C=2.0, fit_intercept=False, tol=1e-10, max_iter=1000).fit(
        np.hstack([ROWS, column]), y
    )
    assert head.coefficients == pytest.approx(exact.coef_[:, :-1], abs=0.005)
    assert head.intercepts == pytest.approx(exact.coef_[:, -1] * column[0], abs=0.002)
    assert head.log_probabilities(ROWS) == pytest.approx(
        np.log(softmax(ROWS @ head.coefficients.T + head.intercepts, axis=1))
    )


def test_records_of_which_nothing_is_known_change_nothing():
    known = np.setdiff1d(np.arange(40), [0, 3, 7, 39])
    values = np.zeros((40, 4))
    values[known] = VALUES[known]
    ridges = {"ridge": 1.0, "intercept_ridge": 10.0}
    head = fit_head(ROWS, values, NONE, ABOUT, **ridges)
    alone = fit_head(ROWS[known], VALUES[known], NONE[known], ABOUT, **ridges)
    assert head.coefficients == pytest.approx(alone.coefficients, abs=1e-3)
    untaught = fit_head(ROWS, np.zeros((40, 4)), NONE, ABOUT, **ridges)
    assert untaught.coefficients == pytest.approx(ABOUT.coefficients)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_warm_and_cold_starts_end_at_one_optimum(dtype):
    """Along a path of ridges, each head from the one before it, or from the head about which it is
    fitted.
    """
    warm = None
    for ridge in (3.0, 1.0, 0.3):
        more = {"ridge": ridge, "intercept_ridge": 1.0, "tolerance": 1e-12}
        warm = fit_head(ROWS.astype(dtype), TARGETS, ALL, ABOUT, start=warm, **more)
        cold = fit_head(ROWS.astype(dtype), TARGETS, ALL, ABOUT, **more)
        assert warm.coefficients == pytest.approx(cold.coefficients, abs=2e-3)
        assert warm.intercepts == pytest.approx(cold.intercepts, abs=2e-3)


def test_a_start_near_the_optimum_saves_work(monkeypatch):
    calls = []
    loss_and_slope = heads.loss_and_slope
    monkeypatch.setattr(
        heads, "loss_and_slope", lambda *arrays: calls.append(1) or loss_and_slope(*arrays)
    )
    more = {"ridge": 0.1, "intercept_ridge": 1.0}
    cold = fit_head(ROWS, TARGETS, ALL, ABOUT, **more)
    of_cold_start = len(calls)
    fit_head(ROWS, TARGETS, ALL, ABOUT, start=cold, **more)
    assert len(calls) - of_cold_start < of_cold_start / 2


def test_blocks_of_rows_add_up(monkeypatch):
    values = np.where(np.arange(40)[:, None] < 20, TARGETS, VALUES)
    more = {"ridge": 1.0, "intercept_ridge": 1.0}
    whole = fit_head(ROWS, values, np.arange(40) < 20, ABOUT, **more)
    monkeypatch.setattr(heads, "BLOCK", 4 * 7)
    parts = fit_head(ROWS, values, np.arange(40) < 20, ABOUT, **more)
    assert parts.coefficients == pytest.approx(whole.coefficients, abs=1e-4)
