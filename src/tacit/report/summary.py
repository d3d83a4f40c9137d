"""What the figures of a sweep show, apart from how they are drawn.

A function from a sweep to drawings finds those of one kind that apply to its results. Settings that differ in anything
but the seed are never put together, and neither are guarantees under different units.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import median
from typing import Any

from tacit.experiments.results import Result
from tacit.learners.common.metrics import Spread, spread
from tacit.privacy.unit import Unit

UNITS = {
    Unit.ADD_REMOVE: "add/remove one record",
    Unit.REPLACE: "replace one record",
    Unit.CHANGE_LABEL: "change one label",
}
TUNING = {
    "none": "parameters fixed before any data",
    "paid": "parameters tuned on private records within the guarantee",
    "unpaid": "parameters tuned outside the guarantee",
}
BALANCED, MINORITY = "balanced_accuracy", "minority_accuracy"
MEASURES = {BALANCED: "balanced accuracy", MINORITY: "minority accuracy"}
TELLING = ("method", "parameters", "tuning", "public", "public_rows", "unit", "delta")
"""Fields that are named beside a learner where it has more than one value of them."""
PLACE = ("data", "encoder", "unit")
NO_PRIVACY = "no privacy"
NOISE = "Noise was drawn for research, from seeds, not for a release."
AXIS_ABOVE = "The axis above is the papers' rough epsilon e, where rho = e²/2: an axis, not a guarantee."
MOST_POINTS = 1000  # of a picture; more make a page slow and hide each other
STEPS = ("radius", "clip", "noise", "norm")


@dataclass(frozen=True)
class Point:
    """One setting over its seeds."""

    series: str
    x: float | str
    y: Spread
    cells: tuple[Result, ...]


@dataclass(frozen=True)
class Panel:
    """One pair of axes: points of several series, what is not private as flat lines, and the best points."""

    title: str
    points: tuple[Point, ...]
    flat: tuple[Point, ...] = ()
    best: tuple[Point, ...] = ()

    @property
    def names(self) -> list[str]:
        """What is on the x axis, where that is names, in order."""
        return sorted({str(point.x) for point in self.points}, key=natural)


@dataclass(frozen=True)
class Axis:
    """What an axis says and where it ends; None lets the data decide."""

    title: str
    log: bool = False
    limits: tuple[float, float] | None = None
    rough: bool = False
    """Whether the rough epsilon is shown above."""
    whole: bool = False
    """Whether there is nothing between whole numbers."""


@dataclass(frozen=True)
class Drawing:
    """All that a figure shows."""

    name: str
    """Of its file and anchor."""
    title: str
    caption: str
    legend: str
    """What the series are."""
    series: tuple[str, ...]
    """All names that looks are dealt to, in order; the drawing may show some of them."""
    panels: tuple[Panel, ...]
    x: Axis
    y: Axis

    @property
    def shown(self) -> tuple[str, ...]:
        """The series that it shows, in order."""
        names = {point.series for panel in self.panels for point in (*panel.points, *panel.flat)}
        return tuple(name for name in self.series if name in names)


@dataclass(frozen=True)
class Mean:
    """Where the mean of a class is, and where noise took it, in two dimensions."""

    number: int
    """Of the class."""
    true: tuple[float, float]
    private: tuple[float, float]


@dataclass(frozen=True)
class Picture:
    """Class means before and after noise, and test rows, in two dimensions."""

    title: str
    means: tuple[Mean, ...]
    points: tuple[tuple[float, float, bool], ...]
    """With whether the row was classified right."""
    cell: Result


@dataclass(frozen=True)
class Pictures:
    """Pictures side by side."""

    name: str
    title: str
    caption: str
    panels: tuple[Picture, ...]


@dataclass(frozen=True)
class Row:
    """One line of the tables: a learner at a budget, over seeds."""

    label: str
    budget: str
    cells: tuple[Result, ...]

    def spread(self, measure: str) -> Spread | None:
        """Of a measure over the seeds, where there is any."""
        values = [value for cell in self.cells if (value := number(getattr(cell, measure))) is not None]
        return spread(values) if values else None


@dataclass(frozen=True)
class Sweep:
    """The results of a sweep, and what their learners are called."""

    done: tuple[Result, ...]
    failed: tuple[Result, ...]
    labels: Mapping[str, str] = field(repr=False)
    """Of each cell, by its key."""

    @classmethod
    def of(cls, results: Sequence[Result]) -> Sweep:
        """Sort out which cells were done and what to call them."""
        done = tuple(one for one in results if one.status == "done")
        return cls(done, tuple(one for one in results if one.status != "done"), labels(done))

    def label(self, cell: Result) -> str:
        """What a cell's learner is called."""
        return self.labels[cell.key]

    @property
    def series(self) -> tuple[str, ...]:
        """All labels in order, so that a learner looks the same in every figure."""
        return tuple(sorted(set(self.labels.values()), key=natural))


# Names, order and groups


def natural(value: Any) -> tuple[Any, ...]:
    """Key for sorting: numbers by value, also those inside text; None first."""
    if value is None:
        return (0,)
    if isinstance(value, int | float):
        return (1, value)
    parts = re.split(r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)", str(value))
    return (2, *(float(part) if place % 2 else part for place, part in enumerate(parts)))


def grouped(
    results: Iterable[Result], *of: str | Callable[[Result], Any]
) -> list[tuple[tuple[Any, ...], list[Result]]]:
    """Results by the values of fields or functions, in natural order."""
    groups: dict[tuple[Any, ...], list[Result]] = {}
    for one in results:
        key = tuple(getattr(one, item) if isinstance(item, str) else item(one) for item in of)
        groups.setdefault(key, []).append(one)
    return sorted(groups.items(), key=lambda group: [natural(value) for value in group[0]])


def labels(results: Sequence[Result], without: str = "") -> dict[str, str]:
    """What to call the learner of each cell, by its key: its name, and whatever else it has more than one of.

    Parameters
    ----------
    results : sequence of Result
    without : str, optional
        A field that need not be told apart, as it is on an axis.
    """
    found = {}
    for (name,), own in grouped(results, "learner"):
        telling = [one for one in TELLING if one != without and len({getattr(cell, one) for cell in own}) > 1]
        for cell in own:
            found[cell.key] = ", ".join([name, *(_in_words(one, getattr(cell, one)) for one in telling)])
    return found


def _in_words(name: str, value: Any) -> str:
    if name == "parameters":
        return " ".join(f"{key}={text}" for key, text in parameters_of(value).items()) or "default parameters"
    if name == "public_rows":
        return "all public rows" if value is None else f"{value} public rows"
    if value is None:
        return "no public set"
    return {"unit": unit_words(value), "method": str(value), "public": str(value)}.get(name, f"{name}={value}")


def unit_words(unit: str) -> str:
    """A unit as the axes name it."""
    return UNITS[Unit(unit)] if unit in UNITS else unit


def unit_sentence(unit: str) -> str:
    """What a unit hides, in full."""
    return f"whether {Unit(unit).sentence} (unit: {unit_words(unit)})" if unit in UNITS else f"what unit {unit} hides"


def parameters_of(text: str) -> dict[str, Any]:
    """Parameters from JSON, with values that can be compared."""
    values = _loaded(text)
    return {
        name: value if isinstance(value, int | float | str) else json.dumps(value) for name, value in values.items()
    }


def _loaded(text: str) -> dict[str, Any]:
    try:
        values = json.loads(text or "{}")
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}


def number(value: Any) -> float | None:
    """The value, if it is a finite number."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def slug(*parts: Any) -> str:
    """A name for files and anchors."""
    words = re.sub(r"[^A-Za-z0-9.]+", "-", " ".join(str(part) for part in parts if part is not None))
    return words.strip("-.").lower()[:120] or "figure"


# What a guarantee costs


def price(cell: Result) -> str | None:
    """In what a guarantee is drawn: rho, or epsilon at its delta where there is no rho; None if neither is finite."""
    if number(cell.rho):
        return "rho"
    if number(cell.epsilon):
        return "epsilon" if cell.delta is None else f"epsilon at delta={cell.delta:g}"
    return None


def amount(cell: Result) -> float:
    """How much of its `price`; inf where there is none."""
    return number(cell.rho) or number(cell.epsilon) or math.inf


def typical_amount(cells: Sequence[Result]) -> float:
    """What a budget cost, where the price is of what was spent and differs a little over seeds."""
    return median(amount(cell) for cell in cells)


def not_private(cell: Result) -> bool:
    """Whether nothing is protected."""
    return price(cell) is None and math.inf in (cell.rho, cell.epsilon)


def unplaced(sweep: Sweep) -> int:
    """How many cells state no cost at all, or none above 0, and have no place on an axis of costs."""
    return sum(price(cell) is None and not not_private(cell) for cell in sweep.done)


def budget_of(cell: Result) -> str:
    """A cell's budget; all that are infinite are one."""
    return NO_PRIVACY if not_private(cell) else cell.budget


def _budgets(results: Sequence[Result]) -> list[tuple[str, list[Result]]]:
    """Results by budget, the strictest first, none last."""
    groups = [(name, cells) for (name,), cells in grouped(results, budget_of)]
    return sorted(groups, key=lambda group: (price(group[1][0]) or "~", typical_amount(group[1])))


def _cost_axis(kind: str, unit: str, cells: Iterable[Result]) -> Axis:
    title = f"rho (zCDP, {unit_words(unit)})" if kind == "rho" else f"{kind} ({unit_words(unit)})"
    return replace(_log_axis(title, [amount(cell) for cell in cells]), rough=kind == "rho")


# Points and captions


def _points(
    cells: Iterable[Result],
    series: str | Callable[[Result], str],
    place: str | Callable[[Result], Any],
    x: Callable[[Sequence[Result]], float | str],
    measure: str,
) -> tuple[Point, ...]:
    """A point for each series and place, in order of x; cells without the measure are left out."""
    found = []
    for (name, _), own in grouped(cells, series, place):
        values = [(value, cell) for cell in own if (value := number(getattr(cell, measure))) is not None]
        if values:
            with_value = tuple(cell for _, cell in values)
            found.append(Point(name, x(with_value), spread([value for value, _ in values]), with_value))
    return tuple(sorted(found, key=lambda point: (natural(point.series), natural(point.x))))


def by_series(points: Iterable[Point]) -> list[tuple[str, list[Point]]]:
    """Points of each series, both in the order in which they come."""
    found: dict[str, list[Point]] = {}
    for point in points:
        found.setdefault(point.series, []).append(point)
    return list(found.items())


def caption(about: str, panels: Sequence[Panel]) -> str:
    """A figure's caption: what it shows, then guarantee, tuning, noise and number of cells."""
    points = [point for panel in panels for point in (*panel.points, *panel.flat)]
    cells = {cell.key: cell for point in points for cell in point.cells}
    return " ".join([about, *provenance(list(cells.values()))])


def provenance(cells: Sequence[Result]) -> list[str]:
    """What every caption says of the cells that it shows."""
    counted = "1 cell" if len(cells) == 1 else f"{len(cells):,} cells"
    return [_guarantee(cells), _tuning(cells), NOISE, f"Shows {counted}."]


def _seeds(panels: Sequence[Panel], spreads: str) -> str:
    counts = sorted({len(point.cells) for panel in panels for point in (*panel.points, *panel.flat)})
    if counts == [1]:
        return f"One seed each, so no {spreads}."
    over = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"Medians over {over} seeds; the {spreads} spans the 25 to 75 % quantiles."


def _guarantee(cells: Sequence[Result]) -> str:
    return f"The guarantee hides {_by_learner(cells, lambda cell: unit_sentence(cell.unit))}."


def _tuning(cells: Sequence[Result]) -> str:
    return f"Tuning: {_by_learner(cells, lambda cell: f'{cell.tuning} ({TUNING.get(cell.tuning, cell.tuning)})')}."


def _by_learner(cells: Sequence[Result], say: Callable[[Result], str]) -> str:
    """What holds of all cells, or else of which learners."""
    groups = [(said, grouped(own, "learner")) for (said,), own in grouped(cells, say)]
    if len(groups) == 1:
        return str(groups[0][0])
    return "; ".join(f"{said} for {', '.join(repr(name) for (name,), _ in own)}" for said, own in groups)


def _imbalance(ratio: float) -> str:
    return f"imbalance {ratio:g}"


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
                    x=_cost_axis(kind, unit, private),
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
    about += [_seeds(panels, "band")]
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
        points = _points(own, series, "budget", typical_amount, measure)
        across = _points(beside, series, budget_of, lambda _: NO_PRIVACY, measure)
        found += [Panel(_imbalance(ratio), points, across)] if points else []
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
        f"Balanced accuracy of {method} for each {name}. {_seeds(panels, 'band')} Rings, and the values named "
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
        x=_cost_axis(kind, unit, cells),
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
    return [replace(drawing, x=_log_axis(drawing.x.title, rows)) for drawing in drawings]


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
            title=f"{', '.join(where)}, {_imbalance(ratio)}: accuracy by {words} ({unit_words(unit)})",
            caption=caption(f"Balanced accuracy on the test set by {words}. {_seeds(panels, spreads)}", panels),
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
    for budget, own in _budgets([cell for cell in cells if getattr(cell, what)]):
        lines = [line for _, line in grouped(own, lambda cell: names[cell.key])]
        several = [cell for line in lines if len({getattr(cell, what) for cell in line}) > 1 for cell in line]
        points = _points(several, lambda cell: names[cell.key], what, lambda here: getattr(here[0], what), BALANCED)
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
    """Seconds of a fit by learner; a panel for each data set and encoder."""
    timed = [cell for cell in sweep.done if number(cell.fit_seconds)]
    panels = tuple(
        Panel(f"{data}, {encoder}", _points(cells, sweep.label, "unit", lambda own: sweep.label(own[0]), "fit_seconds"))
        for (data, encoder), cells in grouped(timed, "data", "encoder")
    )
    if not panels:
        return []
    about = "Seconds of a fit over all budgets, imbalances and seeds: medians, and 25 to 75 % quantiles as lines."
    drawing = Drawing(
        name="run-times",
        title="Run times",
        caption=caption(about, panels),
        legend="learner",
        series=sweep.series,
        panels=panels,
        x=Axis(""),
        y=_log_axis("seconds of a fit", _ends(panels)),
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
            f"class, the median over classes. {_seeds(panels, 'band')}"
        )
        drawing = Drawing(
            name=slug("steps", label, data, encoder, f"imbalance {ratio:g}", unit),
            title=f"{data}, {encoder}, {_imbalance(ratio)}: steps of {label} ({unit_words(unit)})",
            caption=caption(about, panels),
            legend="budget",
            series=tuple(name for name, _ in _budgets(kept)),
            panels=panels,
            x=Axis(f"step ({unit_words(unit)})", whole=True),
            y=_log_if_wide("length, in rescaled rows", panels),
        )
        drawings.append(drawing)
    return drawings


def _step_points(cells: Sequence[Result], taken: Mapping[str, list[dict[str, float]]], name: str) -> tuple[Point, ...]:
    """A field of each step by budget, over the cells that took it."""
    found = []
    for budget, own in _budgets(cells):
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
    return _loaded(cell.extra).get(name) if f'"{name}"' in cell.extra else None


def _middle(value: Any) -> float | None:
    """A number, or the median of those in a list."""
    values = [one for item in (value if isinstance(value, list) else [value]) if (one := number(item)) is not None]
    return median(values) if values else None


def means(sweep: Sweep) -> list[Pictures]:
    """True and private class means in two dimensions, where `means_2d` was kept: one seed of each budget."""
    kept = [cell for cell in sweep.done if isinstance(_kept(cell, "means_2d"), dict)]
    drawings = []
    for (data, encoder, unit, label, ratio), cells in grouped(kept, *PLACE, sweep.label, "imbalance"):
        shown = [min(own, key=lambda cell: cell.seed) for _, own in _budgets(cells)]
        about = (
            f"Lines lead from the true mean of each class (ring) to its private mean (diamond). Beside them at most "
            f"{MOST_POINTS} test rows, by whether they were classified right; one seed of each budget. True means are "
            "private, and are shown because the data are public benchmarks."
        )
        drawing = Pictures(
            name=slug("means", label, data, encoder, f"imbalance {ratio:g}", unit),
            title=f"{data}, {encoder}, {_imbalance(ratio)}: means of {label} ({unit_words(unit)})",
            caption=" ".join([about, *provenance(shown)]),
            panels=tuple(_picture(cell) for cell in shown),
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
    return _log_axis(title, ends) if 0 < 20 * min(ends) < max(ends) else Axis(title)


def _ends(panels: Sequence[Panel]) -> list[float]:
    return [value for panel in panels for point in panel.points for value in (point.y.low, point.y.high)]


def _log_axis(title: str, values: Sequence[float]) -> Axis:
    """A logarithmic axis that shows all values above 0."""
    above = [value for value in values if value > 0]
    return Axis(title, log=True, limits=(min(above) / 1.4, max(above) * 1.4))


# Tables


def tables(sweep: Sweep) -> list[tuple[str, list[Row]]]:
    """A table for each data set, encoder and imbalance, with a title: a row for each learner and budget."""
    found = []
    for (data, encoder, ratio), cells in grouped(sweep.done, "data", "encoder", "imbalance"):
        rows = [
            Row(label, budget, tuple(seeds))
            for (label,), own in grouped(cells, sweep.label)
            for budget, seeds in _budgets(own)
        ]
        found.append((f"{data}, {encoder}, {_imbalance(ratio)}", rows))
    return found
