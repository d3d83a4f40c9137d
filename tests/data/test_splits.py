"""Splits by position."""

import numpy as np
import pytest

import tacit
from messages import stating
from tacit.errors import InputError


def test_parts_are_disjoint_and_of_the_sizes_asked_for():
    parts = tacit.split(100, n_public=30, n_test=20, seed=3)
    assert [len(part) for part in (parts.private, parts.public, parts.test)] == [50, 30, 20]
    together = np.concatenate([parts.private, parts.public, parts.test])
    assert sorted(together.tolist()) == list(range(100))
    assert np.all(np.diff(parts.private) > 0)
    few = tacit.split(100, n_public=30, n_private=10, seed=3)
    assert [len(part) for part in (few.private, few.public, few.test)] == [10, 30, 0]


def test_it_depends_on_the_number_of_records_and_the_seed_alone():
    first, again, other = (tacit.split(50, n_public=20, seed=seed) for seed in (0, 0, 1))
    assert np.array_equal(first.private, again.private)
    assert not np.array_equal(first.private, other.private)


def test_small_kinds_of_numbers_do_not_overflow():
    with pytest.raises(InputError, match="too few"):
        tacit.split(np.uint8(200), n_public=np.uint8(150), n_test=np.uint8(120))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_public": 60, "n_test": 50}, stating("100 records", "n_public=60", "n_test=50")),
        ({"n_public": 100}, "too few"),
        ({"n_public": 50, "n_private": 51}, stating("n_public=50", "n_test=0", "n_private=51")),
        ({"n_public": 90, "n_test": 10}, stating("n_public=90", "n_test=10", "private")),
        ({"n_public": -1}, "n_public=-1"),
        ({"n_public": 1.5}, "n_public=1.5"),
        ({"n_public": 10, "seed": float("nan")}, "seed=nan"),
        ({"n_public": True}, "n_public=True"),
    ],
)
def test_bad_sizes_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        tacit.split(100, **given)
