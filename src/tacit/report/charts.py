"""Charts that draw figures, as altair specifications; a theme sets their sizes.

The parts are plain Vega-Lite and are put together unchecked: altair's own layering copies and
checks its charts over and over, which takes seconds for each. `to_dict()` checks a chart.
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from tacit.compute.extras import check_installed
from tacit.report.figure import Axis, Figure, MeansPanel, Panel, Point
from tacit.report.theme import COLOURS, MOST_MARKERS, Theme, look

if TYPE_CHECKING:
    import altair as alt

Part = dict[str, Any]
Chart: TypeAlias = "alt.TopLevelConcatSpec"

ROUGH_TICKS = (0.01, 0.1, 0.2, 0.5, 1, 2, 4, 8, 32)
ROUGH_LABEL = "rough epsilon e, rho = e²/2"
MOST_KEYS = 3  # in a tooltip
FACTS = ("learner", "budget", "seeds", "cells")
QUANTILES = {"median": "median", "25 % quantile": "low", "75 % quantile": "high"}
PICKED = "picked"
SEEN = {"condition": {"param": PICKED, "value": 1}, "value": 0.1}
FAINT = {"condition": {"param": PICKED, "value": 0.15}, "value": 0.02}


def lines(figure: Figure, theme: Theme) -> Chart:
    """Lines with bands of quantiles, horizontal lines for what is not private, rings around the
    best points.

    Where there is only one cost: a row of dots for each series.
    """
    return _chart(figure, theme, _rows_panel if figure.one_cost else _lines_panel)


def dots(figure: Figure, theme: Theme) -> Chart:
    """Dots beside each other at each name on the x axis, with lines of their quantiles."""
    return _chart(figure, theme, _dots_panel)


def bars(figure: Figure, theme: Theme) -> Chart:
    """Horizontal bars for each name on the x axis, with lines of their quantiles."""
    return _chart(figure, theme, _bars_panel, columns=1)


def means(figure: Figure, theme: Theme) -> Chart:
    """Test rows by right and wrong, and a line from the true mean of each class to its private
    mean.
    """
    return _chart(figure, theme, _means_panel)


def _chart(
    figure: Figure, theme: Theme, draw: Callable[..., Part], columns: int | None = None
) -> Chart:
    """Panels side by side with one legend; a click on it picks a series in the markers, which the
    legend shows.
    """
    check_installed("altair")
    import altair as alt
    from altair.utils.schemapi import debug_mode

    columns = columns or columns_of(figure)
    width = theme.widths[columns]
    views = [f"markers_{number}" for number in range(len(figure.panels))]
    drawn: Sequence[Panel | MeansPanel] = figure.panels
    panels = [
        draw(figure, panel, theme, view)
        | {
            "title": {"text": panel.title, "limit": width},
            "width": width,
            "data": {"values": _rows(panel)},
        }
        for panel, view in zip(drawn, views, strict=True)
    ]
    pick = {
        "name": PICKED,
        "select": {"type": "point", "fields": ["series"]},
        "bind": "legend",
        "views": views,
    }
    # else the legend's markers are dashed, though dashes have no legend
    apart = {"strokeDash": "independent"}
    with debug_mode(False):
        return alt.TopLevelConcatSpec(
            concat=panels,
            columns=columns,
            spacing=2.5 * theme.text,
            config=theme.config(),
            description=figure.described,
            resolve={"scale": {"color": "shared", "shape": "shared"} | apart},
            **({"params": [pick]} if figure.shown and not figure.one_cost else {}),
        )


def columns_of(figure: Figure) -> int:
    """How many panels stand side by side."""
    return 2 if len(figure.panels) == 4 else min(3, len(figure.panels))


# Panels


def _lines_panel(figure: Figure, panel: Panel, theme: Theme, view: str) -> Part:
    x, colour, marker = _position("x", figure.x), _colour(figure, theme), _marker(figure, theme)
    median = {"x": x, "y": _position("median", figure.y)}
    span = {"x": x, "y": _position("low", figure.y), "y2": {"field": "high"}, "color": colour}
    dashes = median | {"color": colour, "strokeDash": _dash(figure, theme), "opacity": SEEN}
    layers = [
        _layer("datum.band", "area", span | {"fillOpacity": FAINT}),
        _layer("datum.alone", "rule", span),
        _layer("datum.part == 'line'", "line", dashes, strokeWidth=theme.line),
        _layer("datum.marked", "point", marker | {"x": x}, style="marker") | {"name": view},
    ]
    if panel.flat:
        across = {name: marker[name] for name in ("y", "color", "opacity", "tooltip")}
        layers += [
            _layer("datum.part == 'flat'", "rule", across, style="not-private"),
            _layer(
                "datum.part == 'flat'",
                "point",
                marker | {"x": {"value": "width"}},
                style="not-private-marker",
            ),
        ]
    if panel.best:
        below = {
            "x": x,
            "y": {"value": theme.height},
            "text": {"field": "series", "type": "nominal"},
        }
        layers += [
            _layer("datum.part == 'best'", "point", median, style="best"),
            _layer("datum.part == 'best'", "text", below, style="best-name"),
        ]
    if not figure.x.rough:
        return {"layer": layers, "height": theme.height}
    own_axis = {"axis": {"x": "independent"}}
    return {
        "layer": [_rough_axis(figure.x), {"layer": layers}],
        "height": theme.height,
        "resolve": own_axis,
    }


def _rough_axis(axis: Axis) -> Part:
    """The axis of rough epsilon above, in a layer without marks."""
    assert axis.limits is not None
    low, high = axis.limits
    ticks = [rough**2 / 2 for rough in ROUGH_TICKS if low <= rough**2 / 2 <= high]
    label = "format(sqrt(2 * datum.value), '.3~g')"
    above = {
        "orient": "top",
        "values": ticks,
        "labelExpr": label,
        "title": ROUGH_LABEL,
        "grid": False,
    }
    return _layer("false", "point", {"x": _position("x", axis) | {"axis": above}})


def _rows_panel(figure: Figure, panel: Panel, theme: Theme, view: str) -> Part:
    """A row for each series, named beside it: dots for private results, hollow dots for those
    without privacy.
    """
    marker = _marker(figure, theme) | {"opacity": {"value": 1}}
    marker |= {name: marker[name] | {"legend": None} for name in ("color", "shape")}
    axis = {"labelLimit": theme.letters(300) * theme.text, "ticks": False, "grid": True}
    row = {
        "field": "series",
        "type": "nominal",
        "title": None,
        "sort": list(figure.shown),
        "axis": axis,
    }
    dot = marker | {"x": _position("median", figure.y), "y": row}
    span = {
        "x": _position("low", figure.y),
        "x2": {"field": "high"},
        "y": row,
        "color": marker["color"],
    }
    layers = [
        _layer("true", "rule", span, strokeWidth=theme.line),
        _layer("datum.part == 'line'", "point", dot, style="marker") | {"name": view},
        _layer("datum.part == 'flat'", "point", dot, style="not-private-marker"),
        _layer("datum.part == 'best'", "point", {"x": dot["x"], "y": row}, style="best"),
    ]
    names = {point.series for point in (*panel.points, *panel.flat)}
    return {"layer": layers, "height": max(60 * theme.em, 26 * theme.em * len(names))}


def _dots_panel(figure: Figure, panel: Panel, theme: Theme, view: str) -> Part:
    letters = max(8, theme.letters(theme.widths[columns_of(figure)]) // len(panel.names))
    folded = json.dumps({name: textwrap.wrap(name, letters) for name in panel.names})
    axis = {"labelAngle": 0, "labelLimit": 0, "labelExpr": f"({folded})[datum.label]"}
    beside = {
        "field": "series",
        "type": "nominal",
        "sort": list(figure.shown),
        "scale": {"paddingOuter": 0.4},
    }
    place = {
        "x": {
            "field": "x",
            "type": "nominal",
            "title": figure.x.title,
            "axis": axis,
            "sort": panel.names,
        },
        "xOffset": beside,
    }
    span = {
        "y": _position("low", figure.y),
        "y2": {"field": "high"},
        "color": _colour(figure, theme),
        "opacity": SEEN,
    }
    layers = [
        _layer("true", "rule", place | span, strokeWidth=theme.line),
        _layer("true", "point", place | _marker(figure, theme), style="marker") | {"name": view},
    ]
    return {"layer": layers, "height": theme.low}


def _bars_panel(figure: Figure, panel: Panel, theme: Theme, view: str) -> Part:
    assert figure.y.limits is not None
    names: dict[str, str] = {}  # of bars; the first of each group is labelled
    for point in sorted(
        panel.points,
        key=lambda one: (panel.names.index(str(one.x)), figure.shown.index(one.series)),
    ):
        names[f"{point.x}, {point.series}"] = "" if point.x in names.values() else str(point.x)
    limit = theme.letters(400) * theme.text
    axis = {"labelLimit": limit, "labelExpr": f"({json.dumps(names)})[datum.label]", "ticks": False}
    y = {"field": "bar", "type": "nominal", "title": None, "sort": list(names), "axis": axis}
    y["scale"] = {"paddingInner": 0.3}
    length = _marker(figure, theme) | {
        "x": _position("median", figure.y),
        "x2": {"datum": figure.y.limits[0]},
        "y": y,
    }
    del length["shape"]
    span = {"x": _position("low", figure.y), "x2": {"field": "high"}, "y": y, "opacity": SEEN}
    layers = [
        _layer("true", "bar", length) | {"name": view},
        _layer("true", "rule", span, strokeWidth=theme.line, color="black"),
    ]
    each = (10 if len(panel.points) > len(panel.names) else 24) * theme.em
    bar = [{"calculate": "datum.x + ', ' + datum.series", "as": "bar"}]
    return {
        "transform": bar,
        "layer": layers,
        "height": max(60 * theme.em, each * len(panel.points)),
    }


def _means_panel(figure: Figure, panel: MeansPanel, theme: Theme, view: str) -> Part:
    x, y = _position("x", figure.x), _position("y", figure.y)
    to_x, to_y = {"field": "to_x"}, {"field": "to_y"}
    kind = {"field": "row", "type": "nominal", "title": figure.legend}
    colour = kind | {"scale": {"domain": list(figure.series), "range": [COLOURS[6], COLOURS[1]]}}
    shape = kind | {"scale": {"domain": list(figure.series), "range": ["circle", "cross"]}}
    row = {"x": x, "y": y, "color": colour, "shape": shape}
    told = {"tooltip": [{"field": name, "type": "nominal"} for name in ("class", "cell")]}
    layers = [
        _layer("datum.row", "point", row, style="test-row") | {"name": view},
        _layer("!datum.row", "rule", {"x": x, "y": y, "x2": to_x, "y2": to_y}, style="mean"),
        _layer("!datum.row", "point", told | {"x": x, "y": y}, style="true-mean"),
        _layer("!datum.row", "point", told | {"x": x | to_x, "y": y | to_y}, style="private-mean"),
    ]
    return {"layer": layers, "height": theme.height}


# Rows of data


def _rows(panel: Panel | MeansPanel) -> list[Part]:
    return _means_rows(panel) if isinstance(panel, MeansPanel) else _point_rows(panel)


def _point_rows(panel: Panel) -> list[Part]:
    """A row for each point; only some points of a long line get a marker."""
    rows = []
    for name in dict.fromkeys(point.series for point in panel.points):
        points = [point for point in panel.points if point.series == name]
        every, alone = math.ceil(len(points) / MOST_MARKERS), len(points) == 1
        for place, point in enumerate(points):
            drawn = {
                "marked": place % every == 0,
                "alone": alone,
                "band": not alone and len(point.results) > 1,
            }
            rows.append(_row(point, "line") | drawn)
    return (
        rows
        + [_row(point, "flat") for point in panel.flat]
        + [_row(point, "best") for point in panel.best]
    )


def _row(point: Point, part: str) -> Part:
    budgets = sorted({one.budget for one in point.results})
    keys = [one.key for one in point.results]
    more = f" and {len(keys) - MOST_KEYS} more" if len(keys) > MOST_KEYS else ""
    return {
        "part": part,
        "series": point.series,
        "x": point.x,
        "median": point.y.median,
        "low": point.y.low,
        "high": point.y.high,
        "learner": ", ".join(sorted({one.learner for one in point.results})),
        "budget": budgets[0] if len(budgets) == 1 else f"{len(budgets)} budgets",
        "seeds": len({one.seed for one in point.results}),
        "cells": ", ".join(keys[:MOST_KEYS]) + more,
    }


def _means_rows(panel: MeansPanel) -> list[Part]:
    rows = [
        {"x": round(x, 4), "y": round(y, 4), "row": "right" if right else "wrong"}
        for x, y, right in panel.rows
    ]
    for number, (x, y), (to_x, to_y) in panel.means:
        rows.append(
            {
                "class": number,
                "cell": panel.results[0].key,
                "x": x,
                "y": y,
                "to_x": to_x,
                "to_y": to_y,
            }
        )
    return rows


# Parts of layers


def _layer(which: str, kind: str, encoding: Part, **mark: Any) -> Part:
    """Marks of a kind for the rows where an expression is true; the theme defines their styles.

    Line widths are set here: with those of a style or the configuration, clicks on the legend do
    nothing.
    """
    return {"transform": [{"filter": which}], "mark": {"type": kind, **mark}, "encoding": encoding}


def _marker(figure: Figure, theme: Theme) -> Part:
    """How a series's marker is drawn, apart from its x, and its tooltip."""
    texts = {figure.legend: "series", figure.x.title: "x"} | {
        fact: fact for fact in FACTS if fact != figure.legend
    }
    facts = [
        {"field": field, "title": title, "type": "nominal"}
        for title, field in texts.items()
        if title
    ]
    figures = {"type": "quantitative", "format": ".4~g"}
    return {
        "y": _position("median", figure.y),
        "color": _colour(figure, theme),
        "shape": _series(
            figure, theme, [look(figure.series, name).marker for name in figure.shown]
        ),
        "opacity": SEEN,
        "tooltip": [
            *facts,
            *({"field": field, "title": title} | figures for title, field in QUANTILES.items()),
        ],
    }


def _position(field: str, axis: Axis) -> Part:
    scale: Part = {"type": "log" if axis.log else "linear", "zero": False}
    scale |= {"domain": list(axis.limits), "nice": False} if axis.limits else {"padding": 12}
    whole = (
        {"format": "d", "labelExpr": "datum.value % 1 == 0 ? datum.label : ''"}
        if axis.whole
        else {}
    )
    ticks = {"tickCount": 6, "labelOverlap": True} | whole
    return {
        "field": field,
        "type": "quantitative",
        "title": axis.title,
        "scale": scale,
        "axis": ticks,
    }


def _colour(figure: Figure, theme: Theme) -> Part:
    return _series(figure, theme, [look(figure.series, name).colour for name in figure.shown])


def _dash(figure: Figure, theme: Theme) -> Part:
    dashes = [look(figure.series, name).dash for name in figure.shown]
    drawn = _series(
        figure, theme, [[theme.line * part for part in dash] or [1, 0] for dash in dashes]
    )
    return drawn | {"legend": None}


def _series(figure: Figure, theme: Theme, looks: Sequence[Any]) -> Part:
    """The series as colours, markers or dashes."""
    widest = max(map(len, figure.shown)) + 8  # for the marker and the gap
    return {
        "field": "series",
        "type": "nominal",
        "title": figure.legend,
        "scale": {"domain": list(figure.shown), "range": looks},
        "legend": {
            "columns": max(1, min(len(figure.shown), theme.letters(theme.legend) // widest))
        },
    }
