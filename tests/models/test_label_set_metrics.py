"""Figures of sets of labels, against scikit-learn, and their errors against its derivatives."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, average_precision_score, f1_score

from tacit.errors import InputError
from tacit.models.intervals import interval_of_mean, interval_of_share, wilson
from tacit.models.label_set_metrics import (
    average_precision,
    calibration_error,
    evaluate_label_sets,
    rarest,
)

CLASSES = np.array(["fear", "joy", "pride", "rage"])


def problem(n=80, seed=0):
    """Truth, probabilities with many ties, and predicted sets; all labels occur."""
    rng = np.random.default_rng(seed)
    truth = rng.random((n, 4)) < [0.5, 0.3, 0.2, 0.1]
    probabilities = np.round(np.clip(0.3 * truth + 0.6 * rng.random((n, 4)), 0, 1), 1)
    return truth, probabilities, probabilities >= 0.5


def derivatives(figure, n, step=1e-6):
    """Derivatives of a figure of scikit-learn with respect to the weight of each row."""
    result = np.empty(n)
    for row in range(n):
        ends = []
        for change in (step, -step):
            weights = np.ones(n)
            weights[row] += change
            ends.append(figure(weights))
        result[row] = (ends[0] - ends[1]) / (2 * step)
    return result


def test_figures_are_those_of_scikit_learn():
    truth, probabilities, predicted = problem(n=200)
    scores = evaluate_label_sets(truth, predicted, probabilities, CLASSES)

    expected = average_precision_score(truth, probabilities, average=None)
    np.testing.assert_allclose(list(scores.per_label.values()), expected, rtol=1e-12)
    assert scores.mean_average_precision == pytest.approx(expected.mean(), rel=1e-12)
    assert scores.micro_f1 == pytest.approx(f1_score(truth, predicted, average="micro"))
    assert scores.macro_f1 == pytest.approx(f1_score(truth, predicted, average="macro"))
    assert scores.exact_match == pytest.approx(accuracy_score(truth, predicted))
    # a third of four labels, rounded up
    assert scores.rare_third == pytest.approx(expected[[2, 3]].mean())
    assert scores.rare_by == "counts in the test set"
    # two labels have 40 records or more
    assert scores.few_records == (truth.sum(axis=0) < 40).sum() == 2


def test_intervals_follow_from_the_derivatives_by_weights_of_rows():
    truth, probabilities, predicted = problem(n=20, seed=2)
    n = len(truth)
    arguments = (truth, predicted, probabilities, CLASSES)
    over_rows = evaluate_label_sets(*arguments)
    over_persons = evaluate_label_sets(*arguments, persons=np.arange(n) // 4)

    def precision(labels):
        return lambda weights: average_precision_score(
            truth[:, labels], probabilities[:, labels], sample_weight=weights
        )

    def f1(average):
        return lambda weights: f1_score(truth, predicted, average=average, sample_weight=weights)

    def match(weights):
        return accuracy_score(truth, predicted, sample_weight=weights)

    counts = truth.sum(axis=0)
    positive = truth / counts
    pairs = 1.0 * truth + predicted
    rare = rarest(counts)
    for name, value, figure, weights in (
        (
            "interval",
            over_rows.mean_average_precision,
            precision([0, 1, 2, 3]),
            positive.mean(axis=1),
        ),
        (
            "rare_third_interval",
            over_rows.rare_third,
            precision(rare),
            positive[:, rare].mean(axis=1),
        ),
        ("micro_f1_interval", over_rows.micro_f1, f1("micro"), pairs.sum(axis=1) / pairs.sum()),
        (
            "macro_f1_interval",
            over_rows.macro_f1,
            f1("macro"),
            (pairs / pairs.sum(axis=0)).mean(axis=1),
        ),
        ("exact_match_interval", over_rows.exact_match, match, np.full(n, 1 / n)),
    ):
        parts = derivatives(figure, n)
        for scores, codes in ((over_rows, None), (over_persons, np.arange(n) // 4)):
            interval_of = interval_of_share if figure is match else interval_of_mean
            expected = interval_of(value, parts, weights, codes)
            assert getattr(scores, name) == pytest.approx(expected, rel=1e-5)


def test_perfect_predictions_have_intervals_that_are_no_points():
    truth = problem(n=80)[0]
    scores = evaluate_label_sets(truth, truth, truth.astype(float), CLASSES)
    assert scores.exact_match_interval == pytest.approx(wilson(1, 80))
    for name in ("interval", "rare_third_interval", "micro_f1_interval", "macro_f1_interval"):
        low, high = getattr(scores, name)
        assert low < 0.97
        assert high == 1


def test_intervals_hold_their_level():
    # 200 test sets from one population, whose mean average precision a large set gives
    rng = np.random.default_rng(1)

    def drawn(n):
        truth = rng.random((n, 3)) < [0.4, 0.3, 0.2]
        scores = truth + rng.normal(size=(n, 3))
        return truth, 1 / (1 + np.exp(-scores))

    truth, probabilities = drawn(50_000)
    population = average_precision_score(truth, probabilities)
    covered = 0
    for _ in range(200):
        truth, probabilities = drawn(150)
        scores = evaluate_label_sets(
            truth, probabilities > 0.5, probabilities, np.array(["a", "b", "c"])
        )
        covered += scores.interval[0] <= population <= scores.interval[1]
    assert 0.90 <= covered / 200 <= 0.98


def test_labels_that_the_test_set_lacks_are_left_out_of_means():
    truth, probabilities, predicted = problem()
    truth[:, 3] = False
    scores = evaluate_label_sets(truth, predicted, probabilities, CLASSES, np.array([9, 9, 1, 2]))
    expected = average_precision_score(truth[:, :3], probabilities[:, :3], average=None)
    assert np.isnan(scores.per_label["rage"])
    assert scores.mean_average_precision == pytest.approx(expected.mean())
    # predicting such a label is an error all the same
    assert scores.micro_f1 == pytest.approx(f1_score(truth, predicted, average="micro"))
    assert scores.rare_third == pytest.approx(expected[2])
    assert scores.rare_by == "training counts"


def test_a_test_set_without_labels_is_refused():
    truth, probabilities, predicted = problem()
    with pytest.raises(InputError, match="no row of the test set has a label"):
        evaluate_label_sets(np.zeros_like(truth), predicted, probabilities, CLASSES)


def test_calibration_error_by_hand():
    truth = np.array([[True, False], [False, False]])
    # bins of width 1/15: 0.5 alone, 0.01 and 0.02 together, 1.0 in the last
    probabilities = np.array([[0.5, 0.01], [0.02, 1.0]])
    expected = (abs(0.5 - 1) + abs(0.03 - 0) + abs(1 - 0)) / 4
    assert calibration_error(truth, probabilities) == pytest.approx(expected)
    assert calibration_error(truth, truth.astype(float)) == 0


def test_a_perfect_ranking_has_precision_one_and_no_error():
    truth = np.array([True, False, True, False])
    value, parts = average_precision(truth, np.array([0.9, 0.1, 0.8, 0.1]))
    assert value == 1
    np.testing.assert_allclose(parts, 0, atol=1e-15)


def test_the_rarest_third_is_rounded_up():
    np.testing.assert_array_equal(rarest(np.array([5, 1, 3, 1])), [1, 3])
