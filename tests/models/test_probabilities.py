"""Probabilities of similarities: a softmax that sums to one and keeps the decision, also on
ties.
"""

import numpy as np
import pytest
from scipy.special import softmax

from messages import stating
from tacit.errors import InputError
from tacit.models.probabilities import Probabilities, by_spread, misfit, stated

SIMILARITIES = np.random.default_rng(0).normal(size=(500, 7))


@pytest.mark.parametrize("even", [0.0, 0.3])
def test_the_form_is_that_of_the_docstring(even):
    found = Probabilities(2.5, even).of(SIMILARITIES)
    assert np.allclose(
        found, (1 - even) * softmax(2.5 * SIMILARITIES, axis=1) + even / 7, rtol=1e-14, atol=0
    )
    assert np.allclose(found.sum(axis=1), 1, rtol=0, atol=1e-14)


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 1e9])
@pytest.mark.parametrize("even", [0.0, 0.9])
def test_the_most_likely_class_is_the_most_similar_whatever_rounding_does(scale, even):
    close = 1 + np.random.default_rng(1).integers(0, 3, size=(400, 5)) * np.finfo(float).eps
    found = Probabilities(scale, even).of(close)
    assert np.array_equal(found.argmax(axis=1), close.argmax(axis=1))
    assert np.allclose(found.sum(axis=1), 1, rtol=0, atol=1e-14)


def test_impossible_classes_have_no_probability_and_share_it_if_all_are():
    similarities = np.array(
        [[0.0, -np.inf, 0.0], [-np.inf, -np.inf, -np.inf], [-np.inf, 3.0, -np.inf]]
    )
    before = similarities.copy()
    found = Probabilities(4.0, 0.5).of(similarities)
    assert np.allclose(found, [[0.5, 0, 0.5], [1 / 3, 1 / 3, 1 / 3], [0, 1, 0]], rtol=0, atol=1e-15)
    assert np.array_equal(similarities, before)


def test_another_class_leads_where_the_model_says_so():
    found = Probabilities(1.0).of(np.array([[0.0, 1.0]]), np.array([0]))
    assert found.argmax() == 0


def test_no_rows_have_no_probabilities():
    assert Probabilities(1.0).of(np.zeros((0, 3))).shape == (0, 3)


def test_the_spread_becomes_one_about_the_mean_of_a_row():
    similarities = SIMILARITIES * 0.02 + np.arange(500)[:, None]
    similarities[:, 3] = -np.inf
    scaled = by_spread(similarities).scale * np.delete(similarities, 3, axis=1)
    assert np.isclose((scaled - scaled.mean(axis=1, keepdims=True)).std(), 1, rtol=1e-9)
    assert by_spread(np.full((5, 3), 7.0)).scale == 1
    assert by_spread(np.full((5, 3), -np.inf)).scale == 1


def test_values_out_of_range_are_refused():
    for scale in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match=stating(f"scale={scale}", "0")):
            Probabilities(scale)
    for even in (-0.1, 1.0, float("nan")):
        with pytest.raises(InputError, match=stating(f"even={even}", "0", "1")):
            Probabilities(1.0, even)


def test_the_array_of_a_release_states_both():
    arrays = Probabilities(2.0, 0.25).arrays()
    assert stated(arrays) == Probabilities(2.0, 0.25)
    assert stated({}) is None
    assert misfit({}) is None
    assert misfit(arrays) is None
    assert "must be float64 of shape" in misfit({"probabilities": np.ones(3)})
    assert "must be float64 of shape" in misfit({"probabilities": np.ones(2, np.float32)})
    assert "probabilities: scale=0.0 must be above 0" in misfit({"probabilities": np.zeros(2)})
