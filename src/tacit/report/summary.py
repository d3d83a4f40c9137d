"""What drawings of a sweep are made of: points, panels, axes, names of settings, and the words of captions."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from tacit.experiments.results import Result
from tacit.models.metrics import Spread, spread
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
REALISED = "class counts (realised)"
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
            counts = ["counts unprotected"] if REALISED in _quantities(cell) else []
            found[cell.key] = ", ".join([name, *(_in_words(one, getattr(cell, one)) for one in telling), *counts])
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
    values = loaded(text)
    return {
        name: value if isinstance(value, int | float | str) else json.dumps(value) for name, value in values.items()
    }


def loaded(text: str) -> dict[str, Any]:
    """A JSON mapping, or an empty one."""
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


def budgets(results: Sequence[Result]) -> list[tuple[str, list[Result]]]:
    """Results by budget, the strictest first, none last."""
    groups = [(name, cells) for (name,), cells in grouped(results, budget_of)]
    return sorted(groups, key=lambda group: (price(group[1][0]) or "~", typical_amount(group[1])))


def cost_axis(kind: str, unit: str, cells: Iterable[Result]) -> Axis:
    """Of rho or of epsilon, under a unit."""
    title = f"rho (zCDP, {unit_words(unit)})" if kind == "rho" else f"{kind} ({unit_words(unit)})"
    return replace(log_axis(title, [amount(cell) for cell in cells]), rough=kind == "rho")


# Points and captions


def points_of(
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
    return [_guarantee(cells), *_unprotected(cells), _tuning(cells), NOISE, f"Shows {counted}."]


def seeds(panels: Sequence[Panel], spreads: str) -> str:
    """How many seeds a point stands for."""
    counts = sorted({len(point.cells) for panel in panels for point in (*panel.points, *panel.flat)})
    if counts == [1]:
        return f"One seed each, so no {spreads}."
    over = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"Medians over {over} seeds; the {spreads} spans the 25 to 75 % quantiles."


def _guarantee(cells: Sequence[Result]) -> str:
    return f"The guarantee hides {_by_learner(cells, lambda cell: unit_sentence(cell.unit))}."


def _unprotected(cells: Sequence[Result]) -> list[str]:
    """What guarantees do not cover, where there is any, and of which learners."""
    groups = [group for group in grouped(cells, _quantities, "learner") if group[0][0]]
    found: dict[str, list[str]] = {}
    for (said, learner), _ in groups:
        found.setdefault(said, []).append(repr(learner))
    each = "; ".join(f"{said} for {', '.join(learners)}" for said, learners in found.items())
    return [f"Not protected: {each}."] if each else []


def _quantities(cell: Result) -> str:
    return ", ".join(map(str, loaded(cell.guarantee or "").get("unprotected", ())))


def _tuning(cells: Sequence[Result]) -> str:
    return f"Tuning: {_by_learner(cells, lambda cell: f'{cell.tuning} ({TUNING.get(cell.tuning, cell.tuning)})')}."


def _by_learner(cells: Sequence[Result], say: Callable[[Result], str]) -> str:
    """What holds of all cells, or else of which learners."""
    groups = [(said, grouped(own, "learner")) for (said,), own in grouped(cells, say)]
    if len(groups) == 1:
        return str(groups[0][0])
    return "; ".join(f"{said} for {', '.join(repr(name) for (name,), _ in own)}" for said, own in groups)


def imbalance(ratio: float) -> str:
    """A ratio in words."""
    return f"imbalance {ratio:g}"


def log_axis(title: str, values: Sequence[float]) -> Axis:
    """A logarithmic axis that shows all values above 0."""
    above = [value for value in values if value > 0]
    return Axis(title, log=True, limits=(min(above) / 1.4, max(above) * 1.4))
