"""The table of calibration errors on a small made-up problem, and the error itself by hand."""

import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "probabilities"


@pytest.fixture
def run(monkeypatch):
    for name in ("run", "cells", "problems"):
        sys.modules.pop(name, None)
    monkeypatch.syspath_prepend(str(FOLDER))
    import run

    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 900)
    x = 3 * np.eye(3, 4)[y] + rng.normal(size=(900, 4))
    small = run.Problem(x[:600], y[:600], x[600:], y[600:], rng.normal(size=(50, 4)), 3)
    monkeypatch.setattr(run, "problem", lambda *given: small)
    yield run
    for name in ("run", "cells", "problems"):
        sys.modules.pop(name, None)


def test_the_error_weighs_the_distance_of_each_bin_by_its_rows(run):
    probabilities = np.array([[0.9, 0.1], [0.92, 0.08], [0.4, 0.6], [0.7, 0.3]])
    labels = np.array([0, 1, 1, 1])
    bins = [abs(0.9 + 0.92 - 1), abs(0.6 - 1), abs(0.7 - 0)]  # of 15: the 14th, the 10th, the 11th
    assert run.expected_calibration_error(probabilities, labels) == pytest.approx(sum(bins) / 4)
    assert run.expected_calibration_error(np.eye(2), np.array([0, 1])) == 0


def test_cells_and_table(run, tmp_path, monkeypatch):
    out = tmp_path / "out"
    words = [
        "run.py",
        str(tmp_path),
        "--out",
        str(out),
        "--workers",
        "1",
        "--only",
        "auto/banking77",
        "noisy-sum/",
    ]
    monkeypatch.setattr(sys, "argv", words)
    run.main()
    lines = (out / "cells.csv").read_text(encoding="utf-8").splitlines()
    # two settings of banking77, and noisy-sum on three data sets
    assert len(lines) == 1 + 4 * 3 + 4 + 3 * 4
    table = (out / "table.md").read_text(encoding="utf-8")
    assert table.count("| banking77 |") == 4
    assert table.count("| noisy-sum, cifar100 |") == 4
