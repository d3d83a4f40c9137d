"""Checkpoints: parts appear whole, another key's parts are never taken, leftovers of a kill are
ignored.
"""

import signal
import subprocess
import sys

import numpy as np
import pytest

from messages import stating
from tacit.compute.checkpoint import KEY, Checkpoint
from tacit.errors import InputError


def test_parts_are_found_again_under_their_key(tmp_path):
    first = Checkpoint(tmp_path / "work", "a1")
    first.write("0.npy", np.arange(6.0).reshape(2, 3))
    first.write("0.json", b"{}")
    again = Checkpoint(tmp_path / "work", "a1")
    assert [again.has(name) for name in ("0.npy", "0.json", "1.npy")] == [True, True, False]
    found = again.read("0.npy")
    assert found.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert not found.flags.writeable
    assert again.path("0.json").read_bytes() == b"{}"
    assert (tmp_path / "work").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("damage", [b"", b"a", b"a1\n", b"\xff\xff", None])
def test_parts_of_another_key_are_refused_or_removed(tmp_path, damage):
    Checkpoint(tmp_path / "work", "a1").write("0.npy", np.zeros(3))
    path = tmp_path / "work" / KEY
    path.unlink() if damage is None else path.write_bytes(damage)
    with pytest.raises(InputError, match=stating("other", "key.txt")):
        Checkpoint(tmp_path / "work", "a1")
    assert (tmp_path / "work" / "0.npy").exists()
    assert not Checkpoint(tmp_path / "work", "a1", replace=True).has("0.npy")
    assert Checkpoint(tmp_path / "work", "a1").path(KEY).read_text() == "a1"


def test_without_a_key_names_tell(tmp_path):
    Checkpoint(tmp_path).write("a1.npy", np.zeros(3))
    assert Checkpoint(tmp_path).has("a1.npy")
    assert [path.name for path in tmp_path.iterdir()] == ["a1.npy"]


def test_a_folder_that_cannot_be_used(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=stating("used", "another folder")):
        Checkpoint(tmp_path / "file", "a1")


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"PK\x03\x04 cut"])
def test_damaged_arrays_raise(tmp_path, content):
    Checkpoint(tmp_path).write("0.npy", content)
    with pytest.raises((OSError, ValueError)):
        Checkpoint(tmp_path).read("0.npy")


KILLED = """
import os, signal, sys
from pathlib import Path
from tacit.compute.checkpoint import Checkpoint
checkpoint = Checkpoint(Path(sys.argv[1]), "a1")
checkpoint.write("0.txt", b"whole")
os.fsync = lambda number: os.kill(os.getpid(), signal.SIGKILL)  # the part is written, and not yet renamed
checkpoint.write("1.txt", b"whole")
"""


def test_leftovers_of_a_killed_run_are_ignored(tmp_path):
    work = tmp_path / "work"
    assert subprocess.run([sys.executable, "-c", KILLED, str(work)]).returncode == -signal.SIGKILL
    # the key, the finished part and what is left of the other
    assert len(list(work.iterdir())) == 3
    checkpoint = Checkpoint(work, "a1")
    assert (checkpoint.has("0.txt"), checkpoint.has("1.txt")) == (True, False)
    checkpoint.write("1.txt", b"whole")
    assert checkpoint.path("1.txt").read_bytes() == b"whole"


def test_clearing_that_is_killed_leaves_nothing_to_resume(tmp_path, monkeypatch):
    checkpoint = Checkpoint(tmp_path / "work", "a1")
    checkpoint.write("0.npy", np.zeros(3))

    def interrupt(folder):
        raise KeyboardInterrupt

    monkeypatch.setattr("shutil.rmtree", interrupt)
    with pytest.raises(KeyboardInterrupt):
        checkpoint.clear()
    monkeypatch.undo()
    assert not Checkpoint(tmp_path / "work", "a1", replace=True).has("0.npy")
    checkpoint.clear()
    assert list(tmp_path.iterdir()) == []
