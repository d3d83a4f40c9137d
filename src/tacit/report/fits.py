"""Figures of class sizes, run times and the attributes of fitted learners that a plan keeps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from statistics import median
from typing import Any

from tacit.compute.timing import SCORING, SELECTION, SET_UP, SOLVING
from tacit.experiments.results import PREDICTION, REST, Result
from tacit.models.metrics import spread
from tacit.report.captions import about_seeds, caption
from tacit.report.figure import Axis, Figure, Mean, MeansPanel, Panel, Point, axis_for
from tacit.report.groups import PLACE, SweepResults, budget_of, budgets, grouped, loaded, number
from tacit.report.words import imbalance_words, slug, unit_words

WHOLE = "whole fit"
PHASES = (WHOLE, SCORING, SET_UP, SELECTION, SOLVING, REST, PREDICTION)
OVER_ALL = "over all budgets, imbalances and seeds: medians, and 25 to 75 % quantiles as lines"
TIMED = (
    "Scoring: all scores of the public rows. Set-up: sums over records from which the classifier is"
    " computed. Selection: the private choice of public rows. Solving: matrices and steps of"
    " descent. A first fit and prediction, which do not count, load the files and compile the code."
    " Nothing is taken from work that cells share."
)
NOT_TIMED = (
    "Work that cells share is left out of all but the first of them, and compilation is counted"
    " where it happened: a plan with timed: true measures every fit by itself."
)
STEPS = ("radius", "norm")  # fields that are drawn
MOST_ROWS = 1000  # in a panel of means; more make a page slow and hide each other


def class_sizes(sweep: SweepResults) -> Iterator[Figure]:
    """Training records of each class, the largest first: a panel for each data set, a line for each
    imbalance.
    """
    sized = [one for one in sweep.done if any(one.class_sizes or ())]
    panels = tuple(
        Panel(
            data,
            tuple(
                point
                for (ratio,), group in grouped(results, "imbalance")
                for point in _sizes(ratio, group)
            ),
        )
        for (data,), results in grouped(sized, "data")
    )
    if panels:
        about = (
            "Training records of each class, the largest first; classes without records are left"
            " out. Class sizes are private, and shown because the data are for research."
        )
        yield Figure(
            name="class-sizes",
            title="Class sizes of the training data",
            caption=caption(about, panels),
            legend="imbalance",
            series=tuple(f"{ratio:g}" for (ratio,), _ in grouped(sized, "imbalance")),
            panels=panels,
            x=Axis("class, by size", whole=True),
            y=axis_for("training records", panels),
        )


def _sizes(ratio: float, results: Sequence[Result]) -> list[Point]:
    """A point for each rank that has records."""
    ordered = [sorted(one.class_sizes or [], reverse=True) for one in results]
    medians = [spread(sizes) for sizes in zip_longest(*ordered, fillvalue=0)]
    return [
        Point(f"{ratio:g}", rank, size, tuple(results))
        for rank, size in enumerate(medians, 1)
        if size.median > 0
    ]


def run_times(sweep: SweepResults) -> Iterator[Figure]:
    """Seconds of the phases of a fit where cells were timed, and of whole fits elsewhere; a panel
    for each data set.
    """
    timed = [one for one in sweep.done if loaded(one.phases)]
    others = [one for one in sweep.done if not loaded(one.phases) and number(one.fit_seconds)]
    by_phase, whole = (
        tuple(
            Panel(f"{data}, {encoder}", tuple(_time_points(sweep, group)))
            for (data, encoder), group in grouped(results, "data", "encoder")
        )
        for results in (timed, others)
    )
    about = (
        f"Seconds of each phase of a fit, and of the prediction of the test rows, {OVER_ALL}."
        f" {TIMED}"
    )
    named = {point.series for panel in by_phase for point in panel.points}
    series = (*(name for name in PHASES if name in named), *sorted(named - set(PHASES)))
    yield from _times("Run times by phase", about, "phase", series, by_phase)
    yield from _times(
        "Run times", f"Seconds of a fit {OVER_ALL}. {NOT_TIMED}", "learner", sweep.series, whole
    )


def _time_points(sweep: SweepResults, results: Sequence[Result]) -> list[Point]:
    """A point for each learner and phase, the whole fit among them; a point for each learner
    without phases.
    """
    points = []
    for (label,), group in grouped(results, sweep.label):
        phases = [loaded(one.phases) for one in group]
        whole = WHOLE if any(phases) else label
        seconds = [{whole: one.fit_seconds} | each for one, each in zip(group, phases, strict=True)]
        for name in sorted({name for each in seconds for name in each}):
            values = [each.get(name, 0.0) for each in seconds]
            points += [Point(name, label, spread(values), tuple(group))] if max(values) > 0 else []
    return points


def _times(
    title: str, about: str, legend: str, series: tuple[str, ...], panels: tuple[Panel, ...]
) -> Iterator[Figure]:
    if panels:
        results = [one for panel in panels for one in panel.results]
        machines = sorted(
            {f"{one.host} ({one.processor})" if one.processor else one.host for one in results}
            - {""}
        )
        measured = (
            f"Measured on {', '.join(machines) or 'a machine that was not recorded'}, one thread"
            " each."
        )
        yield Figure(
            name=slug(title),
            title=title,
            caption=caption(f"{about} {measured}", panels),
            legend=legend,
            series=series,
            panels=panels,
            x=Axis(""),
            y=axis_for("seconds", panels, log=True),
        )


def steps(sweep: SweepResults) -> Iterator[Figure]:
    """Radius and norm of each step of CoinPress, where the plan keeps `steps_`: a line for each
    budget.
    """
    taken = {one.key: steps for one in sweep.done if (steps := _steps(one))}
    having = [one for one in sweep.done if one.key in taken]
    for (data, encoder, unit, label, ratio), results in grouped(
        having, *PLACE, sweep.label, "imbalance"
    ):
        panels = tuple(
            Panel(name, points) for name in STEPS if (points := _step_points(results, taken, name))
        )
        if not panels:
            continue
        about = (
            "Radius in which a mean was assumed, and norm of its estimate, after each step; where"
            f" there is one of each class, the median over classes. {about_seeds(panels, 'band')}"
        )
        yield Figure(
            name=slug("steps", label, data, encoder, imbalance_words(ratio), unit),
            title=(
                f"{data}, {encoder}, {imbalance_words(ratio)}: steps of {label}"
                f" ({unit_words(unit)})"
            ),
            caption=caption(about, panels),
            legend="budget",
            series=tuple(name for name, _ in budgets(having)),
            panels=panels,
            x=Axis(f"step ({unit_words(unit)})", whole=True),
            y=axis_for("length, in rescaled rows", panels),
        )


def _step_points(
    results: Sequence[Result], taken: Mapping[str, list[dict[str, float]]], name: str
) -> tuple[Point, ...]:
    """One field of each step by budget, over the results that have it."""
    points = []
    for budget, group in budgets(results):
        for place in range(max(len(taken[one.key]) for one in group)):
            having = [
                one
                for one in group
                if place < len(taken[one.key]) and name in taken[one.key][place]
            ]
            if having:
                values = [taken[one.key][place][name] for one in having]
                points.append(Point(budget, place + 1, spread(values), tuple(having)))
    return tuple(points)


def _steps(result: Result) -> list[dict[str, float]]:
    """The fields STEPS of each step: numbers, or medians over the classes."""
    steps_ = _attribute(result, "steps_")
    steps: list[dict[str, float]] = []
    for step in steps_ if isinstance(steps_, list) else []:
        steps.append({})
        for name in STEPS:
            value = step.get(name)
            finite = [
                one
                for one in (value if isinstance(value, list) else [value])
                if number(one) is not None
            ]
            steps[-1] |= {name: median(finite)} if finite else {}
    return steps


def _attribute(result: Result, name: str) -> Any:
    """An attribute that the plan keeps, if there is one; the text is parsed only where the name is
    in it.
    """
    return loaded(result.extra).get(name) if f'"{name}"' in result.extra else None


def means(sweep: SweepResults) -> Iterator[Figure]:
    """True and private class means in two dimensions, where the plan keeps `means_2d`: one seed of
    each budget.
    """
    having = [one for one in sweep.done if isinstance(_attribute(one, "means_2d"), dict)]
    for (data, encoder, unit, label, ratio), results in grouped(
        having, *PLACE, sweep.label, "imbalance"
    ):
        shown = [min(group, key=lambda one: one.seed) for _, group in budgets(results)]
        panels = tuple(map(_means_panel, shown))
        numbers = sorted({len(panel.rows) for panel in panels})
        of = sorted(
            {
                f" These are {what}."
                for one in shown
                if (what := _attribute(one, "means_2d").get("of"))
            }
        )
        about = (
            "Lines lead from the true mean of each class (ring) to its private mean"
            f" (diamond).{''.join(of)} Beside them {' or '.join(map(str, numbers))} test rows, by"
            " whether they were classified right; one seed of each budget. True means are private,"
            " and are shown because the data are public benchmarks."
        )
        yield Figure(
            name=slug("means", label, data, encoder, imbalance_words(ratio), unit),
            title=(
                f"{data}, {encoder}, {imbalance_words(ratio)}: means of {label}"
                f" ({unit_words(unit)})"
            ),
            caption=caption(about, panels),
            legend="test row",
            series=("right", "wrong"),
            panels=panels,
            x=Axis("first direction"),
            y=Axis("second direction"),
        )


def _means_panel(result: Result) -> MeansPanel:
    means_2d = _attribute(result, "means_2d")
    pairs = enumerate(zip(means_2d.get("true", ()), means_2d.get("private", ()), strict=False))
    rows = [row for row in means_2d.get("points", ()) if _finite(row)]
    return MeansPanel(
        title=f"{budget_of(result)}, seed {result.seed}",
        means=tuple(
            Mean(place, tuple(a), tuple(b)) for place, (a, b) in pairs if _finite(a) and _finite(b)
        ),
        rows=tuple(
            (x, y, bool(right)) for x, y, right in rows[:: math.ceil(len(rows) / MOST_ROWS) or 1]
        ),
        results=(result,),
    )


def _finite(row: Sequence[Any]) -> bool:
    return all(number(value) is not None for value in row)
