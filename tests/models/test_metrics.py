import math

import numpy as np
import pytest

from tacit.errors import InputError
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
    deviation = math.sqrt(0.75 * 0.25 / 4 + 0.5 * 0.5 / 2) / 3
    assert scores.interval == pytest.approx((scores.balanced - 1.96 * deviation, scores.balanced + 1.96 * deviation))


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


def test_the_interval_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(300):
        truth = np.repeat([0, 1], [300, 100])
        hit = rng.random(400) < np.where(truth == 0, 0.9, 0.6)
        low, high = evaluate(truth, np.where(hit, truth, 1 - truth), np.array([0, 1])).interval
        covered += low <= 0.75 <= high
    assert 0.91 <= covered / 300 <= 0.985


def test_labels_that_are_no_class_are_refused():
    with pytest.raises(InputError, match="row 1 has label 'z', not a class of the release"):
        evaluate(np.array(["a", "z"]), np.array(["a", "a"]), CLASSES)


def test_spread_is_median_and_quartiles():
    assert spread([5.0, 1.0, 2.0, 4.0, 3.0]) == Spread(median=3.0, low=2.0, high=4.0)
    assert spread([0.0, 1.0]) == Spread(median=0.5, low=0.25, high=0.75)
    assert spread([0.7]) == Spread(0.7, 0.7, 0.7)
    with pytest.raises(InputError, match="values is empty"):
        spread([])
