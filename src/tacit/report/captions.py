"""Captions: what a figure shows, then guarantee, tuning, noise and the number of cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tacit.experiments.results import Result
from tacit.report.figure import MeansPanel, Panel
from tacit.report.groups import SweepResults, grouped, unprotected, without_cost
from tacit.report.words import unit_sentence

TUNING = {
    "none": "parameters fixed before any data",
    "paid": "parameters tuned on private records within the guarantee",
    "unpaid": "parameters tuned outside the guarantee",
}
NOISE = "Noise was drawn for research, from seeds, not for a release."
AXIS_ABOVE = (
    "The axis above is the papers' rough epsilon e, where rho = e²/2: an axis, not a guarantee."
)


def caption(about: str, panels: Sequence[Panel | MeansPanel]) -> str:
    """Say what the figure is about, then what every caption says of the results shown."""
    results = list({one.key: one for panel in panels for one in panel.results}.values())
    counted = "1 cell" if len(results) == 1 else f"{len(results):,} cells"
    hidden = _by_learner(results, lambda one: unit_sentence(one.unit))
    tuning = _by_learner(
        results, lambda one: f"{one.tuning} ({TUNING.get(one.tuning, one.tuning)})"
    )
    exposed = [one for one in results if unprotected(one)]
    not_protected = [f"Not protected: {_with_learners(exposed, unprotected)}."] if exposed else []
    sentences = [
        about,
        f"The guarantee hides {hidden}.",
        *not_protected,
        f"Tuning: {tuning}.",
        NOISE,
    ]
    return " ".join([*sentences, f"Shows {counted}."])


def overview(sweep: SweepResults) -> str:
    """Say what was swept, and what the figures leave out."""
    plans = ", ".join(sorted({one.plan for one in sweep.done}))
    text = (
        f"Plan: {plans}. {len(sweep.done):,} cells were done, {len(sweep.failed):,} failed. {NOISE}"
    )
    if left_out := without_cost(sweep.done):
        text += (
            f" {left_out:,} cells state no cost above 0, so they have no place on an axis of costs."
        )
    return text


def about_seeds(panels: Sequence[Panel], mark: str) -> str:
    """Say how many seeds a point stands for; `mark` names what shows their quantiles, such as a
    band.
    """
    counts = sorted(
        {len(point.results) for panel in panels for point in (*panel.points, *panel.flat)}
    )
    if counts == [1]:
        return f"One seed each, so no {mark}."
    over = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"Medians over {over} seeds; the {mark} spans the 25 to 75 % quantiles."


def _by_learner(results: Sequence[Result], say: Callable[[Result], str]) -> str:
    """The fact that holds of all results, or each fact with its learners."""
    facts = [fact for (fact,), _ in grouped(results, say)]
    return str(facts[0]) if len(facts) == 1 else _with_learners(results, say)


def _with_learners(results: Sequence[Result], say: Callable[[Result], str]) -> str:
    return "; ".join(
        f"{fact} for {', '.join(repr(name) for (name,), _ in grouped(group, 'learner'))}"
        for (fact,), group in grouped(results, say)
    )
