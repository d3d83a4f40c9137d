import math

import numpy as np
import pytest
from scipy import stats

from messages import stating
from tacit.errors import InputError
from tacit.models.intervals import wilson
from tacit.models.metrics import Spread, evaluate, minority, spread

CLASSES = np.array(["a", "b", "c", "d"])
TRUTH = np.array(["a", "a", "a", "a", "b", "b", "c"])
PREDICTED = np.array(["a", "a", "a", "d", "b", "c", "b"])


def test_by_hand():
    """Class a 3 of 4, b 1 of 2, c 0 of 1; d is not in the test set."""
    scores = evaluate(TRUTH, PREDICTED, CLASSES)
    assert scores.accuracy == 4 / 7
    assert scores.balanced == pytest.approx((3 / 4 + 1 / 2 + 0) / 3)
    assert scores.per_class["a"] == 0.75
    assert scores.per_class["c"] == 0
    assert math.isnan(scores.per_class["d"])
    assert scores.minority is None
    # rows of a, b and c have the weights 1/12, 1/6 and 1/3, of which the largest is added
    variance = (0.75 * 0.25 / 4 + 0.5 * 0.5 / 2) / 9
    share = scores.balanced
    size = (share * (1 - share) + 1 / 3) / (variance + 1 / 9)
    assert size < 1 / ((1 / 4 + 1 / 2 + 1) / 9)
    assert scores.interval == pytest.approx(wilson(share, size))
    assert scores.accuracy_interval == pytest.approx(wilson(4 / 7, 7))


def test_minority_is_over_the_smallest_quarter_rounded_up():
    assert minority(np.array([5, 1, 9, 3])).tolist() == [1]
    assert sorted(minority(np.array([5, 1, 9, 3, 2])).tolist()) == [1, 4]
    assert minority(np.array([7])).tolist() == [0]
    assert evaluate(TRUTH, PREDICTED, CLASSES, np.array([5, 1, 9, 3])).minority == 0.5
    assert evaluate(TRUTH, PREDICTED, CLASSES, np.array([1, 5, 9, 3])).minority == 0.75


def test_a_minority_class_without_test_rows_is_left_out():
    """Two small classes of five, of which the test set holds one."""
    sizes = np.array([9, 2, 9, 9, 1])
    scores = evaluate(TRUTH, PREDICTED, np.array(["a", "b", "c", "d", "e"]), sizes)
    assert scores.minority == 0.5
    assert evaluate(TRUTH, PREDICTED, CLASSES, np.array([9, 9, 9, 1])).minority is None


def test_labels_that_are_no_class_are_refused():
    with pytest.raises(InputError, match=stating("row 1", "'z'", "release")):
        evaluate(np.array(["a", "z"]), np.array(["a", "a"]), CLASSES)


def test_spread_is_median_and_quartiles():
    assert spread([5.0, 1.0, 2.0, 4.0, 3.0]) == Spread(median=3.0, low=2.0, high=4.0)
    assert spread([0.0, 1.0]) == Spread(median=0.5, low=0.25, high=0.75)
    assert spread([0.7]) == Spread(0.7, 0.7, 0.7)
    with pytest.raises(InputError, match="values is empty"):
        spread([])


def test_intervals_over_persons_are_wilsons_at_the_variance_of_the_ratio_estimator():
    """By hand: two classes and nine times three persons, whose parts are added before they are
    squared.
    """
    truth, predicted = np.array([0, 0, 0, 0, 1, 1]), np.array([0, 0, 1, 1, 1, 0])
    persons = (np.array([0, 0, 1, 2, 1, 2]) + 3 * np.arange(9)[:, None]).ravel()
    scores = evaluate(np.tile(truth, 9), np.tile(predicted, 9), np.array([0, 1]), persons=persons)
    assert (scores.persons, scores.balanced, scores.accuracy) == (27, 0.5, 0.5)
    balanced = np.array([(0.5 + 0.5) / 8, -0.5 / 8 + 0.5 / 4, -0.5 / 8 - 0.5 / 4]) / 9
    accuracy = np.array([1.0, 0, -1]) / 6 / 9
    # a person of the first kind has two rows of class 0, the others one of either class
    balanced_weights = np.array([1 / 4, 3 / 8, 3 / 8]) / 9
    accuracy_weights = np.full(3, 1 / 27)
    for interval, parts, weights, of_rows in (
        (scores.interval, balanced, balanced_weights, 9 * (4 / 8**2 + 2 / 4**2) / 81),
        (scores.accuracy_interval, accuracy, accuracy_weights, 1 / 54),
    ):
        variance = 27 / 26 * 9 * (parts**2).sum()
        added = 9 * (weights**2).sum()
        size = min((0.25 + added) / (variance + added**2), 1 / of_rows)
        size *= (1.959963984540054 / stats.t(26).ppf(0.975)) ** 2
        assert interval == pytest.approx(wilson(0.5, size))


def test_persons_of_one_row_have_the_interval_of_rows_but_for_degrees_of_freedom():
    rng = np.random.default_rng(0)
    truth, classes = rng.integers(0, 3, 2_000), np.arange(3)
    predicted = np.where(rng.random(2_000) < 0.7, truth, rng.integers(0, 3, 2_000))
    rows = evaluate(truth, predicted, classes)
    persons = evaluate(truth, predicted, classes, persons=np.arange(2_000))
    assert rows.persons is None
    assert rows.accuracy_interval == pytest.approx(wilson(rows.accuracy, 2_000))
    assert persons.interval == pytest.approx(rows.interval, abs=1e-4)
    assert persons.accuracy_interval == pytest.approx(rows.accuracy_interval, abs=1e-4)
    assert persons.accuracy_interval != rows.accuracy_interval


def test_copies_of_a_persons_rows_tell_nothing_more():
    persons = np.arange(40)
    truth = persons % 2
    # four of five are right in each class
    predicted = np.where(persons // 2 % 5 == 0, 1 - truth, truth)
    once = evaluate(truth, predicted, np.arange(2), persons=persons)
    often = evaluate(
        *(np.repeat(given, 9) for given in (truth, predicted)),
        np.arange(2),
        persons=np.repeat(persons, 9),
    )
    # rows of a person are never taken to tell more than independent rows would
    for name in ("interval", "accuracy_interval"):
        assert getattr(often, name) == pytest.approx(getattr(once, name), abs=0.004)
    assert evaluate(truth, predicted, np.arange(2), persons=np.zeros(40)).interval == (0, 1)


def test_the_interval_over_persons_covers_the_truth_as_often_as_it_says():
    """Persons of 1 to 20 rows, each right or wrong throughout but for a tenth."""
    rng, covered, of_rows = np.random.default_rng(0), 0, 0
    for _ in range(300):
        persons = np.repeat(np.arange(120), rng.integers(1, 21, 120))
        truth = rng.integers(0, 2, len(persons))
        hit = (rng.random(120) < 0.7)[persons] ^ (rng.random(len(persons)) < 0.1)
        given = truth, np.where(hit, truth, 1 - truth), np.arange(2)
        low, high = evaluate(*given, persons=persons).interval
        covered += low <= 0.7 * 0.9 + 0.3 * 0.1 <= high
        low, high = evaluate(*given).interval
        of_rows += low <= 0.66 <= high
    assert covered / 300 == pytest.approx(0.95, abs=0.04)
    assert of_rows / 300 < 0.7
