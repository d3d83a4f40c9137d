import numpy as np
import pytest
from scipy import stats

from tacit.errors import InputError
from tacit.mechanisms import repetition
from tacit.mechanisms.noise import ResearchNoise, SecureNoise
from tacit.privacy.events import Gaussian, RepeatAndSelect

SOURCES = [SecureNoise(), ResearchNoise(0)]


def weights(halt, shape, most):
    """P(k) for k = 1..most, from the definition of the truncated negative binomial."""
    result = [1.0]
    for k in range(1, most):
        result.append(result[-1] * (1 - halt) * (k + shape) / (k + 1))
    return np.array(result)


@pytest.mark.thorough
@pytest.mark.parametrize("noise", SOURCES, ids=lambda source: type(source).__name__)
@pytest.mark.parametrize("shape", [0, 0.3, 1])
def test_runs_are_drawn_from_the_stated_distribution(noise, shape):
    search = repetition.event(Gaussian(1.0), 4, shape)
    draws = np.array([repetition.number_of_runs(search, noise) for _ in range(6000)])
    expected = weights(search.halt, shape, 2000)
    expected *= len(draws) / expected.sum()
    observed = np.bincount(draws, minlength=2001)[1:]
    common = 12
    table = [np.append(counts[:common], counts[common:].sum()) for counts in (observed, expected)]
    assert stats.chisquare(*table).pvalue > 1e-6
    assert (expected * np.arange(1, 2001)).sum() / len(draws) == pytest.approx(4, rel=1e-6)


def test_mean_one_is_one_run():
    assert {
        repetition.number_of_runs(repetition.event(Gaussian(1.0), 1, 0), SecureNoise())
        for _ in range(50)
    } == {1}


def test_the_event_and_the_shapes_that_can_be_drawn():
    assert repetition.event(Gaussian(2.0), 5, 1) == RepeatAndSelect(Gaussian(2.0), 5, 1)
    for shape in (1.5, -0.1, float("inf"), float("nan")):
        with pytest.raises(InputError, match="shape=.* must be from 0 to 1"):
            repetition.event(Gaussian(2.0), 5, shape)
