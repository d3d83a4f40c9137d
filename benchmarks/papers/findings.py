"""Comparisons of stored scores, and the verdict on a claim that follows from them.

An inequality between two methods holds where the mean difference over seeds, paired by seed, is
larger than two standard errors, and larger than a margin below which test sets cannot tell methods
apart. The better method must also exceed chance by as much: otherwise the two are level.
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

# classes of the data sets, whose inverse is the accuracy of a guess
CLASSES = {
    "adult": 2,
    "banking77": 77,
    "cifar10": 10,
    "cifar100": 100,
    "fashion-mnist": 10,
    "mnist": 10,
}
ACCURACIES = ("balanced", "minority")

# outcomes of a comparison; a claim that compares no two methods holds or does not hold
HOLDS = "holds"
LEVEL = "level"
BEHIND = "behind"
FAILS = "does not hold"
OUTCOMES = (HOLDS, LEVEL, BEHIND, FAILS)

# the kind of a finding with different outcomes, one of which is HOLDS
IN_PART = "holds in part"


@dataclass(frozen=True)
class Comparison:
    """Mean scores of two methods, and the standard error of the difference over seeds.

    A method that is no better than a guess is not ahead: `left_is_chance` and `right_is_chance`.
    """

    left: float
    right: float
    error: float
    margin: float = MARGIN
    left_is_chance: bool = False
    right_is_chance: bool = False

    @property
    def ahead(self) -> bool:
        """True if the left method is ahead beyond noise."""
        return self.left - self.right > self._least and not self.left_is_chance

    @property
    def behind(self) -> bool:
        """True if the left method is behind beyond noise."""
        return self.right - self.left > self._least and not self.right_is_chance

    @property
    def outcome(self) -> str:
        """HOLDS if the left method is ahead, LEVEL or BEHIND."""
        if self.ahead:
            return HOLDS
        return BEHIND if self.behind else LEVEL

    @property
    def _least(self) -> float:
        return max(ERRORS * self.error, self.margin)


@dataclass(frozen=True)
class Finding:
    """Outcomes by group and step, such as imbalance and budget, and the figures behind them.

    Steps are in order; a claim without groups has one group with an empty name.
    """

    outcomes: Mapping[str, Mapping[str, str]]
    figures: str

    @property
    def kind(self) -> str:
        """The outcome if all steps share it; otherwise IN_PART if the claim holds at any step."""
        if len(self._distinct) == 1:
            (outcome,) = self._distinct
            return outcome
        return IN_PART if HOLDS in self._distinct else FAILS

    @property
    def verdict(self) -> str:
        """The outcomes and where they apply, or one outcome if all steps share it."""
        if len(self._distinct) == 1:
            return self.kind
        groups_by_extent: dict[str, list[str]] = {}
        for group, steps in self.outcomes.items():
            groups_by_extent.setdefault(extent(steps), []).append(group)
        words = [
            f"{_joined(groups)}: {extent_words}" if any(groups) else extent_words
            for extent_words, groups in groups_by_extent.items()
        ]
        return "; ".join(words)

    @property
    def _distinct(self) -> frozenset[str]:
        return frozenset(one for group in self.outcomes.values() for one in group.values())


def _joined(names: Sequence[str]) -> str:
    """Return a list of names in words, with what they all begin with named once."""
    first, *others = names
    for beginning in ("imbalance ", "e = ", "epsilon = "):
        if first.startswith(beginning):
            others = [name.removeprefix(beginning) for name in others]
    return " and ".join(filter(None, [", ".join([first, *others[:-1]]), *others[-1:]]))


def extent(outcomes: Mapping[str, str]) -> str:
    """Return at which of the ordered steps a claim holds, and which outcomes the others have."""
    steps = list(outcomes)
    present = [outcome for outcome in OUTCOMES if outcome in outcomes.values()]
    if len(present) == 1:
        return present[0]
    places = {
        outcome: _places(steps, [step for step in steps if outcomes[step] == outcome])
        for outcome in present
    }
    if present == [HOLDS, FAILS]:
        return f"holds only {places[HOLDS]}"
    return ", ".join(f"{outcome} {words}" for outcome, words in places.items())


def _places(steps: Sequence[str], places: Sequence[str]) -> str:
    """Return in words which of the steps these are, with ranges of three or more, or at an end."""
    if places[0].partition(" ")[0] not in ("e", "epsilon", "imbalance"):
        return f"at {_joined(places)}"

    alone = []
    ranges = []
    for run in _runs(steps, places):
        if len(run) == 1 or (len(run) == 2 and steps[0] != run[0] and steps[-1] != run[-1]):
            alone += run
        elif run[0] == steps[0]:
            ranges.append(f"up to {run[-1]}")
        elif run[-1] == steps[-1]:
            ranges.append(f"from {run[0]} on")
        else:
            ranges.append(f"from {run[0]} to {run[-1].rpartition(' ')[2]}")
    singles = [f"at {_joined(alone)}"] if alone else []
    return " and ".join([*singles, *ranges])


def _runs(steps: Sequence[str], places: Sequence[str]) -> list[list[str]]:
    """Return the places in runs of steps that follow each other."""
    runs: list[list[str]] = []
    for step, before in zip(steps, ["", *steps], strict=False):
        if step in places:
            if before in places:
                runs[-1].append(step)
            else:
                runs.append([step])
    return runs


def holds(truths: Mapping[str, bool]) -> dict[str, str]:
    """Return the outcomes of a claim that compares no two methods."""
    return {step: HOLDS if truth else FAILS for step, truth in truths.items()}


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
    data = cells.where(**left).rows[0].data
    chance = 0.0
    if measure in ACCURACIES and data in CLASSES:
        chance = 1 / CLASSES[data]
    return Comparison(
        fmean(left_scores.values()),
        fmean(right_scores.values()),
        _error(differences),
        margin,
        _is_chance(list(left_scores.values()), chance, margin),
        _is_chance(list(right_scores.values()), chance, margin),
    )


def _error(values: Sequence[float]) -> float:
    """Return the standard error of the mean."""
    return stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0


def _is_chance(scores: Sequence[float], chance: float, margin: float) -> bool:
    """Return true if scores do not exceed the accuracy of a guess beyond noise."""
    return fmean(scores) - chance <= max(ERRORS * _error(scores), margin)


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
    """Return "left/right" for each step, with a mark if neither exceeds chance."""
    words = []
    for step, one in comparisons.items():
        name = step.removeprefix("e = ").removeprefix("epsilon = ")
        mark = " (chance)" if one.left_is_chance and one.right_is_chance else ""
        words.append(f"{name}: {share(one.left)}/{share(one.right)}{mark}")
    return " ".join(words)


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


def outcomes(comparisons: Mapping[str, Comparison]) -> dict[str, str]:
    """Return at which steps the left method is ahead, level or behind."""
    return {step: comparison.outcome for step, comparison in comparisons.items()}


def ahead_by_imbalance(
    cells: Cells,
    left: str,
    right: str,
    imbalances: Sequence[str],
    measure: str = "balanced",
    budgets: Sequence[str] = (),
) -> Finding:
    """Return where a learner is ahead of another, level or behind, by imbalance and budget."""
    by_imbalance = {}
    figures = []
    for imbalance in imbalances:
        place = {"imbalance": imbalance}
        comparisons = along_budgets(
            cells, {"learner": left, **place}, {"learner": right, **place}, measure, budgets
        )
        by_imbalance[f"imbalance {imbalance}"] = outcomes(comparisons)
        figures.append(f"imbalance {imbalance}: {pairs(comparisons)}")
    return Finding(by_imbalance, f"{left}/{right} by e; {'; '.join(figures)}")
