"""The PATE table on a small made-up problem: it runs, resumes, and says what its cells say."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from messages import lacking

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "pate"


@pytest.fixture
def pate(monkeypatch):
    """The benchmark's modules, imported as its command imports them, with one small problem."""
    for name in ("problems", "run", "table", "cells"):
        sys.modules.pop(name, None)
    monkeypatch.syspath_prepend(str(FOLDER))
    import problems
    import run
    import table

    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 4000)
    x = 3 * np.eye(3, 4)[y] + rng.normal(size=(4000, 4))
    parts = x[:3000], y[:3000], x[3000:], y[3000:]
    monkeypatch.setattr(
        problems, "PROBLEMS", {"made-up": (lambda data: parts, 300, GaussianNB(), 0.9)}
    )
    monkeypatch.setattr(run, "PROBLEMS", problems.PROBLEMS)
    monkeypatch.setattr(run, "TEACHERS", (150, 300))
    monkeypatch.setattr(
        run, "USUAL", {"voting": {"kind": "confident", "sigma": 40, "sigma1": 75, "threshold": 100}}
    )
    problems.whole.cache_clear()
    yield problems, run, table
    for name in ("problems", "run", "table", "cells"):
        sys.modules.pop(name, None)


def cells_of(out):
    from cells import read_cells
    from table import Cell

    return read_cells(out / "cells.csv", Cell)


@pytest.mark.thorough
def test_cells_are_computed_once_and_reported(pate, tmp_path, monkeypatch, capsys):
    _, run, _ = pate
    out = tmp_path / "out"
    words = [
        "run.py",
        str(tmp_path),
        "--out",
        str(out),
        "--workers",
        "1",
        "--only",
        "made-up/150/all",
        "made-up/300/all",
    ]
    monkeypatch.setattr(sys, "argv", words)
    run.main()
    kept = (out / "cells.csv").read_text(encoding="utf-8")
    cells = cells_of(out)
    assert [(cell.teachers, cell.stopping) for cell in cells] == (
        [(150, "data-dependent"), (150, "filter")] * 3 + [(300, "filter")] * 3
    )
    assert all(cell.epsilon <= 1 for cell in cells if cell.stopping == "filter")
    assert all(cell.label_accuracy > 0.5 for cell in cells)
    (out / "cells.csv").write_text("".join(kept.splitlines(keepends=True)[:-1]), encoding="utf-8")
    run.main()
    assert "1 of 1" in capsys.readouterr().out
    assert (out / "cells.csv").read_text(encoding="utf-8") == kept
    table = (out / "table.md").read_text(encoding="utf-8")
    assert not lacking(table, "made-up", "150 teachers")
    assert "3 seeds" in table
    monkeypatch.setattr(
        sys,
        "argv",
        [*words[:2], "--out", str(tmp_path / "b"), "--report", "--cells", str(out / "cells.csv")],
    )
    run.main()
    assert (tmp_path / "b" / "table.md").read_text(encoding="utf-8") == table


def test_groups_have_their_shares_and_depend_on_positions_alone(pate):
    _, run, _ = pate
    groups = run.groups_of(1000, "34-43-23", 1)
    assert [int(np.sum(groups == name)) for name in "abc"] == [340, 430, 230]
    assert np.array_equal(groups, run.groups_of(1000, "34-43-23", 1))


def test_the_table_states_means_and_deviations(pate):
    _, _, table = pate
    cells = [
        table.Cell(
            "mnist",
            250,
            "all at 1",
            "gnmax",
            "data-dependent",
            seed,
            0.9,
            300 + 10 * seed,
            0.97,
            0.9,
            0.95,
            2.5,
        )
        for seed in range(3)
    ]
    text = "\n".join(table.markdown(cells))
    assert (
        "| all at 1 | gnmax | 310 ± 10 | 0.970 ± 0.000 | 0.900 ± 0.000 | 0.950 ± 0.000 | 2.50 ±"
        " 0.00 | 365 |" in text
    )
    assert "published" not in "\n".join(table.markdown([replace(cells[0], stopping="filter")]))


def test_adult_is_rows_of_one_record(pate, tmp_path):
    import gzip

    problems, _, _ = pate
    header = "age,workclass,fnlwgt,education_num,capital_gain,capital_loss,hours_per_week,income_gt_50k\n"
    for part, kind in (("train", "Private"), ("test", "Unseen")):
        with gzip.open(tmp_path / f"adult_{part}.csv.gz", "wt", encoding="utf-8") as file:
            file.write(header + f"50,{kind},1,8,0,0,40,1\n")
    x, y, test_x, _ = problems.adult(tmp_path)
    assert x.tolist() == [pytest.approx([0.5, 0.5, 0, 0, 0.4, 1])]
    assert test_x[0, -1] == 0
    assert y.tolist() == [1]
