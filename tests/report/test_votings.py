"""Figures of votings: what a plan keeps is drawn, and what depends on votes says so."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest

import tacit
from tacit.experiments.results import Result
from tacit.learners.pate.data_dependent import consensus
from tacit.report import sweep, votings
from tacit.report.groups import SweepResults


def one(seed, budget="epsilon=1,delta=1e-05", **kept):
    return Result(
        f"{seed:019x}{budget[8]}",
        "plan",
        "digits",
        "pixels",
        "plain",
        "pate",
        "{}",
        None,
        None,
        budget,
        1.0,
        seed,
        "replace",
        "none",
        "done",
        accuracy=0.8,
        balanced_accuracy=0.8,
        minority_accuracy=0.7,
        recall=[0.8],
        class_sizes=[10],
        n_train=10,
        n_test=5,
        width=4,
        n_classes=1,
        delta=1e-5,
        epsilon=1.0,
        rho=0.03,
        mu=0.2,
        guarantee="{}",
        extra=json.dumps(kept),
    )


def cost(asked, answered, **epsilon):
    return {"asked": asked, "answered": answered, "epsilon": epsilon}


def reading(limit, accuracy):
    return {"limit": limit, "asked": 9, "answered": 5, "test_accuracy": accuracy}


KEPT = {
    votings.COSTS: [cost(1, 1, a=0.1, b=0.2), cost(10, 6, a=0.5, b=1.0)],
    votings.CONSENSUS: [0] * 18 + [10, 30],
    votings.READINGS: [
        reading("epsilon=0.5,delta=1e-05", 0.7),
        reading("epsilon=1,delta=1e-05", 0.9),
    ],
}


def test_a_sweep_shows_what_the_plan_keeps():
    results = [
        one(seed, budget, **KEPT)
        for seed in range(3)
        for budget in ("epsilon=1,delta=1e-05", "epsilon=2,delta=1e-05")
    ]
    found = {
        figure.name: (kind, figure) for kind, figure in sweep.figures(SweepResults.of(results))
    }
    costs, agreeing, read = (
        next(figure for name, (_, figure) in found.items() if name.startswith(start))
        for start in ("cost-of-answers", "consensus", "readings")
    )
    assert [panel.title for panel in costs.panels] == [
        "epsilon=1,delta=1e-05",
        "epsilon=2,delta=1e-05",
    ]
    assert [(p.series, p.x, p.y.median) for p in costs.panels[0].points] == [
        ("a", 1, 0.1),
        ("a", 6, 0.5),
        ("b", 1, 0.2),
        ("b", 6, 1.0),
    ]
    assert [(p.x, p.y.median) for p in agreeing.panels[0].points if p.y.median] == [
        (95, 0.25),
        (100, 0.75),
    ]
    assert "Votes are private" in agreeing.caption
    assert [(p.x, p.y.median) for p in read.panels[0].points] == [
        ("epsilon=0.5,delta=1e-05", 0.7),
        ("epsilon=1,delta=1e-05", 0.9),
    ]
    page = sweep.html(results, "Sweep")
    for figure in (costs, agreeing, read):
        assert f'id="{figure.name}"' in page


@pytest.mark.parametrize(
    "kept",
    [
        {},
        {name: None for name in KEPT},
        {name: [] for name in KEPT},
        {votings.READINGS: [reading("x", None)]},
    ],
)
def test_nothing_kept_draws_nothing(kept):
    found = [kind.heading for kind, _ in sweep.figures(SweepResults.of([one(0, **kept)]))]
    assert not {"Cost of answers", "Readings of one voting", "Consensus of teachers"} & set(found)


def test_votings_of_other_lengths_are_drawn_together():
    longer = [cost(asked, asked, all=asked / 10) for asked in (1, 5, 10)]
    results = [one(0, **{votings.COSTS: longer}), one(1, **{votings.COSTS: [longer[0], longer[2]]})]
    (figure,) = votings.costs(SweepResults.of(results))
    assert [(point.x, point.y.median) for point in figure.panels[0].points][-1] == (10, 1.0)


def test_figures_of_one_voting(tmp_path):
    votes = np.repeat(np.arange(60)[:, None] % 3, 100, axis=1)
    votes[:, 80:] = 0
    out = tacit.pate.aggregate(votes, classes=3, aggregator="gnmax", sigma=15, budgets=1.0)
    votings.write_figures(tmp_path, out, consensus(votes))
    of_voting = votings.of_voting(out, consensus(votes))
    (points,) = [panel.points for panel in of_voting["cost"][1].panels]
    assert points[-1].x == out.answered
    assert points[-1].y.median == pytest.approx(out.spent_.epsilon(1e-5))
    bars = {point.x: point.y.median for point in of_voting["consensus-private"][1].panels[0].points}
    assert {name: share for name, share in bars.items() if share} == pytest.approx(
        {"75 to 80 %": 2 / 3, "95 to 100 %": 1 / 3}
    )
    for name in ("cost", "consensus-private"):
        root = ElementTree.fromstring((tmp_path / f"{name}.svg").read_text())
        assert root.get("role") == "img"
        assert ("PRIVATE" in root.get("aria-label")) == ("private" in name)
    unlimited = tacit.pate.aggregate(votes, classes=3, budgets=float("inf"))
    assert list(votings.of_voting(unlimited, consensus(votes))) == ["consensus-private"]
    captions = (tmp_path / "captions.txt").read_text()
    assert captions.count("PRIVATE: this depends on the votes, which no budget covers") == 1
