"""Figures for papers: each under its title, in one of the formats of `vega`."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

from tacit.report.charts import Chart
from tacit.report.figure import Figure
from tacit.report.theme import PAPER, Theme
from tacit.report.vega import render

# points that the y axis of a row of panels takes
AXIS_WIDTH = 30


def image(draw: Callable[[Figure, Theme], Chart], figure: Figure, format: str) -> bytes:
    """Return a file of one of `vega.FORMATS` with a figure under its title."""
    chart = draw(figure, PAPER).to_dict(validate=False)

    # a row of panels, with the axis at its left
    panels = chart["concat"][: chart["columns"]]
    width = sum(panel["width"] for panel in panels) + AXIS_WIDTH

    # running text is narrower than the estimate of `letters`
    title = textwrap.wrap(figure.title, PAPER.letters(width) * 5 // 4)
    chart["title"] = {"text": title, "anchor": "middle", "fontSize": 9, "fontWeight": "normal"}
    return render(chart, format)
