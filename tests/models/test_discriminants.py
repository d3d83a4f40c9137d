import numpy as np
import pytest

from tacit.models.discriminants import discriminants, noise_of_scatter

RNG = np.random.default_rng(0)
SIZES = np.array([40, 200, 90])
ROWS = [RNG.normal(size=(n, 6)) + RNG.normal(size=6) for n in SIZES]
MOMENTS = sum(rows.T @ rows for rows in ROWS)
SUMS = np.stack([rows.sum(axis=0) for rows in ROWS])
NOISE = np.array([0.5, 3.0, 1.0])


def by_formula(sums, counts, ridge, noise):
    """Scores of standard deviation 1 within classes, one class at a time."""
    means = sums / counts[:, None]
    n = counts.sum()
    scatter = MOMENTS - sum(np.outer(b, b) / count for b, count in zip(sums, counts, strict=True))
    scatter += np.eye(6) * (noise**2 / counts).sum()
    within = (scatter + ridge * np.eye(6)) / n
    centre = sums.sum(axis=0) / n
    slopes, offsets = [], []
    for mean, variance in zip(means, (noise / counts) ** 2, strict=True):
        theta = np.linalg.solve(within + 4 * variance * np.eye(6), mean - centre)
        theta /= np.sqrt(theta @ within @ theta)
        slopes.append(theta)
        offsets.append(-theta @ centre)
    return np.stack(slopes), np.array(offsets)


@pytest.mark.parametrize("noise", [NOISE, np.full(3, 2.0)])
def test_noise_of_each_class_counts_in_its_own_score_and_in_the_scatter(noise):
    counts = SIZES + RNG.normal(size=3)
    expected = by_formula(SUMS, counts, 7.0, noise)
    passed = noise if noise.std() else float(noise[0])
    found = discriminants(
        MOMENTS.copy(), SUMS, counts, 7.0, least_count=1.0, sum_noise=passed, normalise=True
    )
    for found_part, expected_part in zip(found, expected, strict=True):
        assert np.allclose(found_part, expected_part, rtol=1e-9)


def test_counts_are_raised_to_the_noise_of_each():
    counts = np.array([-3.0, 200.0, 90.0])
    settings = {"sum_noise": NOISE, "normalise": True}
    least = np.array([5.0, 1.0, 300.0])
    found = discriminants(MOMENTS.copy(), SUMS, counts, 7.0, least_count=least, **settings)
    raised = np.array([5.0, 200.0, 300.0])
    expected = discriminants(MOMENTS.copy(), SUMS, raised, 7.0, least_count=0.1, **settings)
    assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


def test_noise_of_the_sums_does_not_lower_the_scatter():
    counts = SIZES[:, None].astype(float)
    scatters = []
    for _ in range(4000):
        noisy_sums = SUMS + NOISE[:, None] * RNG.normal(size=SUMS.shape)
        scatters.append((noisy_sums**2 / counts).sum())
    expected = (SUMS**2 / counts).sum() + 6 * noise_of_scatter(counts, NOISE[:, None])
    error = np.std(scatters) / 4000**0.5
    assert abs(np.mean(scatters) - expected) < 4 * error
    assert noise_of_scatter(counts, 2.0) == pytest.approx(
        noise_of_scatter(counts, np.full((3, 1), 2.0))
    )
