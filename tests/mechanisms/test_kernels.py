"""Compiled loops against Python's integers and numpy."""

from fractions import Fraction

import numpy as np
import pytest

from tacit.mechanisms.gaussian import UNIT, class_sums
from tacit.mechanisms.kernels import (
    add_clipped,
    add_rows,
    add_shares,
    readable,
    rotation_signs,
    round_rotated,
    round_rows,
    row_buffer,
)
from tacit.mechanisms.rounding import SLACK

ODD = [
    np.zeros(5),
    np.full(5, 5e-324),
    np.full(5, 1e-320),
    np.full(5, 1.7e308),
    np.full(5, 1e200),
    [1e-200, 0, 0, 0, 3e-200],
    [0, 0, 5e-324, 0, 0],
]


def added(rows, floor, scale=UNIT * SLACK):
    rows = readable(np.asarray(rows))
    totals = np.zeros((len(rows), rows.shape[1]))
    add_rows(rows, np.arange(len(rows)), scale, floor, totals, row_buffer(rows))
    return totals


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64"])
@pytest.mark.parametrize("floor", [0.0, 1.0])
@pytest.mark.parametrize("width", [1, 3, 256, 1281])
def test_rows_are_added_as_integers_of_norm_at_most_the_unit(dtype, floor, width):
    rng = np.random.default_rng(width)
    rows = (rng.normal(size=(20, width)) * np.logspace(-2, 2, 20)[:, None]).astype(dtype)
    totals = added(rows, floor)
    for row, total in zip(rows.astype(np.float64), totals, strict=True):
        norm = np.linalg.norm(row)
        exact = sum(int(value) ** 2 for value in total)
        assert exact <= UNIT**2
        assert total.tolist() == np.trunc(total).tolist()
        wanted = UNIT * row / max(norm, floor) if norm > 0 else row
        assert (np.abs(total) <= np.abs(wanted)).all()
        assert np.abs(total - wanted).max() <= 2 + UNIT * 2.0**-31


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_class_has_a_ball_in_which_its_rows_are_measured_before_they_are_clipped(dtype):
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(3, 1, (40, 33)).astype(dtype), rng.integers(0, 4, 40)
    centres, radii = rng.normal(3, 0.2, (4, 33)), np.array([1e-3, 4.0, 6.0, 1e9])
    found = class_sums([(rows, labels)], n_classes=4, width=33, balls=(centres, radii))
    inside = (rows.astype(np.float64) - centres[labels]) / radii[labels, None]
    norms = np.linalg.norm(inside, axis=1)
    assert (norms > 1).any()
    assert (norms < 1).any()
    exact = np.zeros((4, 33))
    np.add.at(exact, labels, inside / np.maximum(norms, 1)[:, None])
    assert np.abs(found / UNIT - exact).max() < 1e-8
    alone = [
        class_sums([(row[None], own[None])], n_classes=4, width=33, balls=(centres, radii))
        for row, own in zip(rows, labels, strict=True)
    ]
    assert np.array_equal(found, sum(alone))
    assert max(sum(int(value) ** 2 for value in own.ravel()) for own in alone) <= UNIT**2


@pytest.mark.parametrize("width", [1, 2, 5, 64, 1281])
@pytest.mark.parametrize("value", [5e-324, 1e-323, 3e-320, 1e-310, 1e-308, 1e-160, 1e160, 1.7e308])
def test_extreme_rows_are_no_longer_than_the_unit(value, width):
    for floor in (0.0, 1.0):
        assert sum(int(v) ** 2 for v in added(np.full((1, width), value), floor)[0]) <= UNIT**2
    assert np.linalg.norm(added(np.full((1, width), value), 0.0)) > 0.999 * UNIT


@pytest.mark.parametrize("row", ODD)
def test_extreme_rows_keep_their_direction(row):
    row = np.array([row], np.float64)
    unit, total = added(row, 0.0)[0], sum(abs(Fraction(float(v))) ** 2 for v in row[0])
    if not total:
        assert not unit.any()
        return
    assert 0.999 * UNIT <= np.linalg.norm(unit) <= UNIT
    assert np.argmax(np.abs(unit)) == np.argmax(np.abs(row[0]))
    clipped = added(row, 1.0)[0]
    assert np.linalg.norm(clipped) <= UNIT
    assert (np.linalg.norm(clipped) > UNIT / 2) == (total > 1)


@pytest.mark.parametrize("radius", [1e-200, 1e-50, 1.0, 1e50, 1e200])
@pytest.mark.parametrize("row", ODD)
def test_extreme_rows_in_balls(row, radius):
    row, far = np.array([row], np.float64), np.full((1, 5), 1e300)
    for centre in (np.zeros((1, 5)), far, -far):
        sums = class_sums(
            [(row, np.zeros(1, int))], n_classes=1, width=5, balls=(centre, np.array([radius]))
        )
        assert sum(int(value) ** 2 for value in sums[0]) <= UNIT**2
        if not centre.any() and radius == 1:
            assert np.array_equal(sums, added(row, 1.0))
        if not centre.any() and radius == 1e-50 and 1e-50 < np.abs(row).max() < 1e200:
            assert np.linalg.norm(sums) > 0.999 * UNIT
    near = np.array([[1e-160, 0, 0, 0, 0]])  # whose square is none
    sums = class_sums(
        [(near, np.zeros(1, int))],
        n_classes=1,
        width=5,
        balls=(np.zeros((1, 5)), np.array([2e-160])),
    )
    assert abs(sums[0, 0] / UNIT - 0.5) < 1e-6


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_rows_that_are_not_finite_add_nothing(bad, dtype):
    rows = np.ones((2, 40), dtype)
    rows[0, 7] = bad
    for floor in (0.0, 1.0):
        totals = added(rows, floor)
        assert not totals[0].any()
        assert totals[1].all()
    out, given = np.empty((2, 40), np.float32), readable(rows)
    round_rows(given, 100.0, 50.0, out, row_buffer(given))
    assert not out[0].any()


def test_every_float16_is_read_as_it_is():
    every = np.arange(2**16, dtype=np.uint16).view(np.float16)
    finite = every[np.isfinite(every)].reshape(-1, 1)
    totals = np.zeros((1, 1))
    for value in (2.0**-24, -(2.0**-14), 65504.0, 0.1):
        totals[:] = 0
        rows = readable(np.array([[value]], np.float16))
        add_rows(rows, np.zeros(1, np.int64), 2.0**30, 2.0**17, totals, row_buffer(rows))
        assert totals[0, 0] == np.trunc(float(np.float16(value)) * 2.0**13)
    rows = readable(finite)
    each = np.zeros((len(finite), 1))
    add_rows(rows, np.arange(len(finite)), 2.0**41, 2.0**17, each, row_buffer(rows))
    assert np.array_equal(each[:, 0], finite[:, 0].astype(np.float64) * 2**24)


def test_rounding_is_to_the_nearest_integer_within_the_limit():
    rows = np.array([[3.0, -4.0, 0.26, -0.24]])
    out = np.empty((1, 4), np.int8)
    round_rows(rows, float(np.linalg.norm(rows)) * 2, 7.0, out, row_buffer(rows))
    assert out.tolist() == [[6, -7, 1, 0]]


def rotated(rows, scale=2.0**40):
    out, given, width = np.empty(rows.shape), readable(rows), rows.shape[1]
    nothing = np.zeros(width), np.empty(len(rows))
    round_rotated(given, scale, np.inf, out, row_buffer(given), rotation_signs(width), *nothing)
    return out / scale


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("width", [1, 2, 3, 5, 63, 64, 65, 100, 127, 128, 768, 1281])
def test_a_rotation_keeps_products(width, dtype):
    rows = np.random.default_rng(width).normal(size=(40, width)).astype(dtype)
    unit = rows / np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    found = rotated(rows)
    assert np.allclose(found @ found.T, unit @ unit.T, atol=1e-9 if dtype == "float64" else 2e-6)
    assert np.array_equal(rotated(rows[7:8])[0], found[7])


@pytest.mark.parametrize("width", [256, 768, 1280, 1281, 1343])
def test_a_rotation_spreads_what_lies_in_one_column_or_in_all(width):
    """No entry exceeds 6 standard deviations of a number spread over a quarter of the columns."""
    most = 6 / (width / 4) ** 0.5
    assert np.abs(rotated(np.eye(width))).max() < most
    assert np.abs(rotated(np.ones((1, width)))).max() < most
    signs = rotation_signs(width)
    assert np.abs(rotated(signs * np.ones((2, width)))).max() < most
    assert set(signs.ravel().tolist()) == {-1.0, 1.0}
    assert np.array_equal(signs, rotation_signs(width))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_rounding_error_along_a_direction_is_returned(dtype):
    rng = np.random.default_rng(0)
    rows, along, scale = rng.normal(size=(30, 100)).astype(dtype), rng.normal(size=100), 300.0
    rows[4] = 0
    out, lost, given = np.full((30, 103), 7, np.int8), np.full(30, np.nan), readable(rows)
    round_rotated(given, scale, 90.0, out, row_buffer(given), rotation_signs(100), along, lost)
    exact = rotated(rows) * scale
    assert np.array_equal(out[:, :100], np.rint(exact).clip(-90, 90))
    assert (np.abs(exact) > 91).any()
    assert np.allclose(lost, (exact - out[:, :100]) @ along, atol=1e-3)
    assert not out[4].any()
    assert (np.delete(out, 4, axis=0)[:, 100:] == 7).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize(
    "bounds", [(-(2**24), 2**24), (-5, 100_000), (3, 4), (-(2**30), 2**30 + 5)]
)
def test_clipped_sums_are_exact(dtype, bounds):
    """In numbers whose sums leave 32 bits, or that leave them already."""
    low, high = bounds
    rng = np.random.default_rng(0)
    products = rng.integers(-(2**24), 2**24, (700, 33)).astype(dtype)
    products[:, :3] = 2**24
    ends = np.array([0, 1, 300, 300, 700])
    totals = np.full((5, 33), 7, np.int64)
    add_clipped(products, ends, low, high, totals)
    terms = [[min(max(int(v), low), high) - low for v in row] for row in products]
    first = [0, *ends[:-1]]
    wanted = [
        [7 + sum(row[j] for row in terms[a:b]) for j in range(33)]
        for a, b in zip(first, ends, strict=True)
    ]
    assert totals.tolist() == wanted


@pytest.mark.parametrize(
    "bounds", [(2**35, 2**35 + 700_000), (-(2**36), -(2**36) + 2**30), (-(2**36), 2**36)]
)
def test_bounds_beyond_32_bits(bounds):
    """As float64 has them for windows far from 1."""
    low, high = bounds
    products = (
        np.random.default_rng(0).integers(low - 1000, high + 1000, (50, 9)).astype(np.float64)
    )
    totals = np.zeros((1, 9), np.int64)
    add_clipped(products, np.array([50]), low, high, totals)
    wanted = [sum(min(max(int(v), low), high) - low for v in column) for column in products.T]
    assert totals.tolist() == [wanted]


def test_class_sums_do_not_depend_on_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(500, 30)).astype(np.float16), rng.integers(0, 4, 500)
    whole = class_sums([(x, y)], n_classes=5, width=30, unit_rows=True)
    cut = [(x[i : i + 7], y[i : i + 7]) for i in range(0, 500, 7)]
    assert np.array_equal(class_sums(cut, n_classes=5, width=30, unit_rows=True), whole)
    monkeypatch.setattr("tacit.mechanisms.gaussian._EXACT_ROWS", 3)
    assert np.array_equal(class_sums([(x, y)], n_classes=5, width=30, unit_rows=True), whole)
    order = rng.permutation(500)
    assert np.array_equal(
        class_sums([(x[order], y[order])], n_classes=5, width=30, unit_rows=True), whole
    )
    assert not whole[4].any()


def test_a_centre_is_subtracted_from_rows_whose_distance_has_no_square():
    row, centre = np.full((1, 2), 3e-160), np.full((1, 2), 1e-160)
    sums = class_sums(
        [(row, np.zeros(1, int))], n_classes=1, width=2, balls=(centre, np.array([4e-160]))
    )
    assert sums[0] / UNIT == pytest.approx([0.5, 0.5], rel=1e-6)


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [("int32", -9000, 30_000), ("float32", 2**20, 2**24), ("float64", -(2**36), 2**36)],
)
def test_shares_are_rounded_down_exactly(dtype, low, high):
    """Quotients of whole numbers by numbers of records, also just below and at whole numbers."""
    rng = np.random.default_rng(0)
    divisors = np.array([1, 2, 3, 7, 1000, 2**26 - 1, 3, 999_983])
    classes, ends = (
        np.array([0, 0, 0, 1, 1, 1, 3, 3]),
        np.array([5, 40, 40, 90, 130, 170, 200, 220]),
    )
    factor = 2 ** (37 - (high - low - 1).bit_length())
    products = rng.integers(low - 100, high + 100, (220, 65)).astype(dtype)
    products[:, 0] = high
    starts = [0, *ends[:-1]]
    for start, end, divisor in zip(starts, ends, divisors.tolist(), strict=True):
        if divisor * factor < high - low:
            products[start:end, 1] = low + 5 * divisor
            products[start:end, 2] = low + 5 * divisor - 1
    totals = np.full((4, 65), 7)
    add_shares(products, ends, classes, divisors, low, high, factor, totals)
    wanted = np.full((4, 65), 7)
    for start, end, divisor, c in zip(starts, ends, divisors.tolist(), classes, strict=True):
        for row in products[start:end].tolist():
            wanted[c] += [(min(max(int(v), low), high) - low) * factor // divisor for v in row]
    assert np.array_equal(totals, wanted)
