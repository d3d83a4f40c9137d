"""Figures for papers, drawn by vl-convert, which needs no browser, no network and no fonts of the system."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING

from tacit.report.figure import Figure
from tacit.report.theme import PAPER, Theme

if TYPE_CHECKING:
    import altair as alt

PIXELS_PER_INCH = 200  # of a PNG
FORMATS = ("pdf", "svg", "png")


def image(draw: Callable[[Figure, Theme], alt.TopLevelConcatSpec], figure: Figure, format: str) -> bytes:
    """A file of one of FORMATS: the figure under its title."""
    import vl_convert

    chart = draw(figure, PAPER).to_dict(validate=False)
    width = sum(panel["width"] for panel in chart["concat"][: chart["columns"]]) + 30
    lines = textwrap.wrap(figure.title, PAPER.letters(width) * 5 // 4)
    chart["title"] = {"text": lines, "anchor": "middle", "fontSize": 9, "fontWeight": "normal"}
    if format == "svg":
        return str(vl_convert.vegalite_to_svg(chart)).encode()
    if format == "png":
        return bytes(vl_convert.vegalite_to_png(chart, ppi=PIXELS_PER_INCH))
    return bytes(vl_convert.vegalite_to_pdf(chart))
