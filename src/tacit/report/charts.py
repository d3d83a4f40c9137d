"""Drawings as charts for a page: marks tell learner, budget, seeds and cells, and a click on the legend picks a series.

A chart is one altair specification whose parts are plain Vega-Lite, put together unchecked: altair's own way of
layering copies and checks charts over and over, seconds for each, and a sweep has many. `to_dict()` checks a chart.
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tacit.report.figures import ROUGH_LABEL, ROUGH_TICKS
from tacit.report.style import MOST_MARKS, NOT_PRIVATE, RIGHT, WRONG, columns_of, legend_columns, look
from tacit.report.summary import Axis, Drawing, Mean, Panel, Picture, Pictures, Point, by_series

if TYPE_CHECKING:
    import altair as alt

    Part = dict[str, Any]

WIDTHS = {1: 640, 2: 470, 3: 300}  # of a panel in pixels, by the number of columns, for a page of 1200
HEIGHT, LOW = 290, 200
LEGEND_LETTERS = 140
LETTERS = {1: 90, 2: 65, 3: 40}  # of names that fit below a panel
THICK = 2.0
SHOWN_KEYS = 3
PICKED = "picked"
SEEN = {"condition": {"param": PICKED, "value": 1}, "value": 0.1}
FAINT = {"condition": {"param": PICKED, "value": 0.15}, "value": 0.02}
CONFIG: Part = {
    "font": "system-ui, sans-serif",
    "axis": {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "gridOpacity": 0.5},
    "title": {"fontSize": 13, "fontWeight": "bold"},
    "legend": {"orient": "bottom", "labelFontSize": 12, "labelLimit": 0, "symbolSize": 90, "symbolOpacity": 1},
    "view": {"stroke": "#bbb"},
}
TOLD = {"learner": "learner", "budget": "budget", "seeds": "seeds", "cells": "cells"}  # by title
NUMBERS = {"median": "median", "25 % quantile": "low", "75 % quantile": "high"}


def lines(drawing: Drawing) -> alt.TopLevelConcatSpec:
    """Lines with their bands, flat lines of what is not private, rings around the best."""
    return _sheet(drawing, _lines_panel, columns_of(drawing.panels))


def dots(drawing: Drawing) -> alt.TopLevelConcatSpec:
    """Points beside each other at each name on the x axis, with bars of their quantiles."""
    return _sheet(drawing, _dots_panel, columns_of(drawing.panels))


def bars(drawing: Drawing) -> alt.TopLevelConcatSpec:
    """Horizontal bars at each name on the x axis, with their quantiles as lines."""
    return _sheet(drawing, _bars_panel, 1)  # beside them stand names


def pictures(drawing: Pictures) -> alt.TopLevelConcatSpec:
    """Test rows by right and wrong, and a line from each true mean to its private one."""
    panels = [_picture_panel() | _headed(panel, _picture_rows(panel)) for panel in drawing.panels]
    return _put_together(panels, columns_of(drawing.panels))


def _sheet(drawing: Drawing, draw: Callable[[Drawing, Panel, str], Part], columns: int) -> alt.TopLevelConcatSpec:
    """Panels in which a click on the legend picks a series; it goes through the markers, which the legend shows."""
    views = [f"markers_{place}" for place in range(len(drawing.panels))]
    drawn = zip(drawing.panels, views, strict=True)
    panels = [draw(drawing, panel, view) | _headed(panel, _panel_rows(panel)) for panel, view in drawn]
    pick = {"name": PICKED, "select": {"type": "point", "fields": ["series"]}, "bind": "legend", "views": views}
    return _put_together(panels, columns, params=[pick])


def _headed(panel: Panel | Picture, rows: list[Part]) -> Part:
    return {"title": {"text": panel.title}, "data": {"values": rows}}


def _put_together(panels: Sequence[Part], columns: int, **more: Any) -> alt.TopLevelConcatSpec:
    """Panels side by side with one legend."""
    import altair as alt
    from altair.utils.schemapi import debug_mode

    width = WIDTHS[columns]
    concat = [panel | {"width": width, "title": panel["title"] | {"limit": width}} for panel in panels]
    apart = {"strokeDash": "independent"}  # else the legend's markers are dashed, though dashes have no legend
    resolve = {"scale": {"color": "shared", "shape": "shared"} | apart}
    with debug_mode(False):
        return alt.TopLevelConcatSpec(
            concat=concat, columns=columns, spacing=30, config=CONFIG, resolve=resolve, **more
        )


# Panels


def _lines_panel(drawing: Drawing, panel: Panel, view: str) -> Part:
    x, colour = _position("x", drawing.x), _colour(drawing)
    span = {"x": x, "y": _position("low", drawing.y), "y2": {"field": "high"}, "color": colour}
    line = {"x": x, "y": _position("median", drawing.y), "color": colour, "strokeDash": _dash(drawing), "opacity": SEEN}
    layers = [
        _layer("datum.band", {"type": "area"}, span | {"opacity": FAINT}),
        _layer("datum.alone", {"type": "rule"}, span),
        _layer("datum.part == 'line'", {"type": "line", "strokeWidth": THICK}, line),
        _layer("datum.marked", {"type": "point", "filled": True, "size": 60}, _mark(drawing) | {"x": x})
        | {"name": view},
        *(_flat(drawing) if panel.flat else []),
        *(_best(drawing) if panel.best else []),
    ]
    if not drawing.x.rough:
        return {"layer": layers, "height": HEIGHT}
    own_axis = {"axis": {"x": "independent"}}
    return {"layer": [_rough(drawing), {"layer": layers}], "height": HEIGHT, "resolve": own_axis}


def _flat(drawing: Drawing) -> list[Part]:
    """Dashed lines across, with the series's marker at the right end."""
    mark = _mark(drawing)
    across = {name: mark[name] for name in ("y", "color", "opacity", "tooltip")}
    ring = {"type": "point", "filled": False, "fill": "white", "size": 60, "strokeWidth": THICK}
    return [
        _layer("datum.part == 'flat'", {"type": "rule", "strokeDash": list(NOT_PRIVATE)}, across),
        _layer("datum.part == 'flat'", ring, mark | {"x": {"value": "width"}}),
    ]


def _best(drawing: Drawing) -> list[Part]:
    """Rings around the best points, and their names at the bottom."""
    x = _position("x", drawing.x)
    ring = {"type": "point", "filled": False, "size": 230, "color": "black", "strokeWidth": 1.2}
    text = {"type": "text", "fontSize": 11, "baseline": "bottom", "dy": -4}
    named = {"x": x, "y": {"value": HEIGHT}, "text": {"field": "series", "type": "nominal"}}
    return [
        _layer("datum.part == 'best'", ring, {"x": x, "y": _position("median", drawing.y)}),
        _layer("datum.part == 'best'", text, named),
    ]


def _rough(drawing: Drawing) -> Part:
    """The axis of rough epsilon above, of no marks."""
    assert drawing.x.limits is not None
    low, high = drawing.x.limits
    ticks = [rough**2 / 2 for rough in ROUGH_TICKS if low <= rough**2 / 2 <= high]
    label = "format(sqrt(2 * datum.value), '.3~g')"
    axis = {"orient": "top", "values": ticks, "labelExpr": label, "title": ROUGH_LABEL, "grid": False}
    return _layer("false", {"type": "point"}, {"x": _position("x", drawing.x) | {"axis": axis}})


def _dots_panel(drawing: Drawing, panel: Panel, view: str) -> Part:
    letters = max(8, LETTERS[columns_of(drawing.panels)] // len(panel.names))
    folded = json.dumps({name: textwrap.wrap(name, letters) for name in panel.names})
    axis = {"labelAngle": 0, "labelLimit": 0, "labelExpr": f"({folded})[datum.label]"}
    beside = {"field": "series", "type": "nominal", "sort": list(drawing.shown), "scale": {"paddingOuter": 0.4}}
    place = {
        "x": {"field": "x", "type": "nominal", "title": drawing.x.title, "axis": axis, "sort": panel.names},
        "xOffset": beside,
    }
    span = {"y": _position("low", drawing.y), "y2": {"field": "high"}, "color": _colour(drawing), "opacity": SEEN}
    layers = [
        _layer("true", {"type": "rule", "strokeWidth": THICK}, place | span),
        _layer("true", {"type": "point", "filled": True, "size": 70}, place | _mark(drawing)) | {"name": view},
    ]
    return {"layer": layers, "height": LOW}


def _bars_panel(drawing: Drawing, panel: Panel, view: str) -> Part:
    assert drawing.y.limits is not None
    bars = sorted(panel.points, key=lambda point: (panel.names.index(str(point.x)), drawing.shown.index(point.series)))
    names: dict[str, str] = {}  # of bars; the first of each name is labelled
    for point in bars:
        names[f"{point.x}, {point.series}"] = "" if point.x in names.values() else str(point.x)
    axis = {"labelLimit": 400, "labelExpr": f"({json.dumps(names)})[datum.label]", "ticks": False}
    y = {"field": "bar", "type": "nominal", "title": None, "sort": list(names), "axis": axis}
    length = _mark(drawing) | {"x": _position("median", drawing.y), "x2": {"datum": drawing.y.limits[0]}, "y": y}
    span = {"x": _position("low", drawing.y), "x2": {"field": "high"}, "y": y, "opacity": SEEN}
    del length["shape"]
    layers = [
        _layer("true", {"type": "bar", "height": {"band": 0.7}}, length) | {"name": view},
        _layer("true", {"type": "rule", "strokeWidth": THICK, "color": "black"}, span),
    ]
    several = len(panel.points) > len(panel.names)
    bar = [{"calculate": "datum.x + ', ' + datum.series", "as": "bar"}]
    return {"transform": bar, "layer": layers, "height": max(60, (10 if several else 24) * len(panel.points))}


def _picture_panel() -> Part:
    x, y = _position("x", Axis("first direction")), _position("y", Axis("second direction"))
    to = {"x": x | {"field": "to_x"}, "y": y | {"field": "to_y"}}
    kinds = {"field": "row", "type": "nominal", "title": "test row"}
    colour = kinds | {"scale": {"domain": ["right", "wrong"], "range": [RIGHT, WRONG]}}
    shape = kinds | {"scale": {"domain": ["right", "wrong"], "range": ["circle", "cross"]}}
    told = {"tooltip": [{"field": name, "type": "nominal"} for name in ("class", "cell")]}
    test = {"type": "point", "filled": True, "size": 30, "opacity": 0.6}
    ring = {"type": "point", "color": "black", "fill": "white", "size": 45}
    diamond = {"type": "point", "color": "black", "shape": "diamond", "filled": True, "size": 90}
    layers = [
        _layer("datum.row", test, {"x": x, "y": y, "color": colour, "shape": shape}),
        _layer("!datum.row", {"type": "rule"}, {"x": x, "y": y, "x2": {"field": "to_x"}, "y2": {"field": "to_y"}}),
        _layer("!datum.row", ring, told | {"x": x, "y": y}),
        _layer("!datum.row", diamond, told | to),
    ]
    return {"layer": layers, "height": HEIGHT}


# Rows


def _panel_rows(panel: Panel) -> list[Part]:
    """Points as plain rows; of a long line only some points carry a marker."""
    rows = []
    for _, own in by_series(panel.points):
        every, alone = math.ceil(len(own) / MOST_MARKS), len(own) == 1
        for place, point in enumerate(own):
            told = {"marked": place % every == 0, "alone": alone, "band": not alone and len(point.cells) > 1}
            rows.append(_row(point, "line") | told)
    return rows + [_row(point, "flat") for point in panel.flat] + [_row(point, "best") for point in panel.best]


def _row(point: Point, part: str) -> Part:
    budgets = sorted({cell.budget for cell in point.cells})
    keys = [cell.key for cell in point.cells]
    more = f" and {len(keys) - SHOWN_KEYS} more" if len(keys) > SHOWN_KEYS else ""
    return {
        "part": part,
        "series": point.series,
        "x": point.x,
        "median": point.y.median,
        "low": point.y.low,
        "high": point.y.high,
        "learner": ", ".join(sorted({cell.learner for cell in point.cells})),
        "budget": budgets[0] if len(budgets) == 1 else f"{len(budgets)} budgets",
        "seeds": len({cell.seed for cell in point.cells}),
        "cells": ", ".join(keys[:SHOWN_KEYS]) + more,
    }


def _picture_rows(panel: Picture) -> list[Part]:
    rows = [{"x": round(x, 4), "y": round(y, 4), "row": "right" if right else "wrong"} for x, y, right in panel.points]
    means = [{"class": mean.number, "cell": panel.cell.key, **_ends(mean)} for mean in panel.means]
    return [*rows, *means]


def _ends(mean: Mean) -> dict[str, float]:
    (x, y), (to_x, to_y) = mean.true, mean.private
    return {"x": x, "y": y, "to_x": to_x, "to_y": to_y}


# Parts of layers


def _layer(which: str, mark: Part, encoding: Part) -> Part:
    """Marks for the rows of which something is true."""
    return {"transform": [{"filter": which}], "mark": mark, "encoding": encoding}


def _mark(drawing: Drawing) -> Part:
    """How a series's marker is encoded, apart from its x, and what it tells."""
    looks = [look(drawing.series, name).shape for name in drawing.shown]
    texts = {drawing.legend: "series", drawing.x.title: "x"} | {
        title: field for title, field in TOLD.items() if title != drawing.legend
    }
    return {
        "y": _position("median", drawing.y),
        "color": _colour(drawing),
        "shape": _series(drawing, looks),
        "opacity": SEEN,
        "tooltip": [
            *({"field": field, "title": title, "type": "nominal"} for title, field in texts.items() if title),
            *(
                {"field": field, "title": title, "type": "quantitative", "format": ".4~g"}
                for title, field in NUMBERS.items()
            ),
        ],
    }


def _position(field: str, axis: Axis) -> Part:
    scale: Part = {"type": "log" if axis.log else "linear", "zero": False}
    scale |= {"domain": list(axis.limits), "nice": False} if axis.limits else {"padding": 12}
    whole = {"format": "d", "labelExpr": "datum.value % 1 == 0 ? datum.label : ''"} if axis.whole else {}
    ticks = {"tickCount": 6, "labelOverlap": True} | whole
    return {"field": field, "type": "quantitative", "title": axis.title, "scale": scale, "axis": ticks}


def _colour(drawing: Drawing) -> Part:
    return _series(drawing, [look(drawing.series, name).colour for name in drawing.shown])


def _dash(drawing: Drawing) -> Part:
    dashes = [look(drawing.series, name).dash for name in drawing.shown]
    drawn = _series(drawing, [[THICK * part for part in dash] or [1, 0] for dash in dashes])
    return drawn | {"legend": None}


def _series(drawing: Drawing, looks: Sequence[Any]) -> Part:
    """The series as colours, shapes or dashes."""
    return {
        "field": "series",
        "type": "nominal",
        "title": drawing.legend,
        "scale": {"domain": list(drawing.shown), "range": looks},
        "legend": {"columns": legend_columns(drawing.shown, LEGEND_LETTERS)},
    }
