"""The label-privacy table on a small made-up problem."""

import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "label_dp"


@pytest.fixture
def run(monkeypatch):
    for name in ("run", "cells"):
        sys.modules.pop(name, None)
    monkeypatch.syspath_prepend(str(FOLDER))
    import run

    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 3000)
    x = 3 * np.eye(3, 4)[y] + rng.normal(size=(3000, 4))
    monkeypatch.setattr(run, "problem", lambda data, name: (x[:2500], y[:2500], x[2500:], y[2500:]))
    monkeypatch.setitem(run.CLUSTERS, "n_clusters", 20)
    yield run
    for name in ("run", "cells"):
        sys.modules.pop(name, None)


def test_cells_and_table(run, tmp_path, monkeypatch):
    out = tmp_path / "out"
    only = ["cifar10/rr/0.5/", "cifar10/rr/1/", "cifar10/laplace (ALIBI)/2/"]
    monkeypatch.setattr(
        sys, "argv", ["run.py", str(tmp_path), "--out", str(out), "--workers", "1", "--only", *only]
    )
    run.main()
    lines = (out / "cells.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1 + 3 * 3
    table = (out / "table.md").read_text(encoding="utf-8")
    assert "### cifar10" in table
    assert "| rr | " in table
    assert "| laplace (ALIBI) |  | " in table


@pytest.mark.parametrize("method", ["PATE-FM, delta 1e-5", "DP-SGD: unit add-remove, delta 1e-5"])
def test_other_units_and_guarantees_promise_what_their_names_say(run, method, tmp_path):
    if method.startswith("DP"):
        pytest.importorskip("opacus", reason="Opacus is not installed; it is an extra")
    promise = run.learner(tmp_path, "cifar10", method, 1.0, 0, np.ones((10, 4)), 3).promise()
    assert 0.99 < promise.epsilon(1e-5) <= 1
    assert promise.unit.value in ("add-remove" if method.startswith("DP") else "change-label")


def test_published_figures_stand_beside(run):
    cells = [
        run.Cell("mnist", "rr", epsilon, seed, 0.7, 0.9)
        for epsilon in (1.0, 2.0)
        for seed in range(3)
    ]
    text = "\n".join(run.markdown(cells))
    assert "| rr | 70.0 ± 0.0 | 90.0 ± 0.0 | 70.0 ± 0.0 | 90.0 ± 0.0 |" in text
    assert "LP-2ST 95.8" in text


def test_the_notebook_network_takes_pictures(run):
    torch = pytest.importorskip("torch")
    assert run.notebook((1, 28, 28), 10)(torch.zeros(2, 1, 28, 28)).shape == (2, 10)
