"""The table and the picture of labels of public rows, on a small made-up problem."""

import csv
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "tasks"
MODULES = ("label_public", "cells", "problems")


@pytest.fixture
def script(monkeypatch, tmp_path):
    for name in MODULES:
        sys.modules.pop(name, None)
    monkeypatch.syspath_prepend(str(FOLDER))
    import label_public

    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400)
    x = 3 * np.eye(3, 8)[y] + rng.normal(size=(400, 8))
    small = label_public.Problem(x[:200], y[:200], x[200:], y[200:], rng.normal(size=(90, 8)), 3)
    monkeypatch.setattr(label_public, "problem", lambda *given: small)
    monkeypatch.setattr(label_public, "FOREIGN", {"clinc150": "foreign.npy"})
    np.save(tmp_path / "foreign.npy", rng.normal(size=(40, 8)))
    yield label_public
    for name in MODULES:
        sys.modules.pop(name, None)


def test_cells_table_and_picture(script, tmp_path, monkeypatch):
    out = tmp_path / "out"
    words = ["label_public.py", str(tmp_path), "--out", str(out), "--workers", "1"]
    monkeypatch.setattr(sys, "argv", [*words, "--only", "clinc150/2/"])
    script.main()
    with (out / "cells.csv").open(encoding="utf-8", newline="") as file:
        cells = list(csv.DictReader(file))
    labelled = [float(cell["labelled"]) for cell in cells]
    assert labelled[0] == 1
    assert labelled == sorted(labelled, reverse=True)
    # fewer rows of no class than of the pool have a label
    assert all(float(cell["foreign"]) < float(cell["labelled"]) for cell in cells[5:])
    table = (out / "table.md").read_text(encoding="utf-8").splitlines()
    assert [line.split(" | ")[1] for line in table[2:]] == ["none", ".5", ".8", ".9"]
    assert (out / "label-public.png").read_bytes().startswith(b"\x89PNG")
