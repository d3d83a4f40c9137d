import numpy as np
import pytest

from tacit.compute.bits import all_finite, zero_rows

KINDS = ["float16", "float32", "float64", ">f4", "longdouble"]


def test_every_float16_alone_and_beside_others():
    every = np.arange(2**16, dtype=np.uint16).view(np.float16)
    finite, zero = np.isfinite(every), every == 0
    for other in (-0.0, 65504.0):
        pairs = np.stack([every, np.full_like(every, other)], axis=1)
        assert [all_finite(pair[None]) for pair in pairs] == finite.tolist()
        assert np.array_equal(zero_rows(pairs), zero & (other == 0))
    assert np.array_equal(zero_rows(every[:, None]), zero)


@pytest.mark.parametrize("kind", KINDS)
def test_wider_floats(kind):
    facts = np.finfo(kind)
    rows = np.array(
        [
            [0.0, -0.0, 0.0],
            [0.0, facts.smallest_subnormal, -0.0],
            [-0.0, -facts.smallest_subnormal, 0.0],
            [facts.max, 0.0, -facts.max],
            [-0.0, -0.0, -0.0],
            [1.0, -0.0, -0.0],
        ]
    ).astype(kind)
    zeros = [True, False, False, False, True, False]
    assert zero_rows(rows).tolist() == zeros
    assert zero_rows(rows[::2]).tolist() == zeros[::2]
    assert zero_rows(np.asfortranarray(rows)).tolist() == zeros
    assert all_finite(rows)
    assert all_finite(rows.T)
    for bad in (np.nan, -np.nan, np.inf, -np.inf):
        spoiled = rows.copy()
        spoiled[3, 1] = bad
        assert not all_finite(spoiled)
        assert not all_finite(spoiled.T)
        assert all_finite(spoiled[:3])
        assert not zero_rows(spoiled)[3]


def test_empty_blocks():
    assert all_finite(np.empty((0, 3), np.float16))
    assert zero_rows(np.empty((0, 3), np.float16)).tolist() == []
    assert zero_rows(np.empty((2, 0), np.float32)).tolist() == [True, True]
