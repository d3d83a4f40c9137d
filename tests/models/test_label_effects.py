"""Sets of labels that are drawn, effects of labels, and rows simulated from them."""

from dataclasses import replace

import numpy as np
import pytest

from tacit.models.label_effects import (
    LabelEffects,
    NoisyLabels,
    drawn_sets,
    even_spread,
    normal_spread,
    softened,
)

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("shares", [[0.2, 0.3, 0.1], [0.9, 0.5, 0.4, 0.7], [1.0, 1.0], [0.5, 0.5]])
def test_sets_have_the_shares_and_the_mean_number_of_labels_rounded(shares):
    shares = np.array(shares)
    labels = drawn_sets(shares, 20_000, np.random.default_rng(0))
    np.testing.assert_allclose(labels.mean(axis=0), shares, atol=0.02)
    numbers = labels.sum(axis=1)
    assert numbers.min() >= np.floor(shares.sum() - 1e-9)
    assert numbers.max() <= np.ceil(shares.sum() + 1e-9)


def test_effects_of_clear_sums_are_differences_of_means():
    n, shares = 10_000, np.array([0.3, 0.1])
    means = RNG.normal(size=(2, 5)) * 0.3
    grand = RNG.normal(size=5) * 0.1
    sizes = n * shares
    sums = NoisyLabels(sizes[:, None] * means, 1e-6, sizes, 1e-6, sizes, grand, n, 1e-6)
    effects = sums.effects()
    others = (grand - shares[:, None] * means) / (1 - shares[:, None])
    np.testing.assert_allclose(effects.mean, means - others, atol=0.01)
    assert effects.variance.max() < 1e-3

    # sums of noise alone have next to no effects
    noise = replace(sums, sums=sizes[:, None] * grand + RNG.normal(size=(2, 5)) * 1e4, noise=1e4)
    assert np.abs(noise.effects().mean).max() < 0.2 * np.abs(noise.contrasts / 1000).max()


def test_simulated_rows_have_the_means_of_their_labels_and_the_variances_of_rows():
    shares = np.array([0.4, 0.2, 0.5])
    effects = LabelEffects(RNG.normal(size=(3, 4)), np.full((3, 4), 1e-4), shares, np.ones(4))
    variances = np.array([2.0, 3.0, 4.0, 5.0])
    rng = np.random.default_rng(1)
    rows, labels = effects.simulated(normal_spread(effects, variances, np.eye(4), rng), rng)
    within = rows - 1 - (labels - shares) @ effects.mean
    np.testing.assert_allclose(within.mean(axis=0), np.zeros(4), atol=0.15)
    for label in labels.T:
        np.testing.assert_allclose(within[label].mean(axis=0), np.zeros(4), atol=0.2)
    np.testing.assert_allclose(within.var(axis=0), variances - effects.between(np.eye(4)), rtol=0.1)

    # the signs of axes are arbitrary
    turned = np.linalg.qr(RNG.normal(size=(4, 4)))[0]
    spreads = [
        normal_spread(effects, variances, axes, np.random.default_rng(1))
        for axes in (turned, -turned)
    ]
    np.testing.assert_allclose(*spreads)
    even = even_spread(effects, 12.0, np.random.default_rng(1))
    explained = float(effects.between(np.eye(4)).sum())
    assert (even**2).sum(axis=1).mean() == pytest.approx(12 - explained, rel=0.1)


def test_softened_variances_have_the_same_sum():
    variances = np.array([4.0, 1.0, 0.25])
    assert softened(variances, 0.5).sum() == pytest.approx(variances.sum())
    assert softened(variances, 0.5)[0] / softened(variances, 0.5)[1] == pytest.approx(2)
