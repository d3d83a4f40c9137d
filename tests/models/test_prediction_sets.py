import numpy as np
import pytest

from tacit.models.prediction_sets import SetRule, edges, scores, scores_of_labels

PROBABILITIES = np.array([[0.5, 0.1, 0.4], [0.2, 0.2, 0.6]])


def test_scores_are_those_of_the_definitions():
    assert scores(PROBABILITIES, "probability") == pytest.approx(1 - PROBABILITIES)
    likelier = [[0.0, 0.9, 0.5], [0.6, 0.8, 0.0]]
    assert scores(PROBABILITIES, "cumulative") == pytest.approx(np.array(likelier))
    labels = np.array([2, 0])
    assert scores_of_labels(PROBABILITIES, labels, "cumulative") == pytest.approx([0.5, 0.6])


def test_sets_hold_classes_up_to_the_threshold_and_the_likeliest_always():
    sets = SetRule("probability", 0.65).of(PROBABILITIES)
    assert sets.tolist() == [[True, False, True], [False, False, True]]
    assert SetRule("probability", 0.1).of(PROBABILITIES).sum(axis=1).tolist() == [1, 1]
    assert SetRule("probability", None).of(PROBABILITIES).all()


@pytest.mark.parametrize("score", ["probability", "cumulative"])
def test_edges_rise_and_the_last_ones_hold_nearly_all_classes(score):
    thresholds = edges(score, 100)
    assert (np.diff(thresholds) > 0).all()
    even = np.full((1, 100), 0.01)
    assert SetRule(score, thresholds[-1]).of(even).sum() >= 99
