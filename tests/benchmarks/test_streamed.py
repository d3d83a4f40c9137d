"""The benchmark of streamed sums: its sums are those of one machine, its table is the stored one."""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
DOCS = FOLDER.parent / "docs"


@pytest.fixture
def streamed(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import streamed

    yield streamed
    for name in ("streamed", "history"):
        sys.modules.pop(name, None)


def test_parts_that_are_streamed_have_the_sums_of_all_rows_at_once(streamed):
    """The last of the parts is shorter."""
    figures = streamed.measured(900, part=400)
    x, y = streamed.made(400)
    for name, method in figures["methods"].items():
        recipe = streamed.LEARNERS[name].recipe(streamed.WIDTH)
        sums = recipe.sums(np.concatenate([x, x, x[:100]]), np.concatenate([y, y, y[:100]]))
        assert method["SHA-256"] == hashlib.sha256(sums.packed()).hexdigest()[:16]
        assert method["seconds of a million rows"] > 0
    assert figures["rows"] == 900


def test_a_million_rows_of_36_seconds_are_an_hour_of_100_workers(streamed):
    assert streamed.model_minutes(36.0) == pytest.approx(60.0)


def test_the_table_of_the_docs_is_that_of_the_stored_figures(streamed):
    figures = json.loads(streamed.FIGURES.read_text(encoding="utf-8"))
    assert streamed.PAGE.read_text(encoding="utf-8") == streamed.page(figures)
    assert figures["rows"] >= 10**6
    page = (DOCS / "clusters.md").read_text(encoding="utf-8")
    assert "```{include} ../benchmarks/streamed.md\n```" in page
