"""Gaussian noise, by its exact privacy profile."""

import math

import pytest

from privacy.events.samples import DELTAS, gaussian_delta
from tacit.privacy import accounting
from tacit.privacy.events import Gaussian


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("z", [0.3, 1.0, 8.0])
def test_gaussians_follow_the_exact_curve(z, delta):
    epsilon = accounting.epsilon(3 * Gaussian(z), delta)
    assert gaussian_delta(math.sqrt(3) / z, epsilon) == pytest.approx(delta, rel=1e-6)
    assert accounting.epsilon(Gaussian(z / math.sqrt(3)), delta) == pytest.approx(epsilon, rel=1e-9)
    assert accounting.epsilon(Gaussian(z) + Gaussian(2 * z), delta) == pytest.approx(
        accounting.epsilon(Gaussian(z / math.sqrt(1.25)), delta), rel=1e-9
    )
