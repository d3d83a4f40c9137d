"""Figures for papers: each under its title, in one of the formats of `vega`."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

from tacit.report.charts import Chart
from tacit.report.figure import Figure
from tacit.report.theme import PAPER, Theme
from tacit.report.vega import rendered


def image(draw: Callable[[Figure, Theme], Chart], figure: Figure, format: str) -> bytes:
    """A file of one of `vega.FORMATS`: the figure under its title."""
    chart = draw(figure, PAPER).to_dict(validate=False)
    width = sum(panel["width"] for panel in chart["concat"][: chart["columns"]]) + 30
    lines = textwrap.wrap(figure.title, PAPER.letters(width) * 5 // 4)
    chart["title"] = {"text": lines, "anchor": "middle", "fontSize": 9, "fontWeight": "normal"}
    return rendered(chart, format)
