import numpy as np
import pytest

from learners.blobs import unit
from messages import stating
from tacit.compute.shared import caching
from tacit.errors import InputError
from tacit.models.public_rows import public_centre
from tacit.models.rows import check_finite, unit_rows, unit_rows_about, with_lengths

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(20, 5)) + 1
CENTRE = RNG.normal(size=5) / 4


def test_rows_about_a_centre_are_unit_rows_of_the_direct_formula():
    assert np.allclose(unit_rows_about(ROWS, CENTRE), unit(unit(ROWS) - CENTRE))
    assert np.array_equal(unit_rows_about(ROWS, None), unit_rows(ROWS))


def test_rows_of_zeros_stay_zeros_and_so_does_the_centre_itself():
    rows = np.array([[0.0, 0.0], [3.0, 4.0], [1e-200, 0.0], [1e200, 0.0]])
    found = unit_rows_about(rows, np.array([0.6, 0.8]))
    assert not found[0].any()
    assert np.linalg.norm(found[1]) in (0, pytest.approx(1))
    assert np.allclose(found[2:], unit(np.array([[0.4, -0.8]] * 2)))
    assert not unit_rows_about(rows[3:], np.array([1.0, 0.0])).any()


@pytest.mark.parametrize("width", [5, 8192, 8193, 10_000])
def test_a_row_does_not_depend_on_the_other_rows(width):
    rows, centre = RNG.normal(size=(20, width)) + 1, RNG.normal(size=width) / width
    whole = unit_rows_about(rows, centre)
    for chosen in (slice(None, None, -1), *(slice(i, i + 1) for i in range(20)), slice(0, 20, 3)):
        assert np.array_equal(unit_rows_about(rows[chosen], centre), whole[chosen])


def test_the_centre_is_the_mean_of_unit_public_rows():
    assert np.allclose(public_centre(ROWS.tolist(), 5), unit(ROWS).mean(axis=0))
    assert np.allclose(
        public_centre(ROWS.astype(np.float32), 5), unit(ROWS).mean(axis=0), atol=1e-6
    )
    assert public_centre(None, 5) is None
    with caching():
        centre = public_centre(ROWS, 5)
        assert public_centre(ROWS, 5) is centre
        assert np.allclose(public_centre(ROWS[:2], 5), unit(ROWS[:2]).mean(axis=0))
    with pytest.raises(InputError, match="encode both the same way"):
        public_centre(ROWS, 4)
    with pytest.raises(InputError, match="public row 1 is all zeros"):
        public_centre([[1.0], [0.0]], 1)


def test_rows_over_their_lengths_are_unit_whatever_their_size():
    rows = np.array(
        [[3.0, 4.0], [0.0, 0.0], [3e-200, 4e-200], [3e200, 4e200], [0.0, 5e-324], [3e149, 4e149]]
    )
    found, lengths = with_lengths(rows)
    assert np.isfinite(found).all()
    assert (lengths > 0).all()
    assert np.allclose(
        found / lengths, [[0.6, 0.8], [0, 0], [0.6, 0.8], [0.6, 0.8], [0, 1], [0.6, 0.8]]
    )
    assert np.array_equal(found[0], rows[0])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", ">f4", "longdouble"])
@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf, -np.inf])
def test_the_first_row_that_is_not_finite_is_named(dtype, bad):
    largest = np.finfo(dtype).max
    rows = np.full((1000, 600), largest, dtype)
    rows[::2] = -largest
    rows[3] = np.finfo(dtype).smallest_subnormal
    check_finite(rows)
    check_finite(rows[:0])
    rows[777, 599] = bad
    with pytest.raises(InputError, match=stating("row 777", "X", "finite")):
        check_finite(rows)
    with pytest.raises(InputError, match="row 599 of public"):
        check_finite(rows.T, "public")
    check_finite(rows[::2])
