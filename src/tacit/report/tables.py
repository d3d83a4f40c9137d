"""Tables of a sweep: medians over seeds for each learner and budget, and the cells that failed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tacit.experiments.results import Result
from tacit.models.metrics import spread
from tacit.report.accuracy import BALANCED, MINORITY
from tacit.report.groups import SweepResults, budgets, grouped, number
from tacit.report.words import imbalance_words, unit_words

HEADER = (
    "learner",
    "budget",
    "rho",
    "epsilon (delta)",
    "unit",
    "tuning",
    "seeds",
    "balanced",
    "minority",
)
CELL_HEADER = ("cell", "seed", "balanced", "minority", "fit, seconds")
FAILED_HEADER = ("cell", "learner", "data", "encoder", "imbalance", "budget", "seed", "error")


class Row(NamedTuple):
    """A learner at a budget, over seeds: its texts under `HEADER`, and its results."""

    texts: tuple[str, ...]
    results: tuple[Result, ...]


def tables(sweep: SweepResults) -> list[tuple[str, list[Row]]]:
    """A title and rows for each data set, encoder and imbalance."""
    return [
        (f"{data}, {encoder}, {imbalance_words(ratio)}", list(_rows(sweep, results)))
        for (data, encoder, ratio), results in grouped(sweep.done, "data", "encoder", "imbalance")
    ]


def _rows(sweep: SweepResults, results: Iterable[Result]) -> Iterator[Row]:
    for (label,), group in grouped(results, sweep.label):
        for budget, seeds in budgets(group):
            texts = (
                label,
                budget,
                _stated(_digits(one.rho) for one in seeds),
                _stated(f"{_digits(one.epsilon)} ({_digits(one.delta)})" for one in seeds),
                unit_words(seeds[0].unit),
                seeds[0].tuning,
                str(len({one.seed for one in seeds})),
                _median(seeds, BALANCED),
                _median(seeds, MINORITY),
            )
            yield Row(texts, tuple(seeds))


def cell_texts(result: Result) -> tuple[str, ...]:
    """Return the measurements of one cell, under `CELL_HEADER`."""
    accuracies = [number(getattr(result, measure)) for measure in (BALANCED, MINORITY)]
    shown = ["none" if value is None else f"{value:.3f}" for value in accuracies]
    return (result.key, str(result.seed), *shown, _digits(result.fit_seconds))


def failed_texts(result: Result) -> tuple[str, ...]:
    """The place and error of a cell that failed, under `FAILED_HEADER`."""
    place = (
        result.key,
        result.learner,
        result.data,
        result.encoder,
        f"{result.imbalance:g}",
        result.budget,
    )
    return (*place, str(result.seed), result.error or "")


def _stated(texts: Iterable[str]) -> str:
    """The texts of all seeds, once where they agree."""
    return ", ".join(dict.fromkeys(texts))


def _digits(value: float | None) -> str:
    return "none" if value is None or math.isnan(value) else f"{value:.3g}"


def _median(results: list[Result], measure: str) -> str:
    """The median, with quantiles where there is more than one seed."""
    values = [value for one in results if (value := number(getattr(one, measure))) is not None]
    if not values:
        return "none"
    over = spread(values)
    return f"{over.median:.3f}" + (
        f" [{over.low:.3f}, {over.high:.3f}]" if len(results) > 1 else ""
    )
