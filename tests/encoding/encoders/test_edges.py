"""The map of edges: what it tells apart, what it ignores, and what it refuses."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

import tacit
from messages import stating
from tacit.encoding.encoders import load_encoder
from tacit.encoding.encoders.edges import BLUR, DIRECTIONS, SMOOTHING, STEP
from tacit.errors import InputError


def strips(vertical):
    """A picture of a bright bar."""
    picture = np.zeros((28, 28), dtype=np.uint8)
    picture[:, 12:16] = 255
    return picture if vertical else picture.T


def test_rows_have_unit_length_and_a_block_for_each_point():
    rows = tacit.encode(np.stack([strips(True), strips(False)]), "edges:28")
    assert (rows.shape, rows.dtype) == ((2, 7 * 7 * DIRECTIONS), np.float32)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)


def test_directions_are_those_of_the_edges():
    """Across an upright bar brightness changes to the right and to the left, across a flat one down
    and up.
    """
    for vertical, expected in ((True, {0, 4}), (False, {2, 6})):
        row = tacit.encode([strips(vertical)], "edges:28").reshape(-1, DIRECTIONS)
        strength = (row**2).sum(axis=0)
        assert set(np.argsort(strength)[-2:]) == expected
        assert strength[list(expected)].sum() > 0.98


@pytest.mark.parametrize("side", [8, 28, 31])
def test_a_point_has_the_gaussian_mean_of_what_is_around_it(side):
    picture = np.random.default_rng(side).integers(0, 256, (side, side)).astype(np.uint8)
    down, right = np.gradient(gaussian_filter(picture / 255, SMOOTHING))
    of_direction = np.arctan2(down, right) % (2 * np.pi) * (DIRECTIONS / (2 * np.pi))
    expected = []
    for direction in range(DIRECTIONS):
        apart = np.abs(of_direction - direction)
        share = np.maximum(1 - np.minimum(apart, DIRECTIONS - apart), 0)
        expected.append(
            gaussian_filter(np.hypot(down, right) * share, BLUR)[
                STEP // 2 :: STEP, STEP // 2 :: STEP
            ]
        )
    expected = np.sqrt(np.stack(expected, axis=-1).ravel())
    found = tacit.encode([picture], f"edges:{side}")[0]
    np.testing.assert_allclose(found, expected / np.linalg.norm(expected), atol=1e-5)


def test_brightness_plays_no_part_and_a_record_is_alone():
    dim = tacit.encode(np.stack([strips(True) // 5, strips(False)]), "edges:28")
    bright = tacit.encode([strips(True)], "edges:28")
    np.testing.assert_allclose(dim[0], bright[0], atol=1e-6)


def test_a_picture_without_edges_has_no_row():
    with pytest.raises(InputError, match="record 0 cannot be encoded .*zeros"):
        tacit.encode(np.zeros((1, 28, 28), dtype=np.uint8), "edges:28")


@pytest.mark.parametrize("name", ["edges:7", "edges:65", "edges:x", "edges:28x28", "edges:²"])
def test_bad_sides(name):
    with pytest.raises(InputError, match=stating("8", "64 pixels", "edges:28")):
        load_encoder(name)


def test_it_has_no_weights(tmp_path):
    with pytest.raises(InputError, match="leave it out for edges:"):
        load_encoder("edges:28", weights=tmp_path)
    assert load_encoder("edges:28").card["name"] == "edges:28"
