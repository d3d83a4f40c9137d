"""The report on a sweep: what applies, what it says, and that every format is whole."""

import json
import math
import re
from dataclasses import replace
from itertools import product
from xml.etree import ElementTree

import numpy as np
import pytest

from messages import lacking, stating
from tacit.cli.main import main
from tacit.errors import InputError
from tacit.experiments.results import CELLS, Result, write
from tacit.models.metrics import spread
from tacit.report import (
    accuracy,
    captions,
    charts,
    fits,
    groups,
    html,
    paper,
    sweep,
    tables,
    theme,
    words,
)
from tacit.report.groups import SweepResults
from tacit.report.theme import PAGE, PAPER

BUDGETS = ("rho=0.005", "rho=0.02", "rho=0.125", "rho=0.5", "rho=2", "inf")
# method, parameters, unit, tuning, how good without privacy, at which rho it is halfway there
LEARNERS = {
    "noisy sum": ("noisy-sum", {}, "add-remove", "none", 0.90, 0.01),
    "coinpress": ("coinpress", {}, "add-remove", "paid", 0.85, 0.08),
    "public, k=1": ("public", {"k": 1}, "add-remove", "unpaid", 0.70, 0.002),
    "public, k=3": ("public", {"k": 3}, "add-remove", "unpaid", 0.78, 0.01),
    "public, k=10": ("public", {"k": 10}, "add-remove", "unpaid", 0.84, 0.06),
    "dp-sgd": ("dp-sgd", {"steps": 100}, "replace", "unpaid", 0.93, 0.2),
}
SIZES = {1.0: [200] * 10, 50.0: [round(500 * 50 ** (-place / 9)) for place in range(10)]}


def one(key="a" * 20, **values):
    """A result with plain values."""
    given = {
        "key": key,
        "plan": "plan",
        "data": "digits",
        "encoder": "raw",
        "learner": "m",
        "method": "m",
        "parameters": "{}",
        "public": None,
        "public_rows": None,
        "budget": "rho=0.5",
        "imbalance": 1.0,
        "seed": 0,
        "unit": "add-remove",
        "tuning": "none",
        "status": "done",
        "accuracy": 0.8,
        "balanced_accuracy": 0.7,
        "minority_accuracy": 0.6,
        "recall": [0.5, math.nan],
        "class_sizes": [20, 10],
        "n_train": 30,
        "n_test": 10,
        "width": 4,
        "n_classes": 2,
        "delta": 1e-6,
        "epsilon": 4.0,
        "rho": 0.5,
        "mu": 1.0,
        "guarantee": "{}",
        "fit_seconds": 0.1,
    }
    return Result(**(given | values))


def some(**values):
    """Results whose fields take turns through lists, each with a key of its own."""
    names, axes = (
        list(values),
        [value if isinstance(value, list) else [value] for value in values.values()],
    )
    return [
        one(f"{number:020x}", **dict(zip(names, row, strict=True)))
        for number, row in enumerate(product(*axes))
    ]


def plausible(
    data=("cifar10", "flowers"), encoders=("vit", "resnet"), imbalance=(1.0, 50.0), seeds=3
):
    """The results of a sweep, a few of them failed, as they might well be."""
    rng = np.random.default_rng(0)
    axes = product(data, encoders, LEARNERS, imbalance, BUDGETS, range(seeds))
    return [_plausible(f"{number:020x}", rng, *place) for number, place in enumerate(axes)]


def _plausible(key, rng, data, encoder, learner, imbalance, budget, seed):
    method, parameters, unit, tuning, top, half = LEARNERS[learner]
    rho = math.inf if budget == "inf" else float(budget.removeprefix("rho="))
    reach = top - (0.05 if encoder == "resnet" else 0) - (0.1 if data == "flowers" else 0)
    reach = 0.1 + (reach - 0.1) * (
        1 if math.isinf(rho) else rho / (rho + half * math.sqrt(imbalance))
    )
    balanced = float(np.clip(reach + rng.normal(0, 0.015), 0, 1))
    minority = float(
        np.clip(balanced - 0.05 * math.log10(imbalance) - abs(rng.normal(0, 0.05)), 0, 1)
    )
    public = {"public": "tiny-imagenet", "public_rows": 10000} if method == "public" else {}
    common = {
        "key": key,
        "data": data,
        "encoder": encoder,
        "learner": learner,
        "method": method,
        "budget": budget,
        "parameters": json.dumps(parameters),
        "imbalance": imbalance,
        "seed": seed,
        "unit": unit,
        "tuning": tuning,
    } | public
    if method == "coinpress" and budget == "rho=0.005" and seed == 2:
        return one(
            **common,
            status="failed",
            error="BudgetError: rho=0.005 is too little",
            rho=None,
            epsilon=None,
        )
    return one(
        **common,
        balanced_accuracy=balanced,
        minority_accuracy=minority,
        class_sizes=SIZES[imbalance],
        rho=rho,
        epsilon=math.inf if math.isinf(rho) else rho + 2 * math.sqrt(rho * math.log(1e6)),
        fit_seconds=float(
            np.exp(rng.normal(0, 0.3)) * {"dp-sgd": 40, "coinpress": 2}.get(method, 0.05)
        ),
        extra=_extra(rng, rho) if method == "coinpress" else "{}",
    )


def timed():
    """Results whose phases were timed."""
    phases = [
        json.dumps({"scoring": place + 0.5, "selection": 0.1, "prediction": 0.2})
        for place in range(3)
    ]
    return some(learner=["m", "n"], phases=phases, fit_seconds=2.0, data="timed")


def _extra(rng, rho):
    noise = 0 if math.isinf(rho) else 1 / math.sqrt(rho)
    true = rng.normal(size=(10, 2)) * 2
    points = [
        [*(true[place % 10] + rng.normal(size=2)).tolist(), int(rng.random() < 0.8)]
        for place in range(300)
    ]
    steps = [
        {"radius": [20 * 0.4**step + 0.1 * noise] * 10, "norm": [3 + 0.1 * noise] * 10}
        for step in range(3)
    ]
    private = true + rng.normal(size=(10, 2)) * noise / 20
    return json.dumps(
        {
            "steps_": steps,
            "means_2d": {"true": true.tolist(), "private": private.tolist(), "points": points},
        }
    )


def kept(folder, results):
    """The folder of a sweep with these results."""
    (folder / CELLS).mkdir(parents=True)
    for result in results:
        write(folder, result)
    return folder


def found(find, results):
    return list(find(SweepResults.of(results)))


def only(find, results):
    (figure,) = found(find, results)
    return figure


def medians(panel, series="m"):
    return {point.x: round(point.y.median, 9) for point in panel.points if point.series == series}


# What figures show


def test_a_point_is_a_setting_over_its_seeds_and_missing_values_are_left_out():
    seeds = [0.5, 0.6, 0.9, math.nan, None]
    results = [
        one(f"{seed}", seed=seed, balanced_accuracy=value) for seed, value in enumerate(seeds)
    ]
    (point,) = only(accuracy.accuracy, results).panels[0].points
    assert (point.x, point.y, len(point.results)) == (1.0, spread([0.5, 0.6, 0.9]), 3)
    assert found(accuracy.minority, some(seed=[0, 1], minority_accuracy=[None])) == []


def test_costs_are_in_order_a_panel_for_each_imbalance():
    figure = only(accuracy.accuracy, some(imbalance=[10.0, 1.0], rho=[2.0, 0.1], budget=["a"]))
    assert [panel.title for panel in figure.panels] == ["imbalance 1", "imbalance 10"]
    results = [one(str(rho), rho=rho, budget=f"rho={rho}") for rho in (2.0, 0.005, 32.0)]
    figure = only(accuracy.accuracy, results)
    # the papers' epsilon, where rho = e^2/2
    assert [point.x for point in figure.panels[0].points] == pytest.approx([0.1, 2.0, 8.0])
    assert figure.x.limits[0] < 0.1 < 8.0 < figure.x.limits[1]
    assert figure.x.log
    rho, lines = charts.lines(figure, PAGE).to_dict()["concat"][0]["layer"]
    above = rho["encoding"]["x"]["axis"]
    below = lines["layer"][0]["encoding"]["x"]["axis"]
    assert above["values"] == below["values"] == [0.1, 0.2, 0.5, 1, 2, 4, 8]
    assert "datum.value * datum.value / 2" in above["labelExpr"]


def test_units_stand_side_by_side_without_an_axis_of_costs():
    learners, units = ["m", "n"], ["add-remove", "add-remove-person", "replace-person"]
    results = some(
        unit=units, learner=learners, budget=["rho=0.5", "rho=2"], balanced_accuracy=[0.4, 0.6]
    )
    results.append(one("f" * 20, learner="alone"))
    figure = only(accuracy.units, results)
    assert not lacking(
        figure.title, "digits", "raw", "imbalance 1", "accuracy", "neighbouring relation"
    )
    assert figure.x == accuracy.Axis("neighbouring relation")
    assert {panel.title for panel in figure.panels} == {"e = 1", "e = 2"}
    for panel in figure.panels:
        assert set(panel.names) == {
            "add/remove one record",
            "add/remove one person",
            "replace one person",
        }
        assert {(point.series, point.y.median) for point in panel.points} == {
            ("m", 0.5),
            ("n", 0.5),
        }
        assert all(len({cell.unit for cell in point.results}) == 1 for point in panel.points)
    assert "rank no guarantee" in figure.caption
    for unit in units:
        assert words.unit_sentence(unit) in figure.caption
    assert found(accuracy.units, some(learner=learners)) == []
    assert [kind.heading for kind, _ in sweep.figures(SweepResults.of(results))].count("Units") == 1


def test_units_never_meet_and_every_axis_and_caption_names_its_own():
    results = some(unit=["add-remove", "replace", "change-label"], encoder=["a", "b"], rho=[0.5])
    for find in (accuracy.accuracy, accuracy.minority, accuracy.encoders):
        all_found = found(find, results)
        assert len(all_found) == (3 if find is accuracy.encoders else 6)
        for figure in all_found:
            points = [point for panel in figure.panels for point in panel.points]
            (unit,) = {cell.unit for point in points for cell in point.results}
            assert words.unit_words(unit) in figure.x.title
            assert words.unit_words(unit) in figure.caption
            assert words.unit_words(unit) in figure.title
    assert len({figure.name for figure in found(accuracy.accuracy, results)}) == 6


@pytest.mark.parametrize("rho", [None, math.inf])
def test_a_guarantee_without_rho_is_drawn_against_epsilon_at_its_delta(rho):
    results = [
        *some(learner=["zcdp", "pure"], budget=["x"]),
        one("b" * 20, learner="approximate", rho=rho, epsilon=1.5),
        one("c" * 20, learner="at another delta", rho=rho, epsilon=1.5, delta=1e-5),
        one("d" * 20, learner="free", rho=0.0, epsilon=0.0),
    ]
    by_axis = {figure.x.title: figure for figure in found(accuracy.accuracy, results)}
    assert {title: figure.visible_series for title, figure in by_axis.items()} == {
        "epsilon e (zCDP, add/remove one record)": ("pure", "zcdp"),
        "epsilon at delta=1e-05 (add/remove one record)": ("at another delta",),
        "epsilon at delta=1e-06 (add/remove one record)": ("approximate",),
    }
    assert [figure.x.rho_above for figure in by_axis.values()] == [False, False, True]
    assert groups.without_cost(results) == 1


def test_what_is_not_private_is_a_flat_line_beside_its_own_learner():
    results = [
        one("1", learner="zcdp"),
        one("2", learner="zcdp", rho=None, epsilon=math.inf, budget="inf", balanced_accuracy=0.9),
        one("3", learner="approximate", rho=None),
        one("4", learner="approximate", rho=math.inf, epsilon=math.inf, budget="inf"),
        one("5", learner="never private", rho=math.inf, epsilon=math.inf, budget="inf"),
    ]
    by_epsilon, by_rho = found(accuracy.accuracy, results)
    assert [point.series for point in by_rho.panels[0].flat] == ["zcdp"]
    assert [point.series for point in by_epsilon.panels[0].flat] == ["approximate", "never private"]
    assert by_rho.panels[0].flat[0].y.median == 0.9
    assert not lacking(by_rho.caption, "Hollow", "without privacy")
    more = only(
        accuracy.accuracy, [*results[:2], one("6", learner="zcdp", rho=2.0, budget="rho=2")]
    )
    assert not lacking(more.caption, "dashes", "without privacy")


def test_one_budget_is_drawn_as_dots_in_a_row_for_each_learner():
    results = some(learner=["auto", "noisy-sum"], seed=[0, 1], imbalance=[1.0, 10.0])
    results.append(one("f" * 20, learner="auto", rho=math.inf, epsilon=math.inf, budget="inf"))
    figure = only(accuracy.accuracy, results)
    assert figure.one_cost
    assert "balanced accuracy at e = 1, rho = 0.5 (" in figure.title
    assert "the line spans" in figure.caption
    assert "axis above" not in figure.caption
    chart = charts.lines(figure, PAGE).to_dict()
    first = chart["concat"][0]["layer"]
    assert {part["mark"]["type"] for part in first} == {"rule", "point"}
    assert first[1]["encoding"]["y"]["sort"] == ["auto", "noisy-sum"]
    assert first[1]["encoding"]["x"]["field"] == "median"
    assert "params" not in chart
    two = only(
        accuracy.accuracy, [*results, one("e" * 20, learner="auto", rho=2.0, budget="rho=2")]
    )
    assert not two.one_cost
    assert "against epsilon e (" in two.title
    assert "params" in charts.lines(two, PAGE).to_dict()


def test_legends_carry_the_names_that_one_types():
    names = {"auto": "auto", "DPPL-Mean": "coinpress", "noisy sums": "noisy-sum", "x": "my-own"}
    results = [
        one(f"{i}", learner=learner, method=method)
        for i, (learner, method) in enumerate(names.items())
    ]
    assert set(groups.labels(results).values()) == {
        "auto",
        "DPPL-Mean",
        "noisy sums (noisy-sum)",
        "x",
    }
    both = [one("1", learner="mine", method="auto"), one("2", learner="mine", method="public")]
    assert set(groups.labels(both).values()) == {"mine, auto", "mine, public"}


def test_a_chart_says_what_it_shows():
    results = [
        one(f"{rho}", rho=rho, budget=f"rho={rho}", balanced_accuracy=rho / 4) for rho in (0.5, 2.0)
    ]
    results.append(one("inf", rho=math.inf, epsilon=math.inf, budget="inf", balanced_accuracy=0.9))
    chart = charts.lines(only(accuracy.accuracy, results), PAGE).to_dict()
    assert not lacking(
        chart["description"],
        "digits",
        "raw",
        "balanced accuracy",
        "epsilon e",
        "imbalance 1",
        "0.125 at 1",
        "0.500 at 2",
        "0.900 without privacy",
    )
    assert found(accuracy.accuracy, results[-1:]) == []


def test_a_learner_is_called_by_whatever_tells_its_cells_apart():
    results = some(
        learner=["a"], parameters=['{"k": 10}', '{"k": 9}'], public=["x", None], tuning=["none"]
    )
    labelled = SweepResults.of([*results, one("z" * 20, learner="b")])
    assert labelled.series == (
        "a, k=9, no public set",
        "a, k=9, x",
        "a, k=10, no public set",
        "a, k=10, x",
        "b",
    )
    figure = only(accuracy.accuracy, results)
    assert [len(point.results) for point in figure.panels[0].points] == [1, 1, 1, 1]


def test_the_best_parameter_is_the_one_with_the_highest_median_at_each_cost():
    table = {
        ("rho=0.1", 0.1): (0.5, 0.4, 0.1),
        ("rho=1", 1.0): (0.6, 0.8, 0.8),
        ("rho=8", 8.0): (0.7, 0.8, 0.9),
    }
    results = [
        one(
            f"{budget}{k}",
            method="public",
            learner=f"k={k}",
            parameters=json.dumps({"k": k, "centre": True}),
            budget=budget,
            rho=rho,
            balanced_accuracy=value,
        )
        for (budget, rho), values in table.items()
        for k, value in zip((1, 3, 10), values, strict=True)
    ]
    figure = only(accuracy.best_parameter, results)
    assert figure.series == ("1", "3", "10")
    places = [math.sqrt(2 * rho) for _, rho in table]
    assert [(point.x, point.series) for point in figure.panels[0].best] == list(
        zip(places, ("1", "3", "10"), strict=True)
    )
    assert [point.y.median for point in figure.panels[0].points if point.series == "3"] == [
        0.4,
        0.8,
        0.8,
    ]
    assert "tuning that nobody paid for" in figure.caption
    other = one("other", method="public", parameters='{"k": 1, "centre": false}')
    assert found(accuracy.best_parameter, [*results, other]) == []

    # the same as a line: the best value at each cost
    best = only(accuracy.best_values, results)
    assert [(point.x, point.y.median) for point in best.panels[0].points] == list(
        zip(places, (1, 3, 10), strict=True)
    )
    assert best.visible_series == ("imbalance 1",)
    assert best.y.title == "best k"
    words_alone = [
        replace(result, parameters=json.dumps({"window": f"w{place % 3}"}))
        for place, result in enumerate(results)
    ]
    assert len(found(accuracy.best_parameter, words_alone)) == 1
    assert found(accuracy.best_values, words_alone) == []


def test_panels_by_encoder_and_by_data_set():
    facts = {"encoder": ["e", "f"], "data": ["a", "b"], "budget": ["rho=0.5"], "imbalance": [10.0]}
    results = some(**facts)
    by_encoder = found(accuracy.accuracy_of_encoders, results)
    assert [figure.name for figure in by_encoder] == [
        f"{measure}-accuracy-by-encoder-{data}-imbalance-10-add-remove-rho"
        for measure in ("balanced", "minority")
        for data in "ab"
    ]
    assert [panel.title for panel in by_encoder[0].panels] == ["e", "f"]
    balanced, minority = found(accuracy.accuracy_of_data_sets, results)
    assert [panel.title for panel in balanced.panels] == ["a, e", "a, f", "b, e", "b, f"]
    assert balanced.title.startswith("imbalance 10: balanced accuracy by data set at e = 1")
    assert {point.y.median for panel in minority.panels for point in panel.points} == {0.6}
    alone = some(**(facts | {"encoder": ["e"], "data": ["a"]}))
    assert found(accuracy.accuracy_of_encoders, alone) == []
    assert found(accuracy.accuracy_of_data_sets, alone) == []


def test_class_names_are_always_said():
    results = some(learner=["sums", "auto"], names=[True, False])
    assert sorted(set(groups.labels(results).values())) == [
        "auto",
        "auto, class names",
        "sums",
        "sums, class names",
    ]
    assert set(groups.labels(some(learner="sums", names=True)).values()) == {"sums, class names"}


def test_public_rows_public_sets_and_encoders_are_drawn_where_there_are_several():
    results = some(public=["x", "y"], public_rows=[100, 10], encoder=["e", "f"], seed=[0, 1])
    results += [
        one("n" * 20, learner="without"),
        one("o" * 20, learner="one only", public="x", public_rows=10),
    ]
    by_rows = found(accuracy.public_rows, results)
    assert [figure.visible_series for figure in by_rows] == [("m, x", "m, y")] * 2
    assert [point.x for point in by_rows[0].panels[0].points] == [10, 100, 10, 100]
    assert by_rows[0].x.log
    by_set = found(accuracy.public_sets, results)
    assert by_set[0].visible_series == ("m, 10 public rows", "m, 100 public rows")
    assert by_set[0].panels[0].names == ["x", "y"]
    assert only(accuracy.encoders, results).panels[0].names == ["e", "f"]
    for find in (accuracy.public_rows, accuracy.public_sets, accuracy.encoders):
        assert found(find, some(seed=[0, 1])) == []


def test_a_panel_for_each_budget_the_strictest_first_none_last():
    budgets = {
        "inf": (math.inf, math.inf),
        "rho=10": (10.0, 50.0),
        "epsilon=1": (None, 1.0),
        "rho=2": (2.0, 20.0),
    }
    results = [
        one(f"{budget}{encoder}", encoder=encoder, budget=budget, rho=rho, epsilon=epsilon)
        for budget, (rho, epsilon) in budgets.items()
        for encoder in "ab"
    ]
    assert [panel.title for panel in only(accuracy.encoders, results).panels] == [
        "epsilon=1",
        "e = 2",
        "e = 4.48",
        "no privacy",
    ]


def test_an_unpaid_search_is_drawn_at_the_budget_of_its_fits_and_marked():
    budgets = ["rho=2", "rho=8", "rho=inf"]
    results = some(budget=budgets, tuning="unpaid", rho=math.inf, epsilon=math.inf)
    results.append(one("p" * 20, learner="paid"))
    figure = only(accuracy.accuracy, results)
    (panel,) = figure.panels
    assert [(point.series, point.x) for point in panel.points] == [
        ("m, search unpaid", 2.0),
        ("m, search unpaid", 4.0),
        ("paid", 1.0),
    ]
    assert [point.results[0].budget for point in panel.flat] == ["rho=inf"]
    assert not lacking(figure.caption, "tuned outside the guarantee", "no bound", "is not private")
    # tables state what the guarantee is
    _, rows = tables.tables(SweepResults.of(results))[0]
    assert ("m, search unpaid", "rho=2", "inf") in [row.texts[:3] for row in rows]


def test_class_sizes_and_run_times():
    results = some(data=["a", "b"], imbalance=[1.0], class_sizes=[[7, 0, 300]]) + some(
        imbalance=[9.0], class_sizes=[None, []]
    )
    figure = only(fits.class_sizes, results)
    assert [panel.title for panel in figure.panels] == ["a", "b"]
    assert medians(figure.panels[0], "1") == {1: 300, 2: 7}
    assert figure.y.log
    shares = only(fits.class_shares, results)
    assert medians(shares.panels[0], "1") == {1: round(300 / 307, 9), 2: round(7 / 307, 9)}
    assert shares.y.title == "share of records"
    results = [
        one(str(seconds), seed=seed, fit_seconds=seconds)
        for seed, seconds in enumerate((0.0, 1.0, 2.0, 9.0))
    ]
    (point,) = only(fits.run_times, results).panels[0].points
    assert (point.y.median, len(point.results)) == (2.0, 3)
    assert (
        found(fits.run_times, some(fit_seconds=[0.0]))
        == found(fits.class_sizes, some(class_sizes=[[0, 0]]))
        == []
    )


def test_run_times_by_phase_and_what_their_caption_says():
    phases = [
        {"set-up": 1.0, "rest of the fit": 2.0, "prediction": 0.5},
        {"scoring": 3.0, "rest of the fit": 1.0},
    ]
    timed = [
        one(
            str(seed),
            learner="a",
            seed=seed,
            fit_seconds=3.0,
            phases=json.dumps(each),
            host="here",
            processor="P 1",
        )
        for seed, each in enumerate(phases)
    ]
    figure = only(fits.run_times, timed)
    assert figure.series == ("whole fit", "scoring", "set-up", "rest of the fit", "prediction")
    (panel,) = figure.panels
    assert {point.series: point.y.median for point in panel.points} == {
        "whole fit": 3.0,
        "scoring": 1.5,
        "set-up": 0.5,
        "rest of the fit": 1.5,
        "prediction": 0.25,
    }
    assert panel.names == ["a"]
    for said in (
        "A first fit",
        "Nothing is taken from work that cells share",
        "Measured on here (P 1)",
    ):
        assert said in figure.caption
    beside = one("other", learner="b", fit_seconds=9.0, host="there", phases=None, processor=None)
    by_phase, whole = found(fits.run_times, [*timed, beside])
    assert by_phase.panels == figure.panels
    assert [(point.series, point.y.median) for point in whole.panels[0].points] == [("b", 9.0)]
    assert not lacking(whole.caption, "share", "left out")
    assert "Measured on there," in whole.caption


def test_trials_are_drawn_by_number_and_by_each_parameter_that_varied():
    trials = [{"parameters": {"k": k, "centre": True}, "score": 3 * k} for k in (1, 5)]
    extra = json.dumps({"trials": [*trials, {"parameters": {}, "score": None}]})
    results = some(budget=["rho=2", "rho=1"], seed=[0, 1], extra=[extra], rho=math.inf)
    by_number, by_k = found(fits.trials, results)
    assert [panel.title for panel in by_number.panels] == ["e = 1.42", "e = 2"]
    assert medians(by_number.panels[0], "seed 1") == {1: 0.1, 2: 0.5}
    assert medians(by_k.panels[0], "seed 0") == {1: 0.1, 5: 0.5}
    assert (by_k.x.title, by_k.visible_series) == ("k", ("seed 0", "seed 1"))
    assert found(fits.trials, some(extra=['{"trials": []}', "{}"])) == []
    chart = charts.scatter(by_k, PAGE).to_dict()
    assert [layer["mark"]["type"] for layer in chart["concat"][0]["layer"]] == ["point"]


def test_hyperparameters_are_listed_by_method_with_their_budgets_and_tuning():
    settings = {
        "rho=1": {"k": 5, "window": [1.34, 1.64]},
        "rho=2": {"k": 5, "window": [1.34, 1.64]},
    }
    settings["rho=8"] = {"k": 1, "window": [0.0, 2.0]}
    results = [
        one(f"{budget}{seed}", budget=budget, seed=seed, tuning="paid", extra=extra)
        for budget, used in settings.items()
        for extra in [json.dumps({"settings": used})]
        for seed in (0, 1)
    ]
    ((title, rows),) = tables.settings_tables(SweepResults.of([*results, one("without")]))
    assert title == "digits, raw"
    paid = f"paid: {captions.TUNING['paid']}"
    assert rows == [
        ("m, tuning=paid", "1", "rho=8", "k=1, window=[0, 2]", paid, "2"),
        ("m, tuning=paid", "1", "rho=1, rho=2", "k=5, window=[1.34, 1.64]", paid, "2"),
    ]
    page = sweep.html(results, "title")
    assert "<h2>Hyperparameters</h2>" in page
    assert "k=5, window=[1.34, 1.64]" in page


def test_steps_have_numbers_or_a_number_for_each_class():
    steps = [
        {"radius": [4, 6], "clip": [1, 1], "noise": [0, 0], "norm": [2, 2]},
        {"radius": 3.0, "norm": None},
    ]
    radius, norm = only(fits.steps, [one(extra=json.dumps({"steps_": steps}))]).panels
    assert (radius.title, norm.title) == ("radius", "norm")
    assert medians(radius, "e = 1") == {1: 5.0, 2: 3.0}
    assert medians(norm, "e = 1") == {1: 2.0}


def test_a_mean_keeps_its_class_and_one_seed_of_each_budget_is_pictured():
    picture = {
        "true": [[0, 0], [math.nan, 0], [1, 1]],
        "private": [[0, 1], [5, 5], [2, 2]],
        "points": [[0, 0, 1], [1, 1, 0], [None, 1, 1]] * 1000,
    }
    figure = only(
        fits.means,
        some(seed=[3, 2], budget=["rho=1", "inf"], extra=[json.dumps({"means_2d": picture})]),
    )
    assert [panel.title for panel in figure.panels] == ["inf, seed 2", "e = 1.42, seed 2"]
    assert [(mean.class_index, mean.true, mean.private) for mean in figure.panels[0].means] == [
        (0, (0, 0), (0, 1)),
        (2, (1, 1), (2, 2)),
    ]
    # the axes end half of the range beyond true means and rows
    assert figure.x.limits == figure.y.limits == pytest.approx((-0.075, 1.575))
    assert [panel.note for panel in figure.panels] == ["1 of 2 private means outside"] * 2
    assert not lacking(figure.caption, "outside", "1.41 to 1.41 from their true means")
    # the line to the private mean of class 2 ends at the axes
    assert [mean.edge for mean in figure.panels[0].means] == [None, pytest.approx((1.575, 1.575))]
    chart = charts.means(figure, PAGE).to_dict()["concat"][0]
    assert chart["title"]["subtitle"] == figure.panels[0].note
    ends = [(row["to_x"], row["inside"]) for row in chart["data"]["values"] if "inside" in row]
    assert ends == [(0, True), (pytest.approx(1.575), False)]
    assert len(figure.panels[0].rows) == 1000
    assert {right for _, _, right in figure.panels[0].rows} <= {True, False}
    assert "True means are private" in figure.caption
    assert "Shows 2 cells." in figure.caption


@pytest.mark.parametrize(
    "extra", ["", "no JSON", "[]", '{"steps_": 3}', '{"means_2d": null}', '{"means_2d": {}}']
)
def test_what_was_kept_otherwise_breaks_nothing(extra):
    results = some(extra=[extra])
    assert found(fits.steps, results) == []
    assert [panel.means for figure in found(fits.means, results) for panel in figure.panels] in (
        [],
        [()],
    )


def test_captions_say_guarantee_tuning_noise_seeds_and_cells():
    results = [*some(learner=["a", "b"], seed=[0, 1]), one("u" * 20, learner="c", tuning="unpaid")]
    said = only(accuracy.accuracy, results).caption
    assert not lacking(said, "add/remove one record")
    assert not lacking(said, "none", "'a'", "'b'", "unpaid", "'c'")
    assert not lacking(said, "1 to 2 seeds", "25 to 75")
    more = only(accuracy.accuracy, [*results, one("v" * 20, rho=2.0, budget="rho=2")]).caption
    assert "the band spans" in more
    assert "an axis, not a guarantee" in more
    assert captions.NOISE in said
    assert said.endswith("Shows 5 cells.")
    assert not lacking(only(accuracy.accuracy, some(rho=[1.0])).caption, "One seed")


def test_every_figure_of_a_sweep_says_what_it_must():
    figures = [figure for _, figure in sweep.figures(SweepResults.of(plausible(data=("cifar10",))))]
    assert len({figure.name for figure in figures}) == len(figures)
    for figure in figures:
        assert "The guarantee hides" in figure.caption
        assert "Tuning: " in figure.caption
        assert captions.NOISE in figure.caption
        assert figure.caption.endswith("cells.")


# How they look


def test_no_two_series_look_alike_with_or_without_colour():
    names = [str(number) for number in range(280)]
    looks = [theme.look(names, name) for name in names]
    assert len(set(looks)) == 280
    assert len({(look.marker, look.dash) for look in looks[:40]}) == 40
    assert [len(set(kind)) for kind in zip(*looks[:5], strict=True)] == [5, 5, 5]
    assert len({look.colour for look in looks[:7]}) == 7
    assert len({look.marker for look in looks[:8]}) == 8


SEVERAL = {
    "lines": lambda: found(accuracy.accuracy, _cells())[0],
    "best": lambda: found(accuracy.best_parameter, _cells())[0],
    "steps": lambda: found(fits.steps, _cells())[0],
    "dots": lambda: found(
        accuracy.encoders, some(encoder=["a $x_$", "_b"], learner=["_m", "$n^$"])
    )[0],
    "bars": lambda: found(fits.run_times, _cells())[0],
    "phases": lambda: found(fits.run_times, timed())[0],
    "means": lambda: found(fits.means, _cells())[0],
    "alone": lambda: found(accuracy.accuracy, some(seed=[0, 1]))[0],
}


def _cells():
    return plausible(data=("cifar10",), encoders=("vit",), imbalance=(50.0,), seeds=2)


DRAW = {"dots": charts.dots, "bars": charts.bars, "phases": charts.bars, "means": charts.means}


@pytest.mark.parametrize("look", [PAGE, PAPER], ids=["page", "paper"])
@pytest.mark.parametrize("name", SEVERAL)
def test_charts_are_valid_and_hold_what_their_marks_tell(name, look):
    figure = SEVERAL[name]()
    chart = DRAW.get(name, charts.lines)(figure, look).to_dict()
    rows = [row for panel in chart["concat"] for row in panel["data"]["values"]]
    if name == "means":
        assert {row["row"] for row in rows if "row" in row} == {"right", "wrong"}
        return
    assert {"learner", "budget", "seeds", "cells"} <= set(rows[0])
    assert {row["series"] for row in rows} == set(figure.visible_series)


@pytest.mark.parametrize("name", SEVERAL)
def test_paper_figures_name_every_series_and_axis(name):
    figure = SEVERAL[name]()
    drawn = ElementTree.fromstring(paper.image(DRAW.get(name, charts.lines), figure, "svg"))
    texts = [
        " ".join("".join(text.itertext()).split())
        for text in drawn.iter("{http://www.w3.org/2000/svg}text")
    ]
    for panel in figure.panels:
        assert panel.title in texts
    axes = (figure.y.title,) if figure.one_cost else (figure.x.title, figure.y.title)
    assert {title for title in axes if title} <= set(texts)
    assert set(figure.visible_series) <= set(texts)
    assert figure.one_cost or figure.legend in texts  # names stand beside the rows
    # long titles are wrapped
    assert "".join(figure.title.split()) in "".join("".join(texts).split())


# Page and folder


NASTY = '</script><b>a</b> & "b" $x_$ {c}'


@pytest.fixture(scope="module")
def page():
    """A page of names that would break it, missing values, a cell that failed and an anonymous
    cost.
    """
    results = some(
        learner=[NASTY, "m"],
        data=[NASTY],
        encoder=["a", "b"],
        seed=[0, 1],
        minority_accuracy=[None],
    )
    results.append(one("f" * 20, learner=NASTY, status="failed", error=NASTY))
    results.append(one("e" * 20, learner="free", rho=None, epsilon=0.0, balanced_accuracy=math.nan))
    return sweep.html(results, f"Sweep {NASTY}")


def without_scripts(page):
    return re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)


def test_names_are_text_wherever_they_stand(page):
    assert "<b>" not in without_scripts(page)
    assert "</b>" not in page.replace(r"\u003c/b>", "")
    assert page.count("</script>") == page.count("<script") == 3
    assert page.count(html.libraries()) == 1


def test_the_page_loads_nothing(page):
    loaded = re.findall(
        r"<(?:script|link|img|iframe)[^>]*(?:src|href)=[^>]*>", without_scripts(page)
    )
    assert loaded == ['<link rel="icon" href="data:,">']
    assert not re.search(r"url\(|@import", without_scripts(page))


def test_every_number_leads_to_its_cells(page):
    targets = set(re.findall(r'id="([^"]+)"', page))
    links = re.findall(r'<a href="#([^"]+)"', page)
    assert set(links) <= targets
    (cells,) = re.findall(r'<tbody id="cells-0{20}">(.*?)</tbody>', page, flags=re.DOTALL)
    assert f"<td>{0:020x}</td><td>0</td><td>0.700</td><td>none</td><td>0.1</td>" in cells
    assert f"<td>{1:020x}</td><td>1</td>" in cells
    assert cells.count("<tr>") == 3
    assert "1 cells state no cost above 0" in page
    assert "f" * 20 in without_scripts(page)


def test_tables_give_medians_quantiles_costs_unit_and_tuning():
    results = [
        one(f"{seed}", seed=seed, balanced_accuracy=value)
        for seed, value in enumerate((0.5, 0.6, 0.9))
    ]
    ((name, (row,)),) = tables.tables(SweepResults.of(results))
    assert name == "digits, raw, imbalance 1"
    assert list(row.texts) == [
        "m",
        "rho=0.5",
        "0.5",
        "4 (1e-06)",
        "add/remove one record",
        "none",
        "3",
        "0.600 [0.550, 0.750]",
        "0.600 [0.600, 0.600]",
    ]
    ((_, (alone,)),) = tables.tables(SweepResults.of(results[:1]))
    assert alone.texts[-2:] == ("0.500", "0.600")


def test_folders_have_stable_names_and_bytes(tmp_path):
    results = some(
        data=["a/b", "a b", "αβγ"],
        seed=[0, 1],
        fit_seconds=[0.0],
        class_sizes=[None],
        minority_accuracy=[None],
    )
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        sweep.write_images(results, "svg", tmp_path / name)
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == [
        "balanced-accuracy-a-b-raw-add-remove-rho-2.svg",
        "balanced-accuracy-a-b-raw-add-remove-rho.svg",
        "balanced-accuracy-by-data-set-imbalance-1-add-remove-rho.svg",
        "balanced-accuracy-raw-add-remove-rho.svg",
        "captions.txt",
        "hyperparameters.csv",
        "tables.csv",
    ]
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert "balanced-accuracy-raw-add-remove-rho.svg: αβγ, raw" in (
        tmp_path / "one/captions.txt"
    ).read_text("utf-8")
    assert len((tmp_path / "one/tables.csv").read_text("utf-8").splitlines()) == 4
    assert sweep.is_images(tmp_path / "one")
    assert not sweep.is_images(tmp_path)


# The command


@pytest.fixture
def report(tmp_path, monkeypatch, capsys):
    """Run `tacit report` in a folder that holds the small sweep `runs`; returns status, stdout,
    stderr.
    """
    monkeypatch.chdir(tmp_path)
    kept(tmp_path / "runs", some(learner=["a", "b"], class_sizes=[None], minority_accuracy=[None]))

    def report(line):
        status = main(["report", *line.split()])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return report


def test_one_page_by_the_name_of_the_output(report, tmp_path):
    assert report("runs --out page.html") == (0, "page.html: 2 cells, 0 failed\n", "")
    first = (tmp_path / "page.html").read_text("utf-8")
    assert "<h1>Sweep runs</h1>" in first
    assert report("runs --out page.html")[0] == 2
    assert report("runs --out page.html --force")[0] == 0
    assert (tmp_path / "page.html").read_text("utf-8") == first


def test_only_what_is_asked_for(report, tmp_path):
    assert (
        report("runs --out figures --format png --where learner='a'")[1]
        == "figures: 1 cells, 0 failed\n"
    )
    assert (tmp_path / "figures/run-times.png").read_bytes().startswith(b"\x89PNG")
    assert report("runs --out figures --format svg --force")[0] == 0
    assert {path.suffix for path in (tmp_path / "figures").iterdir()} == {".svg", ".txt", ".csv"}
    assert report("runs --out figures --format pdf --force")[0] == 0
    assert {path.suffix for path in (tmp_path / "figures").iterdir()} == {".pdf", ".txt", ".csv"}
    image = (tmp_path / "figures/run-times.pdf").read_bytes()
    assert image.startswith(b"%PDF")
    # lines and text alone
    assert b"/Image" not in image.replace(b"/ImageC", b"").replace(b"/ImageB", b"")
    assert b"+LiberationSans" in image  # vl-convert's font, embedded


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("runs --out page.html --format docx", ("docx", "--format", "html", "pdf")),
        ("runs --out figures", ("--out figures", ".html", "--format pdf")),
        (
            "runs --out a/figures.pdf",
            ("a/figures.pdf", "--format pdf --out a/figures"),
        ),
        ("runs --out figures.svg --format svg", ("write --format svg --out figures",)),
        ("runs --out page.html --where seed>5", ("--where 'seed>5'", "runs")),
        ("runs --out page.html --where sed>5", ("cannot be answered",)),
        ("absent --out page.html", ("absent holds no results",)),
        ("failed --out page.html", ("1 cells", "too little")),
        ("failed --out figures --format svg", ("sweep again",)),
        ("runs --out runs --format svg --force", ("runs holds something else",)),
        ("runs --out runs --format html", ("runs exists",)),
    ],
)
def test_refusals_are_one_line_and_leave_nothing(report, tmp_path, line, words):
    kept(tmp_path / "failed", [one("f" * 20, status="failed", error="too little")])
    before = sorted(tmp_path.rglob("*"))
    status, out, err = report(line)
    assert (status, out) == (2, "")
    assert not lacking(err, *words)
    assert err.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_results_of_nothing_are_refused():
    with pytest.raises(InputError, match=stating("0 cells")):
        sweep.html([], "title")
