"""Weights and noisy counts of records with several labels, and sets of labels from scores."""

from itertools import product

import numpy as np
import pytest
from scipy.special import expit

from tacit.learners.common.label_calibration import calibrated
from tacit.learners.common.label_sets import (
    LabelCounts,
    SetCounts,
    set_weights,
    weighted_labels,
)
from tacit.mechanisms.blocks import Block
from tacit.mechanisms.noise import noise_source
from tacit.mechanisms.outer_products import UNIT, product_sums

ALL_SETS = np.array(list(product([False, True], repeat=4)))


@pytest.mark.parametrize("most_labels", [1, 2, 4, 9])
def test_no_set_of_labels_is_longer_than_one(most_labels):
    """By enumeration; sets of at most the declared number have the same weight."""
    norms = np.linalg.norm(weighted_labels(ALL_SETS, most_labels), axis=1)
    assert norms.max() <= 1 + 1e-15
    weights = set_weights(ALL_SETS, most_labels)
    within = ALL_SETS.sum(axis=1) <= most_labels
    np.testing.assert_allclose(weights[within], most_labels**-0.5)
    np.testing.assert_allclose(norms[~within], 1)


@pytest.mark.parametrize("declared", [None, 3])
def test_a_record_moves_the_counts_by_one_at_most_and_two_records_by_root_two(declared):
    counts = LabelCounts(declared, most_labels=2)
    vectors = counts._vectors(ALL_SETS, declared is None)
    sums = [product_sums([(v[None], np.ones((1, 1)))], shape=(len(v), 1)) for v in vectors]
    moved = [np.linalg.norm(total.astype(float)) for total in sums]
    assert 0.3 < max(moved) / UNIT <= 1
    differences = [np.linalg.norm((a - b).astype(float)) for a, b in product(sums, sums)]
    assert max(differences) / UNIT <= np.sqrt(2)


def test_counts_are_numbers_of_records():
    labels = ALL_SETS.repeat(50, axis=0)
    block = Block(np.ones((len(labels), 3)), labels)
    exact = LabelCounts(None, 4).draw([block], 4, noise_source("research", 0))
    noisy = LabelCounts(None, 4, noise=1e-3).draw([block], 4, noise_source("research", 0))
    declared = LabelCounts(7, 4, noise=1e-3).draw([block], 4, noise_source("research", 0))
    np.testing.assert_allclose(exact.labels, labels.sum(axis=0))
    np.testing.assert_allclose(noisy.labels, exact.labels, atol=0.1)
    np.testing.assert_allclose(declared.labels, 7)
    for counts in (exact, noisy, declared):
        assert counts.records == pytest.approx(800, abs=0.1)
    # the number of records is private under add/remove, whether labels are counted or declared
    assert noisy.records != 800
    assert declared.records != 800


def test_the_noise_of_counts_is_as_stated():
    block = Block(np.zeros((0, 3)), np.zeros((0, 50), dtype=bool))
    counts = LabelCounts(None, 3, noise=10.0)
    source = noise_source("research", 0)
    drawn = [counts.draw([block], 50, source) for _ in range(40)]
    assert np.std([draw.labels for draw in drawn]) == pytest.approx(drawn[0].noise, rel=0.05)


def test_expected_counts_are_the_mean_of_a_truncated_normal():
    rng = np.random.default_rng(0)
    draws = rng.normal(30, 100, 10**6)
    counts = SetCounts(np.array([30.0, 5000.0, -1e5]), 4000, noise=100)
    assert counts.expected[0] == pytest.approx(draws[draws > 0].mean(), rel=0.01)
    assert counts.expected[1] == pytest.approx(5000)
    assert 0 < counts.expected[2] < 1
    assert (counts.shares > 0).all()
    assert (counts.shares < 1).all()


def test_the_scale_of_simulated_rows_is_found():
    """Labels drawn from known probabilities give their scale and offsets back."""
    rng = np.random.default_rng(0)
    scores = rng.normal(2, 1, size=(20_000, 3))
    truth = expit(3 * (scores - np.array([3.0, 2.5, 2.0])))
    labels = rng.random(truth.shape) < truth
    calibration = calibrated(scores, labels, truth.mean(axis=0))
    assert calibration.label_sets.scale == pytest.approx(3, rel=0.05)
    np.testing.assert_allclose(calibration.offsets, [-3, -2.5, -2], atol=0.05)
    # a larger share of the records is worth a larger threshold
    assert (np.diff(calibration.label_sets.thresholds) > 0).all()
