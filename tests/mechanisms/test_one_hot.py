import math
from fractions import Fraction

import numpy as np
import pytest

from tacit.mechanisms import one_hot
from tacit.mechanisms.noise import ResearchNoise, SecureNoise
from tacit.privacy.events import Gaussian, PureDP

SOURCES = [SecureNoise(), ResearchNoise(0)]
LABELS = np.zeros(4000, dtype=np.int64)


@pytest.mark.parametrize("noise", SOURCES, ids=lambda source: type(source).__name__)
@pytest.mark.parametrize(
    ("cost", "deviation"),
    [
        (Gaussian(0.5), 0.5 * math.sqrt(2)),
        (Gaussian(3.0), 3.0 * math.sqrt(2)),
        (PureDP(1.0), math.sqrt(2) * 2 / 1.0),
        (PureDP(4.0), math.sqrt(2) * 2 / 4.0),
    ],
)
def test_noise_has_the_deviation_of_its_event(noise, cost, deviation):
    """A changed label moves two entries by 1: the root of 2 for Gaussian noise, 2 for Laplace
    noise.
    """
    found = one_hot.noisy_one_hot(LABELS, 3, cost, noise) - [1, 0, 0]
    assert found.std() == pytest.approx(deviation, rel=0.05)
    assert abs(found.mean()) < 5 * deviation / math.sqrt(found.size)
    assert abs(np.corrcoef(found.T)[np.triu_indices(3, 1)]).max() < 0.1


def test_gaussian_noise_is_never_less_than_the_root_of_two_times_the_multiplier():
    """In exact arithmetic: rounding of the product must not make a cost smaller than its noise."""
    scales = []

    class Recorder(ResearchNoise):
        def gaussian(self, values, *, scale):
            scales.append(scale)
            return values

    for multiplier in np.random.default_rng(0).uniform(0.1, 30, 300):
        one_hot.noisy_one_hot(LABELS[:1], 2, Gaussian(multiplier), Recorder(0))
        assert (Fraction(scales[-1]) / one_hot.UNIT) ** 2 >= 2 * Fraction(multiplier) ** 2
        assert scales[-1] / one_hot.UNIT == pytest.approx(multiplier * math.sqrt(2), rel=1e-12)


def test_a_histogram_counts_each_cluster_and_class():
    labels, which = np.array([0, 2, 2, 1, 2]), np.array([1, 0, 1, 1, 1])
    exact = one_hot.noisy_histogram(labels, which, (2, 3), PureDP(math.inf), ResearchNoise(0))
    assert exact.tolist() == [[0, 0, 1], [1, 1, 2]]
    draws = np.array(
        [
            one_hot.noisy_histogram(labels, which, (2, 3), PureDP(2.0), ResearchNoise(i))
            for i in range(800)
        ]
    )
    assert draws.mean(axis=0) == pytest.approx(exact, abs=0.3)
    # of discrete Laplace noise of scale 2/epsilon = 1
    variance = 2 * math.exp(-1.0) / (1 - math.exp(-1.0)) ** 2
    assert draws.var() == pytest.approx(variance + exact.var(), rel=0.15)
