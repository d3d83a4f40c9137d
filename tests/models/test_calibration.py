"""The scale from simulated rows: closed forms for Gaussian classes, and what the released gradients
change.
"""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from tacit.models import calibration
from tacit.models.calibration import (
    Slopes,
    best_scale,
    fair_offsets,
    loss_slope,
    posterior_probabilities,
    simulated,
    with_doubt_of_names,
    within_classes,
)
from tacit.models.carried import CarriedPosterior
from tacit.models.posterior import ClassPosterior

WIDTH, CLASSES, WITHIN = 6, 3, 0.8
MEANS = np.eye(CLASSES, WIDTH) * math.sqrt(1 - WITHIN)
SAMPLE = np.random.default_rng(0).normal(size=(4000, WIDTH)) / math.sqrt(WIDTH)
SPREAD = np.full((CLASSES, WIDTH), 1e-9)
KNOWN = CarriedPosterior(
    ClassPosterior(MEANS, SPREAD, np.full(CLASSES, 50.0), 0.9, WITHIN),
    np.eye(WIDTH),
    np.full(WIDTH, 1 / WIDTH),
    np.ones(CLASSES),
)
ROWS = simulated(KNOWN, SAMPLE)


def linear(rows):
    """Log odds of the classes, if rows are Gaussian about their means with variance
    `WITHIN`/`WIDTH`.
    """
    variance = WITHIN / WIDTH
    return rows @ MEANS.T / variance - 0.5 * (MEANS**2).sum(axis=1) / variance


def test_the_best_scale_of_true_log_odds_is_one():
    rng = np.random.default_rng(1)
    labels = np.arange(30_000) % CLASSES
    scores = linear(MEANS[labels] + rng.normal(size=(30_000, WIDTH)) * math.sqrt(WITHIN / WIDTH))
    assert best_scale(scores, labels) == pytest.approx(1, abs=0.03)
    assert best_scale(4 * scores, labels) == pytest.approx(0.25, abs=0.01)
    shares = np.full(CLASSES, 1 / CLASSES)
    slope = partial(loss_slope, labels=labels, shares=shares, balance=1.0)
    assert slope(scores, clip=math.inf) == pytest.approx(0, abs=0.01)
    assert slope(2 * scores, clip=math.inf) > 0.1 > -0.05 > slope(scores / 2, clip=9.0)


@pytest.mark.parametrize("balance", [1.0, 1.3])
def test_the_slope_is_the_derivative_of_the_mean_loss_with_shares_added(balance):
    rng = np.random.default_rng(2)
    labels, scores, shares = (
        np.arange(600) % 3,
        rng.normal(size=(600, 3)),
        np.array([0.6, 0.3, 0.1]),
    )

    def loss(scale):
        logits = scale * scores + balance * np.log(shares)
        each = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(600), labels]
        return float(shares[labels] @ each / 200)

    derivative = (loss(1 + 1e-5) - loss(1 - 1e-5)) / 2e-5
    slope = partial(loss_slope, scores, labels, shares, balance=balance)
    assert slope(clip=math.inf) == pytest.approx(derivative, rel=1e-6)
    assert slope(clip=0.5) != pytest.approx(derivative, rel=0.1)


def test_simulated_rows_have_the_spread_within_classes_and_heavy_tails():
    rows = ROWS
    assert np.allclose(rows.means, MEANS[rows.labels], atol=1e-3)
    assert np.bincount(rows.labels).min() >= len(rows.labels) // CLASSES
    squares = (rows.spread**2).sum(axis=1)
    assert squares.mean() == pytest.approx(WITHIN, rel=0.1)
    assert rows.spread.std() == pytest.approx(math.sqrt(WITHIN / WIDTH), rel=0.05)
    kurtosis = (rows.spread**4).mean() / (rows.spread**2).mean() ** 2
    assert kurtosis > 4  # 3 for Gaussian rows, 6 for the Student distribution


def test_foreign_rows_make_probabilities_less_certain():
    moved = KNOWN.posterior.mean + 0.3 * np.eye(WIDTH)[5]
    foreign = replace(KNOWN, posterior=replace(KNOWN.posterior, mean=moved))
    near, far = (
        posterior_probabilities(known.posterior, simulated(known, SAMPLE), linear)
        for known in (KNOWN, foreign)
    )
    assert far.scale < 0.8 * near.scale or far.even > near.even + 0.05


def test_public_rows_of_the_private_kind_lose_what_differs_between_classes():
    rng = np.random.default_rng(4)
    means = np.concatenate([MEANS - MEANS.mean(axis=0), -(MEANS - MEANS.mean(axis=0))])
    own = means[rng.integers(6, size=4000)] + rng.normal(size=(4000, WIDTH)) * math.sqrt(
        WITHIN / WIDTH
    )
    axes = np.linalg.eigh(own.T @ own)[1]
    along, at = own @ axes, means @ axes
    posterior = ClassPosterior(at, np.full(at.shape, 1e-9), np.full(6, 50.0), 0.9, WITHIN)
    known = CarriedPosterior(posterior, axes, (along**2).mean(axis=0), np.ones(6))
    found = (within_classes(known, along) ** 2).mean(axis=0)
    ratio = (at**2).mean(axis=0) / known.variances
    assert ratio.max() > 0.2
    assert np.allclose(found, known.variances / (1 + ratio), rtol=0.05)
    foreign = replace(known, posterior=replace(posterior, mean=at + 2 * np.eye(WIDTH)[0]))
    assert np.allclose(within_classes(foreign, along), along, rtol=0, atol=0.02)


def slopes(value, noise=0.01):
    return Slopes([value] * 60, [noise] * 60)


def test_released_gradients_decide_where_they_are_clear():
    scales = [
        posterior_probabilities(KNOWN.posterior, ROWS, linear, slopes(value)).scale
        for value in (-0.3, 0.0, 0.3)
    ]
    assert scales[0] > 1.1 * scales[1] > 1.2 * scales[2]
    unclear = [
        posterior_probabilities(KNOWN.posterior, ROWS, linear, slopes(value, 50.0)).scale
        for value in (-0.3, 0.3)
    ]
    assert unclear[0] == pytest.approx(unclear[1], rel=0.05)


def test_the_last_slope_is_the_end_of_a_line_and_counts_with_twice_the_error_of_a_single_one():
    rng = np.random.default_rng(3)
    ends, errors = [], []
    for _ in range(400):
        values = np.concatenate(
            [rng.normal(9, 1, 15), -1 + 0.05 * np.arange(-14, 1) + rng.normal(0, 0.4, 15)]
        )
        end, error = Slopes(values.tolist(), [0.4] * 30).last()
        ends.append(end)
        errors.append(error)
    assert np.mean(ends) == pytest.approx(-1, abs=0.03)
    assert np.std(ends) < 0.25
    assert np.mean(errors) == pytest.approx(0.8, rel=0.1)
    assert Slopes([2.0], [0.1]).last() == (2.0, 0.2)
    assert Slopes([2.0] * 9, [0.0] * 9).last() == (pytest.approx(2.0), 0.03)


def test_one_class_needs_no_scale_and_many_classes_no_more_rows():
    one = replace(KNOWN, posterior=replace(KNOWN.posterior, mean=MEANS[:1]))
    assert posterior_probabilities(one.posterior, simulated(one, SAMPLE), linear).scale == 1
    many = 3000
    posterior = ClassPosterior(np.zeros((many, 2)), np.ones((many, 2)), np.ones(many), 0.5, 0.5)
    rows = simulated(
        CarriedPosterior(posterior, np.eye(2), np.ones(2), np.ones(many)), SAMPLE[:, :2]
    )
    assert len(rows.labels) == max(calibration.FEWEST, calibration.ENTRIES // many)
    assert len(set(rows.labels.tolist())) == len(rows.labels)
    assert rows.labels.max() < many


@pytest.mark.parametrize("sums_alone", [False, True])
@pytest.mark.parametrize("clarity", [[0.2, 0.8, 0.8], [0.05, 0.01, 0.01], [0.99, 0.99, 0.99]])
def test_offsets_return_what_a_class_lacks_as_far_as_its_sum_is_not_clear(clarity, sums_alone):
    """Without the handicap the classes are alike but for rotation, and none has an offset."""
    clear, handicap = np.array(clarity), np.array([-2.0, 0.0, 0.0])
    found = fair_offsets(clear, ROWS, lambda rows: linear(rows) + handicap, sums_alone=sums_alone)
    share = 1.5 * (1 - 2 / 3) * clear.mean() / (1 if sums_alone else clear.mean() + 0.05)
    expected = share * (1 - clear) * (-handicap + clear @ handicap / clear.sum())
    assert found == pytest.approx(expected, abs=0.1 * np.abs(expected).max())
    none = fair_offsets(clear, ROWS, linear, sums_alone=sums_alone)
    assert none == pytest.approx(np.zeros(3), abs=0.1 * np.abs(expected).max())


def test_of_two_classes_none_has_an_offset():
    two = replace(KNOWN.posterior, mean=MEANS[:2], variance=SPREAD[:2], sizes=np.full(2, 50.0))
    rows = simulated(replace(KNOWN, posterior=two), SAMPLE)
    assert fair_offsets(
        np.array([0.1, 0.9]), rows, lambda rows: linear(rows)[:, :2] - [2, 0]
    ).tolist() == [0, 0]


def test_doubt_of_names_widens_the_means_alone():
    model = replace(KNOWN, posterior=replace(KNOWN.posterior, variance=SPREAD * 1e8), names=MEANS)
    rows = simulated(model, SAMPLE)
    doubted = with_doubt_of_names(rows, model, trust=0.25)

    # three classes of `CLASSES_OF_DOUBT` + 3, and three quarters of the doubt
    doubt = calibration.DOUBT_OF_NAMES * 0.75 * 3 / (3 + calibration.CLASSES_OF_DOUBT)
    centres = MEANS[rows.labels]
    ratio = (doubted.means - centres).std() / (rows.means - centres).std()
    assert ratio == pytest.approx(math.sqrt(1 + doubt))
    assert (doubted.spread == rows.spread).all()
    assert with_doubt_of_names(rows, replace(model, names=None), trust=0.25) is rows
