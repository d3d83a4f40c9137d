"""Residuals and joint clips of sigmoid heads, enumerated over all sets of few labels."""

from itertools import product

import numpy as np
import pytest
from scipy.special import expit

from tacit.learners.common.sigmoid import SigmoidResiduals, gradient_sensitivity
from tacit.learners.common.softmax import noisy_gradient, residuals
from tacit.mechanisms.blocks import Block
from tacit.mechanisms.noise import ResearchNoise
from tacit.mechanisms.outer_products import UNIT, product_sums, rounded
from tacit.privacy.unit import Unit

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(200, 9))
ROWS /= np.linalg.norm(ROWS, axis=1, keepdims=True)
LABELS = RNG.random((200, 4)) < 0.3
HEAD = 3 * RNG.normal(size=(4, 9))
OFFSETS = RNG.normal(size=4)
EXPECTED = expit(ROWS @ HEAD.T + OFFSETS) - LABELS
KIND = SigmoidResiduals


def test_residuals_are_those_of_scipy():
    exact = residuals(ROWS, LABELS, HEAD, OFFSETS, KIND)
    assert np.allclose(exact, EXPECTED, rtol=1e-12, atol=1e-15)
    assert np.allclose(residuals(rounded(ROWS), LABELS, HEAD, OFFSETS, KIND), EXPECTED, atol=1e-3)
    extreme = residuals(rounded(ROWS), LABELS, HEAD * 1e200, OFFSETS, KIND)
    assert np.isfinite(extreme).all()
    assert np.abs(extreme).max() <= 1


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e4])
@pytest.mark.parametrize(("n_labels", "width"), [(1, 3), (7, 33), (100, 64)])
def test_a_residual_does_not_depend_on_the_other_rows(scale, n_labels, width):
    """Bit for bit: in blocks of any shape, at any place, in any order."""
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(301, width))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    labels = rng.random((301, n_labels)) < 0.5
    head = rng.normal(size=(n_labels, width)) * scale
    offsets = rng.normal(size=n_labels)
    whole = residuals(rounded(rows), labels, head, offsets, KIND)
    order = rng.permutation(301)
    for chosen in (np.arange(301)[::-1], order[:100], order[:1], order[::2]):
        part = residuals(rounded(rows[chosen]), labels[chosen], head, offsets, KIND)
        assert np.array_equal(part, whole[chosen])


@pytest.mark.parametrize("clip", [0.5, 1.0, 3.0])
def test_one_clip_bounds_the_gradients_of_all_labels_together(clip):
    """Against each record's K x d gradient as a matrix, clipped by its Frobenius norm."""
    expected = np.zeros((4, 9))
    for row, residual in zip(ROWS, EXPECTED, strict=True):
        gradient = np.outer(residual, row)
        expected += gradient * min(1, clip / np.linalg.norm(gradient))

    blocks = [Block(rounded(ROWS[part]), LABELS[part]) for part in (slice(0, 64), slice(64, 200))]
    given = {"clip": clip, "noise": ResearchNoise(0), "kind": KIND}
    found = noisy_gradient(HEAD, OFFSETS, blocks, multiplier=1e-9, **given)
    assert np.allclose(found, expected, atol=5e-3)

    of_floats = [Block(ROWS, LABELS)]
    exact = noisy_gradient(HEAD, OFFSETS, of_floats, multiplier=0, **given)
    assert np.allclose(exact, EXPECTED.T @ ROWS, rtol=1e-12, atol=1e-12)


def moved_by(sets, logits, clip):
    """The clipped gradients, in exact integers, of records with these sets of labels, and logits
    that are all alike.
    """
    row = rounded(np.array([[0.6, 0.8]]))
    head = np.zeros((sets.shape[1], 2))
    for labels in sets:
        left = residuals(row, labels[None], head, np.full(len(labels), logits), KIND) / clip
        yield product_sums([Block(left, row)], shape=head.shape).astype(float) / UNIT


@pytest.mark.parametrize("n_labels", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("clip", [0.3, 1.0, 1.7])
def test_no_set_of_labels_moves_a_gradient_further_than_what_is_stated(n_labels, clip):
    """All pairs of sets: under add/remove by 1, also with all K labels; under change-label by the
    stated bound, which is reached.
    """
    sets = np.array(list(product([False, True], repeat=n_labels)))
    stated = gradient_sensitivity(Unit.CHANGE_LABEL, clip, n_labels)
    largest = 0.0
    for logits in (-30.0, 0.0, 2.0, 30.0):
        sums = list(moved_by(sets, logits, clip))
        assert max(np.linalg.norm(total) for total in sums) <= 1
        distances = [np.linalg.norm(one - other) for one, other in product(sums, sums)]
        assert max(distances) <= stated
        largest = max(largest, *distances)
    assert largest >= 0.99 * min(2.0, np.sqrt(n_labels) / clip)
    assert stated == pytest.approx(min(2.0, np.sqrt(n_labels) / clip), rel=1e-4)


@pytest.mark.parametrize("n_labels", [1, 28, 56])
def test_a_record_with_all_labels_moves_no_further_than_a_record_with_one(n_labels):
    single = np.eye(n_labels, dtype=bool)[:1]
    every = np.ones((1, n_labels), dtype=bool)
    for logits in (-3.0, 0.0, 3.0):
        for sets in (single, every):
            (total,) = moved_by(sets, logits, 1.0)
            assert np.linalg.norm(total) <= 1


def test_the_other_units_move_by_what_products_move():
    for unit in set(Unit) - {Unit.CHANGE_LABEL}:
        assert gradient_sensitivity(unit, 1.0, 10) == (1.0 if "add" in unit else 2.0)
    assert gradient_sensitivity(Unit.CHANGE_LABEL, 1.0, 4) == 2.0


@pytest.mark.parametrize("n_labels", [4, 8])
def test_doubling_the_labels_leaves_the_noise_and_halves_the_squared_signal(n_labels):
    """The price of a clipped gradient is the same; each label's part shrinks by sqrt(2) at most."""
    labels = np.tile(LABELS, n_labels // 4)
    offsets = np.zeros(n_labels)
    rows = rounded(ROWS)
    head = np.zeros((n_labels, 9))
    left = residuals(rows, labels, head, offsets, KIND)
    total = product_sums([Block(left, rows)], shape=head.shape) / UNIT
    single = residuals(rows, LABELS, head[:4], offsets[:4], KIND)
    expected = product_sums([Block(single, rows)], shape=(4, 9)) / UNIT
    shrunk = np.linalg.norm(total[:4]) / np.linalg.norm(expected)
    assert shrunk == pytest.approx((4 / n_labels) ** 0.5, rel=0.01)
