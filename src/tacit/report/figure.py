"""Content of a figure: panels of points over results, their axes, and the words around them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tacit.experiments.results import Result
from tacit.models.metrics import Spread, spread
from tacit.privacy.decimals import rounded_up
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
    prices: bool = False
    """True if the y of points are privacy costs, which are rounded up."""

    @property
    def description(self) -> str:
        """The panel in words: the ends of each series, and what is drawn across."""
        phrases = []
        for name in dict.fromkeys(point.series for point in self.points):
            points = [point for point in self.points if point.series == name]
            first = points[0]
            last = points[-1]
            phrase = f"{name} {self._y_text(first)} at {_x_text(first.x)}"
            if len(points) > 1:
                phrase += f" to {self._y_text(last)} at {_x_text(last.x)}"
            phrases.append(phrase)

        for point in self.flat:
            phrases.append(f"{point.series} {self._y_text(point)} without privacy")
        return f"{self.title}: {'; '.join(phrases)}."

    def _y_text(self, point: Point) -> str:
        """The median of a point."""
        if self.prices:
            return rounded_up(point.y.median, 3)
        return f"{point.y.median:.3f}"

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


def _x_text(x: float | str) -> str:
    """The place of a point, rounded up since most are privacy costs."""
    if isinstance(x, str):
        return x
    return rounded_up(x, 3)


class Mean(NamedTuple):
    """The mean of a class in two dimensions, before and after noise."""

    class_index: int
    true: tuple[float, float]
    private: tuple[float, float]
    edge: tuple[float, float] | None = None
    """Where the axes cut the line to a private mean that lies outside of them."""


@dataclass(frozen=True)
class MeansPanel:
    """Class means and test rows of one result, in two dimensions."""

    title: str
    means: tuple[Mean, ...]
    rows: tuple[tuple[float, float, bool], ...]
    """x, y, and true if the learner predicts the row's class."""
    results: tuple[Result]
    note: str = ""
    """What the axes leave out, below the title."""


@dataclass(frozen=True)
class Axis:
    """Title and scale of an axis; without limits the data decide where it ends."""

    title: str
    log: bool = False
    limits: tuple[float, float] | None = None
    rho_above: bool = False
    """True if the axis is of the papers' epsilon e; a second axis above is then of rho = e²/2."""
    whole: bool = False
    """True to label whole numbers alone."""


@dataclass(frozen=True)
class Figure:
    """All that a chart draws."""

    name: str
    """Of its file, and of its anchor on the page."""
    title: str
    caption: str
    legend: str
    """Title of the legend, such as "learner"."""
    series: tuple[str, ...]
    """All names that get a colour, a marker and a dash, in order; the figure may show only some of
    them.
    """
    panels: tuple[Panel, ...] | tuple[MeansPanel, ...]
    x: Axis
    y: Axis
    one_cost: bool = False
    """True if all private results have one cost, so that a line over costs would be one point."""

    @property
    def description(self) -> str:
        """The figure in words, for those who do not see it."""
        sentences = [f"{self.title}."]
        for panel in self.panels:
            if isinstance(panel, Panel):
                sentences.append(panel.description)
        return " ".join(sentences)

    @property
    def visible_series(self) -> tuple[str, ...]:
        """The series that the figure shows, in order."""
        names = set()
        for panel in self.panels:
            if isinstance(panel, Panel):
                names |= {point.series for point in (*panel.points, *panel.flat)}
        return tuple(name for name in self.series if name in names)


def points_of(
    results: Iterable[Result],
    series: str | Callable[[Result], str],
    place: str | Callable[[Result], object],
    x: Callable[[Sequence[Result]], float | str],
    measure: str,
) -> tuple[Point, ...]:
    """Return a point for each series and place, sorted by series and x.

    Parameters
    ----------
    results : iterable of Result
        Those without the measure are left out.
    series, place : str or callable
        Facts of a result, as `groups.grouped` takes them.
    x : callable
        Place on the x axis of the results of one point.
    measure : str
        Field of a result.
    """
    points = []
    for (name, _), group in grouped(results, series, place):
        measured_results = []
        values = []
        for result in group:
            value = number(getattr(result, measure))
            if value is not None:
                measured_results.append(result)
                values.append(value)
        if values:
            points.append(Point(name, x(measured_results), spread(values), tuple(measured_results)))
    return tuple(sorted(points, key=lambda point: (natural(point.series), natural(point.x))))


def log_axis(title: str, values: Sequence[float]) -> Axis:
    """Return a logarithmic axis that shows all values above 0, with a margin at both ends."""
    positive = [value for value in values if value > 0]
    limits = (min(positive) / 1.4, max(positive) * 1.4)
    return Axis(title, log=True, limits=limits)


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
