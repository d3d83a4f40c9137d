"""The claims of the prototype paper, on the results of quick plans over real embeddings
(docs/papers.md lists them).
"""

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import yaml

from tacit.experiments.run import sweep

ROOT = Path(__file__).resolve().parents[2]
QUICK = ROOT / "plans" / "quick"
DATA = ROOT.parent / "shared" / "data"

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data is not there"),
]


class Found:
    """Mean accuracy over seeds of the cells of a quick plan, by any of their fields.

    Where learners or budgets are given, only these are run.
    """

    def __init__(self, name, folder, learners, budgets):
        plan = yaml.safe_load((QUICK / f"{name}.yaml").read_text(encoding="utf-8"))
        if learners:
            plan["learners"] = [one for one in plan["learners"] if one["name"] in learners]
        if budgets:
            assert set(budgets) <= set(plan["budgets"])
            plan["budgets"] = [one for one in plan["budgets"] if one in budgets]
        folder.mkdir()
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(plan), encoding="utf-8")
        self.results = sweep(folder / f"{name}.yaml", folder / "runs", data=DATA)
        assert [one.error for one in self.results if one.error] == []

    def __call__(self, measure="balanced_accuracy", **fields):
        chosen = [
            getattr(one, measure)
            for one in self.results
            if all(getattr(one, k) == v for k, v in fields.items())
        ]
        assert chosen, fields
        return np.mean(chosen)


@pytest.fixture
def swept(tmp_path):
    return lambda name, *learners, budgets=(): Found(name, tmp_path / name, learners, budgets)


def test_public_is_ahead_of_mean_at_small_budgets_with_imbalance_and_behind_at_large_ones(swept):
    all_but_ends = ("rho=0.005", "rho=0.02", "rho=0.125", "rho=0.5", "rho=2", "rho=8", "rho=32")
    found = swept("budgets", "DPPL-Mean", "DPPL-Public", "DP-LS", budgets=all_but_ends)
    for budget, floor in (("rho=0.005", 0.15), ("rho=0.02", 0.22), ("rho=0.125", 0.277)):
        public = found(learner="DPPL-Public", imbalance=50, budget=budget)
        assert public > floor
        assert public > found(learner="DPPL-Mean", imbalance=50, budget=budget) + 0.05
    for ratio in (1, 50):
        mean, public = (
            found(learner=one, imbalance=ratio, budget="rho=32")
            for one in ("DPPL-Mean", "DPPL-Public")
        )
        assert mean > public + 0.1
    # on balanced data both hold from the smallest budgets on, one at a time
    assert found(learner="DPPL-Public", imbalance=1, budget="rho=0.005") > 0.3
    assert found(learner="DPPL-Mean", imbalance=1, budget="rho=0.005") < 0.2
    # DP-LS is ahead of both prototypes where classes are of equal size
    for budget in all_but_ends[1:]:
        ahead = found(learner="DP-LS", imbalance=1, budget=budget)
        assert all(
            ahead > found(learner=one, imbalance=1, budget=budget)
            for one in ("DPPL-Mean", "DPPL-Public")
        )


def test_public_keeps_small_classes_that_mean_loses(swept):
    learners, budgets = (
        ("DPPL-Mean", "DPPL-Public", "DPSGD-Global-Adapt"),
        ("rho=0.125", "rho=0.5", "rho=2"),
    )
    found = swept("minority", *learners, budgets=budgets)
    for budget, floor in (("rho=0.125", 0.12), ("rho=0.5", 0.2), ("rho=2", 0.25)):
        public = found("minority_accuracy", learner="DPPL-Public", budget=budget)
        assert public > floor
        for other in ("DPPL-Mean", "DPSGD-Global-Adapt"):
            assert public > 2 * found("minority_accuracy", learner=other, budget=budget)


def test_the_window_from_public_rows_is_ahead_of_none_and_of_windows_made_for_another_encoder(
    swept,
):
    found = swept("windows", budgets=("rho=0.005", "rho=0.125"))
    others = ("no window", "no window, centred", "[1.34, 1.64]", "[1.54, 1.58]")
    for ratio, budget in ((1, "rho=0.005"), (50, "rho=0.005"), (50, "rho=0.125")):
        cell = {"data": "cifar100", "imbalance": ratio, "budget": budget}
        ours = found(learner="window from public rows", **cell)
        assert all(ours > found(learner=other, **cell) + 0.02 for other in others)
    for ratio in (1, 50):
        means = {
            one: found(learner=one, imbalance=ratio, budget="rho=0.005")
            for one in ("window from public rows", *others)
        }
        assert max(means, key=means.get) == "window from public rows"  # over all data sets


def test_the_best_k_grows_with_the_budget(swept):
    found = swept("top-k")
    ks, budgets = (
        (1, 2, 5, 10, 20),
        ("rho=0.0002", "rho=0.005", "rho=0.02", "rho=0.125", "rho=8", "inf"),
    )
    best = {
        ratio: [
            max(ks, key=lambda k: found(learner=f"Top-K, k={k}", imbalance=ratio, budget=one))
            for one in budgets
        ]
        for ratio in (1, 50)
    }
    for ratio, chosen in best.items():
        assert chosen == sorted(chosen), ratio
        assert (chosen[0], chosen[-1]) == (1, 20)
        assert set(chosen) & {2, 5, 10}  # in between, the best is in between
    assert all(few <= many for few, many in zip(best[50], best[1], strict=True))


def test_more_public_rows_are_better(swept):
    found = swept("public-size")
    for ratio in (1, 50):
        for budget in ("rho=0.02", "rho=8"):
            sizes = [
                found(imbalance=ratio, budget=budget, public_rows=n)
                for n in (100, 1000, 10000, 30000)
            ]
            assert sizes == sorted(sizes)
            assert sizes[-1] > 1.3 * sizes[0]


def test_public_rows_of_the_task_itself_are_best(swept):
    found = swept("public-source")
    for ratio in (1, 50):
        for budget in ("rho=0.02", "rho=8"):
            own, *others = (
                found(imbalance=ratio, budget=budget, public=one)
                for one in ("in distribution", "close", "far")
            )
            assert own > max(others) + 0.03


def test_coinpress_diverges_at_small_budgets(swept):
    found = swept("coinpress")
    radii = defaultdict(list)
    for one in found.results:
        steps = json.loads(one.extra)["steps_"]
        radii[one.imbalance, one.learner, one.budget].append(
            [np.median(step["radius"]) for step in steps]
        )
    for (_, learner, budget), rows in radii.items():
        first, *_, last = np.mean(rows, axis=0)
        if budget != "rho=0.00005":
            assert last < first / 3
        elif learner.endswith("pooling=1"):
            assert last > 2 * first
    assert found(learner="DPPL-Mean, pooling=1", imbalance=50, budget="rho=0.00005") < 0.2
    assert found(learner="DPPL-Mean, pooling=1", imbalance=50, budget="rho=8") > 0.8


def test_declared_true_counts_are_marked(swept):
    found = swept("coinpress")
    true = [one for one in found.results if "true counts" in one.learner]
    assert true
    assert all("class counts (realised)" in one.guarantee for one in true)


def test_the_order_of_methods_is_that_through_other_encoders(swept):
    found = swept("encoders")
    for data in ("cifar10", "banking77"):
        small, large = (
            {
                one: found(learner=one, data=data, imbalance=10, budget=budget)
                for one in ("DPPL-Mean", "DPPL-Public")
            }
            for budget in ("rho=0.005" if data == "cifar10" else "rho=0.125", "inf")
        )
        assert small["DPPL-Public"] > small["DPPL-Mean"] + 0.03
        assert large["DPPL-Mean"] > large["DPPL-Public"] + 0.1


def test_a_layer_before_public_rows_pays_where_the_budget_is_ample(swept):
    found = swept("projection", "DPPL-Public", "Projected public rows")

    def best(ratio, budget, learner):
        return max(
            found(learner=f"{learner}, share={one}", imbalance=ratio, budget=budget)
            for one in (0.1, 0.5, 0.9)
        )

    alone, layer = "DPPL-Public", "Projected public rows"
    for budget in ("rho=0.02", "rho=0.125"):
        assert best(1, budget, layer) > found(learner=alone, imbalance=1, budget=budget) + 0.05
        assert best(50, budget, layer) > found(learner=alone, imbalance=50, budget=budget)


def test_means_are_learned_fastest_and_selection_is_next_to_nothing_beside_scoring(swept):
    found = swept("run-times")
    seconds = {one.learner: one.fit_seconds for one in found.results}
    of_the_paper = ("DPPL-Public", "DP-LS", "DP probe", "DPSGD-Global-Adapt")
    assert 2 * seconds["DPPL-Mean"] < min(seconds[one] for one in of_the_paper)
    (public,) = (json.loads(one.phases) for one in found.results if one.learner == "DPPL-Public")
    assert 20 * public["selection"] < public["scoring"]
    assert all(one.processor for one in found.results)
