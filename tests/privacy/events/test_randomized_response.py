"""Randomized response, by its two rows."""

import mpmath
import numpy as np
import pytest

from privacy.events.samples import response_divergence
from tacit.errors import InputError
from tacit.privacy import accounting
from tacit.privacy.events import RandomizedResponse


@pytest.mark.parametrize(
    ("epsilon", "n_classes"), [(1e-6, 2), (1e-6, 1000), (1e-4, 10**6), (1e-9, 3), (300.0, 5)]
)
def test_response_curves_are_accurate_for_tiny_and_huge_epsilons(epsilon, n_classes):
    with mpmath.workdps(60):
        e, k = mpmath.mpf(epsilon), n_classes
        other = 1 / (mpmath.exp(e) + k - 1)
        for order in (1.02, 2.0, 100.0, 1e5):
            a = mpmath.mpf(order)
            total = other * (mpmath.exp(a * e) + mpmath.exp((1 - a) * e) + k - 2)
            exact = float(mpmath.log(total) / (a - 1))
            found = RandomizedResponse(epsilon, k).renyi(np.array([order]))[0]
            assert found == pytest.approx(exact, rel=1e-9)
            assert found > 0


def test_many_small_responses_are_never_free():
    assert accounting.epsilon(10**6 * RandomizedResponse(1e-4, 10**6), 1e-9) > 0
    assert accounting.epsilon(RandomizedResponse(1e-6, 1000), 1e-12) > 0


@pytest.mark.parametrize("n_classes", [1, 0, -3])
def test_a_response_needs_two_labels(n_classes):
    with pytest.raises(InputError, match=f"n_classes={n_classes}"):
        RandomizedResponse(1.0, n_classes)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("order", [1.5, 4.0, 32.0])
def test_the_renyi_curve_is_that_of_its_rows(epsilon, order):
    found = RandomizedResponse(epsilon, 5).renyi(np.array([order]))[0]
    assert found == pytest.approx(response_divergence(epsilon, 5, order), rel=1e-9)
