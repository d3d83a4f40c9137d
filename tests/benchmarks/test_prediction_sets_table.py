"""The table of prediction sets follows from its stored cells, and what these must hold."""

import math
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STORED = ROOT / "benchmarks/measure"
MODULES = ("prediction_sets", "cells", "problems")


@pytest.fixture
def benchmark_script(monkeypatch):
    for name in MODULES:
        sys.modules.pop(name, None)
    monkeypatch.syspath_prepend(str(STORED))
    import prediction_sets

    yield prediction_sets
    for name in MODULES:
        sys.modules.pop(name, None)


def test_the_table_is_that_of_the_stored_cells(benchmark_script):
    from cells import read_cells

    cells = read_cells(STORED / "prediction-sets.csv", benchmark_script.Cell)
    table = (STORED / "prediction-sets.md").read_text(encoding="utf-8")
    assert "\n".join(benchmark_script.markdown(cells)) + "\n" == table
    keys = {(cell.dataset, cell.score, cell.records, cell.rho) for cell in cells}
    assert keys == set(benchmark_script.tasks())


def test_sets_cover_the_level_and_are_hardly_larger_than_without_noise(benchmark_script):
    from cells import read_cells

    for cell in read_cells(STORED / "prediction-sets.csv", benchmark_script.Cell):
        error = cell.coverage_sd / math.sqrt(benchmark_script.DRAWS)
        assert cell.coverage >= benchmark_script.LEVEL - error
        if cell.records >= 3000 and cell.rho >= 0.05:
            assert cell.size <= 1.15 * cell.size_without
