"""Where gradient steps of `auto` pay, on random problems.

Each problem is fitted with sums alone, and with two shares of the budget for steps.

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
from problems import IMAGES, NEWS, TEXT, TINY, Problem, read, read_rows, with_classes

import tacit
from tacit.compute.atomic import atomic_file
from tacit.data.imbalance import imbalanced_subset
from tacit.learners.prototypes import auto
from tacit.learners.prototypes.auto import CLEAR
from tacit.models.metrics import evaluate

# foreign public rows of each private data set
STORES = {
    f"{IMAGES}/cifar10": (TINY,),
    f"{IMAGES}/cifar100": (TINY,),
    TINY: (f"{IMAGES}/cifar10",),
    f"{TEXT}/banking77": NEWS,
    f"{TEXT}/clinc150": NEWS,
    f"{TEXT}/agnews": (f"{TEXT}/banking77", f"{TEXT}/clinc150"),
}
STREAM = 30
SEEDS = 2

# private rows, so that a problem takes seconds
MOST_RECORDS = 25_000

# what a problem draws: a number of classes in this range, an imbalance, a rough epsilon, and a
# number of public rows
CLASSES = (3, 100)
RATIOS = (1, 10, 100)
EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0)
OWN_ROWS = (1_000, 1_500, 3_000)
FOREIGN_ROWS = (1_000, 5_000, 30_000)

# the share of the budget for sums is 1, a half, a quarter
ROUTES = ("sums", "half", "quarter")

# of the table: numbers of classes, and ends of the ranges of signals
ROWS = ((3, 9), (10, 29), (30, 100))
COLUMNS = (0.0, 0.4, 0.8, 1.6, 3.2, np.inf)


def random_problem(
    embeddings: Path, number: int, most_classes: int = CLASSES[1]
) -> tuple[Problem, float] | None:
    """Draw a problem of at most so many classes, and its rough epsilon.

    Returns None if the problem is too large or a class has no record. The order of the draws
    decides what the problem of a number is.
    """
    rng = np.random.default_rng([STREAM, number])
    store = list(STORES)[rng.integers(len(STORES))]
    x, y = read(embeddings, store, "train")
    test_x, test_y = read(embeddings, store, "test")

    n_all_classes = int(y.max()) + 1
    drawn_number = round(np.exp(rng.uniform(*np.log(CLASSES))))
    n_classes = min(n_all_classes, most_classes, drawn_number)
    classes = rng.permutation(n_all_classes)[:n_classes]
    x, y = with_classes(x, y, classes)
    test_x, test_y = with_classes(test_x, test_y, classes)

    if rng.random() < 0.5:
        order = rng.permutation(len(x))
        n_public = min(len(x) // 3, rng.choice(OWN_ROWS))
        public = x[order[:n_public]]
        private_rows = np.sort(order[n_public:])
        x = x[private_rows]
        y = y[private_rows]
    else:
        pool = read_rows(embeddings, STORES[store])
        order = rng.permutation(len(pool))
        public = pool[order[: rng.choice(FOREIGN_ROWS)]]

    ratio = rng.choice(RATIOS)
    rough_epsilon = float(rng.choice(EPSILONS))
    if np.bincount(y, minlength=n_classes).min() < ratio:
        return None
    rows = imbalanced_subset(y, ratio, number)
    if len(rows) > MOST_RECORDS:
        return None
    return Problem(x[rows], y[rows], test_x, test_y, public, n_classes), rough_epsilon


def fit_route(data: Problem, rough_epsilon: float, seed: int, route: str) -> dict[str, Any]:
    """Fit along a route, whatever the signals are.

    Returns the signals, and balanced and minority accuracy in percent.
    """
    signals: list[float] = []
    true_signal = auto.signal

    def signal(posterior: Any, noise: float) -> float:
        """Note the signal, and return one that leads along the route.

        `auto` asks twice: after a quarter of the budget, and before it decides on steps.
        """
        signals.append(true_signal(posterior, noise))
        takes_steps = {"sums": False, "half": len(signals) > 1, "quarter": True}[route]
        return np.inf if takes_steps else -np.inf

    model = tacit.AutoPrototypes(
        budget(rough_epsilon),
        public=data.public,
        classes=data.n_classes,
        noise="research",
        random_state=NOISE_SEEDS + seed,
    )
    with patch.object(auto, "signal", signal):
        model.fit(data.x, data.y)
    scores = evaluate(
        data.test_y, model.predict(data.test_x), np.arange(data.n_classes), data.sizes
    )
    return {"signals": signals, "accuracies": [100 * scores.balanced, 100 * scores.minority]}


def work(embeddings: Path, number: int) -> dict[str, Any]:
    """Return the number of classes of a problem, and its fits by route.

    A problem that cannot be drawn has no fits.
    """
    problem = random_problem(embeddings, number)
    if problem is None:
        return {"n_classes": 0, "fits": []}
    data, rough_epsilon = problem
    fits = []
    for seed in range(SEEDS):
        fits.append({route: fit_route(data, rough_epsilon, seed, route) for route in ROUTES})
    return {"n_classes": data.n_classes, "fits": fits}


def resumed_results(
    work: Callable[[Path, int], dict[str, Any]],
    embeddings: Path,
    out: Path,
    numbers: Sequence[int],
    workers: int,
) -> list[dict[str, Any]]:
    """Return the result of each problem, from its file in `out` if an earlier run has written it.

    `work` computes the result of a problem.
    """

    def result(number: int) -> dict[str, Any]:
        file = out / f"{number}.json"
        if not file.exists():
            with atomic_file(file, force=True) as part:
                part.write_text(json.dumps(work(embeddings, number)))
        return dict(json.loads(file.read_text()))

    out.mkdir(parents=True, exist_ok=True)
    return list(Parallel(workers)(delayed(result)(number) for number in numbers))


def command(
    description: str,
    work: Callable[[Path, int], dict[str, Any]],
    first: int,
    count: int,
    name: str,
    report: Callable[[Sequence[dict[str, Any]]], Iterator[str]],
) -> None:
    """Read the command line, compute the missing problems, and write the report.

    Problems have the numbers from `first` on, `count` of them by default. `name` is that of the
    report's file.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("embeddings", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--problems", type=int, default=count)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    numbers = range(first, first + arguments.problems)
    problems = resumed_results(
        work, arguments.embeddings, arguments.out, numbers, arguments.workers
    )
    with atomic_file(arguments.out / name, force=True) as part:
        part.write_text("\n".join(report(problems)) + "\n", encoding="utf-8")


def route_at(fit: dict[str, Any], clear: float) -> str:
    """Return the route that `auto` takes if `clear` is the least signal for steps."""
    first_signal, second_signal = fit["sums"]["signals"]
    if first_signal >= clear:
        return "quarter"
    if second_signal >= clear:
        return "half"
    return "sums"


def report(problems: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield both tables in Markdown.

    Figures are points of balanced / minority accuracy that a route has above sums alone.
    """
    fits = [(problem["n_classes"], fit) for problem in problems for fit in problem["fits"]]
    n_problems = sum(bool(problem["fits"]) for problem in problems)
    yield f"{len(fits)} fits of {n_problems} problems.\n"
    yield from signal_table(fits)
    yield from bar_table(fits)


def signal_table(fits: Sequence[tuple[int, dict[str, Any]]]) -> Iterator[str]:
    """Yield the gain of the route with most steps, by number of classes and first signal."""
    ranges = list(itertools.pairwise(COLUMNS))
    header = [f"signal {low:g} to {high:g}" for low, high in ranges]
    yield f"| classes | {' | '.join(header)} |"
    yield "|---" * (1 + len(ranges)) + "|"
    for fewest, most in ROWS:
        cells = []
        for low, high in ranges:
            group = [
                fit
                for n_classes, fit in fits
                if fewest <= n_classes <= most and low <= fit["sums"]["signals"][0] < high
            ]
            cell = ""
            if group:
                cell = f"{gain([(fit, 'quarter') for fit in group])} ({len(group)})"
            cells.append(cell)
        yield f"| {fewest} to {most} | {' | '.join(cells)} |"


def bar_table(fits: Sequence[tuple[int, dict[str, Any]]]) -> Iterator[str]:
    """Yield the gain of `auto` with several bars for steps, by number of classes."""
    header = [f"{fewest} to {most} classes" for fewest, most in ROWS]
    yield f"\n| `CLEAR` | all | {' | '.join(header)} |"
    yield "|---" * (2 + len(ROWS)) + "|"
    for clear in (CLEAR / 2, CLEAR / 2**0.5, CLEAR, CLEAR * 2**0.5, 2 * CLEAR):
        cells = []
        for fewest, most in ((0, np.inf), *ROWS):
            group = [fit for n_classes, fit in fits if fewest <= n_classes <= most]
            cells.append(gain([(fit, route_at(fit, clear)) for fit in group]))
        yield f"| {clear:.2g} | {' | '.join(cells)} |"


def gain(fits: Sequence[tuple[dict[str, Any], str]]) -> str:
    """Return the mean points that routes have above sums alone; nothing without fits."""
    if not fits:
        return ""
    gains = [
        np.subtract(fit[route]["accuracies"], fit["sums"]["accuracies"]) for fit, route in fits
    ]
    return "{:+.1f} / {:+.1f}".format(*np.mean(gains, axis=0))


def main() -> None:
    """Run."""
    command("Where gradient steps of auto pay.", work, 0, 120, "routes.md", report)


if __name__ == "__main__":
    main()
