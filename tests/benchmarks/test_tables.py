"""The comparison of classifiers of tables: its page, and a small run."""

import csv
import gzip
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "benchmarks" / "tables"
MODULES = ("run", "cells", "peers")


@pytest.fixture
def run(monkeypatch):
    for name in MODULES:
        sys.modules.pop(name, None)
    monkeypatch.syspath_prepend(str(FOLDER))
    import run

    yield run
    for name in MODULES:
        sys.modules.pop(name, None)


def test_the_page_has_the_stored_results(run):
    from cells import read_cells

    cells = read_cells(FOLDER / "cells.csv", run.Cell)
    expected = "\n".join(run.markdown(cells)).strip()
    page = (ROOT / "docs/tables-measured.md").read_text(encoding="utf-8")
    start = page.index("<!-- measured -->")
    stated = page[start : page.index("<!-- end of measured -->")]
    assert stated.removeprefix("<!-- measured -->").strip() == expected
    for name in run.EPSILONS:
        methods = {cell.method for cell in cells if cell.dataset == name}
        assert methods >= {"gradient-descent", *run.peers.PEERS}


@pytest.mark.parametrize("name", ["adult", "german_credit"])
def test_stored_results_are_ahead_of_dp_ebm(run, name):
    from cells import read_cells

    cells = read_cells(FOLDER / "cells.csv", run.Cell)

    def mean(method, epsilon):
        key = (name, method, epsilon)
        of = [cell.auc for cell in cells if (cell.dataset, cell.method, cell.epsilon) == key]
        return np.mean(of)

    for epsilon in run.EPSILONS[name]:
        for method in ("gradient-descent", "feature-covariance"):
            assert mean(method, epsilon) > mean(run.peers.EBM, epsilon)


def test_a_cell_of_a_made_table(run, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    columns = [f"a{number}" for number in range(1, 21)]
    with gzip.open(tmp_path / "german_credit.csv.gz", "wt", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*columns, "bad_credit"])
        for label in rng.integers(0, 2, 500):
            # the first column says the label, the others nothing
            writer.writerow([["A11", "A14"][label], *["1"] * 19, label])

    out = tmp_path / "out"
    only = ["german_credit/noisy-sum/4/0"]
    words = ["run.py", str(tmp_path), "--out", str(out), "--workers", "1", "--only", *only]
    monkeypatch.setattr(sys, "argv", words)
    run.main()
    from cells import read_cells

    (cell,) = read_cells(out / "cells.csv", run.Cell)
    assert cell.auc > 0.9
    assert cell.software.startswith("tacit ")
    assert "| noisy-sum |  |  | " in (out / "table.md").read_text(encoding="utf-8")
