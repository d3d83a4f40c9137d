"""Comparisons of stored scores, and the verdict on a claim that follows from them.

An inequality between two methods holds where the mean difference over seeds, paired by seed, is
larger than two standard errors, and larger than a margin below which test sets cannot tell methods
apart.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from stored import Cells

# standard errors that a difference must exceed
ERRORS = 2.0

# accuracies that differ by less are level
MARGIN = 0.005

HOLDS = "holds"
IN_PART = "holds in part"
FAILS = "does not hold"


@dataclass(frozen=True)
class Comparison:
    """Mean scores of two methods, and the standard error of the difference over seeds."""

    left: float
    right: float
    error: float
    margin: float = MARGIN

    @property
    def ahead(self) -> bool:
        """True if the left method is ahead beyond noise."""
        return self.left - self.right > self._least

    @property
    def behind(self) -> bool:
        """True if the left method is behind beyond noise."""
        return self.right - self.left > self._least

    @property
    def _least(self) -> float:
        return max(ERRORS * self.error, self.margin)


@dataclass(frozen=True)
class Finding:
    """Truths by group and step, such as imbalance and budget, and the figures behind them.

    Steps are in order; a claim without groups has one group with an empty name.
    """

    truths: Mapping[str, Mapping[str, bool]]
    figures: str

    @property
    def kind(self) -> str:
        """HOLDS, IN_PART or FAILS."""
        truths = [truth for group in self.truths.values() for truth in group.values()]
        if all(truths):
            return HOLDS
        return IN_PART if any(truths) else FAILS

    @property
    def verdict(self) -> str:
        """The kind, and where a claim holds in part, where that is."""
        if self.kind != IN_PART:
            return self.kind
        groups_by_extent: dict[str, list[str]] = {}
        for group, steps in self.truths.items():
            groups_by_extent.setdefault(extent(steps), []).append(group)
        words = [
            f"{_joined(groups)}: {extent_words}" if any(groups) else extent_words
            for extent_words, groups in groups_by_extent.items()
        ]
        return "; ".join(words)


def _joined(groups: Sequence[str]) -> str:
    """Return the names of groups, the word "imbalance" once."""
    first, *others = groups
    return ", ".join([first, *(name.removeprefix("imbalance ") for name in others)])


def extent(truths: Mapping[str, bool]) -> str:
    """Return at which of the ordered steps a claim holds."""
    steps = list(truths)
    right = [step for step in steps if truths[step]]
    if len(right) == len(steps):
        return HOLDS
    if not right:
        return FAILS
    if right == steps[: len(right)] and len(right) > 1:
        return f"holds up to {right[-1]}"
    if right == steps[-len(right) :] and len(right) > 1:
        return f"holds from {right[0]} on"
    return f"holds at {', '.join(right)}"


def compare(
    cells: Cells,
    left: Mapping[str, object],
    right: Mapping[str, object],
    measure: str = "balanced",
    margin: float = MARGIN,
) -> Comparison:
    """Compare two combinations, paired by seed."""
    left_scores = cells.by_seed(measure, **left)
    right_scores = cells.by_seed(measure, **right)
    if left_scores.keys() != right_scores.keys():
        raise LookupError(f"{left} and {right} have different seeds")

    differences = [left_scores[seed] - right_scores[seed] for seed in left_scores]
    error = 0.0
    if len(differences) > 1:
        error = stdev(differences) / math.sqrt(len(differences))
    return Comparison(fmean(left_scores.values()), fmean(right_scores.values()), error, margin)


def epsilon_words(budget: str) -> str:
    """Return a budget as the papers show it: e with rho = e^2/2, or pure epsilon."""
    kind, _, number = budget.partition("=")
    if kind == "rho":
        return f"e = {math.sqrt(2 * float(number)):.2g}"
    if kind == "epsilon":
        return f"epsilon = {number.split(',')[0]}"
    return "no privacy" if budget == "inf" else budget


def private_budgets(cells: Cells) -> list[str]:
    """Return the budgets of the cells with privacy, the smallest first."""
    budgets = [budget for budget in cells.distinct("budget") if budget != "inf"]
    return sorted(budgets, key=lambda budget: float(budget.split("=")[1].split(",")[0]))


def share(score: float) -> str:
    """Return an accuracy in the form of the tables."""
    return f"{score:.3f}".replace("0.", ".", 1) if 0 <= score < 1 else f"{score:.3f}"


def pairs(comparisons: Mapping[str, Comparison]) -> str:
    """Return "left/right" for each step."""
    return " ".join(
        f"{step.removeprefix('e = ').removeprefix('epsilon = ')}:"
        f" {share(comparison.left)}/{share(comparison.right)}"
        for step, comparison in comparisons.items()
    )


def along_budgets(
    cells: Cells,
    left: Mapping[str, object],
    right: Mapping[str, object],
    measure: str = "balanced",
    budgets: Sequence[str] = (),
) -> dict[str, Comparison]:
    """Compare two methods at each private budget."""
    return {
        epsilon_words(budget): compare(
            cells, {**left, "budget": budget}, {**right, "budget": budget}, measure
        )
        for budget in budgets or private_budgets(cells)
    }


def ahead(comparisons: Mapping[str, Comparison]) -> dict[str, bool]:
    """Return at which steps the left method is ahead."""
    return {step: comparison.ahead for step, comparison in comparisons.items()}


def ahead_by_imbalance(
    cells: Cells,
    left: str,
    right: str,
    imbalances: Sequence[str],
    measure: str = "balanced",
    budgets: Sequence[str] = (),
) -> Finding:
    """Return where a learner is ahead of another, by imbalance and budget."""
    truths = {}
    figures = []
    for imbalance in imbalances:
        place = {"imbalance": imbalance}
        comparisons = along_budgets(
            cells, {"learner": left, **place}, {"learner": right, **place}, measure, budgets
        )
        truths[f"imbalance {imbalance}"] = ahead(comparisons)
        figures.append(f"imbalance {imbalance}: {pairs(comparisons)}")
    return Finding(truths, f"{left}/{right} by e; {'; '.join(figures)}")
