"""Content of a figure: panels of points over results, their axes, and the words around them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tacit.experiments.results import Result
from tacit.models.metrics import Spread, spread
from tacit.report.groups import grouped, natural, number


@dataclass(frozen=True)
class Point:
    """The median and quantiles of one measure over seeds."""

    series: str
    x: float | str
    y: Spread
    results: tuple[Result, ...]


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    points: tuple[Point, ...]
    flat: tuple[Point, ...] = ()
    """Drawn as horizontal lines across the panel: learners without privacy."""
    best: tuple[Point, ...] = ()
    """Drawn with rings around them, and with their series named at the bottom."""

    @property
    def described(self) -> str:
        """The ends of each series, and what is drawn across."""
        ends = []
        for name in dict.fromkeys(point.series for point in self.points):
            first, *_, last = 2 * [point for point in self.points if point.series == name]
            until = f" to {last.y.median:.3f} at {_short(last.x)}" if last is not first else ""
            ends.append(f"{name} {first.y.median:.3f} at {_short(first.x)}{until}")
        ends += [f"{point.series} {point.y.median:.3f} without privacy" for point in self.flat]
        return f"{self.title}: {'; '.join(ends)}."

    @property
    def names(self) -> list[str]:
        """The values of a categorical x axis, in order."""
        return sorted({str(point.x) for point in self.points}, key=natural)

    @property
    def results(self) -> list[Result]:
        """The results behind all points, each once."""
        results = {}
        for point in (*self.points, *self.flat):
            for result in point.results:
                results[result.key] = result
        return list(results.values())


def _short(x: float | str) -> str:
    return x if isinstance(x, str) else f"{x:.3g}"


class Mean(NamedTuple):
    """The mean of a class in two dimensions, before and after noise."""

    class_index: int
    true: tuple[float, float]
    private: tuple[float, float]


@dataclass(frozen=True)
class MeansPanel:
    """Class means and test rows of one result, in two dimensions."""

    title: str
    means: tuple[Mean, ...]
    rows: tuple[tuple[float, float, bool], ...]
    """x, y, and whether the learner predicts the row's class."""
    results: tuple[Result]


@dataclass(frozen=True)
class Axis:
    """Title and scale of an axis; without limits the data decide where it ends."""

    title: str
    log: bool = False
    limits: tuple[float, float] | None = None
    rough: bool = False
    """Whether a second axis above shows the papers' rough epsilon."""
    whole: bool = False
    """Whether only whole numbers are labelled."""


@dataclass(frozen=True)
class Figure:
    """All that a chart draws."""

    name: str
    """Of its file, and of its anchor on the page."""
    title: str
    caption: str
    legend: str
    """What the series are."""
    series: tuple[str, ...]
    """All names that get a colour, a marker and a dash, in order; the figure may show only some of
    them.
    """
    panels: tuple[Panel, ...] | tuple[MeansPanel, ...]
    x: Axis
    y: Axis
    one_cost: bool = False
    """Whether all private results have one cost, so that lines over costs would have one point
    each.
    """

    @property
    def described(self) -> str:
        """Describe the figure for those who do not see it: the ends of each series in each
        panel.
        """
        panels = [panel for panel in self.panels if isinstance(panel, Panel)]
        return " ".join([f"{self.title}.", *(panel.described for panel in panels)])

    @property
    def shown(self) -> tuple[str, ...]:
        """The series that have points, in order."""
        panels = [panel for panel in self.panels if isinstance(panel, Panel)]
        names = {point.series for panel in panels for point in (*panel.points, *panel.flat)}
        return tuple(name for name in self.series if name in names)


def points_of(
    results: Iterable[Result],
    series: str | Callable[[Result], str],
    place: str | Callable[[Result], object],
    x: Callable[[Sequence[Result]], float | str],
    measure: str,
) -> tuple[Point, ...]:
    """A point for each series and place, sorted by series and x; results without the measure are
    left out.
    """
    points = []
    for (name, _), group in grouped(results, series, place):
        measured = [
            (value, one) for one in group if (value := number(getattr(one, measure))) is not None
        ]
        if measured:
            values, having = zip(*measured, strict=True)
            points.append(Point(name, x(having), spread(values), having))
    return tuple(sorted(points, key=lambda point: (natural(point.series), natural(point.x))))


def log_axis(title: str, values: Sequence[float]) -> Axis:
    """A logarithmic axis that shows all values above 0."""
    above = [value for value in values if value > 0]
    return Axis(title, log=True, limits=(min(above) / 1.4, max(above) * 1.4))


def axis_for(title: str, panels: Sequence[Panel], *, log: bool = False) -> Axis:
    """Make an axis for the points' values.

    It is logarithmic with `log`, or where the values span more than a factor of twenty.
    """
    points = [point for panel in panels for point in panel.points]
    ends = [end for point in points for end in (point.y.low, point.y.high)]
    spans_decades = 0 < 20 * min(ends) < max(ends)
    if log or spans_decades:
        return log_axis(title, ends)
    return Axis(title)
