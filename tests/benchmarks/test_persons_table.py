"""The table of people with several records on a small made-up problem."""

import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "persons"


@pytest.fixture
def run(monkeypatch):
    for name in ("run", "cells", "problems"):
        sys.modules.pop(name, None)
    monkeypatch.syspath_prepend(str(FOLDER))
    import run

    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 600)
    x = 3 * np.eye(3, 4)[y] + rng.normal(size=(600, 4))
    small = run.Problem(x[:400], y[:400], x[400:], y[400:], rng.normal(size=(50, 4)), 3)
    monkeypatch.setattr(run, "problem", lambda *given: small)
    yield run
    for name in ("run", "cells", "problems"):
        sys.modules.pop(name, None)


def test_cells_table_and_picture(run, tmp_path, monkeypatch):
    out = tmp_path / "out"
    words = [
        "run.py",
        str(tmp_path),
        "--out",
        str(out),
        "--workers",
        "1",
        "--only",
        "noisy-sum/",
        "least-squares/",
    ]
    monkeypatch.setattr(sys, "argv", words)
    run.main()
    lines = (out / "cells.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1 + 3 * (25 + 18)
    table = (out / "table.md").read_text(encoding="utf-8")
    assert "### noisy-sum, balanced accuracy at e = 0.5 / 2" in table
    rows = [line for line in table.splitlines() if line.startswith("| heavy tail up to 1,000 |")]
    assert len(rows) == 2
    assert all(row.count(" / ") == 3 for row in rows)
    assert (out / "persons.png").read_bytes().startswith(b"\x89PNG")


def test_people_are_those_of_the_table(run):
    labels = np.repeat(range(100), 500)
    sizes = {
        name: np.unique(people.ids(labels), return_counts=True)[1]
        for name, people in run.PEOPLE.items()
    }
    assert {name: (len(found), found.max()) for name, found in sizes.items()} == {
        "5 records each, one class": (10_000, 5),
        "20 records each, mixed classes": (2_500, 20),
        "heavy tail up to 50": (7_977, 50),
        "heavy tail up to 1,000": (2_715, 1000),
    }
    ids = run.PEOPLE["5 records each, one class"].ids(labels)
    assert len(np.unique(ids * 100 + labels)) == 10_000
    assert (
        len(np.unique(run.PEOPLE["20 records each, mixed classes"].ids(labels) * 100 + labels))
        > 40_000
    )


@pytest.mark.parametrize("protects", ["20 records each, mixed classes", "groups of 20 records"])
def test_every_fit_promises_a_person_the_same(run, protects):
    model = run.fit(run.problem(), "noisy-sum", protects, 2.0, 0)
    promise = (
        model.guarantee_
        if model.guarantee_.unit.per_person
        else model.guarantee_.per_person(most_records=20)
    )
    assert promise.unit == "add-remove-person"
    assert promise.rho == pytest.approx(2)
