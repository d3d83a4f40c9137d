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
from tacit.privacy.decimals import rounded_up
from tacit.report.figure import Axis, Figure, MeansPanel, Panel, Point
from tacit.report.theme import COLOURS, MOST_MARKERS, Theme, look

if TYPE_CHECKING:
    import altair as alt

Part = dict[str, Any]
Chart: TypeAlias = "alt.TopLevelConcatSpec"

# ticks of the papers' epsilon e, and the title of the axis of rho above it
EPSILON_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 4, 8, 32, 128)
RHO_TITLE = "rho = e²/2"
MOST_KEYS = 3  # in a tooltip
FACTS = ("learner", "budget", "seeds", "cells")
QUANTILES = {"median": "median", "25 % quantile": "low", "75 % quantile": "high"}

# The parameter of a chart that holds the series picked in the legend, and opacities that follow it.
PICKED = "picked"
SEEN = {"condition": {"param": PICKED, "value": 1}, "value": 0.1}
FAINT = {"condition": {"param": PICKED, "value": 0.15}, "value": 0.02}


def lines(figure: Figure, theme: Theme) -> Chart:
    """Lines with bands of quantiles, horizontal lines for what is not private, rings around the
    best points.

    Where there is only one cost: a row of dots for each series.
    """
    if figure.one_cost:
        return _chart(figure, theme, _rows_panel)
    return _chart(figure, theme, _lines_panel)


def scatter(figure: Figure, theme: Theme) -> Chart:
    """Markers alone, for points that no line joins."""
    return _chart(figure, theme, _scatter_panel)


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

    if columns is None:
        columns = columns_of(figure)
    width = theme.widths[columns]

    # A view is the name of the layer of a panel in which series are picked.
    views = [f"markers_{number}" for number in range(len(figure.panels))]
    figure_panels: Sequence[Panel | MeansPanel] = figure.panels
    panels = []
    for panel, view in zip(figure_panels, views, strict=True):
        title = {"text": panel.title, "limit": width}
        if isinstance(panel, MeansPanel) and panel.note:
            title["subtitle"] = panel.note
        frame = {
            "title": title,
            "width": width,
            "data": {"values": _rows(panel)},
        }
        panels.append(draw(figure, panel, theme, view) | frame)

    params: Part = {}
    if figure.visible_series and not figure.one_cost:
        params = {"params": [_pick(views)]}

    # With shared dashes the legend's markers would be dashed, though dashes have no legend.
    scales = {"color": "shared", "shape": "shared", "strokeDash": "independent"}

    # debug_mode(False): altair checks nothing while it puts the parts together.
    with debug_mode(False):
        return alt.TopLevelConcatSpec(
            concat=panels,
            columns=columns,
            spacing=2.5 * theme.text,
            config=theme.config(),
            description=figure.description,
            resolve={"scale": scales},
            **params,
        )


def _pick(views: Sequence[str]) -> Part:
    """The parameter that holds the series picked by a click on the legend."""
    return {
        "name": PICKED,
        "select": {"type": "point", "fields": ["series"]},
        "bind": "legend",
        "views": views,
    }


def columns_of(figure: Figure) -> int:
    """Return the number of panels side by side."""
    if len(figure.panels) == 4:
        return 2
    return min(3, len(figure.panels))


# Panels


def _lines_panel(figure: Figure, panel: Panel, theme: Theme, view: str) -> Part:
    layers = _line_layers(figure, theme, view)
    if panel.flat:
        layers += _flat_layers(figure, theme)
    if panel.best:
        layers += _best_layers(figure, theme)

    if not figure.x.rho_above:
        return {"layer": layers, "height": theme.height}
    return {
        "layer": [_rho_axis(figure.x), {"layer": layers}],
        "height": theme.height,
        # The two layers have an x axis each: one below, one above.
        "resolve": {"axis": {"x": "independent"}},
    }


def _scatter_panel(figure: Figure, panel: Panel, theme: Theme, view: str) -> Part:
    marker = _marker(figure, theme) | {"x": _position("x", figure.x)}
    layer = _layer("true", "point", marker, style="marker") | {"name": view}
    return {"layer": [layer], "height": theme.height}


def _line_layers(figure: Figure, theme: Theme, view: str) -> list[Part]:
    """Bands of quantiles, or a rule where a series has one point; lines of medians; markers."""
    x = _position("x", figure.x)
    colour = _colour(figure, theme)
    quantiles = {
        "x": x,
        "y": _position("low", figure.y),
        "y2": {"field": "high"},
        "color": colour,
    }
    line = {
        "x": x,
        "y": _position("median", figure.y),
        "color": colour,
        "strokeDash": _dash(figure, theme),
        "opacity": SEEN,
    }
    marker = _marker(figure, theme) | {"x": x}
    return [
        _layer("datum.band", "area", quantiles | {"fillOpacity": FAINT}),
        _layer("datum.alone", "rule", quantiles),
        _layer("datum.part == 'line'", "line", line, strokeWidth=theme.line),
        _layer("datum.marked", "point", marker, style="marker") | {"name": view},
    ]


def _flat_layers(figure: Figure, theme: Theme) -> list[Part]:
    """Rules across the panel for results without privacy, with a marker at their right end."""
    marker = _marker(figure, theme)
    rule = {channel: marker[channel] for channel in ("y", "color", "opacity", "tooltip")}
    right_end = {"x": {"value": "width"}}
    return [
        _layer("datum.part == 'flat'", "rule", rule, style="not-private"),
        _layer("datum.part == 'flat'", "point", marker | right_end, style="not-private-marker"),
    ]


def _best_layers(figure: Figure, theme: Theme) -> list[Part]:
    """Rings around the best points, and the names of their series at the bottom of the panel."""
    x = _position("x", figure.x)
    ring = {"x": x, "y": _position("median", figure.y)}
    name = {
        "x": x,
        "y": {"value": theme.height},
        "text": {"field": "series", "type": "nominal"},
    }
    return [
        _layer("datum.part == 'best'", "point", ring, style="best"),
        _layer("datum.part == 'best'", "text", name, style="best-name"),
    ]


def _rho_axis(axis: Axis) -> Part:
    """The axis of rho above that of the papers' epsilon, in a layer without marks."""
    above = {
        "orient": "top",
        "values": _epsilon_ticks(axis),
        "labelExpr": "format(datum.value * datum.value / 2, '.3~g')",
        "labelOverlap": True,
        "title": RHO_TITLE,
        "grid": False,
    }
    return _layer("false", "point", {"x": _position("x", axis) | {"axis": above}})


def _epsilon_ticks(axis: Axis) -> list[float]:
    """The ticks of the papers' epsilon within the limits of its axis."""
    assert axis.limits is not None
    low, high = axis.limits
    return [epsilon for epsilon in EPSILON_TICKS if low <= epsilon <= high]


def _rows_panel(figure: Figure, panel: Panel, theme: Theme, view: str) -> Part:
    """A row for each series, named beside it: dots for private results, hollow dots for those
    without privacy.
    """
    marker = _marker(figure, theme) | {"opacity": {"value": 1}}
    # Rows are named at the axis, so they need no legend.
    for channel in ("color", "shape"):
        marker[channel] = marker[channel] | {"legend": None}

    row = {
        "field": "series",
        "type": "nominal",
        "title": figure.legend,
        "sort": list(figure.visible_series),
        "axis": {"labelLimit": theme.letters(300) * theme.text, "ticks": False, "grid": True},
    }
    median = _position("median", figure.y)
    dot = marker | {"x": median, "y": row}
    quantiles = {
        "x": _position("low", figure.y),
        "x2": {"field": "high"},
        "y": row,
        "color": marker["color"],
    }
    layers = [
        _layer("true", "rule", quantiles, strokeWidth=theme.line),
        _layer("datum.part == 'line'", "point", dot, style="marker") | {"name": view},
        _layer("datum.part == 'flat'", "point", dot, style="not-private-marker"),
        _layer("datum.part == 'best'", "point", {"x": median, "y": row}, style="best"),
    ]

    series = {point.series for point in (*panel.points, *panel.flat)}
    height = max(60 * theme.em, 26 * theme.em * len(series))
    return {"layer": layers, "height": height}


def _dots_panel(figure: Figure, panel: Panel, theme: Theme, view: str) -> Part:
    # Vega folds no labels, so the expression of a label looks its lines up in a table.
    panel_letters = theme.letters(theme.widths[columns_of(figure)])
    name_letters = max(8, panel_letters // len(panel.names))
    lines_by_name = json.dumps({name: textwrap.wrap(name, name_letters) for name in panel.names})
    axis = {"labelAngle": 0, "labelLimit": 0, "labelExpr": f"({lines_by_name})[datum.label]"}

    position = {
        "x": {
            "field": "x",
            "type": "nominal",
            "title": figure.x.title,
            "axis": axis,
            "sort": panel.names,
        },
        # The series of one name stand beside each other.
        "xOffset": {
            "field": "series",
            "type": "nominal",
            "sort": list(figure.visible_series),
            "scale": {"paddingOuter": 0.4},
        },
    }
    quantiles = position | {
        "y": _position("low", figure.y),
        "y2": {"field": "high"},
        "color": _colour(figure, theme),
        "opacity": SEEN,
    }
    dot = position | _marker(figure, theme)
    layers = [
        _layer("true", "rule", quantiles, strokeWidth=theme.line),
        _layer("true", "point", dot, style="marker") | {"name": view},
    ]
    return {"layer": layers, "height": theme.dots_height}


def _bars_panel(figure: Figure, panel: Panel, theme: Theme, view: str) -> Part:
    assert figure.y.limits is not None
    y = _bar_position(figure, panel, theme)
    length = _marker(figure, theme) | {
        "x": _position("median", figure.y),
        # Bars begin where the axis does, which on a logarithmic axis is not 0.
        "x2": {"datum": figure.y.limits[0]},
        "y": y,
    }
    del length["shape"]
    quantiles = {
        "x": _position("low", figure.y),
        "x2": {"field": "high"},
        "y": y,
        "opacity": SEEN,
    }
    layers = [
        _layer("true", "bar", length) | {"name": view},
        _layer("true", "rule", quantiles, strokeWidth=theme.line, color="black"),
    ]

    # Bars in groups are thinner than single bars.
    bar_height = 24 * theme.em
    if len(panel.points) > len(panel.names):
        bar_height = 10 * theme.em
    return {
        "transform": [{"calculate": "datum.x + ', ' + datum.series", "as": "bar"}],
        "layer": layers,
        "height": max(60 * theme.em, bar_height * len(panel.points)),
    }


def _bar_position(figure: Figure, panel: Panel, theme: Theme) -> Part:
    """The bars along the y axis."""
    labels = _bar_labels(figure, panel)
    return {
        "field": "bar",
        "type": "nominal",
        "title": figure.x.title or None,
        "sort": list(labels),
        "axis": {
            "labelLimit": theme.letters(400) * theme.text,
            "labelExpr": f"({json.dumps(labels)})[datum.label]",
            "ticks": False,
        },
        "scale": {"paddingInner": 0.3},
    }


def _bar_labels(figure: Figure, panel: Panel) -> dict[str, str]:
    """Return the label of each bar, in order; in a group of bars only the first is labelled."""

    def position(point: Point) -> tuple[int, int]:
        return panel.names.index(str(point.x)), figure.visible_series.index(point.series)

    labels: dict[str, str] = {}
    for point in sorted(panel.points, key=position):
        group = str(point.x)
        is_first = group not in labels.values()
        labels[f"{group}, {point.series}"] = group if is_first else ""
    return labels


def _means_panel(figure: Figure, panel: MeansPanel, theme: Theme, view: str) -> Part:
    kind = {"field": "row", "type": "nominal", "title": figure.legend}
    kinds = list(figure.series)
    true = {"x": _position("x", figure.x), "y": _position("y", figure.y)}
    test_row = true | {
        "color": kind | {"scale": {"domain": kinds, "range": [COLOURS[6], COLOURS[1]]}},
        "shape": kind | {"scale": {"domain": kinds, "range": ["circle", "cross"]}},
    }

    private_x = {"field": "to_x"}
    private_y = {"field": "to_y"}
    private = {"x": true["x"] | private_x, "y": true["y"] | private_y}
    move = true | {"x2": private_x, "y2": private_y}
    tooltip = {"tooltip": [{"field": name, "type": "nominal"} for name in ("class", "cell")]}

    # Rows of data with a field `row` are test rows, those without are means.
    layers = [
        _layer("datum.row", "point", test_row, style="test-row") | {"name": view},
        _layer("!datum.row", "rule", move, style="mean"),
        _layer("!datum.row", "point", tooltip | true, style="true-mean"),
        _layer("datum.inside", "point", tooltip | private, style="private-mean"),
    ]
    return {"layer": layers, "height": theme.height}


# Rows of data


def _rows(panel: Panel | MeansPanel) -> list[Part]:
    if isinstance(panel, MeansPanel):
        return _means_rows(panel)
    return _point_rows(panel)


def _point_rows(panel: Panel) -> list[Part]:
    """A row for each point; only some points of a long line get a marker."""
    rows = []
    for series in dict.fromkeys(point.series for point in panel.points):
        points = [point for point in panel.points if point.series == series]
        marker_step = math.ceil(len(points) / MOST_MARKERS)
        alone = len(points) == 1
        for number, point in enumerate(points):
            parts = {
                "marked": number % marker_step == 0,
                "alone": alone,
                "band": not alone and len(point.results) > 1,
            }
            rows.append(_row(point, "line") | parts)

    if panel.prices:
        for row in rows:
            # tooltips show four digits
            row |= {name: float(rounded_up(row[name], 4)) for name in QUANTILES.values()}

    rows += [_row(point, "flat") for point in panel.flat]
    rows += [_row(point, "best") for point in panel.best]
    return rows


def _row(point: Point, part: str) -> Part:
    """A point for one part of a chart, and the facts of its tooltip."""
    learners = sorted({result.learner for result in point.results})

    budgets = sorted({result.budget for result in point.results})
    budget = f"{len(budgets)} budgets"
    if len(budgets) == 1:
        budget = budgets[0]

    keys = [result.key for result in point.results]
    cells = ", ".join(keys[:MOST_KEYS])
    if len(keys) > MOST_KEYS:
        cells += f" and {len(keys) - MOST_KEYS} more"

    return {
        "part": part,
        "series": point.series,
        "x": point.x,
        "median": point.y.median,
        "low": point.y.low,
        "high": point.y.high,
        "learner": ", ".join(learners),
        "budget": budget,
        "seeds": len({result.seed for result in point.results}),
        "cells": cells,
    }


def _means_rows(panel: MeansPanel) -> list[Part]:
    rows: list[Part] = []
    for x, y, right in panel.rows:
        rows.append(
            {"x": round(x, 4), "y": round(y, 4), "row": "right" if right else "wrong"},
        )
    for mean in panel.means:
        end = mean.edge or mean.private
        rows.append(
            {
                "class": mean.class_index,
                "cell": panel.results[0].key,
                "x": mean.true[0],
                "y": mean.true[1],
                "to_x": end[0],
                "to_y": end[1],
                "inside": mean.edge is None,
            }
        )
    return rows


# Parts of layers


def _layer(condition: str, kind: str, encoding: Part, **mark: Any) -> Part:
    """Marks of a kind for the rows where an expression is true; the theme defines their styles.

    Line widths are set here: with those of a style or the configuration, clicks on the legend do
    nothing.
    """
    return {
        "transform": [{"filter": condition}],
        "mark": {"type": kind, **mark},
        "encoding": encoding,
    }


def _marker(figure: Figure, theme: Theme) -> Part:
    """The look of a series's marker, its y and its tooltip, without its x."""
    field_by_title = {figure.legend: "series", figure.x.title: "x"}
    for fact in FACTS:
        if fact != figure.legend:
            field_by_title[fact] = fact

    tooltip = [
        {"field": field, "title": title, "type": "nominal"}
        for title, field in field_by_title.items()
        if title
    ]
    for title, field in QUANTILES.items():
        tooltip.append(
            {"field": field, "title": title, "type": "quantitative", "format": ".4~g"},
        )

    markers = [look(figure.series, name).marker for name in figure.visible_series]
    return {
        "y": _position("median", figure.y),
        "color": _colour(figure, theme),
        "shape": _series(figure, theme, markers),
        "opacity": SEEN,
        "tooltip": tooltip,
    }


def _position(field: str, axis: Axis) -> Part:
    """A field along an axis."""
    scale: Part = {"type": "log" if axis.log else "linear", "zero": False}
    if axis.limits is not None:
        scale |= {"domain": list(axis.limits), "nice": False}
    else:
        scale |= {"padding": 12}

    ticks: Part = {"tickCount": 6, "labelOverlap": True}
    if axis.whole:
        ticks |= {"format": "d", "labelExpr": "datum.value % 1 == 0 ? datum.label : ''"}
    if axis.rho_above:
        ticks |= {"values": _epsilon_ticks(axis), "format": "~g"}

    return {
        "field": field,
        "type": "quantitative",
        "title": axis.title,
        "scale": scale,
        "axis": ticks,
    }


def _colour(figure: Figure, theme: Theme) -> Part:
    return _series(
        figure, theme, [look(figure.series, name).colour for name in figure.visible_series]
    )


def _dash(figure: Figure, theme: Theme) -> Part:
    dashes = []
    for name in figure.visible_series:
        dash = [theme.line * length for length in look(figure.series, name).dash]
        # An empty dash is a solid line, which Vega takes as a dash without a gap.
        dashes.append(dash or [1, 0])
    return _series(figure, theme, dashes) | {"legend": None}


def _series(figure: Figure, theme: Theme, looks: Sequence[Any]) -> Part:
    """The series as colours, markers or dashes."""
    # 8 letters are room for the marker and the gap.
    letters_per_name = max(map(len, figure.visible_series)) + 8
    names_per_row = theme.letters(theme.legend) // letters_per_name
    return {
        "field": "series",
        "type": "nominal",
        "title": figure.legend,
        "scale": {"domain": list(figure.visible_series), "range": looks},
        "legend": {"columns": max(1, min(len(figure.visible_series), names_per_row))},
    }
