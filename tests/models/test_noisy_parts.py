from itertools import combinations

import numpy as np
import pytest

from tacit.models.noisy_parts import worthwhile


@pytest.mark.parametrize("seed", range(20))
def test_no_set_of_parts_has_more_signal_for_its_noise(seed):
    rng = np.random.default_rng(seed)
    noise = np.exp(2 * rng.normal(size=7))
    chosen = worthwhile(noise)
    best = max(
        len(parts) ** 2 / (noise[list(parts)] ** 2).sum()
        for size in range(1, 8)
        for parts in combinations(range(7), size)
    )
    assert chosen.sum() ** 2 / (noise[chosen] ** 2).sum() == pytest.approx(best, rel=1e-12)

    order = rng.permutation(7)
    assert np.array_equal(worthwhile(noise[order]), chosen[order])
    assert np.array_equal(worthwhile(3 * noise), chosen)


def test_parts_of_equal_noise_are_left_out_together():
    assert worthwhile([5.0] * 100).all()
    # two more parts of noise z beside one of noise 1: 9 / (1 + 2 z^2) against 1
    assert np.array_equal(worthwhile([1.0, 2.01, 2.01]), [True, False, False])
    assert np.array_equal(worthwhile([1.99, 1.0, 1.99]), [True, True, True])
    # at z = 2 the ratio is the same, and more records are better
    assert np.array_equal(worthwhile([2.0, 1.0, 2.0]), [True, True, True])


def test_a_part_that_alone_lists_a_class_stays():
    listed = np.array([[True, False, False], [True, False, False], [True, True, False]])
    assert np.array_equal(worthwhile([1.0, 20.0, 30.0], listed), [True, False, True])
    assert np.array_equal(worthwhile([1.0, 20.0, 30.0], listed[:, :1]), [True, False, False])
