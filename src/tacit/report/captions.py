"""Captions: what a figure shows, then guarantee, tuning, noise and the number of cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tacit.experiments.results import Result
from tacit.report.figure import MeansPanel, Panel
from tacit.report.groups import SweepResults, grouped, unprotected, without_cost
from tacit.report.words import unit_sentence

# how parameters were chosen, by the words of plans
TUNING = {
    "none": "parameters fixed before any data",
    "paid": "parameters tuned on private records within the guarantee",
    "unpaid": "parameters tuned outside the guarantee",
}
NOISE = "Noise was drawn for research, from seeds, not for a release."

# for figures of guarantees that have a rho
ABOUT_EPSILON = (
    "Epsilon e is that of the papers, where rho = e²/2: an axis, not a guarantee. The axis above is"
    " rho."
)


def caption(about: str, panels: Sequence[Panel | MeansPanel]) -> str:
    """Return the sentences on a figure, then those on its results that every caption has."""
    # each result once: several panels may show it
    results_by_key = {}
    for panel in panels:
        for result in panel.results:
            results_by_key[result.key] = result
    results = list(results_by_key.values())

    sentences = [about, f"The guarantee hides {_by_learner(results, _unit_fact)}."]
    with_exceptions = [result for result in results if unprotected(result)]
    if with_exceptions:
        sentences.append(f"Not protected: {_with_learners(with_exceptions, unprotected)}.")
    sentences.append(f"Tuning: {_by_learner(results, _tuning_fact)}.")
    sentences.append(NOISE)

    cells = "1 cell" if len(results) == 1 else f"{len(results):,} cells"
    sentences.append(f"Shows {cells}.")
    return " ".join(sentences)


def overview(sweep: SweepResults) -> str:
    """Return the plans of a sweep, the numbers of its cells, and how many no figure shows."""
    plans = ", ".join(sorted({result.plan for result in sweep.done}))
    text = (
        f"Plan: {plans}. {len(sweep.done):,} cells were done, {len(sweep.failed):,} failed. {NOISE}"
    )
    n_without_cost = without_cost(sweep.done)
    if n_without_cost:
        text += (
            f" {n_without_cost:,} cells state no cost above 0, so they have no place on an axis of"
            " costs."
        )
    return text


def about_seeds(panels: Sequence[Panel], mark: str) -> str:
    """Return the sentence on the number of seeds behind each point.

    `mark` is the word for the part of the chart that shows quantiles, such as "band".
    """
    # numbers of seeds; `flat` are the lines of learners without privacy, and a figure has points
    counts = set()
    for panel in panels:
        for point in (*panel.points, *panel.flat):
            counts.add(len(point.results))
    if counts == {1}:
        return f"One seed each, so no {mark}."

    fewest = min(counts)
    most = max(counts)
    numbers = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    return f"Medians over {numbers} seeds; the {mark} spans the 25 to 75 % quantiles."


def _unit_fact(result: Result) -> str:
    return unit_sentence(result.unit)


def _tuning_fact(result: Result) -> str:
    # results of a later version of tacit may have other words
    meaning = TUNING.get(result.tuning, result.tuning)
    return f"{result.tuning} ({meaning})"


def _by_learner(results: Sequence[Result], fact_of: Callable[[Result], str]) -> str:
    """Return the fact that holds of all results, or each fact with its learners."""
    # `grouped` has a tuple of values for each group, here of one value
    facts = [fact for (fact,), _ in grouped(results, fact_of)]
    if len(facts) == 1:
        return str(facts[0])
    return _with_learners(results, fact_of)


def _with_learners(results: Sequence[Result], fact_of: Callable[[Result], str]) -> str:
    """Return each fact with the learners of which it holds, whose names are in quotes."""
    phrases = []
    for (fact,), group in grouped(results, fact_of):
        learners = ", ".join(repr(name) for (name,), _ in grouped(group, "learner"))
        phrases.append(f"{fact} for {learners}")
    return "; ".join(phrases)
