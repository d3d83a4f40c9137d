"""The picture of coverage against accuracy: rows that are answered, and answers that are right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tacit.models.coverage import Coverage
from tacit.models.metrics import spread
from tacit.report import charts, paper
from tacit.report.figure import Axis, Figure, Panel, Point
from tacit.report.vega import FORMATS

ABOUT = (
    "A point for each probability that an answer must reach, from {lowest:g} at the right to"
    " {highest:g} at the left. An answer above the classes is right if the true class is below it."
)


def coverage_figure(
    series: Mapping[str, Sequence[Coverage]], title: str = "Coverage against accuracy"
) -> Figure:
    """Return the figure of some series of coverages, such as with and without a tree."""
    points = []
    for name, coverages in series.items():
        for found in coverages:
            if found.right is not None:
                points.append(Point(name, 100 * found.answered, spread([100 * found.right]), ()))

    asked = [found.at_least for coverages in series.values() for found in coverages]
    lowest = min((point.y.median for point in points), default=0.0)
    return Figure(
        name="coverage",
        title=title,
        caption=ABOUT.format(lowest=min(asked), highest=max(asked)),
        legend="answers",
        series=tuple(series),
        panels=(Panel("", tuple(points)),),
        x=Axis("answered (% of rows)", limits=(0.0, 100.0)),
        y=Axis("right (% of answers)", limits=(max(0.0, lowest - 2), 100.0)),
    )


def coverage_image(
    series: Mapping[str, Sequence[Coverage]], kind: str, title: str = "Coverage against accuracy"
) -> bytes:
    """Return a file of one of `FORMATS` with the picture."""
    return paper.image(charts.lines, coverage_figure(series, title), kind)


__all__ = ["FORMATS", "coverage_figure", "coverage_image"]
