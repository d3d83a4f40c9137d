import math

import numpy as np
import pytest
from scipy import integrate, stats

from tacit.measure.intervals import (
    SIZE_ERROR,
    Counts,
    Noise,
    accuracy_intervals,
    largest_tails,
    sizes,
)
from tacit.measure.summed_noise import REACH, SummedNoise, summed

ONE = np.ones(1)


def laplace(scale):
    return Noise(scale, laplace=True)


def tail(noise, x, a=1.0, b=0.0, cells=1.0):
    return float(noise.tails(a * ONE, cells * ONE, b * ONE, cells * ONE)(x * ONE)[0])


def test_gaussian_noise_adds_up_to_gaussian_noise_whatever_the_order():
    scales = [0.1, 0.7, 3.0, 1e-3]
    total = summed([Noise(scale) for scale in scales])
    assert total == summed([Noise(scale) for scale in reversed(scales)])
    assert total == Noise(math.sqrt(math.fsum(scale**2 for scale in scales)))
    assert summed([Noise(0.0), laplace(0.0)]) == Noise(0.0)


def test_a_sum_of_two_equal_laplace_noises_has_its_closed_form():
    noise = summed([laplace(2.0), laplace(2.0)])
    assert noise.variance == pytest.approx(16)
    for x in (0.0, 0.3, 1.7, 5.0, 12.0):
        true = math.exp(-x) * (2 + x) / 4
        assert tail(noise, 2 * x) == pytest.approx(true, abs=2e-5)
        assert tail(noise, 2 * x) >= true - 1e-12
        # a line lies below a tail that is concave, for which more is added
        assert 1 - true - 1e-12 <= tail(noise, -2 * x) <= 1 - true + 1e-4
    assert tail(noise, 4 * 2 * REACH) < 1e-5


def test_a_sum_of_a_gaussian_and_a_laplace_noise_is_their_convolution():
    noise = summed([Noise(1.5), laplace(2.0)])
    assert isinstance(noise, SummedNoise)
    for x in (-4.0, -0.5, 0.5, 2.0, 8.0):

        def at(z, x=x):
            return stats.norm.pdf(z, scale=1.5) * stats.laplace.sf(x - z, scale=2)

        true = integrate.quad(at, -12, 12, points=[x], limit=200)[0]
        assert tail(noise, x) == pytest.approx(true, abs=5e-5)


@pytest.mark.parametrize("p", [0.02, 0.5, 0.95])
@pytest.mark.parametrize("scales", [(2.0, 2.0), (4.0, 0.05), (3.0, 1.0, 0.5)])
def test_tails_are_no_less_than_true_ones(p, scales):
    """Of cells of right and of wrong records, by another inversion."""
    noise = summed(list(map(laplace, scales)))
    terms = [(factor * scale, 1) for scale in scales for factor in (1 - p, p)]
    deviation = math.sqrt(sum(2 * scale**2 for scale, _ in terms))
    for z in (-1.0, 0.4, 1.5, 2.5):
        x = z * deviation

        def integrand(t, x=x):
            product = math.prod(1 / (1 + (scale * t) ** 2) for scale, _ in terms)
            return product * math.sin(t * x) / t

        true = 0.5 - integrate.quad(integrand, 0, 100, limit=1000)[0] / math.pi
        assert true - 1e-7 <= tail(noise, x, 1 - p, p) <= true + 3e-4


def test_intervals_of_sizes_reach_as_far_as_the_noise():
    noise = summed([laplace(3.0), laplace(1.0)])
    counts = Counts.of(np.array([500.0, 50.0]), np.array([100.0, 50.0]), 1, 4)
    lower, upper = sizes(counts, noise, 0.05)
    rng = np.random.default_rng(0)
    noises = rng.laplace(0, 3, (20_000, 5)) + rng.laplace(0, 1, (20_000, 5))
    reach = np.quantile(noises.sum(axis=1), 0.975)
    np.testing.assert_allclose(upper - counts.records, reach, rtol=0.06, atol=1)
    np.testing.assert_allclose(counts.records - lower, reach, rtol=0.06, atol=1)


LAWS = {
    "gaussian": [Noise(2.0), Noise(4.0)],
    "laplace": [laplace(2.0), laplace(3.0)],
    "both": [Noise(3.0), laplace(3.0)],
}


def drawn(rng, noises, shape):
    return sum(
        rng.laplace(0, one.scale, shape) if one.laplace else rng.normal(0, one.scale, shape)
        for one in noises
    )


@pytest.mark.parametrize("name", LAWS)
def test_intervals_of_sums_cover_the_accuracy_of_parts_together(name):
    """Two parts of other sizes and accuracies; at 95 %, in 4,000 draws.

    An interval holds an accuracy if both tails at it are large enough.
    """
    noises = LAWS[name]
    noise = summed(noises)
    rng = np.random.default_rng(7)
    draws = 4000
    n = np.array([60, 140])
    accuracies = np.array([0.95, 0.7])
    right = rng.binomial(n, accuracies, (draws, 2)).sum(axis=1)
    counts = Counts.of(
        right + drawn(rng, noises, draws), n.sum() - right + drawn(rng, noises, draws), 1, 1
    )

    together = float(n @ accuracies / n.sum())
    within = sizes(counts, noise, SIZE_ERROR * 0.05)
    p = np.full(draws, together)
    error = (1 - SIZE_ERROR) * 0.05 / 2
    above_lower = largest_tails(counts, within, noise, p) >= error
    below_upper = largest_tails(counts.exchanged(), within, noise, 1 - p) >= error
    assert 0.94 <= (above_lower & below_upper).mean() <= 0.985

    few = counts.at(slice(0, 8))
    lower, upper = accuracy_intervals(few, noise, 0.95)
    assert ((lower <= together) == above_lower[:8]).all()
    assert ((upper >= together) == below_upper[:8]).all()
