"""Where gradient steps of `auto` pay: random problems, each fitted with sums alone and with two
shares of steps.

python benchmarks/utility/routes.py EMBEDDINGS --out FOLDER [--problems 120] [--workers 2]

A problem draws a data set, 3 to 100 of its classes, an imbalance, a budget, and a pool of public
rows, of the same data set or of others. FOLDER gets a file for each problem, so that an interrupted
run resumes, and routes.md: the change in accuracy that steps bring, by number of classes and
signal, and what several bars for steps would gain. Noise is `research`, since nothing is released.
"""

import argparse
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from joblib import Parallel, delayed
from methods import NOISE_SEEDS, budget
from problems import IMAGES, NEWS, TEXT, TINY, Problem, read

import tacit
from tacit.compute.atomic import atomic_file
from tacit.data.imbalance import imbalanced_subset
from tacit.learners.prototypes.auto import CLEAR
from tacit.models.metrics import evaluate

STORES = {  # foreign public rows of each private data set
    f"{IMAGES}/cifar10": (TINY,),
    f"{IMAGES}/cifar100": (TINY,),
    TINY: (f"{IMAGES}/cifar10",),
    f"{TEXT}/banking77": NEWS,
    f"{TEXT}/clinc150": NEWS,
    f"{TEXT}/agnews": (f"{TEXT}/banking77", f"{TEXT}/clinc150"),
}
STREAM, SEEDS, MOST = 30, 2, 25_000  # MOST private rows, so that a problem takes seconds
CLASSES, RATIOS, EPSILONS = (3, 100), (1, 10, 100), (0.1, 0.5, 1.0, 2.0, 4.0)
OWN, FOREIGN = (1_000, 1_500, 3_000), (1_000, 5_000, 30_000)  # public rows
ROUTES = ("sums", "half", "quarter")  # the share of the budget for sums is 1, a half, a quarter
ROWS = ((3, 9), (10, 29), (30, 100))  # of the table: numbers of classes
COLUMNS = (0.0, 0.4, 0.8, 1.6, 3.2, np.inf)  # of the table: signals


def drawn(embeddings: Path, number: int, most: int = CLASSES[1]) -> tuple[Problem, float] | None:
    """A random problem of at most so many classes and its rough epsilon; None if too large or a
    class has no record.
    """
    rng = np.random.default_rng([STREAM, number])
    store = list(STORES)[rng.integers(len(STORES))]
    (x, y), (test_x, test_y) = read(embeddings, store, "train"), read(embeddings, store, "test")
    number_of_all = int(y.max()) + 1
    n_classes = min(number_of_all, most, round(np.exp(rng.uniform(*np.log(CLASSES)))))
    position = np.full(number_of_all, -1)
    position[rng.permutation(number_of_all)[:n_classes]] = np.arange(n_classes)
    x, y, test_x, test_y = (
        x[position[y] >= 0],
        position[y],
        test_x[position[test_y] >= 0],
        position[test_y],
    )
    y, test_y = y[y >= 0], test_y[test_y >= 0]
    if rng.random() < 0.5:
        order = rng.permutation(len(x))
        held_back = min(len(x) // 3, rng.choice(OWN))
        public, kept = x[order[:held_back]], np.sort(order[held_back:])
        x, y = x[kept], y[kept]
    else:
        pool = np.concatenate([read(embeddings, other, "train")[0] for other in STORES[store]])
        public = pool[rng.permutation(len(pool))[: rng.choice(FOREIGN)]]
    ratio, rough = rng.choice(RATIOS), rng.choice(EPSILONS)
    if np.bincount(y, minlength=n_classes).min() < ratio:
        return None
    kept = imbalanced_subset(y, ratio, number)
    if len(kept) > MOST:
        return None
    return Problem(x[kept], y[kept], test_x, test_y, public, n_classes), float(rough)


def routed(data: Problem, rough: float, seed: int, route: str) -> dict[str, Any]:
    """Fit along this route, whatever the signals are; return these and the accuracies in
    percent.
    """
    seen: list[float] = []
    true_signal = tacit.AutoPrototypes._signal

    def signal(self: tacit.AutoPrototypes, posterior: Any) -> float:
        seen.append(true_signal(self, posterior))
        steps = {"sums": False, "half": len(seen) > 1, "quarter": True}[route]
        return np.inf if steps else -np.inf

    shared = {
        "public": data.public,
        "classes": data.n_classes,
        "noise": "research",
        "random_state": NOISE_SEEDS + seed,
    }
    with patch.object(tacit.AutoPrototypes, "_signal", signal):
        model = tacit.AutoPrototypes(budget(rough), **shared).fit(data.x, data.y)
    scores = evaluate(
        data.test_y, model.predict(data.test_x), np.arange(data.n_classes), data.sizes
    )
    return {"seen": seen, "accuracies": [100 * scores.balanced, 100 * scores.minority]}


def work(embeddings: Path, number: int) -> dict[str, Any]:
    """The number of classes of a problem, and its fits by route; no fits of a problem that cannot
    be drawn.
    """
    problem = drawn(embeddings, number)
    if problem is None:
        return {"n_classes": 0, "fits": []}
    fits = [{route: routed(*problem, seed, route) for route in ROUTES} for seed in range(SEEDS)]
    return {"n_classes": problem[0].n_classes, "fits": fits}


def measured(
    work: Callable[[Path, int], dict[str, Any]],
    embeddings: Path,
    out: Path,
    numbers: Sequence[int],
    workers: int,
) -> list[dict[str, Any]]:
    """What `work` finds of each problem; a file in `out` keeps it."""

    def kept(number: int) -> dict[str, Any]:
        file = out / f"{number}.json"
        if not file.exists():
            with atomic_file(file, force=True) as part:
                part.write_text(json.dumps(work(embeddings, number)))
        return dict(json.loads(file.read_text()))

    out.mkdir(parents=True, exist_ok=True)
    return list(Parallel(workers)(delayed(kept)(number) for number in numbers))


def command(
    description: str,
    work: Callable[[Path, int], dict[str, Any]],
    first: int,
    count: int,
    name: str,
    report: Callable[[Sequence[dict[str, Any]]], Iterator[str]],
) -> None:
    """Read the command line, compute the missing problems, and write the report to a file of this
    name.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("embeddings", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--problems", type=int, default=count)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    problems = measured(
        work, given.embeddings, given.out, range(first, first + given.problems), given.workers
    )
    with atomic_file(given.out / name, force=True) as part:
        part.write_text("\n".join(report(problems)) + "\n", encoding="utf-8")


def chosen(fit: dict[str, Any], clear: float) -> str:
    """The route that `auto` takes with this bar."""
    first, second = fit["sums"]["seen"]
    return "quarter" if first >= clear else "half" if second >= clear else "sums"


def report(problems: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Both tables in Markdown; figures are points of balanced / minority accuracy that a route has
    above sums alone.
    """
    fits = [(problem["n_classes"], fit) for problem in problems for fit in problem["fits"]]

    def gain(found: Sequence[tuple[dict[str, Any], str]]) -> str:
        above = [
            np.subtract(fit[route]["accuracies"], fit["sums"]["accuracies"]) for fit, route in found
        ]
        return "{:+.1f} / {:+.1f}".format(*np.mean(above, axis=0)) if above else ""

    yield f"{len(fits)} fits of {sum(bool(problem['fits']) for problem in problems)} problems.\n"
    ends = list(itertools.pairwise(COLUMNS))
    yield "| classes | " + " | ".join(f"signal {low:g} to {high:g}" for low, high in ends) + " |"
    yield "|---" * (1 + len(ends)) + "|"
    for least, most in ROWS:
        cells = []
        for low, high in ends:
            within = [
                fit
                for n, fit in fits
                if least <= n <= most and low <= fit["sums"]["seen"][0] < high
            ]
            cells.append(
                f"{gain([(fit, 'quarter') for fit in within])} ({len(within)})" if within else ""
            )
        yield f"| {least} to {most} | {' | '.join(cells)} |"
    yield (
        "\n| `CLEAR` | all | "
        + " | ".join(f"{least} to {most} classes" for least, most in ROWS)
        + " |"
    )
    yield "|---" * (2 + len(ROWS)) + "|"
    for clear in (CLEAR / 2, CLEAR / 2**0.5, CLEAR, CLEAR * 2**0.5, 2 * CLEAR):
        cells = [
            gain([(fit, chosen(fit, clear)) for n, fit in fits if least <= n <= most])
            for least, most in ((0, np.inf), *ROWS)
        ]
        yield f"| {clear:.2g} | {' | '.join(cells)} |"


def main() -> None:
    """Run."""
    command("Where gradient steps of auto pay.", work, 0, 120, "routes.md", report)


if __name__ == "__main__":
    main()
