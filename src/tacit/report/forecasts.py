"""The picture of a forecast: balanced and minority accuracy against epsilon."""

from __future__ import annotations

import math

from tacit.measure.forecast_result import Forecast, ForecastRow
from tacit.models.metrics import Spread
from tacit.privacy.decimals import rounded_up
from tacit.report import charts, paper
from tacit.report.charts import Chart
from tacit.report.figure import Axis, Figure, Panel, Point, log_axis
from tacit.report.theme import PAGE
from tacit.report.vega import FORMATS

BALANCED = "balanced accuracy"
MINORITY = "smallest 25 % of classes"
SERIES = (BALANCED, MINORITY)


def forecast_figure(forecast: Forecast) -> Figure:
    """Return the figure of a forecast: a panel for each kind of pseudo-classes."""
    panels = []
    for kind in dict.fromkeys(row.pseudo_classes for row in forecast.table):
        *private, baseline = forecast.rows(kind)
        points = [point for name in SERIES for point in _points(private, name)]
        flat = [_point(baseline, name) for name in SERIES]
        panels.append(Panel(f"pseudo-classes: {kind}", tuple(points), flat=tuple(flat)))

    epsilons = [row.epsilon for row in forecast.table if math.isfinite(row.epsilon)]
    return Figure(
        name="forecast",
        title=f"Forecast for {forecast.method}: {', '.join(forecast.declared)}",
        caption=forecast.sentence,
        legend="accuracy of",
        series=SERIES,
        panels=tuple(panels),
        x=log_axis(f"epsilon at delta {rounded_up(forecast.delta)}", epsilons),
        y=Axis("accuracy to expect", limits=(0.0, 1.0)),
    )


def forecast_chart(forecast: Forecast) -> Chart:
    """Return the picture as a chart that a notebook shows."""
    return charts.lines(forecast_figure(forecast), PAGE)


def forecast_image(forecast: Forecast, kind: str) -> bytes:
    """Return a file of one of `FORMATS` with the picture."""
    return paper.image(charts.lines, forecast_figure(forecast), kind)


def _points(rows: list[ForecastRow], name: str) -> list[Point]:
    ordered = sorted(rows, key=lambda row: row.epsilon)
    return [_point(row, name) for row in ordered]


def _point(row: ForecastRow, name: str) -> Point:
    accuracy = row.balanced if name == BALANCED else row.minority
    return Point(name, row.epsilon, Spread(accuracy, accuracy, accuracy), ())


__all__ = ["FORMATS", "forecast_chart", "forecast_figure", "forecast_image"]
