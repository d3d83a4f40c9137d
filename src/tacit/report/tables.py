"""Tables of a sweep: medians over seeds for each learner and budget, the hyperparameters that were
used, and the cells that failed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from tacit.experiments.results import SETTINGS, Result
from tacit.models.metrics import spread
from tacit.privacy.decimals import rounded_up
from tacit.report.accuracy import BALANCED, MINORITY
from tacit.report.captions import TUNING
from tacit.report.groups import SweepResults, budgets, grouped, loaded, number
from tacit.report.words import imbalance_words, ratio_words, unit_words

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
SETTINGS_HEADER = ("learner", "imbalance", "budget", "hyperparameters", "tuning", "seeds")
CELL_HEADER = ("cell", "seed", "balanced", "minority", "fit, seconds")
FAILED_HEADER = ("cell", "learner", "data", "encoder", "imbalance", "budget", "seed", "error")


class Row(NamedTuple):
    """A learner at a budget, over seeds: its texts under `HEADER`, and its results."""

    texts: tuple[str, ...]
    results: tuple[Result, ...]


def tables(sweep: SweepResults) -> list[tuple[str, list[Row]]]:
    """Return a title and rows for each data set, encoder and imbalance."""
    tables = []
    for (data, encoder, ratio), results in grouped(sweep.done, "data", "encoder", "imbalance"):
        title = f"{data}, {encoder}, {imbalance_words(ratio)}"
        tables.append((title, list(_rows(sweep, results))))
    return tables


def _rows(sweep: SweepResults, results: Iterable[Result]) -> Iterator[Row]:
    """Yield a row for each learner and budget; its results differ in the seed alone."""
    for (label,), results_of_learner in grouped(results, sweep.label):
        for budget, group in budgets(results_of_learner):
            epsilons = [f"{_price(result.epsilon)} ({_price(result.delta)})" for result in group]
            texts = (
                label,
                budget,
                _distinct(_price(result.rho) for result in group),
                _distinct(epsilons),
                unit_words(group[0].unit),
                group[0].tuning,
                str(len({result.seed for result in group})),
                _median(group, BALANCED),
                _median(group, MINORITY),
            )
            yield Row(texts, tuple(group))


def settings_tables(sweep: SweepResults) -> list[tuple[str, list[tuple[str, ...]]]]:
    """Return a title and rows under SETTINGS_HEADER for each data set and encoder: the
    hyperparameters that each method used, and how they were chosen.

    Neighbouring rows with the same hyperparameters are one, over several budgets.
    """
    tables = []
    with_settings = [result for result in sweep.done if loaded(result.extra).get(SETTINGS)]
    for (data, encoder), results in grouped(with_settings, "data", "encoder"):
        rows: list[tuple[str, ...]] = []
        for facts, group in grouped(results, sweep.label, "imbalance", settings_text, "tuning"):
            label, ratio, settings, tuning = facts
            # as planned, since an unpaid search has no cost that tells budgets apart
            names = [name for (name,), _ in grouped(group, "budget")]
            seeds = str(len({result.seed for result in group}))
            words = TUNING.get(tuning, tuning)
            rows.append(
                (label, ratio_words(ratio), ", ".join(names), settings, f"{tuning}: {words}", seeds)
            )
        tables.append((f"{data}, {encoder}", rows))
    return tables


def settings_text(result: Result) -> str:
    """Return the hyperparameters of a result, as in "d_max=1.64, d_min=1.34, k=5"."""
    settings = loaded(result.extra).get(SETTINGS)
    if not isinstance(settings, dict):
        return ""
    return ", ".join(f"{name}={_setting(value)}" for name, value in settings.items())


def _setting(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return f"[{', '.join(map(_setting, value))}]"
    return str(value)


def cell_texts(result: Result) -> tuple[str, ...]:
    """Return the measurements of one cell, under `CELL_HEADER`."""
    return (
        result.key,
        str(result.seed),
        _accuracy(result, BALANCED),
        _accuracy(result, MINORITY),
        _digits(result.fit_seconds),
    )


def failed_texts(result: Result) -> tuple[str, ...]:
    """Return the place and error of a cell that failed, under `FAILED_HEADER`."""
    return (
        result.key,
        result.learner,
        result.data,
        result.encoder,
        ratio_words(result.imbalance),
        result.budget,
        str(result.seed),
        result.error or "",
    )


def _distinct(texts: Iterable[str]) -> str:
    """Return the texts of all seeds, once where they agree."""
    return ", ".join(dict.fromkeys(texts))


def _digits(value: float | None) -> str:
    if value is None or math.isnan(value):
        return "none"
    return f"{value:.3g}"


def _price(value: float | None) -> str:
    """Return a privacy cost with three digits, rounded up."""
    if value is None or math.isnan(value):
        return "none"
    return rounded_up(value, 3)


def _accuracy(result: Result, measure: str) -> str:
    value = number(getattr(result, measure))
    if value is None:
        return "none"
    return f"{value:.3f}"


def _median(results: list[Result], measure: str) -> str:
    """Return the median, with quantiles where there is more than one seed."""
    numbers = [number(getattr(result, measure)) for result in results]
    values = [value for value in numbers if value is not None]
    if not values:
        return "none"

    over_seeds = spread(values)
    text = f"{over_seeds.median:.3f}"
    if len(results) > 1:
        text += f" [{over_seeds.low:.3f}, {over_seeds.high:.3f}]"
    return text
