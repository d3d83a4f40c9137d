"""The picture of a paid evaluation: accuracies with their intervals, by group."""

from __future__ import annotations

import math

from tacit.measure.evaluation import Evaluation
from tacit.measure.paid_figures import Figures
from tacit.models.metrics import Spread
from tacit.report import charts, paper
from tacit.report.figure import Axis, Figure, Panel, Point

ACCURACY = "accuracy"
BALANCED = "balanced accuracy"
SERIES = (ACCURACY, BALANCED)


def evaluation_figure(result: Evaluation) -> Figure:
    """Return the figure of an evaluation: a place for all records, and one for each group."""
    places = {"all": result.overall} | result.groups
    points = []
    for name, figures in places.items():
        points.append(_point(name, ACCURACY, figures.accuracy, figures))
        points.append(_point(name, BALANCED, figures.balanced_accuracy, figures))
    return Figure(
        name="evaluation",
        title="Accuracy on private test records, with 95 % intervals that cover the noise",
        caption=result.guarantee_.figures(),
        legend="figure",
        series=SERIES,
        panels=(Panel("by group", tuple(points)),),
        x=Axis("group"),
        y=Axis("share of test records", limits=(0.0, 1.0)),
    )


def _point(place: str, series: str, value: float, figures: Figures) -> Point:
    """A figure with its interval; the middle of the interval where noise hides the figure."""
    low, high = figures.interval(series.replace(" ", "_"))
    if math.isnan(value):
        value = (low + high) / 2
    return Point(series, place, Spread(value, low, high), ())


def evaluation_image(result: Evaluation, kind: str) -> bytes:
    """Return a file of one of `vega.FORMATS` with the picture."""
    return paper.image(charts.dots, evaluation_figure(result), kind)
