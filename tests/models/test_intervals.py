"""Intervals of shares and weighted means: by hand, and how often they hold the truth."""

import math

import numpy as np
import pytest

from tacit.models.intervals import interval_of_share, wilson
from tacit.models.metrics import evaluate


def test_wilson_by_hand():
    # 15 of 20: both ends solve (p - share)^2 = z^2 p (1 - p) / n
    for end in wilson(0.75, 20):
        assert (end - 0.75) ** 2 == pytest.approx(1.959963984540054**2 * end * (1 - end) / 20)
    assert wilson(0.0, 20) == pytest.approx((0, 0.161125), abs=1e-6)
    assert wilson(0.5, 0) == (0, 1)


@pytest.mark.parametrize("right", [0, 590])
def test_all_rows_right_or_wrong_are_no_point(right):
    truth = np.zeros(590, dtype=np.int64)
    predicted = np.where(np.arange(590) < right, 0, 1)
    scores = evaluate(truth, predicted, np.array([0, 1]))
    for low, high in (scores.interval, scores.accuracy_interval):
        assert high - low == pytest.approx(1 - 0.9935, abs=5e-5)
        assert low == 0 or high == 1


def test_all_persons_right_count_as_one_each():
    persons = np.repeat(np.arange(50), 20)
    weights = np.full(1_000, 1 / 1_000)
    low, high = interval_of_share(1.0, np.zeros(1_000), weights, persons)
    # z becomes Student's quantile with 49 degrees of freedom
    assert low == pytest.approx(50 / (50 + 2.0095752**2), rel=1e-6)
    assert high == 1
    assert interval_of_share(1.0, np.zeros(3), np.full(3, 1 / 3), np.zeros(3, int)) == (0, 1)


def test_classes_that_differ_make_a_share_no_surer():
    # by its variance alone, 13 of 10 and 10 rows would count for 28 rows
    truth = np.repeat([0, 1], 10)
    predicted = np.where(np.arange(20) < 17, 0, 1)
    scores = evaluate(truth, predicted, np.array([0, 1]))
    assert scores.interval == pytest.approx(wilson(0.65, 20))


def test_a_few_wrong_rows_hardly_move_the_lower_end():
    """The variance of the persons alone would raise it by .06 at the first of them."""
    persons = np.repeat(np.arange(50), 20)
    truth = np.zeros(1_000, dtype=np.int64)
    ends = []
    for n_wrong in range(6):
        predicted = np.where(np.arange(1_000) < n_wrong, 1, 0)
        scores = evaluate(truth, predicted, np.array([0, 1]), persons=persons)
        ends.append(scores.accuracy_interval[0])
    assert max(ends) - min(ends) < 0.003


@pytest.mark.parametrize(
    ("rows", "accuracies"),
    [
        ([20] * 5, [0.99] * 5),
        ([300, 100], [0.9, 0.6]),
        # a small class that is worse than the others
        ([200] * 9 + [5], [0.99] * 9 + [0.8]),
        ([1] * 60, [0.5] * 60),
    ],
)
def test_intervals_of_balanced_accuracy_hold_the_truth(rows, accuracies):
    rng = np.random.default_rng(0)
    n_classes = len(rows)
    truth = np.repeat(np.arange(n_classes), rows)
    balanced = np.mean(accuracies)
    covered = 0
    for _ in range(400):
        hits = rng.random(len(truth)) < np.repeat(accuracies, rows)
        predicted = np.where(hits, truth, (truth + 1) % n_classes)
        low, high = evaluate(truth, predicted, np.arange(n_classes)).interval
        covered += low <= balanced <= high
    # 2.5 standard errors below the least of the table that is stored
    least = 0.93 - 2.5 * math.sqrt(0.93 * 0.07 / 400)
    assert covered / 400 >= least


@pytest.mark.parametrize(("accuracy", "alike"), [(0.99, 0.5), (0.8, 0.1), (0.8, 0.9)])
def test_intervals_over_persons_hold_the_truth(accuracy, alike):
    """Persons of 1 to 20 rows; the accuracy of each is drawn, so that rows correlate."""
    rng = np.random.default_rng(1)
    spread = (1 - alike) / alike
    covered = 0
    for _ in range(300):
        persons = np.repeat(np.arange(60), rng.integers(1, 21, 60))
        chances = rng.beta(accuracy * spread, (1 - accuracy) * spread, 60)
        hits = rng.random(len(persons)) < chances[persons]
        truth = np.zeros(len(persons), dtype=np.int64)
        low, high = evaluate(truth, 1 - hits, np.array([0, 1]), persons=persons).accuracy_interval
        covered += low <= accuracy <= high
    least = 0.93 - 2.5 * math.sqrt(0.93 * 0.07 / 300)
    assert covered / 300 >= least
