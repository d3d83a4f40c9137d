"""Strangeness by closed form, and simulated rows whose lengths, means and shares are known."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from tacit.models.carried import CarriedPosterior
from tacit.models.familiarity import (
    CLEAR,
    FEW_FOREIGN,
    MARGIN,
    Familiarity,
    share_below,
    softened,
)
from tacit.models.posterior import ClassPosterior

VARIANCES = np.array([0.4, 0.3, 0.2, 0.1])


def familiarity(mean, variance=1e-9, sizes=None, within=0.5, clarity=1.0, names=None):
    mean = np.array(mean)
    n_classes = len(mean)
    sizes = np.ones(n_classes) if sizes is None else np.array(sizes, dtype=float)
    posterior = ClassPosterior(mean, np.full(mean.shape, variance), sizes, trust=0.5, within=within)
    return Familiarity(
        CarriedPosterior(posterior, np.eye(4), VARIANCES, np.full(n_classes, clarity), names)
    )


def test_strangeness_is_the_log_likelihood_ratio():
    mean = [[0.5, 0.0, 0.0, 0.0], [0.0, 0.4, 0.1, 0.0]]
    rule = familiarity(mean, variance=0.02)
    assert rule.shrinkage == 1.0

    rows = np.random.default_rng(0).normal(size=(5, 4))
    spectrum = softened(VARIANCES, 1.0)
    background = multivariate_normal(np.zeros(4), np.diag(spectrum)).logpdf(rows)
    within = np.diag((0.5 + MARGIN) * spectrum + 0.02)
    of_classes = [multivariate_normal(centre, within).logpdf(rows) for centre in mean]
    assert np.allclose(rule.strangeness(rows), background - np.max(of_classes, axis=0))


def test_foreign_rows_stand_in_for_the_public_prior():
    rule = familiarity([[0.5, 0.0, 0.0, 0.0]])
    rng = np.random.default_rng(0)
    foreign = rng.normal(size=(FEW_FOREIGN, 4)) + np.array([0.0, 3.0, 0.0, 0.0])
    rows = rng.normal(size=(5, 4))

    # as many rows as weigh as much as the public ones
    variances = (foreign.var(axis=0) + VARIANCES) / 2
    spectrum = softened(variances, variances.sum())
    background = multivariate_normal(foreign.mean(axis=0) / 2, np.diag(spectrum)).logpdf(rows)
    public = multivariate_normal(np.zeros(4), np.diag(rule.spectrum)).logpdf(rows)
    added = rule.strangeness(rows, foreign) - rule.strangeness(rows)
    assert np.allclose(added, background - public)


def test_means_that_are_too_long_for_unit_rows_are_shortened():
    # |m|^2 is 4 for one record in four and 1 for the others, so 1.75, where 1 - h = 0.5 is left
    rule = familiarity([[2.0, 0, 0, 0], [0, 1.0, 0, 0]], variance=0.0, sizes=[1, 3])
    assert rule.shrinkage == pytest.approx(np.sqrt(0.5 / 1.75))


def test_simulated_rows_are_unit_rows_about_the_class_means():
    mean = np.array([[0.6, 0.0, 0.0, 0.0], [0.0, 0.0, -0.6, 0.3]])
    rule = familiarity(mean, sizes=[3, 1])
    rows = rule.simulated()
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)
    assert (rows == rule.simulated()).all()

    # rows come in the order of their classes, three of the first for each of the second
    n_first = 3 * len(rows) // 4
    for part, centre in ((rows[:n_first], mean[0]), (rows[n_first:], mean[1])):
        assert np.allclose(part.mean(axis=0), centre, atol=0.04)


def test_means_lost_in_noise_are_drawn_about_the_grand_mean():
    mean = [[0.5, 0.5, 0.0, 0.0], [0.5, -0.5, 0.0, 0.0]]
    clear = familiarity(mean).simulated()
    lost = familiarity(mean, clarity=0.0).simulated()
    named = familiarity(mean, clarity=0.0, names=np.array(mean)).simulated()
    assert (named == clear).all()

    # rows come in the order of their classes, and the grand mean has no second entry
    for rows, height in ((clear, 0.5), (lost, 0.0)):
        first = rows[: len(rows) // 2].mean(axis=0)
        assert first[0] > 0.4
        assert abs(first[1] - height) < 0.08
    assert familiarity(mean, clarity=CLEAR / 2)._lost_share() == pytest.approx(0.5)


def test_shares_count_smaller_values_alone():
    assert share_below(np.array([1.0, 2.0, 2.0, 5.0]), np.array([2.0, 5.1])).tolist() == [0.25, 1]
