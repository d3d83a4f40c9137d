import os
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.compute.atomic import _HOST as HOST
from tacit.compute.atomic import (
    atomic_file,
    atomic_files,
    atomic_folder,
    check_writable,
    remove_parts,
)
from tacit.errors import InputError


def ours(folder: Path) -> bool:
    return (folder / "mine").exists()


def make(path, text, **options):
    with atomic_folder(path, ours=ours, **options) as folder:
        assert not path.exists() or options
        (folder / "mine").write_text(text)


def test_a_folder_appears_whole_and_is_replaced_whole(tmp_path):
    path = tmp_path / "out"
    make(path, "first")
    (path / "leftover").write_text("x")
    make(path, "second", force=True)
    assert [p.name for p in path.iterdir()] == ["mine"]
    assert (path / "mine").read_text() == "second"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_what_was_there(tmp_path, error):
    path = tmp_path / "out"
    make(path, "first")

    def half(temporary):
        (temporary / "mine" if temporary.is_dir() else temporary).write_text("half")
        raise error

    with pytest.raises(error), atomic_folder(path, ours=ours, force=True) as folder:
        half(folder)
    with pytest.raises(error), atomic_file(path / "file") as file:
        half(file)
    assert (path / "mine").read_text() == "first"
    assert [p.name for p in tmp_path.rglob("*")] == ["out", "mine"]


def test_a_failed_exchange_puts_the_old_folder_back(tmp_path, monkeypatch):
    path = tmp_path / "out"
    make(path, "first")
    rename = Path.rename

    def fails_on_the_new(self, target):
        if self.name.endswith(".part"):
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fails_on_the_new)
    with pytest.raises(OSError, match="No space"):
        make(path, "second", force=True)
    assert (path / "mine").read_text() == "first"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("existed", [False, True])
@pytest.mark.parametrize("failing", [0, 1])
def test_two_files_appear_together_or_stay_as_they_were(tmp_path, monkeypatch, existed, failing):
    paths = tmp_path / "a.html", tmp_path / "a.json"

    def write(text):
        with atomic_files(*paths, force=existed) as parts:
            for part in parts:
                part.write_text(text)

    if existed:
        for path in paths:
            path.write_text("old")

    with monkeypatch.context() as patch:
        move = Path.replace

        def fail(self, target):
            if self.suffix == ".part" and target == paths[failing]:
                raise KeyboardInterrupt
            return move(self, target)

        patch.setattr(Path, "replace", fail)
        with pytest.raises(KeyboardInterrupt):
            write("new")
    old = {path.name: "old" for path in paths} if existed else {}
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == old

    write("new")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "a.html": "new",
        "a.json": "new",
    }


def test_ledgers_live_on_even_while_open(tmp_path):
    path = tmp_path / "out"
    make(path, "first")
    (path / "deep").mkdir()
    with (path / "deep" / "x.ledger.jsonl").open("a") as ledger:
        ledger.write("one\n")
        make(path, "second", force=True)
        ledger.write("two\n")
    assert (path / "deep" / "x.ledger.jsonl").read_text() == "one\ntwo\n"


def test_only_its_own_kind_is_replaced(tmp_path):
    (tmp_path / "thesis").mkdir()
    make(tmp_path / "thesis", "an empty folder may be taken", force=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "text").write_text("years of work")
    (tmp_path / "link").symlink_to(tmp_path / "thesis")
    (tmp_path / "file").write_text("x")
    for name in ("other", "link", "file"):
        with pytest.raises(InputError, match="holds something else"):
            make(tmp_path / name, "x", force=True)


@pytest.mark.parametrize("name", ["none/out", "/proc/out"])
def test_places_that_cannot_be_written(tmp_path, name):
    with pytest.raises(InputError, match="is not a folder|cannot be written"):
        check_writable(tmp_path / name)


def test_what_exists_is_refused_without_force(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("file", "dangling"):
        with pytest.raises(InputError, match="exists; choose another name"):
            check_writable(tmp_path / name)
    with atomic_file(tmp_path / "file", force=True) as file:
        file.write_text("y")
    assert (tmp_path / "file").read_text() == "y"


def mode(path):
    return path.stat().st_mode & 0o777


def test_work_is_readable_by_its_owner_alone_and_the_output_as_usual(tmp_path):
    old = os.umask(0o022)
    try:
        with (
            atomic_folder(tmp_path / "folder", ours=ours) as folder,
            atomic_file(tmp_path / "file") as file,
        ):
            file.write_text("private")
            assert (mode(folder), mode(file)) == (0o700, 0o600)
    finally:
        os.umask(old)
    assert (mode(tmp_path / "folder"), mode(tmp_path / "file")) == (0o755, 0o644)


def test_leftovers_of_killed_processes_are_removed_and_work_of_live_ones_is_not(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    leftovers = [tmp_path / f".out.{HOST}-{number}.part" for number in (dead.pid, os.getpid())]
    others = [
        f".out.{HOST}-{os.getppid()}.part",
        f".another.{HOST}-{dead.pid}.part",
        f".out.elsewhere-{dead.pid}.part",
    ]
    others = [tmp_path / name for name in others]
    for path in leftovers + others:
        path.write_text("private")
    remove_parts(tmp_path / "out")
    assert set(tmp_path.iterdir()) == set(others)
