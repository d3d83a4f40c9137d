"""The table and the picture of synthetic rows, on a small made-up problem."""

import csv
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "tasks"
MODULES = ("synthetic_rows", "cells", "problems")


@pytest.fixture
def script(monkeypatch):
    for name in MODULES:
        sys.modules.pop(name, None)
    monkeypatch.syspath_prepend(str(FOLDER))
    import synthetic_rows

    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400)
    x = 3 * np.eye(3, 8)[y] + rng.normal(size=(400, 8))
    small = synthetic_rows.Data(x[:200], y[:200], x[200:], y[200:], rng.normal(size=(90, 8)))
    monkeypatch.setattr(synthetic_rows, "data_of", lambda *given: small)
    yield synthetic_rows
    for name in MODULES:
        sys.modules.pop(name, None)


def test_cells_table_and_picture(script, tmp_path, monkeypatch):
    out = tmp_path / "out"
    words = ["synthetic_rows.py", str(tmp_path), "--out", str(out), "--workers", "1"]
    monkeypatch.setattr(sys, "argv", [*words, "--only", "trec/2/"])
    script.main()
    with (out / "cells.csv").open(encoding="utf-8", newline="") as file:
        cells = list(csv.DictReader(file))
    assert [cell["seed"] for cell in cells] == ["0", "1"]
    for cell in cells:
        assert float(cell["logistic"]) > float(cell["release"]) - 0.1
        assert 3 < int(cell["public_rows"]) <= 90
    table = (out / "table.md").read_text(encoding="utf-8").splitlines()
    assert table[2].startswith("| trec, e = 2 | .")
    assert (out / "synthetic-rows.png").read_bytes().startswith(b"\x89PNG")
