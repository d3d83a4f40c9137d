"""Figures of class sizes, run times and the attributes of fitted learners that a plan keeps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from statistics import median
from typing import Any

from tacit.compute.timing import SCORING, SELECTION, SET_UP, SOLVING
from tacit.experiments.results import PREDICTION, REST, TRIALS, Result
from tacit.models.metrics import spread
from tacit.report.captions import about_seeds, caption
from tacit.report.figure import Axis, Figure, Mean, MeansPanel, Panel, Point, axis_for
from tacit.report.groups import (
    PLACE,
    SweepResults,
    budget_of,
    budget_words,
    budgets,
    grouped,
    loaded,
    number,
)
from tacit.report.words import imbalance_words, ratio_words, slug, unit_words

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

# the axis of trials by their number
TRIAL = "number of the trial"

# fields of a step of CoinPress that are drawn
STEP_FIELDS = ("radius", "norm")

# test rows in a panel of means; more make a page slow and hide each other
MOST_ROWS = 1000


def class_sizes(sweep: SweepResults) -> Iterator[Figure]:
    """Training records of each class, the largest first: a panel for each data set, a line for each
    imbalance.
    """
    about = "Training records of each class"
    yield from _size_figure(
        sweep, "Class sizes of the training data", about, "training records", shares=False
    )


def class_shares(sweep: SweepResults) -> Iterator[Figure]:
    """Share of the training records that each class has, drawn as `class_sizes` is."""
    about = "Share of the training records that each class has"
    yield from _size_figure(
        sweep, "Shares of training records by class", about, "share of records", shares=True
    )


def _size_figure(
    sweep: SweepResults, title: str, about: str, y_title: str, *, shares: bool
) -> Iterator[Figure]:
    """Yield the figure of class sizes, or of shares, if any result has class sizes."""
    # sizes may be missing, or all 0
    with_sizes = [result for result in sweep.done if any(result.class_sizes or ())]
    panels = []
    for (data,), results in grouped(with_sizes, "data"):
        points: list[Point] = []
        for (ratio,), group in grouped(results, "imbalance"):
            points += _size_points(ratio, group, shares=shares)
        panels.append(Panel(data, tuple(points)))
    if not panels:
        return

    about += (
        ", the largest first; classes without records are left out. Class sizes are private, and"
        " shown because the data are for research."
    )
    yield Figure(
        name="class-shares" if shares else "class-sizes",
        title=title,
        caption=caption(about, panels),
        legend="imbalance",
        series=tuple(ratio_words(ratio) for (ratio,), _ in grouped(with_sizes, "imbalance")),
        panels=tuple(panels),
        x=Axis("class, by size (1 is the largest)", whole=True),
        y=axis_for(y_title, panels),
    )


def _size_points(ratio: float | None, results: Sequence[Result], *, shares: bool) -> list[Point]:
    """A point for each rank that has records: their number, or their share."""
    sizes_by_result: list[list[float]] = []
    for result in results:
        sizes = sorted(result.class_sizes or [], reverse=True)
        n_records = sum(sizes) if shares else 1
        sizes_by_result.append([size / n_records for size in sizes])

    points = []
    # results may differ in their number of classes; a class that one of them lacks has no records
    for rank, sizes_at_rank in enumerate(zip_longest(*sizes_by_result, fillvalue=0.0), 1):
        size_spread = spread(sizes_at_rank)
        if size_spread.median > 0:
            points.append(Point(ratio_words(ratio), rank, size_spread, tuple(results)))
    return points


def run_times(sweep: SweepResults) -> Iterator[Figure]:
    """Seconds of the phases of a fit where cells were timed, and of whole fits elsewhere; a panel
    for each data set.
    """
    with_phases = []
    without_phases = []
    for result in sweep.done:
        if loaded(result.phases):
            with_phases.append(result)
        elif number(result.fit_seconds):
            without_phases.append(result)

    # with phases, the series of a point is the phase
    panels = _time_panels(sweep, with_phases)
    phases = {point.series for panel in panels for point in panel.points}
    ordered_phases = [name for name in PHASES if name in phases] + sorted(phases - set(PHASES))
    about = (
        f"Seconds of each phase of a fit, and of the prediction of the test rows, {OVER_ALL}."
        f" {TIMED}"
    )
    yield from _times("Run times by phase", about, "phase", tuple(ordered_phases), panels)

    # without phases, it is the learner
    panels = _time_panels(sweep, without_phases)
    about = f"Seconds of a fit {OVER_ALL}. {NOT_TIMED}"
    yield from _times("Run times", about, "learner", sweep.series, panels)


def _time_panels(sweep: SweepResults, results: Sequence[Result]) -> tuple[Panel, ...]:
    panels = []
    for (data, encoder), group in grouped(results, "data", "encoder"):
        panels.append(Panel(f"{data}, {encoder}", tuple(_time_points(sweep, group))))
    return tuple(panels)


def _time_points(sweep: SweepResults, results: Sequence[Result]) -> list[Point]:
    """A point for each learner and phase, the whole fit among them; a point for each learner
    without phases.

    The series is the phase, or the learner where there are no phases; x is the learner.
    """
    points = []
    for (label,), group in grouped(results, sweep.label):
        phases_by_result = [loaded(result.phases) for result in group]
        series_of_fit = label
        if any(phases_by_result):
            series_of_fit = WHOLE

        # seconds by series
        seconds_by_result: list[dict[str, Any]] = []
        for result, phases in zip(group, phases_by_result, strict=True):
            seconds_by_result.append({series_of_fit: result.fit_seconds} | phases)

        all_series = {series for seconds in seconds_by_result for series in seconds}
        for series in sorted(all_series):
            values = [seconds.get(series, 0.0) for seconds in seconds_by_result]
            # A phase that took no time in any fit gets no point.
            if max(values) > 0:
                points.append(Point(series, label, spread(values), tuple(group)))
    return points


def _times(
    title: str, about: str, legend: str, series: tuple[str, ...], panels: tuple[Panel, ...]
) -> Iterator[Figure]:
    if not panels:
        return

    # a result may lack its host
    machines = {_machine(result) for panel in panels for result in panel.results} - {""}
    machine_names = ", ".join(sorted(machines)) or "a machine that was not recorded"
    yield Figure(
        name=slug(title),
        title=title,
        caption=caption(f"{about} Measured on {machine_names}, one thread each.", panels),
        legend=legend,
        series=series,
        panels=panels,
        x=Axis("learner"),
        y=axis_for("seconds", panels, log=True),
    )


def _machine(result: Result) -> str:
    if not result.processor:
        return result.host
    return f"{result.host} ({result.processor})"


def trials(sweep: SweepResults) -> Iterator[Figure]:
    """Score of each trial of a search against its number, and against each parameter that it
    varied: a panel for each budget.
    """
    with_trials = [result for result in sweep.done if _trials(result)]
    for (data, encoder, unit, label, ratio), results in grouped(
        with_trials, *PLACE, sweep.label, "imbalance"
    ):
        place = f"{data}, {encoder}, {imbalance_words(ratio)}"
        for name in (TRIAL, *_searched(results)):
            panels = []
            # by the budget as planned, since an unpaid search has no cost that tells budgets apart
            for (budget,), group in grouped(results, "budget"):
                points = tuple(point for result in group for point in _trial_points(result, name))
                if points:
                    panels.append(Panel(budget_words(budget), points))
            if not panels:
                continue

            about = (
                "Share of the private records that each trial of a search gets right, as the search"
                f" scored it, against the {name}. Scores are private unless the search pays for"
                " them, and are shown because the data are for research."
            )
            yield Figure(
                name=slug("trials", name, label, data, encoder, imbalance_words(ratio), unit),
                title=f"{place}: trials of {label} against {name} ({unit_words(unit)})",
                caption=caption(about, panels),
                legend="seed",
                series=tuple(f"seed {seed}" for (seed,), _ in grouped(with_trials, "seed")),
                panels=tuple(panels),
                x=Axis(name, whole=name == TRIAL),
                y=Axis("score: share of training records"),
            )


def _trials(result: Result) -> list[tuple[dict[str, Any], float]]:
    """Return the parameters and the score of each trial, where a search kept them."""
    recorded = _attribute(result, TRIALS)
    if not isinstance(recorded, list) or not result.n_train:
        return []

    trials = []
    for trial in recorded:
        score = number(trial.get("score"))
        if score is not None:
            trials.append((trial.get("parameters", {}), score / result.n_train))
    return trials


def _searched(results: Sequence[Result]) -> list[str]:
    """Return the names of parameters of which trials had several numbers."""
    values: dict[str, set[float]] = {}
    for result in results:
        for parameters, _ in _trials(result):
            for name, value in parameters.items():
                if number(value) is not None:
                    values.setdefault(name, set()).add(value)
    return sorted(name for name, numbers in values.items() if len(numbers) > 1)


def _trial_points(result: Result, name: str) -> Iterator[Point]:
    """A point for each trial of one result: its number, or its value of a parameter, and its
    score.
    """
    for trial_number, (parameters, score) in enumerate(_trials(result), 1):
        x = float(trial_number) if name == TRIAL else number(parameters.get(name))
        if x is not None:
            yield Point(f"seed {result.seed}", x, spread([score]), (result,))


def steps(sweep: SweepResults) -> Iterator[Figure]:
    """Radius and norm of each step of CoinPress, where the plan keeps `steps_`: a line for each
    budget.
    """
    steps_by_key = {}
    with_steps = []
    for result in sweep.done:
        steps_of_result = _steps(result)
        if steps_of_result:
            steps_by_key[result.key] = steps_of_result
            with_steps.append(result)

    for (data, encoder, unit, label, ratio), results in grouped(
        with_steps, *PLACE, sweep.label, "imbalance"
    ):
        panels = _step_panels(results, steps_by_key)
        if not panels:
            continue

        place = f"{data}, {encoder}, {imbalance_words(ratio)}"
        # quantiles over seeds are drawn as a band
        about = (
            "Radius in which a mean was assumed, and norm of its estimate, after each step; where"
            f" there is one of each class, the median over classes. {about_seeds(panels, 'band')}"
        )
        yield Figure(
            name=slug("steps", label, data, encoder, imbalance_words(ratio), unit),
            title=f"{place}: steps of {label} ({unit_words(unit)})",
            caption=caption(about, panels),
            legend="budget",
            series=tuple(budget_words(name) for name, _ in budgets(with_steps)),
            panels=panels,
            x=Axis(f"step ({unit_words(unit)})", whole=True),
            y=axis_for("length, in rescaled rows", panels),
        )


def _step_panels(
    results: Sequence[Result], steps_by_key: Mapping[str, list[dict[str, float]]]
) -> tuple[Panel, ...]:
    """A panel for each field of the steps that any result has."""
    panels = []
    for name in STEP_FIELDS:
        points = _step_points(results, steps_by_key, name)
        if points:
            panels.append(Panel(name, points))
    return tuple(panels)


def _step_points(
    results: Sequence[Result], steps_by_key: Mapping[str, list[dict[str, float]]], name: str
) -> tuple[Point, ...]:
    """One field of each step by budget, over the results that have it."""
    points = []
    for budget, group in budgets(results):
        n_steps = max(len(steps_by_key[result.key]) for result in group)
        for step in range(n_steps):
            values = []
            results_with_step = []
            for result in group:
                steps_of_result = steps_by_key[result.key]
                if step < len(steps_of_result) and name in steps_of_result[step]:
                    values.append(steps_of_result[step][name])
                    results_with_step.append(result)
            if values:
                name_of_budget = budget_words(budget)
                results_of_point = tuple(results_with_step)
                points.append(Point(name_of_budget, step + 1, spread(values), results_of_point))
    return tuple(points)


def _steps(result: Result) -> list[dict[str, float]]:
    """The fields STEP_FIELDS of each step: numbers, or medians over the classes."""
    recorded_steps = _attribute(result, "steps_")
    if not isinstance(recorded_steps, list):
        return []

    steps = []
    for recorded_step in recorded_steps:
        step: dict[str, float] = {}
        for name in STEP_FIELDS:
            recorded = recorded_step.get(name)
            values_by_class = recorded if isinstance(recorded, list) else [recorded]
            finite_values = [value for value in values_by_class if number(value) is not None]
            if finite_values:
                step[name] = median(finite_values)
        steps.append(step)
    return steps


def _attribute(result: Result, name: str) -> Any:
    """Return an attribute that the plan keeps, if there is one."""
    # Parse the text only where the name is in it: texts may be long.
    if f'"{name}"' not in result.extra:
        return None
    return loaded(result.extra).get(name)


def means(sweep: SweepResults) -> Iterator[Figure]:
    """True and private class means in two dimensions, where the plan keeps `means_2d`: one seed of
    each budget.
    """
    with_means = [
        result for result in sweep.done if isinstance(_attribute(result, "means_2d"), dict)
    ]
    for (data, encoder, unit, label, ratio), results in grouped(
        with_means, *PLACE, sweep.label, "imbalance"
    ):
        # the result of each budget with the smallest seed
        shown = [min(group, key=lambda result: result.seed) for _, group in budgets(results)]
        panels = _cut([_means_panel(result) for result in shown])
        place = f"{data}, {encoder}, {imbalance_words(ratio)}"
        yield Figure(
            name=slug("means", label, data, encoder, imbalance_words(ratio), unit),
            title=f"{place}: means of {label} ({unit_words(unit)})",
            caption=caption(_about_means(shown, panels), panels),
            legend="test row",
            series=("right", "wrong"),
            panels=panels,
            x=Axis("first principal component of test rows", limits=_limits(panels, 0)),
            y=Axis("second principal component of test rows", limits=_limits(panels, 1)),
        )


def _limits(panels: Sequence[MeansPanel], coordinate: int) -> tuple[float, float] | None:
    """Return the ends of an axis over true means, test rows, and private means that lie at most
    half of their range beyond them.

    At tight budgets private means lie so far away that all else would be one dot. None without
    means and rows.
    """
    anchors = []
    private = []
    for panel in panels:
        anchors += [mean.true[coordinate] for mean in panel.means]
        anchors += [row[coordinate] for row in panel.rows]
        private += [mean.private[coordinate] for mean in panel.means]
    if not anchors:
        return None

    low = min(anchors)
    high = max(anchors)
    # 1 where all anchors are one number
    half = (high - low) / 2 or 1.0
    low = max(min(low, *private), low - half) if private else low
    high = min(max(high, *private), high + half) if private else high
    margin = (high - low) / 20 or 1.0
    return low - margin, high + margin


def _cut(panels: Sequence[MeansPanel]) -> tuple[MeansPanel, ...]:
    """Return panels whose lines end at the axes, with a note of how many private means lie
    outside.
    """
    limits = [_limits(panels, coordinate) for coordinate in (0, 1)]
    cut_panels = []
    for panel in panels:
        means = [mean._replace(edge=_edge(mean, limits)) for mean in panel.means]
        n_outside = sum(mean.edge is not None for mean in means)
        note = ""
        if n_outside:
            note = f"{n_outside} of {len(means)} private means outside"
        cut_panels.append(replace(panel, means=tuple(means), note=note))
    return tuple(cut_panels)


def _edge(mean: Mean, limits: Sequence[tuple[float, float] | None]) -> tuple[float, float] | None:
    """Return where the line from a true mean to its private mean leaves the axes; None if it stays
    inside.
    """
    # the part of the line that is inside; true means always are
    inside = 1.0
    for true, private, ends in zip(mean.true, mean.private, limits, strict=True):
        if ends is None:
            continue
        low, high = ends
        if private < low:
            inside = min(inside, (true - low) / (true - private))
        if private > high:
            inside = min(inside, (high - true) / (private - true))
    if inside == 1.0:
        return None

    (true_x, true_y), (private_x, private_y) = mean.true, mean.private
    return true_x + inside * (private_x - true_x), true_y + inside * (private_y - true_y)


def _about_outside(panels: Sequence[MeansPanel]) -> str:
    """Return the sentence on private means outside of the axes; empty if there are none."""
    distances = []
    for panel in panels:
        for mean in panel.means:
            if mean.edge is not None:
                distances.append(math.dist(mean.true, mean.private))
    if not distances:
        return ""
    return (
        " The axes end near the true means and the test rows; the private means outside, which"
        f" panels count, are {min(distances):.3g} to {max(distances):.3g} from their true means."
    )


def _about_means(results: Sequence[Result], panels: Sequence[MeansPanel]) -> str:
    """Return the sentences on a figure of class means."""
    # A learner may state of which rows its means are.
    statements = set()
    for result in results:
        rows = _attribute(result, "means_2d").get("of")
        if rows:
            statements.add(f" These are {rows}.")

    row_counts = sorted({len(panel.rows) for panel in panels})
    counts_in_words = " or ".join(map(str, row_counts))
    return (
        "Lines lead from the true mean of each class (ring) to its private mean (diamond)."
        f"{''.join(sorted(statements))} Beside them {counts_in_words} test rows, by"
        " whether they were classified right; one seed of each budget. True means are private, and"
        f" are shown because the data are public benchmarks.{_about_outside(panels)}"
    )


def _means_panel(result: Result) -> MeansPanel:
    """Return the means of a result, and at most MOST_ROWS test rows, evenly spaced."""
    means_2d = _attribute(result, "means_2d")
    means = []
    # not strict: the lists come from a file, and a mean without a partner is not drawn
    pairs = zip(means_2d.get("true", ()), means_2d.get("private", ()), strict=False)
    for class_index, (true, private) in enumerate(pairs):
        # the mean of a class without records is NaN
        if _finite(true) and _finite(private):
            means.append(Mean(class_index, tuple(true), tuple(private)))

    rows = [row for row in means_2d.get("points", ()) if _finite(row)]
    stride = max(1, math.ceil(len(rows) / MOST_ROWS))
    return MeansPanel(
        title=f"{budget_words(budget_of(result))}, seed {result.seed}",
        means=tuple(means),
        rows=tuple((x, y, bool(right)) for x, y, right in rows[::stride]),
        results=(result,),
    )


def _finite(row: Sequence[Any]) -> bool:
    return all(number(value) is not None for value in row)
