"""Looks of charts, on the page and in a paper.

Each series gets a colour, a marker and a dash; any one of them suffices to tell the first five
apart, so figures can be printed in grey. The colours are those of Okabe and Ito that show on white.
The numbers of colours, markers and dashes have no common divisor, so that no two of 280 series look
alike. Thin dashes stand for learners without privacy alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#000000", "#56B4E9")
MARKERS = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-right",
    "triangle-left",
)

# lengths of line and gap in turn, in line widths; without any the line is solid
DASHES = ((), (5, 1.5, 1, 1.5), (1, 1.2), (9, 2), (4, 1.2, 1, 1.2, 1, 1.2))

# most markers on one line
MOST_MARKERS = 12


class Look(NamedTuple):
    """The colour, the marker and the dash of a series."""

    colour: str
    marker: str
    dash: tuple[float, ...]


def look(series: Sequence[str], name: str) -> Look:
    """Return the look of a series, which its position among all of them decides."""
    position = series.index(name)
    return Look(
        colour=COLOURS[position % len(COLOURS)],
        marker=MARKERS[position % len(MARKERS)],
        dash=DASHES[position % len(DASHES)],
    )


@dataclass(frozen=True)
class Theme:
    """Sizes of a chart, in pixels of a page or points of a paper (1/72 inch)."""

    fonts: str
    """CSS families."""
    text: float
    """Font size; markers, lines and gaps grow with it."""
    widths: Mapping[int, float]
    """Of a panel, by the number of columns."""
    height: float
    """Of a panel of lines or of means."""
    dots_height: float
    """Of a panel of dots."""
    legend: float
    """Width of the legend."""

    @property
    def em(self) -> float:
        """Size of everything, relative to that beside text of size 12."""
        return self.text / 12

    @property
    def line(self) -> float:
        """Width of a line."""
        return 2 * self.em

    def letters(self, width: float) -> int:
        """Estimate how many letters fit into a width."""
        # on average a letter is 0.59 times as wide as the font size
        return int(width / (0.59 * self.text))

    def config(self) -> dict[str, Any]:
        """Return Vega-Lite's configuration.

        Vega-Lite's sizes of markers are areas; a limit of 0 is none.
        """
        text_sizes = {"labelFontSize": self.text, "titleFontSize": self.text}
        legend = {
            "orient": "bottom",
            "labelLimit": 0,
            "symbolSize": 90 * self.em**2,
            "symbolOpacity": 1,
        }
        return {
            "font": self.fonts,
            "axis": text_sizes | {"titleFontWeight": "normal", "gridOpacity": 0.5},
            "title": {
                "fontSize": 13 * self.em,
                "fontWeight": "bold",
                "subtitleFontSize": self.text,
            },
            "legend": text_sizes | legend,
            "view": {"stroke": "#bbb"},
            "style": self._styles(),
        }

    def _styles(self) -> dict[str, dict[str, Any]]:
        """Return the look of each kind of mark, by the names that `charts.py` uses."""
        em = self.em
        area = em**2
        return {
            "marker": {"filled": True, "size": 60 * area},
            "not-private": {"strokeDash": [4 * em, 4 * em]},
            # an outline, white inside, that covers the line beneath
            "not-private-marker": {
                "filled": False,
                "fill": "white",
                "size": 60 * area,
                "strokeWidth": self.line,
            },
            # a ring around the best result, and the name of its series
            "best": {
                "filled": False,
                "size": 230 * area,
                "color": "black",
                "strokeWidth": 1.2 * em,
            },
            "best-name": {"fontSize": 11 * em, "baseline": "bottom", "dy": -4 * em},
            # the edge is opaque, the inside is not: rows lie on each other
            "test-row": {"filled": True, "size": 30 * area, "opacity": 1, "fillOpacity": 0.6},
            "mean": {"strokeWidth": em},
            "true-mean": {
                "color": "black",
                "fill": "white",
                "size": 45 * area,
                "strokeWidth": self.line,
            },
            "private-mean": {
                "color": "black",
                "shape": "diamond",
                "filled": True,
                "size": 90 * area,
            },
        }


# for a page 1200 pixels wide
PAGE = Theme(
    fonts="system-ui, sans-serif",
    text=12,
    widths={1: 640, 2: 470, 3: 300},
    height=290,
    dots_height=200,
    legend=1000,
)

# for a paper: text of 8 points; panels of 4.2, 2.9 or 2.2 inches; vl-convert brings the first font
PAPER = Theme(
    fonts="Liberation Sans, Arial, sans-serif",
    text=8,
    widths={1: 302, 2: 209, 3: 158},
    height=137,
    dots_height=101,
    legend=480,
)
