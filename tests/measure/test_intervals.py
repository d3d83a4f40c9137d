import math

import numpy as np
import pytest
from scipy import integrate, stats

from tacit.measure.intervals import (
    Counts,
    Noise,
    accuracy,
    accuracy_intervals,
    balanced_accuracy,
    balanced_interval,
    clear,
    clear_interval,
    equal_records,
    largest_tails,
    sizes,
)

NONE = Noise(0.0)


def test_without_noise_the_interval_is_that_of_clopper_and_pearson():
    right = np.array([0.0, 1, 17, 20, 150])
    n = np.array([20.0, 20, 20, 20, 200])
    lower, upper = accuracy_intervals(Counts.of(right, n - right, 1, 1), NONE, 0.95)
    np.testing.assert_allclose(
        lower, np.nan_to_num(stats.beta.ppf(0.025, right, n - right + 1)), atol=1e-6
    )
    exact = stats.beta.ppf(0.975, right + 1, n - right)
    np.testing.assert_allclose(upper, np.nan_to_num(exact, nan=1.0), atol=1e-6)


def characteristic_tail(x, terms):
    """P(sum of scale times m Laplace variables >= x), by Gil-Pelaez, for (scale, m) in terms."""

    def integrand(t):
        product = math.prod((1 + (scale * t) ** 2) ** -m for scale, m in terms)
        return product * math.sin(t * x) / t

    return 0.5 - integrate.quad(integrand, 0, 200, limit=2000)[0] / math.pi


@pytest.mark.parametrize("p", [0.02, 0.5, 0.95, 1.0])
@pytest.mark.parametrize(("r", "w"), [(1, 1), (1, 9), (10, 10)])
def test_tails_of_laplace_noise_are_exact_for_one_cell_and_no_less_for_several(p, r, w):
    noise = Noise(2.0, laplace=True)
    deviation = math.sqrt(8 * ((1 - p) ** 2 * r + p * p * w))
    one = np.ones(1)
    for z in (0.3, 1.0, 1.7, 2.0, 2.6):
        x = z * deviation
        stated = noise.tail(x * one, (1 - p) * one, r * one, p * one, w * one)[0]
        true = characteristic_tail(x, [(2 * (1 - p), r), (2 * p, w)])
        if r == w == 1:
            assert stated == pytest.approx(true, abs=2e-4)
        else:
            assert true - 2e-3 <= stated <= 1.7 * true + 2e-3


def test_gaussian_tails_have_the_variance_of_all_cells():
    one = np.ones(1)
    stated = Noise(3.0).tail(7.0 * one, 0.25 * one, 4 * one, 0.75 * one, 2 * one)[0]
    deviation = 3 * math.sqrt(0.25**2 * 4 + 0.75**2 * 2)
    assert stated == pytest.approx(stats.norm.sf(7, scale=deviation))


CASES = [
    (noise, right, wrong)
    for noise in (Noise(3.0), Noise(8.0), Noise(3.0, laplace=True))
    for right, wrong in ((40.0, 1.0), (25.5, 18.0), (150.0, -2.0), (60.0, 55.0))
]


@pytest.mark.parametrize(("noise", "right", "wrong"), CASES)
def test_tails_rise_with_the_accuracy_and_few_sizes_stand_for_all(noise, right, wrong):
    grid = np.linspace(0, 1, 101)
    counts = Counts.of(np.full(101, right), np.full(101, wrong), 1, 1)
    low, high = sizes(counts, noise, 0.005)
    low = np.maximum(low, 1)
    tails = largest_tails(counts, (low, high), noise, grid)
    below = grid <= right / (right + max(wrong, 0))
    assert (np.diff(tails[below]) > -1e-9).all()

    every = np.zeros(101)
    for n in np.arange(low[0], high[0] + 1):
        one_size = (np.full(101, n), np.full(101, n))
        every = np.maximum(every, largest_tails(counts, one_size, noise, grid))
    near = below & (every > 1e-3)
    assert (every - tails)[near].max() < 2e-3


def draws(rng, n, p, noise, shape):
    """Noisy counts of right and wrong records of classes of n records."""
    right = rng.binomial(n, p, shape)
    law = rng.laplace if noise.laplace else rng.normal
    return [
        counts + (law(0, noise.scale, shape) if noise.scale else 0) for counts in (right, n - right)
    ]


@pytest.mark.thorough
@pytest.mark.parametrize(("n", "p"), [(20, 0.95), (200, 0.99)])
@pytest.mark.parametrize("noise", [NONE, Noise(5.0), Noise(5.0, laplace=True)])
def test_intervals_cover_as_stated(n, p, noise):
    """Cells of the table of benchmarks/measure/paid_intervals.py, which has all of them."""
    right, wrong = draws(np.random.default_rng(0), n, p, noise, 400)
    lower, upper = accuracy_intervals(Counts.of(right, wrong, 1, 1), noise, 0.95)
    # three standard errors of 400 draws below .95
    assert np.mean((lower <= p) & (p <= upper)) >= 0.917


@pytest.mark.thorough
@pytest.mark.parametrize("noise", [Noise(0.0), Noise(5.0), Noise(4.0, laplace=True)])
def test_intervals_of_balanced_accuracy_cover_and_the_figure_has_no_bias(noise):
    rng = np.random.default_rng(1)
    p = np.linspace(0.6, 0.98, 10)
    figures = []
    covered = 0
    for _ in range(300):
        right, wrong = draws(rng, 60, p, noise, 10)
        counts = Counts.of(right, wrong, 1, 1)
        low, high = balanced_interval(counts, noise, 0.95)
        covered += low <= p.mean() <= high
        figures.append(balanced_accuracy(counts, noise))
    assert covered >= 0.91 * 300
    error = np.nanstd(figures) / math.sqrt(300)
    assert abs(np.nanmean(figures) - p.mean()) < 4 * error


def test_intervals_of_balanced_accuracy_cover_where_the_smallest_class_decides():
    sizes = np.array([20.0] + [2000.0] * 9)
    p = np.array([0.5] + [1.0] * 9)
    covered = 0.0
    for k in range(21):
        right = sizes.copy()
        right[0] = k
        low, high = balanced_interval(Counts.of(right, sizes - right, 1, 1), NONE, 0.95)
        if low <= p.mean() <= high:
            covered += math.comb(20, k) / 2**20
    assert covered >= 0.95


def test_records_of_equal_spread_are_the_fewest_for_any_accuracies_of_classes():
    sizes = np.array([20.0, 50.0, 400.0])
    rng = np.random.default_rng(0)
    for p in rng.uniform(size=(200, 3)):
        mean = p.mean()
        variance = (p * (1 - p) / sizes).mean() / 3
        assert equal_records(mean, sizes) <= mean * (1 - mean) / variance + 1e-6
    assert equal_records(0.9, np.full(4, 30.0)) == 120


def test_a_class_that_noise_hides_has_no_figure_and_an_interval_of_all_accuracies():
    counts = Counts.of(np.array([300.0, 4.0, -6.0]), np.array([20.0, -1.0, 3.0]), 1, 1)
    noise = Noise(5.0)
    shares = accuracy(counts, noise)
    assert shares[0] == pytest.approx(0.9375)
    assert np.isnan(shares[1:]).all()
    lower, upper = accuracy_intervals(counts, noise, 0.95)
    assert 0.85 < lower[0] < upper[0] < 1
    assert lower[1:].tolist() == [0, 0]
    assert upper[1:].tolist() == [1, 1]

    assert math.isnan(balanced_accuracy(counts, noise))
    low, high = balanced_interval(counts, noise, 0.95)
    # two of three classes may have any accuracy
    assert 0.25 < low < 0.32
    assert 0.97 < high <= 1


def test_a_count_below_zero_leaves_an_interval():
    noise = Noise(5.0)
    counts = Counts.of(np.array([130.0, -12.0]), np.array([-15.0, 100.0]), 1, 1)
    lower, upper = accuracy_intervals(counts, noise, 0.95)
    assert 0.85 < lower[0] < upper[0] == 1
    assert 0 == lower[1] < upper[1] < 0.15


@pytest.mark.thorough
def test_shares_of_persons_spread_less_than_the_bound_of_one_unit_each():
    """Accuracies of persons differ, and so do their numbers of records: intervals still cover the
    mean of persons.
    """
    rng = np.random.default_rng(2)
    own = rng.beta(6, 2, (400, 120))
    numbers = rng.integers(1, 6, (400, 120))
    right = (rng.binomial(numbers, own) / numbers).sum(axis=1)
    noise = Noise(4.0)
    noisy = [counts + rng.normal(0, 4, 400) for counts in (right, 120 - right)]
    lower, upper = accuracy_intervals(Counts.of(*noisy, 1, 1), noise, 0.95)
    # three standard errors of 400 draws below .95
    assert np.mean((lower <= 0.75) & (upper >= 0.75)) >= 0.917


@pytest.mark.parametrize(("n", "stated"), [([200] * 9 + [0], 9), ([28] * 100, 30)])
def test_the_interval_over_clear_classes_covers_though_noise_chooses_them(n, stated):
    """A hundred classes at the threshold of four deviations are the worst case: noise decides."""
    rng = np.random.default_rng(2)
    noise = Noise(5.0)
    covered = 0
    widths = []
    n_draws = 40
    for _ in range(n_draws):
        right = rng.binomial(n, 0.97)
        counts = Counts.of(
            right + rng.normal(0, 5, len(n)), np.array(n) - right + rng.normal(0, 5, len(n)), 1, 1
        )
        assert clear(counts, noise).sum() >= stated
        low, high = clear_interval(counts, noise, 0.95)
        covered += low <= 0.97 <= high
        widths.append(high - low)
    # three standard errors of 40 draws below .95
    assert covered / n_draws >= 0.84
    if stated == 9:
        assert np.median(widths) < 0.06
        full = balanced_interval(counts, noise, 0.95)
        assert full[1] - full[0] > 0.1
