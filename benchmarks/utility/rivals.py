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
from typing import Any

import numpy as np
from methods import IN_FEW, METHODS
from numpy.typing import NDArray
from problems import Problem
from routes import CLASSES, RATIOS, command, drawn

from tacit.models.metrics import evaluate

FIRST, SEEDS = 6000, 3
LEVEL = 1.0  # points
WORST = 8


def work(embeddings: Path, number: int, most: int = CLASSES[1]) -> dict[str, Any]:
    """What `accuracies` finds of a problem of at most so many classes; nothing if it cannot be
    drawn.
    """
    problem = drawn(embeddings, number, most)
    if problem is None:
        return {}
    return accuracies(*problem)


def accuracies(data: Problem, rough: float) -> dict[str, Any]:
    """Facts of a problem, and each method's accuracies by seed, in percent."""
    found: dict[str, list[list[float]]] = {name: [] for name in IN_FEW}
    for name, seed in ((name, seed) for name in IN_FEW for seed in range(SEEDS)):
        ((_, predicted),) = METHODS[name](data, seed, [rough])
        scores = evaluate(data.test_y, predicted, np.arange(data.n_classes), data.sizes)
        found[name].append([100 * scores.balanced, 100 * scores.minority])
    facts = {
        "classes": data.n_classes,
        "records": len(data.x),
        "public": len(data.public),
        "e": rough,
    }
    return facts | {"ratio": float(data.sizes.max() / data.sizes.min()), "accuracies": found}


def gaps(problem: dict[str, Any]) -> NDArray[np.float64]:
    """Points that `auto` is ahead of each other method: shape (methods, seeds, 2), balanced and
    minority.
    """
    found = {name: np.array(values) for name, values in problem["accuracies"].items()}
    return np.array([found["auto"] - found[name] for name in IN_FEW[1:]])


def nearest_ratio(problem: dict[str, Any]) -> int:
    """The imbalance that was drawn, which rounding of class sizes changes a little."""
    return min(RATIOS, key=lambda ratio: abs(np.log(problem["ratio"] / ratio)))


def report(found: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The table and the worst losses in Markdown."""
    problems = [problem for problem in found if problem]
    yield f"{len(problems)} problems, {SEEDS} seeds.\n"
    yield (
        "| imbalance | problems | "
        + " | ".join(f"ahead of `{name}`" for name in IN_FEW[1:])
        + " | level | ahead |"
    )
    yield "|---" * (len(IN_FEW) + 3) + "|"
    groups: dict[str, list[dict[str, Any]]] = {
        str(ratio): [problem for problem in problems if nearest_ratio(problem) == ratio]
        for ratio in RATIOS
    }
    losses = []
    for name, group in (groups | {"all": problems}).items():
        if not group:
            continue
        ahead = np.array([gaps(problem).mean(axis=1) for problem in group])
        level, first = np.zeros(2), np.zeros(2)
        for problem in group:
            of_seeds = gaps(problem)
            for k in range(2):
                rival = int(np.argmin(of_seeds[:, :, k].mean(axis=1)))
                gap, error = (
                    of_seeds[rival, :, k].mean(),
                    of_seeds[rival, :, k].std(ddof=1) / np.sqrt(SEEDS),
                )
                level[k] += gap >= -max(LEVEL, 2 * error)
                first[k] += gap >= 0
                if name == "all":
                    losses.append((gap, k, IN_FEW[1 + rival], problem))
        cells = ["{:+.1f} / {:+.1f}".format(*each) for each in ahead.mean(axis=0)]
        shares = ["{:.0f} / {:.0f} %".format(*(100 * each / len(group))) for each in (level, first)]
        yield f"| {name} | {len(group)} | {' | '.join(cells + shares)} |"
    yield "\n| points | accuracy | behind | classes | records | public rows | imbalance | e |"
    yield "|---" * 8 + "|"
    for gap, k, rival, problem in sorted(losses, key=lambda loss: loss[0])[:WORST]:
        facts = [
            problem["classes"],
            problem["records"],
            problem["public"],
            nearest_ratio(problem),
            problem["e"],
        ]
        yield (
            f"| {gap:.1f} | {('balanced', 'minority')[k]} | `{rival}` | "
            + " | ".join(f"{x:g}" for x in facts)
            + " |"
        )


def main() -> None:
    """Run."""
    command("auto and its rivals on random problems.", work, FIRST, 150, "rivals.md", report)


if __name__ == "__main__":
    main()
