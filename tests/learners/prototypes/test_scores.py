"""Exact integer scores: sensitivity, monotonicity, and agreement with float64."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import InputError
from tacit.learners.prototypes import scores as module
from tacit.learners.prototypes.scores import NORM, exact_product, integers, window

WINDOWS = [(0.0, 2.0), (1.42, 1.5), (1.54, 1.58), (0.0, 1.0), (0.5, 2.0)]


def scores(public, x, y, n_classes, d_min, d_max):
    return module.scores(public, x, y, n_classes, *window(d_min, d_max))


def random_data(seed, n=60, m=25, d=9, n_classes=3):
    rng = np.random.default_rng(seed)
    x = np.abs(rng.normal(size=(n, d)))
    return np.abs(rng.normal(size=(m, d))), x, rng.integers(0, n_classes, n)


def reference(public, x, y, n_classes, d_min, d_max):
    p = public / np.linalg.norm(public, axis=1, keepdims=True)
    q = x / np.linalg.norm(x, axis=1, keepdims=True)
    clipped = np.clip(1 + q @ p.T, d_min, d_max) - d_min
    return np.stack([clipped[y == c].sum(axis=0) for c in range(n_classes)]) / (d_max - d_min)


@pytest.mark.parametrize("bounds", WINDOWS)
def test_scores_are_the_clipped_sums(bounds):
    public, x, y = random_data(0)
    low, high = window(*bounds)
    found = scores(public, x, y, 4, *bounds) / (high - low)
    assert np.allclose(found, reference(public, x, y, 4, *bounds), atol=60 * 2e-4 / (bounds[1] - bounds[0]))
    assert not found[3].any()


@pytest.mark.parametrize("bounds", WINDOWS)
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_a_record_raises_every_score_of_its_class_by_at_most_the_window(bounds, seed):
    public, x, y = random_data(seed)
    low, high = window(*bounds)
    rise = scores(public, x, y, 3, *bounds) - scores(public, x[1:], y[1:], 3, *bounds)
    assert rise.dtype == np.int64
    assert rise.min() >= 0
    assert rise.max() <= high - low
    assert not np.delete(rise, y[0], axis=0).any()  # other classes and other records do not move at all


@pytest.mark.parametrize("bounds", WINDOWS)
def test_the_bits_do_not_depend_on_order_or_blocks(bounds, monkeypatch):
    public, x, y = random_data(1, n=300, m=70)
    expected = scores(public, x, y, 3, *bounds)
    order = np.random.default_rng(0).permutation(300)
    assert np.array_equal(scores(public, x[order], y[order], 3, *bounds), expected)
    monkeypatch.setattr(module, "_TILE", 7)
    monkeypatch.setattr(module, "BLOCK_ROWS", 11)
    assert np.array_equal(scores(public, x, y, 3, *bounds), expected)


def test_clipping_at_the_natural_bounds_equals_the_shortcut(monkeypatch):
    """The two routes share no code after the rounding to integers."""
    public, x, y = random_data(2)
    shortcut = scores(public, x, y, 3, 0.0, 2.0)
    blocks = iter([(integers(x)[np.argsort(y, kind="stable")], np.sort(y))])
    assert np.array_equal(module._clipped(public, blocks, 3, 60, 0, 2 * NORM**2), shortcut)


def test_zero_rows_contribute_nothing():
    public, x, y = random_data(3)
    for bounds in WINDOWS:
        zeros = np.concatenate([x, np.zeros((4, 9))])
        found = scores(public, zeros, np.concatenate([y, [0, 1, 2, 0]]), 3, *bounds)
        assert np.array_equal(found, scores(public, x, y, 3, *bounds))


@pytest.mark.parametrize("size", [2**20, 2**36, 2**44])
@pytest.mark.parametrize("width", [1, 256, 1280])
def test_exact_product_equals_python_integers(size, width):
    rng = np.random.default_rng(width)
    candidates = integers(rng.normal(size=(3, width)))
    sums = rng.integers(-size, size, (2, width)) // max(1, int(width**0.5))
    expected = [[sum(int(a) * int(b) for a, b in zip(s, p, strict=True)) for p in candidates] for s in sums]
    assert exact_product(candidates, sums).tolist() == expected


@pytest.mark.parametrize(
    "bounds", [(-0.1, 1), (1, 1), (1.5, 1), (0, 2.1), (float("nan"), 1), (1, 1 + 1e-9), ("a", 1), (None, 1), (0, 1j)]
)
def test_bad_windows_are_refused(bounds):
    with pytest.raises(InputError, match="d_min=|d_max="):
        window(*bounds)
