"""The claims of the papers on fresh results of quick plans over real embeddings.

benchmarks/papers/claims.py has the claims, and `make papers` stores results of whole plans, from which
docs/papers.md is written. Here a part of each plan is run again, and must give the same verdicts.
"""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import yaml

from tacit.experiments.run import sweep

ROOT = Path(__file__).resolve().parents[2]
QUICK = ROOT / "plans" / "quick"
DATA = ROOT.parent / "shared" / "data"

sys.path.insert(0, str(ROOT / "benchmarks" / "papers"))

claims = import_module("claims")
findings = import_module("findings")
stored = import_module("stored")

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data is not there"),
]

# plans of which a part is run: names of learners, budgets, imbalances (none: all), and the number of
# claims that this part decides
FRESH = {
    "headline": (("DP probe", "DPPL-Public"), ("rho=0.125", "rho=2"), (100,), 2),
    "budgets": (("DPPL-Mean", "DPPL-Public", "DP-LS"), ("rho=0.005", "rho=0.125", "rho=32"), (), 4),
    "minority": (
        ("DPPL-Mean", "DPPL-Public", "DPSGD-Global-Adapt"),
        ("rho=0.125", "rho=2"),
        (),
        2,
    ),
    "windows": ((), ("rho=0.005", "rho=0.125"), (), 1),
    "top-k": ((), ("rho=0.0002", "rho=0.02", "inf"), (), 1),
    "public-size": ((), (), (), 1),
    "public-source": ((), (), (), 1),
    "coinpress": ((), (), (), 1),
    "encoders": (
        ("DPPL-Mean", "DPPL-Public", "DPPL-Mean, one step, rescaled"),
        ("rho=0.00005", "rho=0.005", "rho=0.125", "inf"),
        (10,),
        1,
    ),
    "projection": (("DPPL-Public", "Projected public rows"), (), (), 1),
    "run-times": ((), (), (), 2),
}

# data sets, where the claims read one of several
DATA_SETS = {"windows": ("cifar100",)}


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """Run a part of a plan, once for all tests; return its results."""
    runs = {}

    def results(name):
        if name not in runs:
            plan = part(name)
            folder = tmp_path_factory.mktemp(name)
            (folder / f"{name}.yaml").write_text(yaml.safe_dump(plan), encoding="utf-8")
            runs[name] = sweep(folder / f"{name}.yaml", folder / "runs", data=DATA)
            assert [result.error for result in runs[name] if result.error] == []
        return runs[name]

    return results


def part(name):
    plan = yaml.safe_load((QUICK / f"{name}.yaml").read_text(encoding="utf-8"))
    learners, budgets, imbalances, _ = FRESH[name]
    if learners:
        plan["learners"] = [one for one in plan["learners"] if one["name"] in learners]
        assert len(plan["learners"]) == len(learners)
    if name in DATA_SETS:
        plan["data"] = [one for one in plan["data"] if one["name"] in DATA_SETS[name]]
        assert len(plan["data"]) == len(DATA_SETS[name])
    if budgets:
        assert set(budgets) <= set(plan["budgets"])
        plan["budgets"] = list(budgets)
        for one in plan["learners"]:
            one.pop("budgets", None)
    if imbalances:
        assert set(imbalances) <= set(plan["imbalance"])
        plan["imbalance"] = list(imbalances)
    return plan


@pytest.fixture(scope="module")
def cells(swept):
    return lambda name: stored.Cells(stored.rows_of(name, swept(name)))


def key(row):
    return (row.data, row.learner, row.public, row.public_rows, row.budget, row.imbalance, row.seed)


@pytest.mark.parametrize("name", FRESH)
def test_a_plan_that_is_run_again_gives_the_stored_verdicts(name, cells):
    fresh = cells(name)
    keys = {key(row) for row in fresh.rows}
    kept = stored.Cells(row for row in stored.read_rows() if row.plan == name and key(row) in keys)

    # verdicts of another plan, or of a part of it, may name other places
    run = stored.read_runs().get(name)
    is_stored = (
        run is not None
        and run.hash == stored.plan_hash(QUICK / f"{name}.yaml")
        and len(kept.rows) == len(fresh.rows)
    )

    decided = 0
    for claim in claims.CLAIMS:
        if claim.plan != name:
            continue
        try:
            finding = claim.find(fresh)
        except LookupError:
            # it reads cells that are not in this part
            continue
        if is_stored:
            assert finding.verdict == claim.find(kept).verdict, claim.text
        else:
            assert finding.kind == claim.expects, claim.text
        decided += 1
    assert decided == FRESH[name][-1]


def test_the_window_from_public_rows_is_ahead_of_those_made_for_another_encoder(cells):
    found = cells("windows")
    others = ("no window", "no window, centred", "[1.34, 1.64]", "[1.54, 1.58]")
    for ratio, budget in ((1, "rho=0.005"), (50, "rho=0.005"), (50, "rho=0.125")):
        place = {"data": "cifar100", "imbalance": ratio, "budget": budget}
        ours = found.mean("balanced", learner="window from public rows", **place)
        assert all(ours > found.mean("balanced", learner=one, **place) + 0.02 for one in others)


def test_public_rows_of_the_task_itself_are_best(cells):
    found = cells("public-source")
    for ratio in (1, 50):
        for budget in findings.private_budgets(found):
            own, *others = (
                found.mean("balanced", imbalance=ratio, budget=budget, public=one)
                for one in ("in distribution", "close", "far")
            )
            assert own > max(others) + 0.03


def test_declared_true_counts_are_marked(swept):
    true = [one for one in swept("coinpress") if "true counts" in one.learner]
    assert true
    assert all("class counts (realised)" in one.guarantee for one in true)


def test_a_layer_before_public_rows_pays_where_the_budget_is_ample(cells):
    found = cells("projection")
    for budget in ("rho=0.02", "rho=0.125"):
        for ratio, gain in ((1, 0.05), (50, 0.0)):
            place = found.where(imbalance=ratio, budget=budget)
            layers = [
                place.mean("balanced", learner=one)
                for one in place.distinct("learner")
                if one.startswith("Projected public rows")
            ]
            assert max(layers) > place.mean("balanced", learner="DPPL-Public") + gain


def test_coinpress_is_useless_where_it_diverges_and_good_at_large_budgets(cells):
    found = cells("coinpress")
    place = {"learner": "DPPL-Mean, pooling=1", "imbalance": 50}
    assert found.mean("balanced", budget="rho=0.00005", **place) < 0.2
    assert found.mean("balanced", budget="rho=8", **place) > 0.8
    radii = [found.mean("last radius", budget=one, **place) for one in ("rho=0.00005", "rho=8")]
    assert np.all(np.isfinite(radii))
    assert radii[0] > radii[1]
