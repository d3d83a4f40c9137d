from itertools import combinations

import numpy as np
import pytest

from tacit.models.noisy_parts import worthwhile


@pytest.mark.parametrize("seed", range(20))
def test_no_half_of_the_parts_has_more_signal_for_its_noise(seed):
    rng = np.random.default_rng(seed)
    noise = np.exp(2 * rng.normal(size=7))
    chosen = worthwhile(noise)
    best = max(
        len(parts) ** 2 / (noise[list(parts)] ** 2).sum()
        for size in range(4, 8)
        for parts in combinations(range(7), size)
    )
    assert chosen.sum() ** 2 / (noise[chosen] ** 2).sum() == pytest.approx(best, rel=1e-12)

    order = rng.permutation(7)
    assert np.array_equal(worthwhile(noise[order]), chosen[order])
    assert np.array_equal(worthwhile(3 * noise), chosen)


def test_parts_of_equal_noise_are_left_out_together():
    assert worthwhile([5.0] * 100).all()
    # two more parts of noise z beside two of noise 1: 16 / (2 + 2 z^2) against 4 / 2
    root = 3**0.5
    assert np.array_equal(worthwhile([1.0, 1.01 * root, 1.01 * root, 1.0]), [1, 0, 0, 1])
    assert np.array_equal(worthwhile([1.0, 0.99 * root, 0.99 * root, 1.0]), [1, 1, 1, 1])
    # where the ratio is the same, more records are better: 25 / (16 + 9) against 16 / 16
    assert worthwhile([2.0, 2.0, 3.0, 2.0, 2.0]).all()
    # half of the parts would be two of these three, which are alike
    assert worthwhile([1.0, 9.0, 9.0]).all()


def test_a_part_with_next_to_no_noise_does_not_push_the_others_out():
    assert worthwhile([1e-6] + [1.0] * 9).all()
    assert worthwhile([1e-6, 1.0, 1.0, 30.0]).tolist() == [True, True, True, False]


def test_a_part_that_alone_lists_a_class_stays():
    listed = np.array([[True, False, False], [True, False, False], [True, True, False]])
    assert np.array_equal(worthwhile([1.0, 2.0, 30.0], listed), [True, True, True])
    assert np.array_equal(worthwhile([1.0, 2.0, 30.0], listed[:, :1]), [True, True, False])
