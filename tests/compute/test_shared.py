"""Shared work: computed once by whoever comes first, found by content, never stale."""

import subprocess
import sys
from collections import OrderedDict

import numpy as np
import pytest

from tacit.compute import shared as module
from tacit.compute.shared import CACHE_SIZE, cached, caching, digest, locked, shared, sharing


def test_without_a_folder_it_is_computed_each_time():
    calls = []
    for _ in range(2):
        assert shared("x", list, lambda: calls.append(1) or np.ones(2)).tolist() == [1, 1]
    assert len(calls) == 2


def test_within_a_folder_it_is_computed_once_for_each_input(tmp_path):
    calls = []

    def work(value):
        return shared(
            "square",
            lambda: (np.array([value]), "square"),
            lambda: calls.append(value) or np.array([value]) ** 2,
        )

    with sharing(tmp_path):
        found = [work(value).tolist() for value in (2, 3, 2, 2.0)]
    assert found == [[4], [9], [4], [4.0]]
    assert calls == [2, 3, 2.0]  # another type is another input
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".lock"] * 3 + [".npy"] * 3


def test_a_failure_keeps_nothing(tmp_path):
    with sharing(tmp_path):
        with pytest.raises(ZeroDivisionError):
            shared("x", list, lambda: 1 / 0)
        assert shared("x", list, lambda: np.zeros(1)).tolist() == [0]


@pytest.fixture
def cache(monkeypatch):
    """An empty cache."""
    monkeypatch.setattr(module, "CACHE", OrderedDict())
    return module.CACHE


def test_results_are_cached_by_the_identity_of_their_arrays(cache, tmp_path):
    calls = []

    def total(*arrays):
        calls.append(arrays)
        return sum(array.sum() for array in arrays if array is not None)

    def of(*arrays):
        return cached(total, *arrays)

    one, equal = np.ones(3), np.ones(3)
    assert [of(one), of(one)] == [3, 3]
    assert len(calls) == 2  # no cache outside the block
    with caching():
        assert [of(one), of(one), of(one, equal), of(one, None), of(one, None)] == [3, 3, 6, 3, 3]
        assert cached(lambda _: 7, one) == 7
    assert len(calls) == 5
    with sharing(tmp_path):
        assert [of(one), of(equal)] == [3, 3]
    assert len(calls) == 6  # the cache outlives the block, and an equal array is another one
    assert of(one) == 3
    assert len(calls) == 7
    assert not list(tmp_path.iterdir())


def test_a_cached_result_goes_with_its_arrays(cache, monkeypatch):
    # as when an address is used again
    monkeypatch.setattr(module, "id", lambda _: 1, raising=False)

    def total(array, _):
        return array.sum()

    with caching():
        one, other = np.ones(3), np.zeros(3)
        assert cached(total, one, None) == 3
        del one
        assert not cache
        assert cached(total, other, None) == 0


def test_the_cache_holds_few_results_and_no_failures(cache):
    arrays = [np.full(2, i) for i in range(CACHE_SIZE + 1)]
    calls = []

    def first(array):
        calls.append(array[0])
        return array[0]

    def fails(array):
        raise ZeroDivisionError

    with caching():
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                cached(fails, arrays[0])
        for array in [*arrays, arrays[-1], arrays[0]]:
            assert cached(first, array) == array[0]
    assert calls == [*range(CACHE_SIZE + 1), 0]  # the first had made room for the last
    assert len(cache) == CACHE_SIZE


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([np.zeros(4)], [np.zeros((2, 2))]),
        ([np.zeros(4)], [np.zeros(4, np.float32)]),
        ([np.zeros(2), np.zeros(2)], [np.zeros(4)]),
        (["ab", "c"], ["a", "bc"]),
        ([1], ["1"]),
        ([np.zeros((9000, 1))], [np.concatenate([np.zeros((8999, 1)), np.ones((1, 1))])]),
    ],
)
def test_digests_tell_inputs_apart(one, other):
    assert digest(one) == digest(list(one))
    assert digest(one) != digest(other)


def test_a_lock_excludes_other_processes_and_ends_with_its_holder(tmp_path):
    path = tmp_path / "lock"
    code = (
        "import os\nfrom pathlib import Path\nfrom tacit.compute.shared import locked\n"
        f"with locked(Path({str(path)!r}), wait=False): os._exit(7)"
    )
    with locked(path):
        assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 1
    assert subprocess.run([sys.executable, "-c", code]).returncode == 7
    with locked(path, wait=False):
        pass
