"""The plans that ship: small ones run to the end here, full ones are read against the real data."""

import json
from pathlib import Path

import numpy as np
import pytest

from tacit.experiments import results
from tacit.experiments.plan import Plan, load
from tacit.experiments.run import prepare, sweep

PLANS = Path(__file__).resolve().parents[2] / "plans"
DATA = PLANS.parents[1] / "shared" / "data"
SMALL = sorted((PLANS / "small").glob("*.yaml"))
QUICK = sorted((PLANS / "quick").glob("*.yaml"))
PUBLISHED = PLANS / "published.yaml"  # for files that are not at hand
FULL = sorted(set(PLANS.glob("*.yaml")) - {PUBLISHED})
EACH = pytest.mark.parametrize("path", [*FULL, *QUICK], ids=lambda path: "-".join(path.parts[-2:]))


def test_every_full_plan_has_a_small_one():
    assert [path.name for path in SMALL] == [path.name for path in FULL]
    assert len(FULL) >= 12
    assert {path.name for path in QUICK} <= {path.name for path in FULL}


LONG = ["label-privacy", "pate"]  # ten seconds and half a minute


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[pytest.mark.thorough] * (path.stem in LONG), id=path.stem)
        for path in SMALL
    ],
)
def test_small_plans_run(path, tmp_path):
    if path.stem == "trials":
        pytest.importorskip("optuna", reason="optuna is a development dependency")
    found = sweep(path, tmp_path / "runs")
    assert len(found) >= 6
    assert [one.error for one in found if one.error] == []
    assert all(0 <= one.balanced_accuracy <= 1 for one in found)
    assert results.read_results(tmp_path / "runs")


@EACH
def test_full_and_quick_plans_are_read(path):
    plan, _ = load(path)
    assert plan.name == (f"{path.stem}, quick" if path in QUICK else path.stem)
    assert plan.about


@pytest.mark.thorough
@EACH
def test_full_and_quick_plans_fit_the_data(path, tmp_path):
    if not DATA.is_dir():
        pytest.skip("../shared/data is not there")
    asked = prepare(path, tmp_path / "runs", DATA)
    assert len(asked.cells) >= (60 if path in FULL else 6)


def test_published_pairs_are_read_as_they_are(tmp_path):
    folder = tmp_path / "vit_h_14"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for name, rows, classes in (
        ("cifar10", 1000, 10),
        ("cifar100", 20_000, 100),
        ("imagenet", 50, 10),
    ):
        for part, n in (("train", rows), ("test", 50)):
            np.save(folder / f"{name}_{part}.npy", rng.normal(size=(n, 4)).astype(np.float32))
            if name != "imagenet":
                np.save(folder / f"{name}_{part}_targets.npy", np.arange(n) % classes)
    cells = prepare(PUBLISHED, tmp_path / "runs", tmp_path).cells
    assert len(cells) == 2 * 6 * 9 * 4 * 5
    assert {len(cell.source.classes) for cell in cells} == {10, 100}


def test_the_schema_for_editors_is_current():
    """`python tools/schema.py` writes it."""
    assert json.loads((PLANS / "schema.json").read_text(encoding="utf-8")) == Plan.schema_of_files()
