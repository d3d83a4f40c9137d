"""Figures of votings (PATE): what answers cost, how far teachers agree, and one voting read at
several budgets.

Those of a sweep show what a plan keeps of the fitted learners: `answers_.costs`, `consensus_`,
`readings_`. Those of one voting are for the owner of the data.

A group is a group of private records with the same budget; a voting without personal budgets has
one. A reading is what the same votes and noise would have released under a smaller budget.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from tacit.experiments.results import Result
from tacit.learners.pate import Answers
from tacit.learners.pate.data_dependent import BINS
from tacit.mechanisms.noise import Integers
from tacit.models.metrics import spread
from tacit.privacy.decimals import rounded_up
from tacit.report import charts, paper
from tacit.report.captions import about_seeds, caption
from tacit.report.figure import Axis, Figure, Panel, Point, axis_for
from tacit.report.groups import PLACE, SweepResults, budgets, grouped, loaded, number
from tacit.report.words import imbalance_words, slug, unit_words

# Attributes of a fitted `PATE` that a plan may keep, as lists: epsilon of each group after some of
# the queries; queries by the share of teachers for their top class, `BINS` of them; and readings.
COSTS = "answers_.costs"
CONSENSUS = "consensus_"
READINGS = "readings_"

ABOUT_COSTS = (
    "Epsilon that the queries so far have spent at most, whatever the votes, against the labels"
    " that they bought. Voting stops before a budget would be exceeded."
)
ABOUT_CONSENSUS = "Public records by the share of teachers that vote for the top class."
PRIVATE = (
    "PRIVATE: this depends on the votes, which no budget covers. It is for the owner of the data;"
    " do not publish it."
)
OVER_ALL = (
    "Medians over all budgets, imbalances and seeds; the band spans the 25 to 75 % quantiles."
)
FOR_RESEARCH = "Votes are private, and are shown because the data are for research."
SHARES = "queries, by the share of teachers that vote for the top class"
CAPTIONS = "captions.txt"


def costs(sweep: SweepResults) -> Iterator[Figure]:
    """Privacy cost of each group against labels, where the plan keeps `answers_.costs`: a panel for
    each budget.
    """
    for (data, encoder, unit, label, ratio), results in _having(
        sweep, COSTS, *PLACE, sweep.label, "imbalance"
    ):
        panels = tuple(
            Panel(budget, _cost_points(group), prices=True) for budget, group in budgets(results)
        )
        deltas = {rounded_up(result.delta) for result in results if result.delta is not None}
        place = f"{data}, {encoder}, {imbalance_words(ratio)}"
        yield Figure(
            name=slug("cost-of-answers", label, data, encoder, imbalance_words(ratio), unit),
            title=f"{place}: cost of answers of {label} ({unit_words(unit)})",
            caption=caption(f"{ABOUT_COSTS} {about_seeds(panels, 'band')}", panels),
            legend="group",
            series=_series(panels),
            panels=panels,
            x=Axis("labels bought"),
            y=Axis(f"epsilon spent at delta {', '.join(sorted(deltas))}"),
        )


def consensus(sweep: SweepResults) -> Iterator[Figure]:
    """Agreement of teachers, where the plan keeps `consensus_`: a panel for each data set, a line
    for each learner.
    """
    # noise comes after the votes, so results at all budgets are taken together
    panels = []
    for (data, encoder), results in _having(sweep, CONSENSUS, "data", "encoder"):
        points = _consensus_points(grouped(results, sweep.label))
        panels.append(Panel(f"{data}, {encoder}", tuple(points)))
    if not panels:
        return

    yield Figure(
        name="consensus",
        title="Consensus of teachers",
        caption=caption(f"{ABOUT_CONSENSUS} {OVER_ALL} {FOR_RESEARCH}", panels),
        legend="learner",
        series=sweep.series,
        panels=tuple(panels),
        x=Axis("share of teachers for the top class, up to (%)"),
        y=Axis("share of the public records"),
    )


def readings(sweep: SweepResults) -> Iterator[Figure]:
    """Accuracy of students of one voting read at several budgets, where the plan keeps
    `readings_`.
    """
    for (data, encoder, unit, ratio), results in _having(sweep, READINGS, *PLACE, "imbalance"):
        panels = []
        for budget, group in budgets(results):
            points = tuple(_reading_points(sweep, group))
            if points:
                panels.append(Panel(budget, points))
        if not panels:
            continue

        place = f"{data}, {encoder}, {imbalance_words(ratio)}"
        about = (
            "Accuracy on the test set of the student of the labels that a voting of each smaller"
            " budget would have released, with the noise of the largest, which is above the panel."
            " All readings of a voting together cost what its budget allows."
            f" {about_seeds(panels, 'line')}"
        )
        yield Figure(
            name=slug("readings", data, encoder, imbalance_words(ratio), unit),
            title=f"{place}: one voting read at several budgets",
            caption=caption(about, panels),
            legend="learner",
            series=sweep.series,
            panels=tuple(panels),
            x=Axis("budget of the reading"),
            y=axis_for("accuracy", panels),
        )


def of_voting(answers: Answers, shares: Integers) -> dict[str, tuple[Any, Figure]]:
    """Return the chart and the figure of each figure of one voting, by the name of its file.

    `shares` are the numbers of queries by consensus (`tacit.learners.pate.data_dependent`).
    """
    n_queries = int(shares.sum())

    # The top class has at least 1/C of the teachers, so the lowest bins are empty. A point states
    # quantiles and the results behind it; here they are those of one number, and no results.
    first_bin = int(np.flatnonzero(shares)[0])
    bars = tuple(
        Point(SHARES, _bin_name(bin_index), spread([shares[bin_index] / n_queries]), ())
        for bin_index in range(first_bin, BINS)
    )

    # axes end a twentieth above the highest value
    highest_share = max(point.y.median for point in bars)
    agreement = Figure(
        name="consensus-private",
        title="Consensus of teachers (private)",
        caption=f"{PRIVATE} {ABOUT_CONSENSUS} {n_queries:,} queries.",
        legend="",
        series=(SHARES,),
        panels=(Panel("", bars),),
        x=Axis("teachers for the top class"),
        y=Axis("share of the queries", limits=(0.0, 1.05 * highest_share)),
    )
    figures: dict[str, tuple[Any, Figure]] = {agreement.name: (charts.bars, agreement)}

    cost = _cost_of_voting(answers)
    if cost is not None:
        figures[cost.name] = (charts.lines, cost)
    return figures


def _cost_of_voting(answers: Answers) -> Figure | None:
    """Return the figure of the cost of one voting; None without noise, where all costs are
    infinite.
    """
    points = []
    for cost in answers.costs:
        for group, epsilon in cost.epsilon.items():
            if math.isfinite(epsilon):
                points.append(Point(group, cost.answered, spread([epsilon]), ()))
    if not points:
        return None

    # both axes begin at 0; the first has a length even if no label was bought
    panels = (Panel("", tuple(points), prices=True),)
    highest_epsilon = max(point.y.median for point in points)
    return Figure(
        name="cost",
        title="Privacy cost against labels bought",
        caption=f"{ABOUT_COSTS} It follows from what was released.",
        legend="group",
        series=_series(panels),
        panels=panels,
        x=Axis("labels bought", limits=(0.0, 1.05 * max(answers.answered, 1))),
        y=Axis(
            f"epsilon spent at delta {rounded_up(answers.scheme.delta)}",
            limits=(0.0, 1.05 * highest_epsilon),
        ),
    )


def write_figures(folder: Path, answers: Answers, shares: Integers) -> None:
    """Write the figures of one voting as SVG, with their captions as alternative text and in
    captions.txt.
    """
    captions = []
    for name, (draw, figure) in of_voting(answers, shares).items():
        svg = paper.image(draw, figure, "svg").decode("utf-8")

        # the alternative text is an attribute of the root element, which the chart leaves without
        alternative_text = escape(f"{figure.title}. {figure.caption}", quote=True)
        svg = svg.replace("<svg ", f'<svg role="img" aria-label="{alternative_text}" ', 1)
        (folder / f"{name}.svg").write_text(svg, encoding="utf-8")
        captions.append(f"{name}.svg: {figure.title}\n\n{figure.caption}\n")
    (folder / CAPTIONS).write_text("\n".join(captions), encoding="utf-8")


def _having(
    sweep: SweepResults, attribute: str, *facts: Any
) -> list[tuple[tuple[Any, ...], list[Result]]]:
    """Return the results of which the plan keeps an attribute as a non-empty list, grouped by the
    values of facts.
    """
    return grouped([result for result in sweep.done if _list_of(result, attribute)], *facts)


def _list_of(result: Result, attribute: str) -> list[Any]:
    """Return an attribute that the plan keeps, if it is a list; else an empty list."""
    # Parse the text only where the name is in it: texts may be long.
    if f'"{attribute}"' not in result.extra:
        return []
    value = loaded(result.extra).get(attribute)
    if not isinstance(value, list):
        return []
    return value


def _cost_points(results: Sequence[Result]) -> tuple[Point, ...]:
    """A point for each group and step of the votings, over seeds.

    Votings may differ in their number of steps: all are read at as many steps as the shortest has,
    evenly spaced from their first to their last.
    """
    curves = [_list_of(result, COSTS) for result in results]
    n_steps = min(map(len, curves))
    points = []
    for step in range(n_steps):
        costs_at_step = []
        for curve in curves:
            # a single step is the first; otherwise the last step is the curve's last
            position = round(step * (len(curve) - 1) / max(n_steps - 1, 1))
            costs_at_step.append(curve[position])
        mean_answered = mean(cost["answered"] for cost in costs_at_step)

        # votings of one budget have the same groups
        for group in costs_at_step[0]["epsilon"]:
            epsilons = [number(cost["epsilon"].get(group)) for cost in costs_at_step]
            finite = [epsilon for epsilon in epsilons if epsilon is not None]
            if finite:
                points.append(Point(group, mean_answered, spread(finite), tuple(results)))
    return tuple(sorted(points, key=lambda point: point.series))


def _consensus_points(
    results_by_label: Sequence[tuple[tuple[str], Sequence[Result]]],
) -> Iterator[Point]:
    """The share of the queries in each bin, by label, at the upper end of the bin."""
    for (label,), results in results_by_label:
        counts_by_result = [_list_of(result, CONSENSUS) for result in results]
        for bin_index in range(BINS):
            upper_end = 100 * (bin_index + 1) / BINS
            shares = [counts[bin_index] / sum(counts) for counts in counts_by_result]
            yield Point(label, upper_end, spread(shares), tuple(results))


def _bin_name(bin_index: int) -> str:
    return f"{100 * bin_index // BINS} to {100 * (bin_index + 1) // BINS} %"


def _reading_points(sweep: SweepResults, results: Sequence[Result]) -> Iterator[Point]:
    """Accuracy by learner and limit (the budget of the reading), over seeds."""
    for (label,), group in grouped(results, sweep.label):
        accuracies: dict[str, list[float]] = {}
        results_by_limit: dict[str, list[Result]] = {}
        for result in group:
            for reading in _list_of(result, READINGS):
                # there is none without a test set, and a results file may hold anything
                accuracy = None
                if isinstance(reading, Mapping):
                    accuracy = number(reading.get("test_accuracy"))
                if accuracy is not None:
                    limit = str(reading["limit"])
                    accuracies.setdefault(limit, []).append(accuracy)
                    results_by_limit.setdefault(limit, []).append(result)

        for limit, values in accuracies.items():
            yield Point(label, limit, spread(values), tuple(results_by_limit[limit]))


def _series(panels: Sequence[Panel]) -> tuple[str, ...]:
    """The series of all panels, each once, in the order in which they first appear."""
    return tuple(dict.fromkeys(point.series for panel in panels for point in panel.points))
