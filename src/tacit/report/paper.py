"""Charts and tables as files, drawn by vl-convert, which needs no browser, no network and no fonts of the system."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tacit.report.figure import Figure
from tacit.report.theme import PAPER, Theme

if TYPE_CHECKING:
    import altair as alt

PIXELS_PER_INCH = 200
PAGE_LINES = 60
SMALL = 6.0  # size of a table's text


def drawn(chart: dict[str, Any], format: str) -> bytes:
    """A file of a Vega-Lite chart."""
    import vl_convert

    if format == "svg":
        return str(vl_convert.vegalite_to_svg(chart)).encode()
    if format == "png":
        return bytes(vl_convert.vegalite_to_png(chart, ppi=PIXELS_PER_INCH))
    return bytes(vl_convert.vegalite_to_pdf(chart))


def png(draw: Callable[[Figure, Theme], alt.TopLevelConcatSpec], figure: Figure) -> bytes:
    """A bitmap of a figure with its title."""
    return drawn(titled(draw(figure, PAPER), figure), "png")


def titled(chart: alt.TopLevelConcatSpec, figure: Figure, *, caption: bool = False) -> dict[str, Any]:
    """The chart with its title above and, if asked for, its caption below."""
    inner: dict[str, Any] = chart.to_dict(validate=False)
    top = {name: inner.pop(name) for name in ("config", "params") if name in inner}
    width = sum(part["width"] for part in inner["concat"][: inner["columns"]]) + 30
    inner["title"] = {"text": _wrapped(figure.title, width), "anchor": "middle", "fontSize": 9, "fontWeight": "normal"}
    if not caption:
        return top | inner
    below = {"orient": "bottom", "anchor": "start", "fontWeight": "normal", "fontSize": 8, "offset": 12}
    return top | {"vconcat": [inner], "title": below | {"text": _wrapped(figure.caption, width)}}


def text_pages(title: str, rows: Sequence[Sequence[str]]) -> Iterator[dict[str, Any]]:
    """Charts of nothing but text: pages of rows in columns."""
    widths = [max(len(row[column]) for row in rows) * 0.56 * SMALL + SMALL for column in range(len(rows[0]))]
    starts = [sum(widths[:column]) for column in range(len(widths))]
    place = {"type": "quantitative", "scale": None, "axis": None}
    for first in range(0, len(rows), PAGE_LINES):
        page = rows[first : first + PAGE_LINES]
        values = [
            {"text": text, "x": start, "y": 1.4 * SMALL * line}
            for line, row in enumerate(page)
            for start, text in zip(starts, row, strict=True)
        ]
        yield {
            "title": {"text": title, "anchor": "start"},
            "data": {"values": values},
            "mark": {"type": "text", "align": "left", "baseline": "top", "fontSize": SMALL, "limit": 0},
            "encoding": {"x": {"field": "x", **place}, "y": {"field": "y", **place}, "text": {"field": "text"}},
            "width": sum(widths),
            "height": 1.4 * SMALL * len(page),
            "config": {**PAPER.config(), "view": {"stroke": None}},
        }


def wrapped(text: str) -> list[list[str]]:
    """Text as rows of one column, for `text_pages`."""
    return [[line] for line in textwrap.wrap(text, 110)]


def _wrapped(text: str, width: float) -> list[str]:
    return textwrap.wrap(text, PAPER.letters(width) * 5 // 4)
