"""Figures of votings (PATE): what answers cost, how far teachers agree, and one voting read at
several budgets.

Those of a sweep show what a plan keeps of the fitted learners: `answers_.costs`, `consensus_`,
`readings_`. Those of one voting are for the owner of the data.
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
from tacit.report import charts, paper
from tacit.report.captions import about_seeds, caption
from tacit.report.figure import Axis, Figure, Panel, Point, axis_for
from tacit.report.groups import PLACE, SweepResults, budgets, grouped, loaded, number
from tacit.report.words import imbalance_words, slug, unit_words

COSTS, CONSENSUS, READINGS = "answers_.costs", "consensus_", "readings_"
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
        panels = tuple(Panel(budget, _cost_points(group)) for budget, group in budgets(results))
        delta = ", ".join(sorted({f"{one.delta:g}" for one in results if one.delta is not None}))
        yield Figure(
            name=slug("cost-of-answers", label, data, encoder, imbalance_words(ratio), unit),
            title=(
                f"{data}, {encoder}, {imbalance_words(ratio)}: cost of answers of {label}"
                f" ({unit_words(unit)})"
            ),
            caption=caption(f"{ABOUT_COSTS} {about_seeds(panels, 'band')}", panels),
            legend="group",
            series=_series(panels),
            panels=panels,
            x=Axis("labels bought"),
            y=Axis(f"epsilon spent at delta {delta}"),
        )


def consensus(sweep: SweepResults) -> Iterator[Figure]:
    """How far teachers agree, where the plan keeps `consensus_`: a panel for each data set, a line
    for each learner.
    """
    panels = tuple(
        Panel(f"{data}, {encoder}", tuple(_consensus_points(grouped(results, sweep.label))))
        for (data, encoder), results in _having(sweep, CONSENSUS, "data", "encoder")
    )
    if panels:
        yield Figure(
            name="consensus",
            title="Consensus of teachers",
            caption=caption(f"{ABOUT_CONSENSUS} {OVER_ALL} {FOR_RESEARCH}", panels),
            legend="learner",
            series=sweep.series,
            panels=panels,
            x=Axis("share of teachers for the top class, up to (%)"),
            y=Axis("share of the public records"),
        )


def readings(sweep: SweepResults) -> Iterator[Figure]:
    """Accuracy of students of one voting read at several budgets, where the plan keeps
    `readings_`.
    """
    for (data, encoder, unit, ratio), results in _having(sweep, READINGS, *PLACE, "imbalance"):
        read = (
            (budget, tuple(_reading_points(sweep, group))) for budget, group in budgets(results)
        )
        panels = tuple(Panel(budget, points) for budget, points in read if points)
        if panels:
            about = (
                "Accuracy on the test set of the student of the labels that a voting of each"
                " smaller budget would have released, with the noise of the largest, which is"
                " above the panel. All readings of a voting together cost what its budget allows."
                f" {about_seeds(panels, 'line')}"
            )
            yield Figure(
                name=slug("readings", data, encoder, imbalance_words(ratio), unit),
                title=(
                    f"{data}, {encoder}, {imbalance_words(ratio)}: one voting read at several"
                    " budgets"
                ),
                caption=caption(about, panels),
                legend="learner",
                series=sweep.series,
                panels=panels,
                x=Axis("read at"),
                y=axis_for("accuracy", panels),
            )


def of_voting(answers: Answers, shares: Integers) -> dict[str, tuple[Any, Figure]]:
    """What draws each figure of one voting, and the figure, by the name of its file.

    `shares` are the numbers of queries by consensus (`tacit.learners.pate.data_dependent`).
    """
    points = tuple(
        Point(group, one.answered, spread([epsilon]), ())
        for one in answers.costs
        for group, epsilon in one.epsilon.items()
        if math.isfinite(epsilon)
    )
    queries, first = int(shares.sum()), int(np.flatnonzero(shares)[0])
    bars = tuple(
        Point(SHARES, _bin(i), spread([shares[i] / queries]), ()) for i in range(first, BINS)
    )
    agreeing = Figure(
        name="consensus-private",
        title="Consensus of teachers (private)",
        caption=f"{PRIVATE} {ABOUT_CONSENSUS} {queries:,} queries.",
        legend="",
        series=(SHARES,),
        panels=(Panel("", bars),),
        x=Axis(""),
        y=Axis("share of the queries", limits=(0.0, 1.05 * max(point.y.median for point in bars))),
    )
    found: dict[str, tuple[Any, Figure]] = {agreeing.name: (charts.bars, agreeing)}
    if points:  # without noise every cost is infinite
        cost = Figure(
            name="cost",
            title="Privacy cost against labels bought",
            caption=f"{ABOUT_COSTS} It follows from what was released.",
            legend="group",
            series=_series((Panel("", points),)),
            panels=(Panel("", points),),
            x=Axis("labels bought", limits=(0.0, 1.05 * max(answers.answered, 1))),
            y=Axis(
                f"epsilon spent at delta {answers.scheme.delta:g}",
                limits=(0.0, 1.05 * max(point.y.median for point in points)),
            ),
        )
        found[cost.name] = (charts.lines, cost)
    return found


def write_figures(folder: Path, answers: Answers, shares: Integers) -> None:
    """Write the figures of one voting as SVG, with their captions as alternative text and in
    captions.txt.
    """
    captions = []
    for name, (draw, figure) in of_voting(answers, shares).items():
        said = escape(f"{figure.title}. {figure.caption}", quote=True)
        drawn = paper.image(draw, figure, "svg").decode("utf-8")
        named = drawn.replace("<svg ", f'<svg role="img" aria-label="{said}" ', 1)
        (folder / f"{name}.svg").write_text(named, encoding="utf-8")
        captions.append(f"{name}.svg: {figure.title}\n\n{figure.caption}\n")
    (folder / CAPTIONS).write_text("\n".join(captions), encoding="utf-8")


def _having(sweep: SweepResults, kept: str, *of: Any) -> list[tuple[tuple[Any, ...], list[Result]]]:
    """Groups of the results of which the plan keeps an attribute as a list that is not empty."""
    return grouped([one for one in sweep.done if _kept(one, kept)], *of)


def _kept(result: Result, name: str) -> list[Any]:
    value = loaded(result.extra).get(name) if f'"{name}"' in result.extra else None
    return value if isinstance(value, list) else []


def _cost_points(results: Sequence[Result]) -> tuple[Point, ...]:
    """A point for each group and place in the votings, over seeds; votings may have other numbers
    of places.
    """
    curves, points = [_kept(one, COSTS) for one in results], []
    last = min(map(len, curves)) - 1
    for place in range(last + 1):
        at = [curve[round(place * (len(curve) - 1) / max(last, 1))] for curve in curves]
        for group in at[0]["epsilon"]:
            epsilons = [
                value for cost in at if (value := number(cost["epsilon"].get(group))) is not None
            ]
            if epsilons:
                points.append(
                    Point(
                        group,
                        mean(cost["answered"] for cost in at),
                        spread(epsilons),
                        tuple(results),
                    )
                )
    return tuple(sorted(points, key=lambda point: point.series))


def _consensus_points(labelled: Sequence[tuple[tuple[str], Sequence[Result]]]) -> Iterator[Point]:
    """The share of the queries in each bin, by label."""
    for (name,), results in labelled:
        kept = [_kept(one, CONSENSUS) for one in results]
        for i in range(BINS):
            yield Point(
                name, 100 * (i + 1) / BINS, spread([s[i] / sum(s) for s in kept]), tuple(results)
            )


def _bin(place: int) -> str:
    return f"{100 * place // BINS} to {100 * (place + 1) // BINS} %"


def _reading_points(sweep: SweepResults, results: Sequence[Result]) -> Iterator[Point]:
    """Accuracy by learner and limit, over seeds."""
    for (label,), group in grouped(results, sweep.label):
        of_limits: dict[str, list[tuple[float, Result]]] = {}
        for one in group:
            for reading in _kept(one, READINGS):
                accuracy = (
                    number(reading.get("test_accuracy")) if isinstance(reading, Mapping) else None
                )
                if accuracy is not None:
                    of_limits.setdefault(str(reading["limit"]), []).append((accuracy, one))
        for limit, measured in of_limits.items():
            values, having = zip(*measured, strict=True)
            yield Point(label, limit, spread(values), having)


def _series(panels: Sequence[Panel]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(point.series for panel in panels for point in panel.points))
