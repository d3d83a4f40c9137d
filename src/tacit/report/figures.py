"""Figures in the form of the papers."""

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from tacit.models.metrics import spread

ROUGH_TICKS = (0.01, 0.1, 0.2, 0.5, 1, 2, 4, 8, 32)
ROUGH_LABEL = "rough epsilon e, rho = e²/2"
RHO_LABEL = "rho (zCDP, add/remove one record)"


@dataclass(frozen=True)
class Result:
    """One fit: which method at which rho (inf is non-private) and seed, and its accuracies."""

    method: str
    rho: float
    seed: int
    balanced: float
    minority: float


def accuracy_against_rho(results: Sequence[Result], title: str) -> bytes:
    """Balanced and minority accuracy against rho, as a PNG: medians and 25 to 75 % quantiles over seeds.

    The axis above shows the papers' rough epsilon e, rho = e^2/2; it is an axis, not a guarantee. Dashed lines
    are the same methods without privacy (rho = inf).
    """
    from matplotlib.figure import Figure  # not pyplot, which would choose a backend for the whole process

    figure = Figure(figsize=(11, 4.2), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for panel, measure in zip(panels, ("balanced", "minority"), strict=True):
        for number, method in enumerate(dict.fromkeys(result.method for result in results)):
            own = [result for result in results if result.method == method]
            _line(panel, own, measure, f"C{number % 10}", "os^"[number // 10 % 3], method)
        panel.set(xscale="log", xlabel=RHO_LABEL, ylabel=f"{measure} accuracy", ylim=(0, 1))
        rough_axis(panel)
        panel.grid(alpha=0.3)
    panels[1].set_title("25 % smallest classes", fontsize=9)
    panels[0].set_title(title, fontsize=9)
    figure.legend(*panels[0].get_legend_handles_labels(), fontsize=8, loc="outside right center")
    with io.BytesIO() as file:
        figure.savefig(file, format="png", dpi=150)
        return file.getvalue()


def rough_axis(panel: Any) -> Any:
    """The papers' rough epsilon above an axis of rho."""
    above = panel.secondary_xaxis("top", functions=(_rough_epsilon, _rho))
    above.set_xticks(ROUGH_TICKS, [f"{tick:g}" for tick in ROUGH_TICKS])
    above.set_xticks([], minor=True)
    above.set_xlabel(ROUGH_LABEL)
    return above


def by_rho(results: Sequence[Result], measure: str) -> dict[float, list[float]]:
    """Values of one measure for each rho, in order of rho."""
    values: dict[float, list[float]] = {}
    for result in sorted(results, key=lambda result: result.rho):
        values.setdefault(result.rho, []).append(getattr(result, measure))
    return values


def _line(panel: Any, results: Sequence[Result], measure: str, colour: str, marker: str, label: str) -> None:
    values = by_rho(results, measure)
    reference = values.pop(math.inf, None)
    rhos = list(values)
    spreads = [spread(values[rho]) for rho in rhos]
    panel.plot(rhos, [s.median for s in spreads], marker=marker, markersize=3, color=colour, label=label)
    panel.fill_between(rhos, [s.low for s in spreads], [s.high for s in spreads], color=colour, alpha=0.15)
    if reference is not None:
        panel.axhline(median(reference), color=colour, linestyle="--", linewidth=1)


def _rough_epsilon(rho: Any) -> Any:
    return (2 * rho) ** 0.5


def _rho(rough: Any) -> Any:
    return rough**2 / 2
