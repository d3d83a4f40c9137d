"""The drawings of a sweep: a function for each kind finds those that apply to its results.

Settings that differ in anything but the seed are never put together, and neither are guarantees under different units.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

from tacit.compute.timing import SCORING, SELECTION, SET_UP, SOLVING
from tacit.experiments.results import PREDICTION, REST, Result
from tacit.models.metrics import spread
from tacit.report.summary import (
    AXIS_ABOVE,
    BALANCED,
    MEASURES,
    MINORITY,
    MOST_POINTS,
    NO_PRIVACY,
    PLACE,
    STEPS,
    Axis,
    Drawing,
    Mean,
    Panel,
    Picture,
    Pictures,
    Point,
    Row,
    Sweep,
    budget_of,
    budgets,
    caption,
    cost_axis,
    grouped,
    imbalance,
    labels,
    loaded,
    log_axis,
    natural,
    not_private,
    number,
    parameters_of,
    points_of,
    price,
    provenance,
    seeds,
    slug,
    typical_amount,
    unit_words,
)

WHOLE = "whole fit"
PHASES = (WHOLE, SCORING, SET_UP, SELECTION, SOLVING, REST, PREDICTION)
OVER_ALL = "over all budgets, imbalances and seeds: medians, and 25 to 75 % quantiles as lines"
TIMED = (
    "Scoring: all scores of the public rows. Set-up: sums over records from which the classifier is computed. "
    "Selection: the private choice of public rows. Solving: matrices and steps of descent. A first fit and prediction, "
    "which do not count, load the files and compile the code. Nothing is taken from work that cells share."
)
NOT_TIMED = (
    "Work that cells share is left out of all but the first of them, and compilation is counted where it happened: a "
    "plan with timed: true measures every fit by itself."
)

# Accuracy against cost


def accuracy(sweep: Sweep) -> list[Drawing]:
    """Balanced accuracy of every learner against rho, or epsilon where there is no rho; a panel per imbalance."""
    return _against_cost(sweep, BALANCED)


def minority(sweep: Sweep) -> list[Drawing]:
    """The same of the 25 % smallest classes."""
    return _against_cost(sweep, MINORITY)


def _against_cost(sweep: Sweep, measure: str) -> list[Drawing]:
    drawings = []
    for (data, encoder, unit), cells in grouped(sweep.done, *PLACE):
        for kind, private, flat in _by_cost(sweep, cells):
            panels = _cost_panels(private, flat, sweep.label, measure)
            if panels:
                drawing = Drawing(
                    name=slug(MEASURES[measure], data, encoder, unit, kind),
                    title=f"{data}, {encoder}: {MEASURES[measure]} against {kind} ({unit_words(unit)})",
                    caption=caption(_about_cost(measure, kind, panels), panels),
                    legend="learner",
                    series=sweep.series,
                    panels=panels,
                    x=cost_axis(kind, unit, private),
                    y=Axis(MEASURES[measure], limits=(0, 1)),
                )
                drawings.append(drawing)
    return drawings


def _by_cost(sweep: Sweep, cells: Sequence[Result]) -> list[tuple[str, list[Result], list[Result]]]:
    """For rho, and epsilon where there is no rho: private cells, and those without privacy to compare with.

    What is not private goes with its learner; the first figure takes that of learners which are in none.
    """
    groups = grouped([cell for cell in cells if price(cell)], price)
    drawn = {sweep.label(cell) for _, private in groups for cell in private}
    found = []
    for position, ((kind,), private) in enumerate(groups):
        here = {sweep.label(cell) for cell in private} | (set(sweep.series) - drawn if position == 0 else set())
        found.append((kind, private, [cell for cell in cells if not_private(cell) and sweep.label(cell) in here]))
    return found


def _about_cost(measure: str, kind: str, panels: Sequence[Panel]) -> str:
    about = [f"{MEASURES[measure].capitalize()} on the test set against {kind}."]
    about += ["The minority are the 25 % smallest training classes."] if measure == MINORITY else []
    about += [seeds(panels, "band")]
    about += ["Thin dashes: the same learners without privacy."] if any(panel.flat for panel in panels) else []
    about += [AXIS_ABOVE] if kind == "rho" else []
    return " ".join(about)


def _cost_panels(
    cells: Sequence[Result], flat: Sequence[Result], series: Callable[[Result], str], measure: str
) -> tuple[Panel, ...]:
    """A panel for each imbalance, where there are any values."""
    found = []
    for (ratio,), own in grouped(cells, "imbalance"):
        beside = [cell for cell in flat if cell.imbalance == ratio]
        points = points_of(own, series, "budget", typical_amount, measure)
        across = points_of(beside, series, budget_of, lambda _: NO_PRIVACY, measure)
        found += [Panel(imbalance(ratio), points, across)] if points else []
    return tuple(found)


# Parameters


def best_parameter(sweep: Sweep) -> list[Drawing]:
    """A line for each value of a method's only parameter that varies, and which value was best at each cost."""
    drawings = []
    for (method,), family in grouped(sweep.done, "method"):
        name = _only_varying([parameters_of(cell.parameters) for cell in family])
        if name is None:
            continue
        private = [cell for cell in family if price(cell)]
        for key, cells in grouped(private, *PLACE, price, "public", "public_rows"):
            panels = _cost_panels(cells, (), partial(_value, name=name), BALANCED)
            if len({point.series for panel in panels for point in panel.points}) > 1:
                drawings.append(_parameter_drawing(method, name, key, panels, cells))
    return drawings


def _parameter_drawing(
    method: str, name: str, key: tuple[Any, ...], panels: tuple[Panel, ...], cells: Sequence[Result]
) -> Drawing:
    data, encoder, unit, kind, public, rows = key
    given = "" if public is None else f", public set {public}" + ("" if rows is None else f", {rows} rows")
    about = (
        f"Balanced accuracy of {method} for each {name}. {seeds(panels, 'band')} Rings, and the values named "
        "below: the best median at each cost. It is picked on the test set, which is tuning that nobody paid for."
    )
    about += f" {AXIS_ABOVE}" if kind == "rho" else ""
    chosen = tuple(Panel(panel.title, panel.points, best=best(panel.points)) for panel in panels)
    return Drawing(
        name=slug("best", name, method, data, encoder, public, rows, unit, kind),
        title=f"{data}, {encoder}: best {name} of {method} against {kind}{given} ({unit_words(unit)})",
        caption=caption(about, panels),
        legend=name,
        series=tuple(sorted({point.series for panel in panels for point in panel.points}, key=natural)),
        panels=chosen,
        x=cost_axis(kind, unit, cells),
        y=Axis(MEASURES[BALANCED], limits=(0, 1)),
    )


def best(points: Sequence[Point]) -> tuple[Point, ...]:
    """At each budget the point with the highest median, the first of equals."""
    found: dict[str, Point] = {}
    for point in sorted(points, key=lambda point: natural(point.series)):
        budget = point.cells[0].budget
        if budget not in found or point.y.median > found[budget].y.median:
            found[budget] = point
    return tuple(sorted(found.values(), key=lambda point: natural(point.x)))


def _only_varying(parameters: Sequence[Mapping[str, Any]]) -> str | None:
    names = {name for one in parameters for name in one}
    varying = [name for name in names if len({one.get(name) for one in parameters}) > 1]
    return varying[0] if len(varying) == 1 else None


def _value(cell: Result, name: str) -> str:
    return str(parameters_of(cell.parameters).get(name, "default"))


# Public rows, public sets, encoders


def public_rows(sweep: Sweep) -> list[Drawing]:
    """Accuracy against the number of public rows, for learners that had several; a panel per budget."""
    drawings = _against(sweep, "public_rows", "number of public rows", "band")
    rows = [cell.public_rows for cell in sweep.done if cell.public_rows]
    return [replace(drawing, x=log_axis(drawing.x.title, rows)) for drawing in drawings]


def public_sets(sweep: Sweep) -> list[Drawing]:
    """Accuracy by public set, for learners that had several; a panel per budget."""
    return _against(sweep, "public", "public set", "bar")


def encoders(sweep: Sweep) -> list[Drawing]:
    """Accuracy by encoder, where a data set has several; a panel per budget."""
    return _against(sweep, "encoder", "encoder", "bar")


def _against(sweep: Sweep, what: str, words: str, spreads: str) -> list[Drawing]:
    """Accuracy against a field other than the budget, of learners that have several values of it."""
    names = labels(sweep.done, without=what)
    looks = (*sweep.series, *sorted(set(names.values()) - set(sweep.series), key=natural))
    beside = [one for one in ("data", "encoder") if one != what]
    drawings = []
    for key, cells in grouped(sweep.done, *beside, "imbalance", "unit"):
        *where, ratio, unit = key
        panels = _budget_panels(cells, names, what)
        if not panels:
            continue
        drawing = Drawing(
            name=slug(words, *where, f"imbalance {ratio:g}", unit),
            title=f"{', '.join(where)}, {imbalance(ratio)}: accuracy by {words} ({unit_words(unit)})",
            caption=caption(f"Balanced accuracy on the test set by {words}. {seeds(panels, spreads)}", panels),
            legend="learner",
            series=looks,
            panels=panels,
            x=Axis(f"{words} ({unit_words(unit)})"),
            y=Axis(MEASURES[BALANCED], limits=(0, 1)),
        )
        drawings.append(drawing)
    return drawings


def _budget_panels(cells: Sequence[Result], names: Mapping[str, str], what: str) -> tuple[Panel, ...]:
    """A panel for each budget, of the learners that have several values of a field there."""
    found = []
    for budget, own in budgets([cell for cell in cells if getattr(cell, what)]):
        lines = [line for _, line in grouped(own, lambda cell: names[cell.key])]
        several = [cell for line in lines if len({getattr(cell, what) for cell in line}) > 1 for cell in line]
        points = points_of(several, lambda cell: names[cell.key], what, lambda here: getattr(here[0], what), BALANCED)
        if points:
            found.append(Panel(budget, points))
    return tuple(found)


# Class sizes, run times, and what learners keep


def class_sizes(sweep: Sweep) -> list[Drawing]:
    """Training records of each class, the largest first: a panel for each data set, a line for each imbalance."""
    sized = [cell for cell in sweep.done if any(cell.class_sizes or ())]
    panels = tuple(
        Panel(data, tuple(point for (ratio,), own in grouped(cells, "imbalance") for point in _sizes(ratio, own)))
        for (data,), cells in grouped(sized, "data")
    )
    if not panels:
        return []
    about = (
        "Training records of each class, the largest first; classes without records are left out. Class sizes are "
        "private, and shown because the data are for research."
    )
    drawing = Drawing(
        name="class-sizes",
        title="Class sizes of the training data",
        caption=caption(about, panels),
        legend="imbalance",
        series=tuple(f"{ratio:g}" for (ratio,), _ in grouped(sized, "imbalance")),
        panels=panels,
        x=Axis("class, by size", whole=True),
        y=_log_if_wide("training records", panels),
    )
    return [drawing]


def _sizes(ratio: float, cells: Sequence[Result]) -> list[Point]:
    ordered = [sorted(cell.class_sizes or [], reverse=True) for cell in cells]
    ranks = [[sizes[rank] for sizes in ordered if rank < len(sizes)] for rank in range(max(map(len, ordered)))]
    spreads = [spread(sizes) for sizes in ranks]
    return [Point(f"{ratio:g}", rank, y, tuple(cells)) for rank, y in enumerate(spreads, 1) if y.median > 0]


def run_times(sweep: Sweep) -> list[Drawing]:
    """Seconds of the phases of a fit by learner where cells were timed, else of a fit; a panel for each data set."""
    timed = [cell for cell in sweep.done if loaded(cell.phases)]
    keys = {cell.key for cell in timed}
    others = [cell for cell in sweep.done if cell.key not in keys and number(cell.fit_seconds)]
    return [*_phases(sweep, timed), *_whole_fits(sweep, others)]


def _whole_fits(sweep: Sweep, cells: Sequence[Result]) -> list[Drawing]:
    panels = tuple(
        Panel(
            f"{data}, {encoder}", points_of(own, sweep.label, "unit", lambda here: sweep.label(here[0]), "fit_seconds")
        )
        for (data, encoder), own in grouped(cells, "data", "encoder")
    )
    about = f"Seconds of a fit {OVER_ALL}. {NOT_TIMED} {_machines(cells)}"
    return _run_times(panels, "Run times", about, "learner", sweep.series)


def _phases(sweep: Sweep, cells: Sequence[Result]) -> list[Drawing]:
    panels = tuple(
        Panel(f"{data}, {encoder}", tuple(_phase_points(sweep, own)))
        for (data, encoder), own in grouped(cells, "data", "encoder")
    )
    named = {point.series for panel in panels for point in panel.points}
    series = (*(name for name in PHASES if name in named), *sorted(named - set(PHASES)))
    about = f"Seconds of each phase of a fit, and of the prediction of the test rows, {OVER_ALL}. {TIMED}"
    return _run_times(panels, "Run times by phase", f"{about} {_machines(cells)}", "phase", series)


def _phase_points(sweep: Sweep, cells: Sequence[Result]) -> list[Point]:
    """A point for each learner and phase, also for the whole of the fit."""
    found = []
    for (label,), own in grouped(cells, sweep.label):
        seconds = {cell.key: {WHOLE: cell.fit_seconds} | loaded(cell.phases) for cell in own}
        for name in sorted({name for each in seconds.values() for name in each}):
            values = [seconds[cell.key].get(name, 0.0) for cell in own]
            if max(values) > 0:
                found.append(Point(name, label, spread(values), tuple(own)))
    return found


def _machines(cells: Sequence[Result]) -> str:
    """Where times were measured."""
    machines = {f"{cell.host} ({cell.processor})" if cell.processor else cell.host for cell in cells}
    named = sorted(machine for machine in machines if machine)
    return f"Measured on {', '.join(named) or 'a machine that was not recorded'}, one thread each."


def _run_times(
    panels: tuple[Panel, ...], title: str, about: str, legend: str, series: tuple[str, ...]
) -> list[Drawing]:
    if not panels:
        return []
    drawing = Drawing(
        name=slug(title),
        title=title,
        caption=caption(about, panels),
        legend=legend,
        series=series,
        panels=panels,
        x=Axis(""),
        y=log_axis("seconds", _ends(panels)),
    )
    return [drawing]


def steps(sweep: Sweep) -> list[Drawing]:
    """Radius and norm of each step of CoinPress, where `steps_` was kept: a line for each budget."""
    taken = {cell.key: steps for cell in sweep.done if (steps := _steps(cell))}
    kept = [cell for cell in sweep.done if cell.key in taken]
    drawings = []
    for (data, encoder, unit, label, ratio), cells in grouped(kept, *PLACE, sweep.label, "imbalance"):
        panels = tuple(
            Panel(name, points) for name in ("radius", "norm") if (points := _step_points(cells, taken, name))
        )
        if not panels:
            continue
        about = (
            "Radius in which a mean was assumed, and norm of its estimate, after each step; where there is one of each "
            f"class, the median over classes. {seeds(panels, 'band')}"
        )
        drawing = Drawing(
            name=slug("steps", label, data, encoder, f"imbalance {ratio:g}", unit),
            title=f"{data}, {encoder}, {imbalance(ratio)}: steps of {label} ({unit_words(unit)})",
            caption=caption(about, panels),
            legend="budget",
            series=tuple(name for name, _ in budgets(kept)),
            panels=panels,
            x=Axis(f"step ({unit_words(unit)})", whole=True),
            y=_log_if_wide("length, in rescaled rows", panels),
        )
        drawings.append(drawing)
    return drawings


def _step_points(cells: Sequence[Result], taken: Mapping[str, list[dict[str, float]]], name: str) -> tuple[Point, ...]:
    """A field of each step by budget, over the cells that took it."""
    found = []
    for budget, own in budgets(cells):
        for place in range(max(len(taken[cell.key]) for cell in own)):
            at = {cell.key: taken[cell.key][place].get(name) for cell in own if place < len(taken[cell.key])}
            values = [value for value in at.values() if value is not None]
            if values:
                with_value = tuple(cell for cell in own if at.get(cell.key) is not None)
                found.append(Point(budget, place + 1, spread(values), with_value))
    return tuple(found)


def _steps(cell: Result) -> list[dict[str, float]]:
    """The fields of each step: a step is an object, or a list in the order of `STEPS`."""
    kept = _kept(cell, "steps_")
    steps = kept if isinstance(kept, list) else []
    named = [step if isinstance(step, dict) else dict(zip(STEPS, step, strict=False)) for step in steps]
    return [{name: value for name in STEPS if (value := _middle(step.get(name))) is not None} for step in named]


def _kept(cell: Result, name: str) -> Any:
    """What a cell kept under a name, if anything; most kept nothing, and need not be read."""
    return loaded(cell.extra).get(name) if f'"{name}"' in cell.extra else None


def _middle(value: Any) -> float | None:
    """A number, or the median of those in a list."""
    values = [one for item in (value if isinstance(value, list) else [value]) if (one := number(item)) is not None]
    return median(values) if values else None


def means(sweep: Sweep) -> list[Pictures]:
    """True and private class means in two dimensions, where `means_2d` was kept: one seed of each budget."""
    kept = [cell for cell in sweep.done if isinstance(_kept(cell, "means_2d"), dict)]
    drawings = []
    for (data, encoder, unit, label, ratio), cells in grouped(kept, *PLACE, sweep.label, "imbalance"):
        shown = [min(own, key=lambda cell: cell.seed) for _, own in budgets(cells)]
        panels = tuple(map(_picture, shown))
        numbers = sorted({len(panel.points) for panel in panels})
        of = sorted({f" These are {said}." for cell in shown if (said := _kept(cell, "means_2d").get("of"))})
        about = (
            f"Lines lead from the true mean of each class (ring) to its private mean (diamond).{''.join(of)} Beside "
            f"them {' or '.join(map(str, numbers))} test rows, by whether they were classified right; one seed of each "
            "budget. True means are private, and are shown because the data are public benchmarks."
        )
        drawing = Pictures(
            name=slug("means", label, data, encoder, f"imbalance {ratio:g}", unit),
            title=f"{data}, {encoder}, {imbalance(ratio)}: means of {label} ({unit_words(unit)})",
            caption=" ".join([about, *provenance(shown)]),
            panels=panels,
        )
        drawings.append(drawing)
    return drawings


def _picture(cell: Result) -> Picture:
    kept = _kept(cell, "means_2d")
    pairs = enumerate(zip(kept.get("true", ()), kept.get("private", ()), strict=False))
    points = [row for row in kept.get("points", ()) if _finite(row)]
    return Picture(
        title=f"{budget_of(cell)}, seed {cell.seed}",
        means=tuple(Mean(place, tuple(a), tuple(b)) for place, (a, b) in pairs if _finite(a) and _finite(b)),
        points=tuple((x, y, bool(right)) for x, y, right in points[:: math.ceil(len(points) / MOST_POINTS) or 1]),
        cell=cell,
    )


def _finite(row: Sequence[Any]) -> bool:
    return all(number(value) is not None for value in row)


def _log_if_wide(title: str, panels: Sequence[Panel]) -> Axis:
    """An axis that is logarithmic where values span more than a factor of twenty."""
    ends = _ends(panels)
    return log_axis(title, ends) if 0 < 20 * min(ends) < max(ends) else Axis(title)


def _ends(panels: Sequence[Panel]) -> list[float]:
    return [value for panel in panels for point in panel.points for value in (point.y.low, point.y.high)]


# Tables


def tables(sweep: Sweep) -> list[tuple[str, list[Row]]]:
    """A table for each data set, encoder and imbalance, with a title: a row for each learner and budget."""
    found = []
    for (data, encoder, ratio), cells in grouped(sweep.done, "data", "encoder", "imbalance"):
        rows = [
            Row(label, budget, tuple(seeds))
            for (label,), own in grouped(cells, sweep.label)
            for budget, seeds in budgets(own)
        ]
        found.append((f"{data}, {encoder}, {imbalance(ratio)}", rows))
    return found
