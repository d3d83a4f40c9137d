"""`auto` and its rivals on random problems on which no constant was chosen.

python benchmarks/utility/rivals.py EMBEDDINGS --out FOLDER [--problems 150] [--workers 2]

Problems are drawn as in `routes.py`, from the same data sets, with numbers from `FIRST` on. Smaller
ones from 120 on were used to choose constants; if you choose a constant on problems from `FIRST`
on, raise `FIRST` first. FOLDER gets a file for each problem, so that an interrupted run resumes,
and rivals.md: by imbalance, how far `auto` is ahead of each other method, and how often it is level
with or ahead of the best of them. That one is chosen after the fact, by the same accuracies, so
chance favours it. Noise is `research`, since nothing is released.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from methods import IN_FEW, METHODS
from numpy.typing import NDArray
from problems import Problem
from routes import CLASSES, RATIOS, command, random_problem

from tacit.models.metrics import evaluate

FIRST = 6000
SEEDS = 3

# points that `auto` may be behind where it counts as level with the best
LEVEL = 1.0

# losses that the report lists
N_LOSSES = 8
MEASURES = ("balanced", "minority")
RIVALS = IN_FEW[1:]


def work(embeddings: Path, number: int, most_classes: int = CLASSES[1]) -> dict[str, Any]:
    """Return facts and accuracies of a problem of at most so many classes.

    A problem that cannot be drawn has none.
    """
    problem = random_problem(embeddings, number, most_classes)
    if problem is None:
        return {}
    return accuracies(*problem)


def accuracies(data: Problem, rough_epsilon: float) -> dict[str, Any]:
    """Return facts of a problem, and each method's accuracies by seed, in percent."""
    accuracies_by_method: dict[str, list[list[float]]] = {}
    for name in IN_FEW:
        accuracies_by_method[name] = []
        for seed in range(SEEDS):
            ((_, predicted),) = METHODS[name](data, seed, [rough_epsilon])
            scores = evaluate(data.test_y, predicted, np.arange(data.n_classes), data.sizes)
            accuracies_by_method[name].append([100 * scores.balanced, 100 * scores.minority])
    return {
        "classes": data.n_classes,
        "records": len(data.x),
        "public": len(data.public),
        "e": rough_epsilon,
        "ratio": float(data.sizes.max() / data.sizes.min()),
        "accuracies": accuracies_by_method,
    }


def gaps(problem: dict[str, Any]) -> NDArray[np.float64]:
    """Return the points that `auto` is ahead of each rival, by seed and measure.

    The shape is (rivals, seeds, 2).
    """
    arrays = {name: np.array(values) for name, values in problem["accuracies"].items()}
    return np.array([arrays["auto"] - arrays[name] for name in RIVALS])


def nearest_ratio(problem: dict[str, Any]) -> int:
    """Return the imbalance that was drawn, which rounding of class sizes changes a little."""
    return min(RATIOS, key=lambda ratio: abs(np.log(problem["ratio"] / ratio)))


class Comparison(NamedTuple):
    """`auto` and the best rival on a problem, by one measure: the gap in points, and its error."""

    gap: float
    error: float
    measure: int
    rival: str
    problem: dict[str, Any]


def best_rivals(problem: dict[str, Any]) -> list[Comparison]:
    """Compare `auto` with the best rival by each measure."""
    comparisons = []
    for measure in range(len(MEASURES)):
        # (rivals, seeds)
        gaps_of_measure = gaps(problem)[:, :, measure]
        best = int(np.argmin(gaps_of_measure.mean(axis=1)))
        gaps_to_best = gaps_of_measure[best]
        error = gaps_to_best.std(ddof=1) / np.sqrt(SEEDS)
        comparisons.append(Comparison(gaps_to_best.mean(), error, measure, RIVALS[best], problem))
    return comparisons


def report(results: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the table and the worst losses in Markdown."""
    problems = [problem for problem in results if problem]
    yield f"{len(problems)} problems, {SEEDS} seeds.\n"
    yield from table(problems)
    yield from worst_losses(problems)


def table(problems: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield a row for each imbalance, and one for all problems."""
    header = [f"ahead of `{name}`" for name in RIVALS]
    yield f"| imbalance | problems | {' | '.join(header)} | level | ahead |"
    yield "|---" * (len(RIVALS) + 4) + "|"
    groups = {
        str(ratio): [problem for problem in problems if nearest_ratio(problem) == ratio]
        for ratio in RATIOS
    }
    for name, group in {**groups, "all": problems}.items():
        if group:
            yield f"| {name} | {len(group)} | {' | '.join(row(group))} |"


def row(group: Sequence[dict[str, Any]]) -> list[str]:
    """Return the cells of a row of the table, over the problems of a group."""
    # means over seeds, then over problems: (rivals, 2)
    mean_gaps = np.array([gaps(problem).mean(axis=1) for problem in group]).mean(axis=0)
    cells = ["{:+.1f} / {:+.1f}".format(*gaps_of_rival) for gaps_of_rival in mean_gaps]

    n_level = np.zeros(len(MEASURES))
    n_ahead = np.zeros(len(MEASURES))
    for problem in group:
        for comparison in best_rivals(problem):
            tolerance = max(LEVEL, 2 * comparison.error)
            n_level[comparison.measure] += comparison.gap >= -tolerance
            n_ahead[comparison.measure] += comparison.gap >= 0
    for count in (n_level, n_ahead):
        cells.append("{:.0f} / {:.0f} %".format(*(100 * count / len(group))))
    return cells


def worst_losses(problems: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the problems on which `auto` is farthest behind the best rival."""
    yield "\n| points | accuracy | behind | classes | records | public rows | imbalance | e |"
    yield "|---" * 8 + "|"
    comparisons = [comparison for problem in problems for comparison in best_rivals(problem)]
    for comparison in sorted(comparisons, key=lambda comparison: comparison.gap)[:N_LOSSES]:
        problem = comparison.problem
        facts = [
            problem["classes"],
            problem["records"],
            problem["public"],
            nearest_ratio(problem),
            problem["e"],
        ]
        fact_cells = " | ".join(f"{fact:g}" for fact in facts)
        yield (
            f"| {comparison.gap:.1f} | {MEASURES[comparison.measure]} | `{comparison.rival}`"
            f" | {fact_cells} |"
        )


def main() -> None:
    """Run."""
    command("auto and its rivals on random problems.", work, FIRST, 150, "rivals.md", report)


if __name__ == "__main__":
    main()
