"""How the default method does on data that chose none of its constants, and what names do to it.

python benchmarks/utility/default.py EMBEDDINGS --out FOLDER [--workers 2] [--only unseen/trec ...]
    [--cells FILE]

EMBEDDINGS holds a folder per encoder with a folder per data set, and names.npz, which names.py
writes. Every cell is a fit of one method to one problem. There are three parts:

- `unseen`: `auto` and four rivals on trec, s2d, letter and penbased, at three imbalances and four
  budgets. Public rows are the last 15 % of the training rows (`matched`), or rows of other data
  (`foreign`).
- `names`: few records, in all or per class. `auto` without names, with the right names and with
  the names of other classes of the same data set; and the names alone, which use no record.
- `pairs`: two classes of trec, at four imbalances and five budgets, with and without names.

The run ends by writing FOLDER/table.md from all cells. `cells.py` describes the files of a run.
The cells that are stored beside this file are those of `more_budget.py` and of the documentation.
"""

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from problems import IMAGES, NEWS, TEXT, TINY, Problem

import tacit
from tacit.compute.shared import caching
from tacit.data.imbalance import imbalanced_subset
from tacit.learners.common.base import PrivateClassifier
from tacit.models.metrics import evaluate

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from cells import Task, command

# Data sets on which no constant of `auto` was chosen, with their imbalances, and the rows that a
# class must have where an imbalance is imposed.
UNSEEN = {
    f"{TEXT}/trec": ((1, 10, 100), 100),
    f"{TEXT}/s2d": ((1, 10), 20),
    "table/letter": ((1, 10, 100), 100),
    "table/penbased": ((1, 10, 100), 100),
}
UNSEEN_EPSILONS = (0.1, 0.5, 2.0, 8.0)
UNSEEN_SEEDS = range(2)
MATCHED_SHARE = 0.15

# Data sets with names and numbers of their classes.
NAMED = (
    (f"{TEXT}/sst2", 2),
    (f"{TEXT}/trec", 2),
    (f"{TEXT}/agnews", 4),
    (f"{TEXT}/trec", 6),
    (f"{TEXT}/s2d", 5),
    (f"{TEXT}/s2d", 24),
    (f"{TEXT}/banking77", 16),
    (f"{TEXT}/banking77", 77),
    (f"{TEXT}/clinc150", 64),
    (f"{TEXT}/clinc150", 150),
    (f"{IMAGES}/cifar10", 10),
    (f"{IMAGES}/cifar100", 40),
)
RECORDS = ("10 in all", "30 in all", "100 in all", "10 a class", "30 a class", "100 a class")
NAMED_EPSILONS = (0.02, 0.1, 0.5, 2.0, 8.0)
NAMED_SEEDS = range(3)

# Pairs of classes of trec, by position.
PAIRS = ("LOC NUM", "DESC ENTY", "HUM LOC")
TREC = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
PAIR_RATIOS = (1, 10, 30, 100)
PAIR_EPSILONS = (0.1, 0.5, 1.0, 2.0, 8.0)
PAIR_SEEDS = range(3)

STREAM = 50  # of the classes, records and names that are drawn
NOISE_SEEDS = 1000
PUBLIC_ROWS = 5_000
TEST_ROWS = 2_000

RIVALS: dict[str, type[PrivateClassifier]] = {
    "noisy-sum": tacit.NoisySumPrototypes,
    "least-squares": tacit.LeastSquares,
    "gradient-descent": tacit.GradientDescent,
    "feature-covariance": tacit.FeatureCovariance,
}
RIGHT = "auto with names"
WRONG = "auto with other names"
ALONE = "names"

# What the table counts as behind, in points.
BEHIND_RIVAL = 1.0
BEHIND_NAMES = 2.0


@dataclass(frozen=True)
class Cell:
    """One fit: what it learned from, by which method, and its accuracy in percent."""

    part: str
    store: str
    classes: str
    pool: str
    records: str
    rough: float
    seed: int
    method: str
    balanced: float
    smallest: float
    names_used: float
    refined: float


N_KEYS = 8


def tasks() -> Iterator[Task]:
    """All cells; those of one problem follow one another."""
    for store, (ratios, _) in UNSEEN.items():
        problems = product(("matched", "foreign"), ratios, UNSEEN_SEEDS, UNSEEN_EPSILONS)
        for pool, ratio, seed, rough in problems:
            for method in ("auto", *RIVALS):
                yield ("unseen", store, "all", pool, f"imbalance {ratio}", rough, seed, method)

    for (store, classes), records, seed in product(NAMED, RECORDS, NAMED_SEEDS):
        yield ("names", store, str(classes), "foreign", records, 0.0, seed, ALONE)
        for rough, method in product(NAMED_EPSILONS, ("auto", RIGHT, WRONG)):
            yield ("names", store, str(classes), "foreign", records, rough, seed, method)

    for pair, ratio, seed in product(PAIRS, PAIR_RATIOS, PAIR_SEEDS):
        yield ("pairs", f"{TEXT}/trec", pair, "foreign", f"imbalance {ratio}", 0.0, seed, ALONE)
        for rough, method in product(PAIR_EPSILONS, ("auto", RIGHT)):
            keys = ("pairs", f"{TEXT}/trec", pair, "foreign", f"imbalance {ratio}", rough, seed)
            yield (*keys, method)


@lru_cache(maxsize=8)
def stored(folder: Path, store: str, split: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Rows and labels of a split of a data set."""
    rows = np.load(folder / store / f"{split}_x.npy")
    return rows, np.load(folder / store / f"{split}_y.npy").astype(np.int64)


@lru_cache(maxsize=4)
def foreign_rows(folder: Path, store: str) -> NDArray[Any]:
    """Public rows of other data than a data set."""
    file = folder / store / "foreign_x.npy"
    if file.exists():
        return np.asarray(np.load(file))

    others: tuple[str, ...] = NEWS
    if store.startswith(IMAGES):
        others = (TINY,)
    elif store in NEWS:
        others = (f"{TEXT}/banking77", f"{TEXT}/clinc150")
    rows = np.concatenate([stored(folder, other, "train")[0] for other in others])
    kept = np.random.default_rng(STREAM).permutation(len(rows))[: 2 * PUBLIC_ROWS]
    return np.asarray(rows[np.sort(kept)])


def all_names(folder: Path, store: str) -> NDArray[Any] | None:
    """Rows of the names of all classes of a data set, if it has some."""
    file = folder / store / "names_x.npy"
    if file.exists():
        return np.asarray(np.load(file), dtype=np.float32)
    bundle = folder / "names.npz"
    if not bundle.exists():
        return None
    return np.load(bundle).get(store)


def of_classes(
    rows: NDArray[Any], labels: NDArray[np.int64], classes: NDArray[np.int64], n_classes: int
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The rows of these classes, whose labels become positions among them."""
    position = np.full(n_classes, -1)
    position[classes] = np.arange(len(classes))
    kept = position[labels] >= 0
    return rows[kept], position[labels[kept]]


@lru_cache(maxsize=2)
def problem(
    folder: Path, part: str, store: str, classes: str, pool: str, records: str, seed: int
) -> tuple[Problem, NDArray[Any] | None]:
    """A problem, and the names of other classes of its data set in place of its own."""
    x, y = stored(folder, store, "train")
    test_x, test_y = stored(folder, store, "test")
    public = foreign_rows(folder, store)
    if pool == "matched" or part == "unseen":
        n_private = len(x) - int(MATCHED_SHARE * len(x))
        if pool == "matched":
            public = x[n_private:]
        x, y = x[:n_private], y[:n_private]

    n_all = int(max(y.max(), test_y.max())) + 1
    names = all_names(folder, store)
    rng = np.random.default_rng([STREAM, seed])
    chosen = np.arange(n_all)
    if part == "pairs":
        chosen = np.array([TREC.index(name) for name in classes.split()])
    elif part == "names":
        chosen = np.sort(rng.permutation(n_all)[: int(classes)])
    elif records != "imbalance 1":
        chosen = np.flatnonzero(np.bincount(y, minlength=n_all) >= UNSEEN[store][1])

    x, y = of_classes(x, y, chosen, n_all)
    test_x, test_y = of_classes(test_x, test_y, chosen, n_all)
    x, y = drawn(x, y, records, seed, rng)

    wrong = None
    if names is not None:
        others = np.setdiff1d(np.arange(n_all), chosen)
        if len(others) >= len(chosen):
            wrong = names[rng.permutation(others)[: len(chosen)]]
        else:
            # too few others: no class has its own name
            wrong = names[np.roll(chosen, 1)]
        names = names[chosen]
    test = slice(TEST_ROWS) if part != "unseen" else slice(None)
    data = Problem(x, y, test_x[test], test_y[test], public, len(chosen), names)
    return data, wrong


def drawn(
    x: NDArray[Any], y: NDArray[np.int64], records: str, seed: int, rng: np.random.Generator
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The private records: so many in all or of each class, or all at an imbalance."""
    if records.startswith("imbalance"):
        ratio = int(records.split()[1])
        if ratio == 1:
            return x, y
        kept = imbalanced_subset(y, ratio, seed)
        return x[kept], y[kept]

    number = int(records.split()[0])
    order = rng.permutation(len(y))
    if records.endswith("in all"):
        kept = order[:number]
    else:
        of_each = [order[y[order] == label][:number] for label in range(int(y.max()) + 1)]
        kept = np.concatenate(of_each)
    return x[kept], y[kept]


def work(folder: Path, task: Task) -> tuple[Cell, float]:
    """Fit and measure one cell."""
    part, store, classes, pool, records, rough, seed, method = task
    started = time.perf_counter()
    data, wrong = problem(folder, part, store, classes, pool, records, seed)
    shared: dict[str, Any] = {
        "public": data.public,
        "classes": data.n_classes,
        "noise": "research",
        "random_state": NOISE_SEEDS + seed,
        "allow_overlap": True,
    }
    learner: Any
    if method == ALONE:
        learner = tacit.NamePrototypes(names=data.names, **shared)
    else:
        names = {RIGHT: data.names, WRONG: wrong}.get(method)
        if names is not None:
            shared["names"] = names
        kind = RIVALS.get(method, tacit.AutoPrototypes)
        learner = kind(f"rho={rough**2 / 2!r}", **shared)
    with caching():
        predicted = learner.fit(data.x, data.y).predict(data.test_x)
    scores = evaluate(data.test_y, predicted, np.arange(data.n_classes), data.sizes)
    smallest = int(np.argmin(data.sizes))
    recall = float(np.mean(predicted[data.test_y == smallest] == smallest))
    cell = Cell(
        *task,
        balanced=round(100 * scores.balanced, 2),
        smallest=round(100 * recall, 2),
        names_used=float(getattr(learner, "names_used_", False)),
        refined=float(getattr(learner, "refined_", False)),
    )
    return cell, time.perf_counter() - started


def table(cells: Sequence[Cell]) -> Iterator[str]:
    """All tables, in Markdown."""
    yield from against_rivals([cell for cell in cells if cell.part == "unseen"])
    yield from against_names([cell for cell in cells if cell.part == "names"], "few records")
    yield from against_names([cell for cell in cells if cell.part == "pairs"], "two classes")


def by(cells: Sequence[Cell], key: Callable[[Cell], Any]) -> dict[Any, list[Cell]]:
    """The cells in groups, by a key."""
    groups = defaultdict(list)
    for cell in cells:
        groups[key(cell)].append(cell)
    return dict(groups)


def name_of(store: str) -> str:
    """The name of a data set."""
    return store.rpartition("/")[2]


def against_rivals(cells: Sequence[Cell]) -> Iterator[str]:
    """How far `auto` is behind the best rival, chosen after the fact by the mean over seeds."""
    gaps: dict[tuple[str, str], list[float]] = defaultdict(list)
    worst = []
    for key, group in by(cells, lambda c: (c.store, c.pool, c.records, c.rough)).items():
        means = {name: np.mean([c.balanced for c in of]) for name, of in by(group, method).items()}
        if set(means) != {"auto", *RIVALS}:
            continue
        best = max(RIVALS, key=lambda name: means[name])
        gap = float(means["auto"] - means[best])
        gaps[name_of(key[0]), key[1]].append(gap)
        worst.append((gap, best, *key))

    if not gaps:
        return
    yield "### Against four rivals on data that chose nothing\n"
    yield "| data set | pool | cells | mean regret | behind by more than a point | worst |"
    yield "|---|---|---|---|---|---|"
    everything = [gap for group in gaps.values() for gap in group]
    for (store, pool), group in [*gaps.items(), (("all", ""), everything)]:
        regret = np.mean(np.maximum(-np.array(group), 0))
        behind = sum(gap < -BEHIND_RIVAL for gap in group)
        lowest = -min(group)
        yield f"| {store} | {pool} | {len(group)} | {regret:.2f} | {behind} | {lowest:.1f} |"
    yield "\n| points | behind | data set | pool | imbalance | e |"
    yield "|---" * 6 + "|"
    for gap, best, store, pool, records, rough in sorted(worst)[:8]:
        ratio = records.split()[1]
        yield f"| {gap:.1f} | `{best}` | {name_of(store)} | {pool} | {ratio} | {rough:g} |"
    yield ""


def method(cell: Cell) -> str:
    """The method of a cell."""
    return cell.method


def against_names(cells: Sequence[Cell], title: str) -> Iterator[str]:
    """What right names and those of other classes do to `auto`, and how often it is below names
    alone.
    """
    problems = by(cells, lambda c: (c.store, c.classes, c.records, c.seed))
    rows: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    worst = []
    for key, group in problems.items():
        alone = [c.balanced for c in group if c.method == ALONE]
        for rough, fits in by([c for c in group if c.method != ALONE], lambda c: c.rough).items():
            found = {c.method: c for c in fits}
            if RIGHT not in found or not alone:
                continue
            right = found[RIGHT]
            plain = found["auto"].balanced if "auto" in found else np.nan
            wrong = found[WRONG].balanced if WRONG in found else np.nan
            wrong_used = found[WRONG].names_used if WRONG in found else np.nan
            values = (plain, right.balanced, right.names_used, wrong, wrong_used, alone[0])
            for label in (
                f"{key[0].rpartition('/')[2]}, {key[1]}",
                key[2],
                f"e = {rough:g}",
                "all",
            ):
                rows[label].append(values)
            worst.append((right.balanced - alone[0], right.names_used, *key, rough))

    if not rows:
        return
    yield f"### Names: {title}\n"
    yield (
        "| fits | number | names alone | no names | right names | used | other names | used |"
        " below names alone by more than two points | worst |"
    )
    yield "|---" * 10 + "|"
    order = sorted(rows, key=lambda label: (label == "all", label.startswith("e ="), label))
    for label in order:
        values = np.array(rows[label])
        plain, right, used, wrong, wrong_used, alone = values.mean(axis=0)
        gaps = values[:, 1] - values[:, 5]
        below = 100 * np.mean(gaps < -BEHIND_NAMES)
        no_names = "" if np.isnan(plain) else f"{plain:.1f}"
        other = "|  |  " if np.isnan(wrong) else f"| {wrong:.1f} | {100 * wrong_used:.0f} % "
        yield (
            f"| {label} | {len(values)} | {alone:.1f} | {no_names} | {right:.1f} |"
            f" {100 * used:.0f} % {other}| {below:.1f} % | {gaps.min():.1f} |"
        )
    yield "\n| points | names | data set | classes | records | seed | e |"
    yield "|---" * 7 + "|"
    for gap, was_used, store, classes, records, seed, rough in sorted(worst)[:10]:
        used_word = "used" if was_used else "left out"
        cells_of = (f"{gap:.1f}", used_word, name_of(store), classes, records, seed, f"{rough:g}")
        yield "| " + " | ".join(map(str, cells_of)) + " |"
    yield ""


def main() -> None:
    """Run."""
    command("The default method on unseen data.", Cell, N_KEYS, tasks(), work, table)


if __name__ == "__main__":
    main()
