"""Shared work: computed once by whoever comes first, found by content, never stale."""

import subprocess
import sys

import numpy as np
import pytest

from tacit.compute import shared as module
from tacit.compute.shared import KEPT, digest, keeping, kept, locked, shared, sharing


def test_without_a_folder_it_is_computed_each_time():
    calls = []
    for _ in range(2):
        assert shared("x", list, lambda: calls.append(1) or np.ones(2)).tolist() == [1, 1]
    assert len(calls) == 2


def test_within_a_folder_it_is_computed_once_for_each_input(tmp_path):
    calls = []

    def work(value):
        return shared(
            "square", lambda: (np.array([value]), "square"), lambda: calls.append(value) or np.array([value]) ** 2
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


def test_results_in_memory_are_of_the_same_objects(tmp_path):
    calls = []

    def total(*arrays):
        return kept("total", arrays, lambda: calls.append(1) or sum(0 if one is None else one.sum() for one in arrays))

    one, same = np.ones(3), np.ones(3)
    assert [total(one), total(one)] == [3, 3]
    assert len(calls) == 2  # not asked to keep anything
    for block in (keeping, lambda: sharing(tmp_path)):
        calls.clear()
        with block():
            assert [total(one), total(one), total(one, same), total(one, None), total(one, None)] == [3, 3, 6, 3, 3]
            assert kept("other", [one], lambda: 7) == 7
            assert len(calls) == (3 if block is keeping else 0)  # what is kept outlives the block
    assert total(one) == 3
    assert len(calls) == 1
    assert not list(tmp_path.iterdir())


def test_results_in_memory_are_not_of_arrays_that_were_there_before(monkeypatch):
    monkeypatch.setattr(module, "id", lambda _: 1, raising=False)  # as when an address is used again
    one = np.ones(3)
    with keeping():
        assert kept("address", [one], one.sum) == 3
        other = np.zeros(3)
        assert kept("address", [other], other.sum) == 0
        del one
        assert kept("address", [None], lambda: 5) == 5
        assert kept("address", [other], other.sum) == 0


def test_few_results_stay_in_memory_and_no_failure():
    arrays = [np.full(2, i) for i in range(KEPT + 1)]
    calls = []
    with keeping():
        with pytest.raises(ZeroDivisionError):
            kept("many", [arrays[0]], lambda: 1 / 0)
        for array in [*arrays, arrays[-1], arrays[0]]:
            assert kept("many", [array], lambda array=array: calls.append(array[0]) or array[0]) == array[0]
    assert calls == [*range(KEPT + 1), 0]  # the first had made room for the last


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
