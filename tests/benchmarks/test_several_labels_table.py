"""Cells, table and picture of several labels, on small made-up comments."""

import sys
from pathlib import Path

import numpy as np
import pytest

import tacit

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
MODULES = ("several_labels", "cells")


@pytest.fixture
def module(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS / "tasks"), *sys.path])
    import several_labels

    rng = np.random.default_rng(0)
    x = rng.normal(size=(260, 8)).astype(np.float16)
    y = x[:, :4] > 0.5
    small = several_labels.Comments(x[:200], y[:200], x[200:], y[200:], rng.normal(size=(50, 8)))
    monkeypatch.setattr(several_labels, "comments", lambda data: small)
    monkeypatch.setattr(several_labels, "N_LABELS", 4)
    monkeypatch.setattr(several_labels, "METHODS", {"gradient-descent": tacit.GradientDescent})
    yield several_labels
    for name in MODULES:
        sys.modules.pop(name, None)


def test_a_run_writes_cells_a_table_and_a_picture(module, tmp_path, monkeypatch):
    out = tmp_path / "out"
    monkeypatch.setattr(module, "EPSILONS", (2.0,))
    monkeypatch.setattr(module, "SEEDS", range(1))
    words = ["several_labels.py", str(tmp_path), "--out", str(out), "--workers", "1"]
    monkeypatch.setattr(sys, "argv", words)
    module.main()
    lines = (out / "cells.csv").read_text(encoding="utf-8").splitlines()
    assert {line.split(",")[0] for line in lines[1:]} == {"joint", "doubled", "each"}
    table = (out / "table.md").read_text(encoding="utf-8")
    assert "| a fit for each label, gradient-descent | 2 |" in table
    assert (out / "several-labels.png").read_bytes()[:4] == b"\x89PNG"
