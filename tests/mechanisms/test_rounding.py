import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tacit.errors import InputError
from tacit.mechanisms.rounding import integer_rows, product_up, row_norms, sensitivity


def exact_norm_squared(row):
    return sum(int(value) ** 2 for value in row)


@settings(max_examples=200, deadline=None)
@given(
    arrays(np.float64, (5, 7), elements=st.floats(-1e6, 1e6, allow_nan=False)),
    st.sampled_from([2**18, 2**32]),
)
def test_no_row_is_longer_than_the_unit(rows, unit):
    for row in integer_rows(rows, unit):
        assert exact_norm_squared(row) <= unit**2


@pytest.mark.parametrize("width", [1, 2, 3, 384, 4096])
@pytest.mark.parametrize("unit", [2**18, 2**32])
def test_unit_rows_never_exceed_the_unit_and_lose_almost_nothing(width, unit):
    rows = np.random.default_rng(width).normal(size=(200, width))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    for row, original in zip(integer_rows(rows, unit), rows, strict=True):
        assert exact_norm_squared(row) <= unit**2
        assert np.abs(row / unit - original).max() <= 1 / unit + 2**-31


def test_axis_rows_reach_the_unit_but_do_not_pass_it():
    rows = integer_rows(np.array([[1.0, 0.0], [np.nextafter(1, 2), 0.0], [0.0, -5.0]]), 2**32)
    assert (np.abs(rows).max(axis=1) <= 2**32).all()
    assert (np.abs(rows).max(axis=1) >= 2**32 - 2).all()


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 1.7e308])
def test_rows_without_a_finite_norm_become_zeros_and_leave_others_alone(value):
    rows = np.array([[0.5, 0.5], [value, 1.0], [0.1, -0.2]])
    found = integer_rows(rows, 2**32)
    assert not found[1].any()
    assert np.array_equal(found[[0, 2]], integer_rows(rows[[0, 2]], 2**32))


def test_bits_of_a_row_do_not_depend_on_its_neighbours_or_the_memory_layout():
    rows = np.random.default_rng(0).normal(size=(3000, 37))
    unit = 2**52  # fine enough to show the last bit of a norm
    expected = integer_rows(rows, unit)
    assert np.array_equal(integer_rows(np.asfortranarray(rows), unit), expected)
    for i in range(100):
        assert np.array_equal(
            integer_rows(np.asfortranarray(rows)[i : i + 1], unit)[0], expected[i]
        )


@pytest.mark.parametrize("width", [5, 8192, 10_000, 20_001])
def test_norms_of_a_row_alone_and_among_others(width):
    rows = np.random.default_rng(width).normal(size=(40, width))
    together = row_norms(rows)
    for i in range(40):
        assert row_norms(rows[i : i + 1])[0] == together[i]
        assert row_norms(rows[max(i - 1, 0) : i + 1])[-1] == together[i]


def test_each_coordinate_is_rounded_toward_zero():
    rows = np.array([[0.3, -0.3, 0.1]])
    exact = [Fraction(value) * 2**32 for value in rows[0]]
    assert all(
        abs(int(found)) <= abs(value)
        for found, value in zip(integer_rows(rows, 2**32)[0], exact, strict=True)
    )


def test_too_many_columns_for_the_proof_are_refused():
    with pytest.raises(InputError, match="project them to fewer columns"):
        integer_rows(np.zeros((1, 2**20 + 1)), 2**32)


def test_the_sensitivity_of_a_record_of_a_person_has_its_slack():
    for unit, entries in ((2**32, 1), (2**36, 128_000), (2**36, 2**40)):
        assert sensitivity(unit, entries, per_person=True) == pytest.approx(
            unit + unit / 2**31 + entries**0.5, rel=1e-15
        )


def test_a_scale_is_never_below_the_exact_product_and_the_nearest_above():
    source = np.random.default_rng(0)
    for factors in source.uniform(0.1, 10.0, (2000, 3)):
        exact = math.prod(map(Fraction, factors.tolist()))
        scale = product_up(*factors.tolist())
        assert math.nextafter(scale, 0) < exact <= scale
    assert product_up(3.0, 2.0**32) == 3 * 2.0**32
    assert product_up(0.0, 2.0) == 0.0
    assert product_up(math.inf, 2.0) == math.inf


def test_a_sensitivity_per_person_covers_its_square_root():
    for entries in (2, 3, 12_345, 2**26 + 1):
        bound = Fraction(sensitivity(2**32, entries, per_person=True))
        root = bound - Fraction(2**32) * (1 + Fraction(1, 2**31))
        assert root**2 >= entries
