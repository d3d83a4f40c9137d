"""The plans that ship: small ones run to the end here, full ones are read against the real data."""

import json
from pathlib import Path

import pytest

from tacit.experiments import results
from tacit.experiments.plan import Plan, load
from tacit.experiments.run import prepare, sweep

PLANS = Path(__file__).resolve().parents[2] / "plans"
DATA = PLANS.parents[1] / "shared" / "data"
SMALL = sorted((PLANS / "small").glob("*.yaml"))
FULL = sorted(PLANS.glob("*.yaml"))


def test_every_full_plan_has_a_small_one():
    assert [path.name for path in SMALL] == [path.name for path in FULL]
    assert len(FULL) >= 11


@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.stem)
def test_small_plans_run(path, tmp_path):
    found = sweep(path, tmp_path / "runs")
    assert len(found) >= 6
    assert [one.error for one in found if one.error] == []
    assert all(0 <= one.balanced_accuracy <= 1 for one in found)
    assert results.read_results(tmp_path / "runs")


@pytest.mark.parametrize("path", FULL, ids=lambda path: path.stem)
def test_full_plans_fit_the_data(path, tmp_path):
    load(path)
    if not DATA.is_dir():
        pytest.skip("../shared/data is not there")
    asked = prepare(path, tmp_path / "runs", DATA)
    assert len(asked.cells) >= 60
    assert asked.seconds(2)[0] > 0


def test_the_schema_for_editors_is_current():
    """`python tools/schema.py` writes it."""
    assert json.loads((PLANS / "schema.json").read_text(encoding="utf-8")) == Plan.schema_of_files()
