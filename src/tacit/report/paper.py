"""Drawings in the papers' style, as matplotlib figures for print."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tacit.report.figures import rough_axis
from tacit.report.style import MOST_MARKS, NOT_PRIVATE, RIGHT, WRONG, Look, columns_of, legend_columns, look
from tacit.report.summary import Axis, Drawing, Panel, Picture, Pictures, Point, by_series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTHS = {1: 5.2, 2: 7.6, 3: 10.4}  # inches of a sheet, by the number of columns
HEIGHT = 2.6  # of a panel
LETTERS = 16  # of small text, to an inch
SMALL = 8
LINE = 0.17  # of a legend or caption, in inches
PAGE_LINES = 60
THICK = 1.5


def lines(drawing: Drawing) -> Figure:
    """Lines with their bands, flat lines of what is not private, rings around the best."""
    figure, panels = _side_by_side(drawing)
    for axes, panel in zip(panels, drawing.panels, strict=True):
        for name, points in by_series(panel.points):
            _line(axes, drawing, name, points)
        for point in panel.flat:
            _flat(axes, drawing, point)
        for point in panel.best:
            axes.plot([point.x], [point.y.median], "o", mfc="none", mec="black", ms=10, mew=0.8)
            place = axes.get_xaxis_transform()
            axes.text(point.x, 0.02, _plain(point.series), ha="center", va="bottom", fontsize=SMALL, transform=place)
        _scale(axes, drawing.x, "x")
        _scale(axes, drawing.y, "y")
        if drawing.x.rough:
            above = rough_axis(axes)
            above.tick_params(labelsize=SMALL)
            above.xaxis.label.set_fontsize(SMALL)
    _legend(figure, drawing)
    return figure


def dots(drawing: Drawing) -> Figure:
    """Points beside each other at each name on the x axis, with bars of their quantiles."""
    figure, panels = _side_by_side(drawing)
    for axes, panel in zip(panels, drawing.panels, strict=True):
        for point in panel.points:
            beside = (drawing.shown.index(point.series) + 0.5) / len(drawing.shown) - 0.5
            own = look(drawing.series, point.series)
            x, y = panel.names.index(str(point.x)) + 0.7 * beside, point.y
            axes.plot([x, x], [y.low, y.high], color=own.colour, linewidth=THICK)
            axes.plot([x], [y.median], color=own.colour, marker=own.marker, markersize=5)
        axes.set_xticks(range(len(panel.names)), [_wrapped(name, 14) for name in panel.names])
        axes.set(xlim=(-0.5, len(panel.names) - 0.5))
        axes.set_xlabel(_plain(drawing.x.title), fontsize=SMALL)
        _scale(axes, drawing.y, "y")
    _legend(figure, drawing)
    return figure


def bars(drawing: Drawing) -> Figure:
    """Horizontal bars at each name on the x axis, with their quantiles as lines."""
    names = [[_wrapped(name, 40) for name in panel.names] for panel in drawing.panels]
    several = any(len(panel.points) > len(panel.names) for panel in drawing.panels)
    beside = len(drawing.shown) if several else 1
    heights = [0.6 + sum(0.1 + max(0.13 * (name.count("\n") + 1), 0.08 * beside) for name in own) for own in names]
    figure, panels = _sheet(drawing, heights, 1)
    for axes, panel, own in zip(panels, drawing.panels, names, strict=True):
        for point in panel.points:
            offset = 0.7 * ((drawing.shown.index(point.series) + 0.5) / beside - 0.5) if several else 0.0
            place = panel.names.index(str(point.x)) + offset
            axes.barh(place, point.y.median, color=look(drawing.series, point.series).colour, height=0.7 / beside)
            axes.plot([point.y.low, point.y.high], [place, place], color="black", linewidth=THICK / 2)
        axes.set_yticks(range(len(own)), own)
        axes.set(ylim=(len(own) - 0.5, -0.5), axisbelow=True)
        _scale(axes, drawing.y, "x")
    if several:
        _legend(figure, drawing)
    return figure


def pictures(drawing: Pictures) -> Figure:
    """Test rows by right and wrong, and a line from each true mean to its private one."""
    figure, panels = _side_by_side(drawing, HEIGHT + 0.4)
    kinds = {"right": (True, RIGHT, "o"), "wrong": (False, WRONG, "P")}
    for axes, panel in zip(panels, drawing.panels, strict=True):
        for name, (right, colour, marker) in kinds.items():
            rows = [(x, y) for x, y, hit in panel.points if hit is right]
            axes.plot(*_columns(rows), marker, ms=4, alpha=0.6, mew=0, color=colour, label=name)
        for mean in panel.means:
            axes.plot(*_columns([mean.true, mean.private]), color="black", linewidth=0.8)
        axes.plot(
            *_columns([mean.true for mean in panel.means]), "o", mfc="white", mec="black", ms=5, label="true mean"
        )
        axes.plot(*_columns([mean.private for mean in panel.means]), "D", color="black", ms=5, label="private mean")
        axes.set_xlabel("first direction", fontsize=SMALL)
        axes.set_ylabel("second direction", fontsize=SMALL)
    handles, names = panels[0].get_legend_handles_labels()
    _place_legend(figure, handles, names, columns=4, title="test rows and class means")
    return figure


def captioned(figure: Figure, caption: str) -> Figure:
    """The figure with its caption in more room below."""
    text = _wrapped(caption, round(LETTERS * figure.get_figwidth()))
    _more_room(figure, 0.2 + LINE * (text.count("\n") + 1))
    figure.text(0.02, 0.08 / figure.get_figheight(), text, va="bottom", fontsize=SMALL)
    return figure


def text_pages(title: str, text: Sequence[str]) -> list[Figure]:
    """Pages of lines in letters of one width, as wide as the longest."""
    from matplotlib.figure import Figure

    pages = []
    for start in range(0, len(text), PAGE_LINES):
        shown = [title, "", *text[start : start + PAGE_LINES]]
        width, height = 0.8 + 0.051 * max(map(len, shown)), 0.8 + 0.1 * len(shown)
        page = Figure(figsize=(width, height))
        block = page.text(0.4 / width, 1 - 0.4 / height, "\n".join(shown), va="top", family="monospace", fontsize=6)
        block.set_parse_math(False)
        pages.append(page)
    return pages


def _sheet(drawing: Drawing | Pictures, heights: Sequence[float], columns: int) -> tuple[Figure, list[Any]]:
    """An empty figure, and its axes: one pair for each panel, titled; `heights` in inches are of its rows."""
    from matplotlib.figure import Figure

    shown: Sequence[Panel | Picture] = drawing.panels
    figure = Figure(figsize=(WIDTHS[columns], sum(heights) + 0.4), layout="constrained")
    figure.suptitle(_wrapped(drawing.title, round(LETTERS * WIDTHS[columns] * 0.8)), fontsize=SMALL + 1)
    grid = figure.subplots(len(heights), columns, squeeze=False, height_ratios=heights).flatten()
    for unused in grid[len(shown) :]:
        unused.remove()
    for axes, panel in zip(grid, shown, strict=False):
        axes.set_title(_plain(panel.title), fontsize=SMALL)
        axes.grid(alpha=0.3)
        axes.tick_params(labelsize=SMALL)
    return figure, list(grid[: len(shown)])


def _side_by_side(drawing: Drawing | Pictures, height: float = HEIGHT) -> tuple[Figure, list[Any]]:
    """An empty figure with panels side by side, all of one height."""
    columns = columns_of(drawing.panels)
    return _sheet(drawing, [height] * math.ceil(len(drawing.panels) / columns), columns)


def _more_room(figure: Figure, inches: float) -> None:
    """Make a figure higher: what is there moves up, and nothing is laid out below."""
    engine: Any = figure.get_layout_engine()
    height = figure.get_figheight()
    free = engine.get()["rect"][1] * height + inches
    figure.set_figheight(height + inches)
    engine.set(rect=(0, free / (height + inches), 1, 1 - free / (height + inches)))
    for legend in figure.legends:
        legend.set_bbox_to_anchor((0.5, inches / (height + inches)), figure.transFigure)


def _line(axes: Any, drawing: Drawing, name: str, points: Sequence[Point]) -> None:
    own = look(drawing.series, name)
    x, y = [point.x for point in points], [point.y.median for point in points]
    every = math.ceil(len(points) / MOST_MARKS)
    axes.plot(x, y, own.marker, ls=_dashes(own), color=own.colour, linewidth=THICK, markersize=4, markevery=every)
    if len(points) == 1:
        axes.plot([x[0], x[0]], [points[0].y.low, points[0].y.high], color=own.colour, linewidth=THICK / 2)
        return
    band = [point for point in points if len(point.cells) > 1]
    low, high = [point.y.low for point in band], [point.y.high for point in band]
    axes.fill_between([point.x for point in band], low, high, color=own.colour, alpha=0.15, linewidth=0)


def _flat(axes: Any, drawing: Drawing, point: Point) -> None:
    own = look(drawing.series, point.series)
    axes.axhline(point.y.median, color=own.colour, linestyle=(0, NOT_PRIVATE), linewidth=THICK / 2)
    place = axes.get_yaxis_transform()
    axes.plot([1], [point.y.median], own.marker, mfc="white", mec=own.colour, ms=5, transform=place, clip_on=False)


def _scale(axes: Any, axis: Axis, which: str) -> None:
    """Title, limits and ticks of one axis; "x" or "y"."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

    line = getattr(axes, f"{which}axis")
    axes.set(**{f"{which}label": _plain(axis.title)} | ({f"{which}lim": axis.limits} if axis.limits else {}))
    line.label.set_fontsize(SMALL)
    if not axis.log:
        line.set_major_locator(MaxNLocator(6, integer=axis.whole))
        return
    axes.set(**{f"{which}scale": "log"})
    low, high = sorted(getattr(axes, f"get_{which}lim")())
    line.set_major_locator(LogLocator(subs=(1,) if high > 100 * low else (1, 2, 5), numticks=8))
    line.set_major_formatter("{x:g}")
    line.set_minor_formatter(NullFormatter())


def _legend(figure: Figure, drawing: Drawing) -> None:
    """The series, below the panels."""
    from matplotlib.lines import Line2D

    looks = [look(drawing.series, name) for name in drawing.shown]
    handles = [
        Line2D([], [], color=own.colour, linestyle=_dashes(own), linewidth=THICK, marker=own.marker, markersize=4)
        for own in looks
    ]
    names = [f" {_plain(name)}" for name in drawing.shown]  # a label that starts with _ would be left out
    columns = legend_columns(drawing.shown, 13 * figure.get_figwidth())
    _place_legend(figure, handles, names, columns, _plain(drawing.legend))


def _place_legend(figure: Figure, handles: Sequence[Any], names: Sequence[str], columns: int, title: str) -> None:
    _more_room(figure, 0.25 + LINE * (math.ceil(len(names) / columns) + 1))
    figure.legend(
        handles,
        names,
        title=title,
        ncols=columns,
        fontsize=SMALL,
        title_fontsize=SMALL,
        loc="lower center",
        bbox_to_anchor=(0.5, 0),
        handlelength=4,
    )


def _dashes(own: Look) -> Any:
    return (0, own.dash) if own.dash else "-"


def _columns(pairs: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in pairs], [y for _, y in pairs]


def _plain(text: str) -> str:
    """Text as it is, where a dollar begins no formula."""
    return text.replace("$", r"\$")


def _wrapped(text: str, width: int) -> str:
    return _plain("\n".join(textwrap.wrap(text, width)))
