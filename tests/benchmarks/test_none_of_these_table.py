"""The table of rows of no class follows from its stored cells, and what these must hold."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TASKS = ROOT / "benchmarks/tasks"
MODULES = ("none_of_these", "cells", "problems")


@pytest.fixture
def none_of_these(monkeypatch):
    for name in MODULES:
        sys.modules.pop(name, None)
    monkeypatch.syspath_prepend(str(TASKS))
    import none_of_these

    yield none_of_these
    for name in MODULES:
        sys.modules.pop(name, None)


def test_the_table_is_that_of_the_stored_cells(none_of_these):
    from cells import read_cells

    cells = read_cells(TASKS / "none-of-these.csv", none_of_these.Cell)
    table = (TASKS / "none-of-these.md").read_text(encoding="utf-8")
    assert "\n".join(none_of_these.markdown(cells)) + "\n" == table
    assert {(cell.dataset, cell.epsilon, cell.names) for cell in cells} == set(
        none_of_these.tasks()
    )


def test_clinc150_is_told_from_queries_of_no_class(none_of_these):
    from cells import read_cells

    cells = read_cells(TASKS / "none-of-these.csv", none_of_these.Cell)
    of_clinc = {(cell.epsilon, cell.names): cell for cell in cells if cell.dataset == "clinc150"}
    for key, least in {(0.1, 0): 0.59, (0.5, 0): 0.87, (2.0, 0): 0.925, (0.1, 1): 0.81}.items():
        assert of_clinc[key].area >= least
        assert abs(of_clinc[key].refused_5 - 0.05) <= 0.02
    assert all(of_clinc[epsilon, 1].error <= 0.05 for epsilon in none_of_these.EPSILONS)
