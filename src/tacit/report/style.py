"""How a series looks: a colour, a marker and a line each, so that none is needed to tell two apart, in both back ends.

The colours are those of Okabe and Ito that show on white. The numbers of colours, markers and lines have no common
divisor, so that no two of 280 series look alike. Thin dashes are kept for what is not private.
"""

from collections.abc import Sequence
from dataclasses import dataclass

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#000000", "#56B4E9")
MARKERS = (  # of vega, of matplotlib
    ("circle", "o"),
    ("square", "s"),
    ("triangle-up", "^"),
    ("diamond", "D"),
    ("cross", "P"),
    ("triangle-down", "v"),
    ("triangle-right", ">"),
    ("triangle-left", "<"),
)
DASHES = ((), (5, 1.5, 1, 1.5), (1, 1.2), (9, 2), (4, 1.2, 1, 1.2, 1, 1.2))  # in widths of the line
NOT_PRIVATE = (4, 4)
MOST_MARKS = 12  # on one line
RIGHT, WRONG = COLOURS[6], COLOURS[1]


@dataclass(frozen=True)
class Look:
    """How one series looks."""

    colour: str
    shape: str
    """Marker in vega."""
    marker: str
    """Marker in matplotlib."""
    dash: tuple[float, ...]
    """Lengths of dashes and gaps in widths of the line; empty is a solid line."""


def look(series: Sequence[str], name: str) -> Look:
    """The look of one of several series, by its position."""
    number = series.index(name)
    shape, marker = MARKERS[number % len(MARKERS)]
    return Look(COLOURS[number % len(COLOURS)], shape, marker, DASHES[number % len(DASHES)])


def legend_columns(names: Sequence[str], letters: float) -> int:
    """How many names fit side by side in a legend that is so many letters wide."""
    widest = max(len(name) for name in names) + 8  # for the line before it
    return max(1, min(len(names), int(letters // widest)))


def columns_of(panels: Sequence[object]) -> int:
    """How many panels stand side by side."""
    return 2 if len(panels) == 4 else min(3, len(panels))
