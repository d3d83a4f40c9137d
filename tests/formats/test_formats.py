"""From 1.0 on, what a version wrote is read by every later version.

Each version has a folder under `written`, made by tools/written.py when it was released. Before 1.0
there is none, and formats may still change.
"""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import tacit

ROOT = Path(__file__).resolve().parents[2]
WRITTEN = Path(__file__).parent / "written"
FOLDERS = sorted(WRITTEN.glob("*"))
release = runpy.run_path(str(ROOT / "tools" / "release.py"))
write = runpy.run_path(str(ROOT / "tools" / "written.py"))["write"]


def check_read(folder):
    """Read the store, the ledger and the release that `tools/written.py` wrote."""
    store = tacit.EmbeddingStore.open(folder / "store")
    assert store.x[:].shape == (30, 4)
    assert store.labels.tolist() == [0, 1, 2] * 10

    loaded = tacit.Release.load(folder / "release").verify()
    assert loaded.predict(np.eye(3, 4)).tolist() == [0, 1, 2]

    account = tacit.Ledger(folder / "ledger.jsonl", identity="made up").account()
    assert [charge.guarantee.rho for charge in account.charges] == [0.5]


def test_every_version_from_1_0_on_has_its_files():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert release["versions_without_files"](changelog, tacit.__version__, WRITTEN) == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_what_a_version_wrote_is_read(folder):
    check_read(folder)


def test_what_this_version_writes_is_read(tmp_path):
    write(tmp_path / "now")
    check_read(tmp_path / "now")


@pytest.mark.parametrize(
    ("headings", "version", "folders", "missing"),
    [
        (["0.1.0", "0.9.3"], "0.9.3", [], []),
        ([], "1.0.0", [], ["1.0.0"]),
        (["1.0.0", "0.1.0"], "1.0.0", ["1.0.0"], []),
        (["1.1.0", "1.0.1", "1.0.0"], "1.1.0", ["1.0.0", "1.1.0"], ["1.0.1"]),
        (["2.0.0", "1.0.0"], "2.0.0", ["2.0.0"], ["1.0.0"]),
    ],
)
def test_a_version_without_its_files_is_named(tmp_path, headings, version, folders, missing):
    changelog = "".join(f"## [{number}] - 2027-01-01\n\n- A line.\n\n" for number in headings)
    for name in folders:
        (tmp_path / name / "release").mkdir(parents=True)
    assert release["versions_without_files"](changelog, version, tmp_path) == missing


def test_the_promise_names_the_command_that_keeps_it():
    page = (ROOT / "docs" / "releases.md").read_text(encoding="utf-8")
    promise = page[page.index("## Which formats are read") :]
    assert re.search(r"every version from 1\.0 on", promise)
    assert "python tools/written.py" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
