"""Residuals and gradients against scipy, and each record's share in them."""

import numpy as np
import pytest
from scipy.special import softmax

from tacit.learners.common.softmax import (
    UNCLIPPED,
    Residuals,
    clip_norm_under,
    gradient_sensitivity,
    noisy_gradient,
    residuals,
)
from tacit.mechanisms.blocks import Block
from tacit.mechanisms.noise import ResearchNoise
from tacit.mechanisms.outer_products import UNIT, product_sums, rounded
from tacit.privacy.unit import Unit

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


@pytest.mark.parametrize(
    "offsets", [OF_ROWS, OF_ROWS[:1]], ids=["of each record", "of all records"]
)
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
        HEAD,
        [OF_ROWS[part] for part in parts],
        [Block(rounded(ROWS[part]), LABELS[part]) for part in parts],
        clip=clip,
        multiplier=1e-9,
        noise=ResearchNoise(0),
    )
    assert np.allclose(found, (EXPECTED / lengths).T @ ROWS, atol=5e-3)
    exact = noisy_gradient(
        HEAD,
        [OF_ROWS[part] for part in parts],
        [Block(ROWS[part], LABELS[part]) for part in parts],
        clip=clip,
        multiplier=0,
        noise=ResearchNoise(0),
    )
    assert np.allclose(exact, EXPECTED.T @ ROWS, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 5, 100])
@pytest.mark.parametrize("clip", [0.2, 0.5**0.5, 1.0, 2**0.5])
def test_a_changed_label_moves_a_clipped_gradient_by_what_is_stated(n_classes, clip):
    """Largest distance over many heads, in exact integers; the bound is reached, by 2 clip or by
    the root of two.
    """
    rng, largest = np.random.default_rng(0), 0.0
    stated = gradient_sensitivity(Unit.CHANGE_LABEL, clip, n_classes)
    rows = rounded(np.array([[0.6, 0.8]]))
    for scale in (1e-3, 3.0, 300.0):
        head = rng.normal(size=(n_classes, 2)) * scale
        offsets = np.where(np.arange(n_classes) < 2, 0.0, -20.0)
        left = [residuals(rows, np.array([c]), head, offsets) / clip for c in (0, 1)]
        sums = [product_sums([Block(own, rows)], shape=head.shape) for own in left]
        distance = np.linalg.norm((sums[0] - sums[1]).astype(float)) / UNIT
        assert distance <= stated
        largest = max(largest, distance)
    assert largest >= 0.99 * min(2.0, 2**0.5 / clip)
    assert stated == pytest.approx(min(2.0, 2**0.5 / clip), rel=1e-4)


def test_gradients_are_not_clipped_where_that_would_cost_nothing_less():
    assert clip_norm_under(Unit.CHANGE_LABEL, 0.5) == 0.5
    assert [clip_norm_under(Unit.CHANGE_LABEL, clip) for clip in (0.8, 1.0, 9.0)] == [UNCLIPPED] * 3
    for unit in set(Unit) - {Unit.CHANGE_LABEL}:
        assert clip_norm_under(unit, 1.0) == 1.0
        assert gradient_sensitivity(unit, 1.0, 10) == (1.0 if "add" in unit else 2.0)
    noise = [
        gradient_sensitivity(Unit.CHANGE_LABEL, clip, 10) * clip
        for clip in (0.5**0.5, 1.0, UNCLIPPED)
    ]
    assert noise == pytest.approx([UNCLIPPED] * 3, rel=1e-4)
