"""Thresholds of sets of labels, against the best of all thresholds by enumeration."""

import numpy as np
import pytest

from tacit.errors import InputError
from tacit.models.label_sets import (
    LabelSets,
    expected_f1_thresholds,
    label_sets_misfit,
    stated_label_sets,
)


def expected_f1(probabilities, threshold):
    answered = probabilities >= threshold
    return 2 * probabilities[answered].sum() / (answered.sum() + probabilities.sum())


def test_thresholds_reach_the_best_expected_f1():
    probabilities = np.random.default_rng(0).beta(0.4, 2.0, size=(60, 4))
    thresholds = expected_f1_thresholds(probabilities)
    for label, threshold in enumerate(thresholds):
        column = probabilities[:, label]
        best = max(expected_f1(column, other) for other in column)
        assert expected_f1(column, threshold) == pytest.approx(best, rel=1e-12)


def test_rounding_decides_about_no_row_from_which_thresholds_follow():
    spread = np.random.default_rng(0).beta(0.4, 2.0, size=(60, 4))
    # half the best F1 lies between two probabilities that are nearer than the margin
    half = (np.sqrt(1.8**2 + 8 * 0.8) - 1.8) / 4
    near = np.array([0.8, half + 2e-7, half - 2e-7])[:, None]
    assert near[2] < expected_f1_thresholds(near)[0] < near[1]
    for probabilities in (spread, near, np.full((5, 1), 0.3)):
        thresholds = expected_f1_thresholds(probabilities)
        chosen = probabilities >= thresholds
        for rounding in (1 - 1e-9, 1 + 1e-9):
            np.testing.assert_array_equal(rounding * probabilities >= thresholds, chosen)


def test_sets_follow_from_scaled_scores():
    rule = LabelSets(2.0, np.array([0.5, 0.9]))
    scores = np.array([[0.0, 1.0], [-0.1, 1.2]])
    np.testing.assert_allclose(rule.probabilities(scores), 1 / (1 + np.exp(-2 * scores)))
    np.testing.assert_array_equal(rule.chosen(scores), [[True, False], [False, True]])


def test_arrays_of_a_release_state_the_rule():
    rule = LabelSets(2.0, np.array([0.5, 0.9]))
    read = stated_label_sets(rule.arrays())
    assert read.scale == 2.0
    np.testing.assert_array_equal(read.thresholds, rule.thresholds)
    assert stated_label_sets({}) is None
    assert label_sets_misfit(rule.arrays(), 2, several=True) is None


@pytest.mark.parametrize(
    ("change", "several", "fault"),
    [
        ({}, False, "only then"),
        ({"thresholds": np.array([0.5])}, True, "must be float64 of shape"),
        ({"thresholds": np.array([0.5, 1.5])}, True, "thresholds must be from 0 to 1"),
        ({"thresholds": np.array([0.5, np.nan])}, True, "thresholds must be from 0 to 1"),
        ({"probabilities": np.array([0.0, 0.0])}, True, "must be above 0"),
    ],
)
def test_arrays_that_do_not_fit_are_named(change, several, fault):
    arrays = LabelSets(2.0, np.array([0.5, 0.9])).arrays() | change
    assert fault in label_sets_misfit(arrays, 2, several=several)


def test_a_scale_that_is_no_scale_is_refused():
    with pytest.raises(InputError, match="scale=0"):
        LabelSets(0.0, np.array([0.5]))
