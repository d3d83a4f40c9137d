"""Residuals and gradients against scipy, and each record's share in them."""

import numpy as np
import pytest
from scipy.special import softmax

from tacit.learners.common.softmax import Residuals, noisy_gradient, residuals
from tacit.mechanisms.blocks import Block
from tacit.mechanisms.noise import ResearchNoise
from tacit.mechanisms.outer_products import rounded

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(200, 9))
ROWS /= np.linalg.norm(ROWS, axis=1, keepdims=True)
LABELS = RNG.integers(0, 5, 200)
HEAD = 3 * RNG.normal(size=(5, 9))
OF_ROWS = RNG.normal(size=(200, 5))
EXPECTED = softmax(ROWS @ HEAD.T + OF_ROWS, axis=1) - np.eye(5)[LABELS]


def test_residuals_are_those_of_scipy():
    assert np.allclose(residuals(ROWS, LABELS, HEAD, OF_ROWS), EXPECTED, rtol=1e-12, atol=1e-15)
    assert np.allclose(residuals(rounded(ROWS), LABELS, HEAD, OF_ROWS), EXPECTED, atol=1e-3)
    alike = softmax(ROWS @ HEAD.T + OF_ROWS[0], axis=1) - np.eye(5)[LABELS]
    assert np.allclose(residuals(ROWS, LABELS, HEAD, OF_ROWS[0]), alike, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("offsets", [OF_ROWS, OF_ROWS[:1]], ids=["of each record", "of all records"])
def test_a_part_has_the_residuals_of_its_records_to_the_last_bit(offsets):
    whole = np.rint(ROWS * 2**18)
    left = Residuals(LABELS, offsets, np.rint(HEAD * 2**20), 2.0**-38, 0.5)
    together = left.of(whole)
    for part in (slice(0, 7), slice(13, 14), slice(150, 200), slice(0, 200)):
        assert np.array_equal(left[part].of(whole[part]), together[part])


def test_a_record_moves_a_logit_however_small_or_large_the_others_are():
    """A row of extreme logits leaves the next rows as they are."""
    offsets = OF_ROWS.copy()
    offsets[0] = [1e300, -1e300, 0, 0, 1e5]
    found = residuals(rounded(ROWS), LABELS, HEAD, offsets)
    assert np.array_equal(found[1:], residuals(rounded(ROWS[1:]), LABELS[1:], HEAD, offsets[1:]))
    assert np.allclose(found[0], np.eye(5)[0] - np.eye(5)[LABELS[0]])


@pytest.mark.parametrize("clip", [0.5, 1.0])
@pytest.mark.parametrize("cut", [1, 64, 199])
def test_a_gradient_is_the_sum_of_clipped_ones_in_blocks_of_any_length(clip, cut):
    parts = [slice(0, cut), slice(cut, 200)]
    lengths = np.maximum(np.linalg.norm(EXPECTED, axis=1, keepdims=True) / clip, 1.0)
    found = noisy_gradient(
        HEAD, [OF_ROWS[part] for part in parts], [Block(rounded(ROWS[part]), LABELS[part]) for part in parts],
        clip=clip, multiplier=1e-9, noise=ResearchNoise(0),
    )  # fmt: skip
    assert np.allclose(found, (EXPECTED / lengths).T @ ROWS, atol=5e-3)
    exact = noisy_gradient(
        HEAD, [OF_ROWS[part] for part in parts], [Block(ROWS[part], LABELS[part]) for part in parts],
        clip=clip, multiplier=0, noise=ResearchNoise(0),
    )  # fmt: skip
    assert np.allclose(exact, EXPECTED.T @ ROWS, rtol=1e-12, atol=1e-12)
