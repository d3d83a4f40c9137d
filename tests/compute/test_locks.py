"""Locks of files, and systems without them."""

import subprocess
import sys

import pytest

from tacit.cli.main import main
from tacit.compute.locks import lock

REFUSED = (
    "tacit runs on Linux and macOS, since it locks ledgers and stores by flock; on Windows run it"
    " in WSL"
)


def test_a_lock_is_exclusive_until_the_file_is_closed(tmp_path):
    path = tmp_path / "file"
    with path.open("a") as one, path.open("a") as other:
        lock(one)
        with pytest.raises(BlockingIOError):
            lock(other, wait=False)
    with path.open("a") as other:
        lock(other, wait=False)


@pytest.fixture
def windows(monkeypatch):
    """A system without flock."""
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.delitem(sys.modules, "tacit.compute.locks")


@pytest.mark.parametrize("line", ["--help", "promise noisy-sum --budget rho=1", "inspect release"])
def test_the_command_line_refuses_windows_in_one_line(windows, capsys, line):
    assert main(line.split()) == 2
    assert capsys.readouterr() == ("", f"tacit: {REFUSED}\n")


@pytest.mark.parametrize("name", ["NoisySumPrototypes", "Ledger", "EmbeddingStore", "sweep"])
def test_what_needs_locks_says_so_when_it_is_imported(name):
    code = f"import sys; sys.modules['fcntl'] = None; import tacit; tacit.{name}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == f"ImportError: {REFUSED}"
