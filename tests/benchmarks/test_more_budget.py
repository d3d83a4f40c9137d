"""Cells in which more budget is worse: the stored list is complete, and does not grow."""

import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "utility"


@pytest.fixture
def more_budget(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import more_budget

    yield more_budget
    sys.modules.pop("more_budget", None)


def test_no_stored_cell_is_worse_with_more_budget_than_the_list_says(more_budget):
    """After a change of `auto`, store its new cells: a cell that is worse with more budget and was
    not so before fails here.
    """
    known = more_budget.listed((FOLDER / "more-budget.md").read_text(encoding="utf-8"))
    accuracies = more_budget.stored_accuracies()
    assert len(accuracies) > 50
    found = {cell.key for cell in more_budget.losses(accuracies)}
    assert found <= known, "more budget is worse in further cells"
    assert found == known, "run benchmarks/utility/more_budget.py: the list may be shorter"


def test_a_loss_is_two_points_and_three_standard_errors(more_budget):
    assert more_budget.loss({"0": 60.0}, {"0": 57.9}) == pytest.approx(2.1)
    assert more_budget.loss({"0": 60.0}, {"0": 58.1}) == 0
    steady = {"0": 60.0, "1": 61.0, "2": 62.0}
    assert more_budget.loss(steady, {"0": 57.0, "1": 58.1, "2": 58.9}) == pytest.approx(3.0)
    assert more_budget.loss(steady, {"0": 50.0, "1": 61.0, "2": 63.0}) == 0
    assert more_budget.loss({"0": 60.0}, {"1": 10.0}) == 0


def test_the_list_names_the_smaller_budget_that_is_furthest_above(more_budget):
    problem = ("data", "imbalance 1", "auto")
    accuracies = {problem: {0.1: {"0": 50.0}, 0.5: {"0": 70.0}, 2.0: {"0": 60.0}}}
    (cell,) = more_budget.losses(accuracies)
    assert (cell.smaller, cell.larger, cell.points) == (0.5, 2.0, 10.0)
    assert more_budget.listed("\n".join(more_budget.lines([cell], 3))) == {cell.key}
