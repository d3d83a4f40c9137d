"""Shared work: computed once by whoever comes first, found by content, never stale."""

import subprocess
import sys

import numpy as np
import pytest

from tacit.compute.shared import digest, locked, shared, sharing


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
