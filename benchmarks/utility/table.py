"""The table of cells, verdicts on `auto`, and a page of figures."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from methods import METHODS, NAMED, needs_names

from tacit.report import charts, paper
from tacit.report.accuracy import both_measures, result_of_fit
from tacit.report.page import page, picture, text

OURS = "auto"
WITH_NAMES = (OURS, f"{OURS}{NAMED}", f"gradient-descent{NAMED}", "names")

# pictures of the documentation: data set, imbalance and methods
PICTURES = {
    "utility-cifar100-10.png": (
        "cifar100",
        10,
        tuple(method for method in METHODS if not needs_names(method)),
    ),
    "public-knowledge.png": ("banking77", 10, (*WITH_NAMES[:2], "names")),
}
HALF_A_POINT = 0.005

# accuracies that differ by less are equal: less than one test row, more than rounding
TIE = 1e-5
MEASURES = ("balanced", "minority")


@dataclass(frozen=True)
class Cell:
    """One fit: problem, method, rough epsilon, seed, and its accuracies."""

    dataset: str
    ratio: int
    seed: int
    method: str
    rough: float
    balanced: float
    minority: float


# balanced and minority accuracy, by seed
Values = dict[int, tuple[float, float]]

# data set, imbalance and rough epsilon
Key = tuple[str, int, float]


def columns(cells: Sequence[Cell]) -> dict[Key, dict[str, Values]]:
    """Return the values of each method, by problem and rough epsilon, in this order."""
    values_by_key: dict[Key, dict[str, Values]] = defaultdict(dict)
    for cell in cells:
        values_by_method = values_by_key[cell.dataset, cell.ratio, cell.rough]
        values = values_by_method.setdefault(cell.method, {})
        values[cell.seed] = (cell.balanced, cell.minority)
    return dict(sorted(values_by_key.items(), key=lambda item: item[0]))


def markdown(cells: Sequence[Cell], methods: Sequence[str] = tuple(METHODS)) -> Iterator[str]:
    """Yield the table, with a part for each problem.

    Figures are means over seeds of balanced / minority accuracy. The best is bold.
    """
    values_by_key = columns([cell for cell in cells if cell.method in methods])
    for dataset, ratio in dict.fromkeys((dataset, ratio) for dataset, ratio, _ in values_by_key):
        rows = {
            key[2]: values_by_method
            for key, values_by_method in values_by_key.items()
            if key[:2] == (dataset, ratio)
        }
        columns_of_part = [
            method for method in methods if any(method in row for row in rows.values())
        ]
        yield f"\n### {dataset}, imbalance {ratio}\n"
        yield f"| e | {' | '.join(columns_of_part)} |"
        yield "|---|" + "---|" * len(columns_of_part)
        for rough, values_by_method in rows.items():
            means = {
                method: np.mean(list(values.values()), axis=0)
                for method, values in values_by_method.items()
            }
            best = np.max(list(means.values()), axis=0)
            texts = [_mean_text(means.get(method), best) for method in columns_of_part]
            yield f"| {rough:g} | {' | '.join(texts)} |"


def with_names(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield the table of the problems that have names.

    Its methods learn from names alone, from records alone, and from both.
    """
    with_named_method = {
        (cell.dataset, cell.ratio, cell.rough) for cell in cells if needs_names(cell.method)
    }
    return markdown(
        [cell for cell in cells if (cell.dataset, cell.ratio, cell.rough) in with_named_method],
        WITH_NAMES,
    )


def _mean_text(mean: np.ndarray | None, best: np.ndarray) -> str:
    """Return balanced / minority accuracy; each is bold where no method prints a higher one."""
    if mean is None:
        return ""
    texts = []
    for value, highest in zip(mean, best, strict=True):
        is_best = value >= highest - 5e-4
        texts.append(f"**{value:.3f}**" if is_best else f"{value:.3f}")
    return " / ".join(texts)


@dataclass(frozen=True)
class Verdict:
    """`auto` against another private method in a cell, over the seeds that both methods have."""

    key: Key
    rival: str
    difference: float
    error: float
    ahead: bool = True
    """True if `auto` is ahead of all other methods, on average over seeds."""

    @property
    def margin(self) -> float:
        """Difference plus tolerance.

        Below 0, `auto` is behind by more than two standard errors and by more than half a point.
        """
        return self.difference + max(2 * self.error, HALF_A_POINT)

    @property
    def no_worse(self) -> bool:
        """True if `auto` is behind by at most two standard errors, or by at most half a point."""
        return self.margin >= 0


def verdicts(cells: Sequence[Cell], measure: str) -> list[Verdict]:
    """Return the verdict against the rival that leaves `auto` the smallest margin.

    There is one for each problem and rough epsilon.
    """
    position = MEASURES.index(measure)
    closest_verdicts = []
    for key, values_by_method in columns(cells).items():
        ours = values_by_method.pop(OURS, None)
        if ours is None:
            continue
        verdicts_of_key = []
        for rival, theirs in values_by_method.items():
            seeds = sorted(set(ours) & set(theirs))
            if seeds:
                gaps = [ours[seed][position] - theirs[seed][position] for seed in seeds]
                verdicts_of_key.append(_verdict(key, rival, np.array(gaps)))
        if verdicts_of_key:
            closest = min(verdicts_of_key, key=lambda verdict: verdict.margin)
            is_ahead = all(verdict.difference > TIE for verdict in verdicts_of_key)
            closest_verdicts.append(replace(closest, ahead=is_ahead))
    return closest_verdicts


def _verdict(key: Key, rival: str, gaps: np.ndarray) -> Verdict:
    """Return the verdict for the gaps to a rival, one for each seed."""
    error = 0.0
    if len(gaps) > 1:
        error = float(gaps.std(ddof=1) / math.sqrt(len(gaps)))
    return Verdict(key, rival, float(gaps.mean()), error)


def summary(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield the conditions that `auto` must meet, and every cell in which it does not.

    Methods without class names and methods with them are compared apart.
    """
    yield "\nWithout class names:"
    yield from _summary([cell for cell in cells if not needs_names(cell.method)])
    yield "\nWith class names:"
    with_names = [cell for cell in cells if needs_names(cell.method)]
    yield from _summary(
        [replace(cell, method=cell.method.removesuffix(NAMED)) for cell in with_names]
    )


def _summary(cells: Sequence[Cell]) -> Iterator[str]:
    for measure in MEASURES:
        all_verdicts = verdicts(cells, measure)
        if not all_verdicts:
            continue

        n_no_worse = sum(verdict.no_worse for verdict in all_verdicts)
        at_imbalance = [verdict for verdict in all_verdicts if verdict.key[1] >= 10]
        n_ahead = sum(verdict.ahead for verdict in at_imbalance)
        yield (
            f"\n**{measure}**: `auto` is no worse than any other method (by 2 standard errors, or"
            f" half a point) in {n_no_worse} of {len(all_verdicts)} cells; at imbalance 10 and more"
            f" it is ahead of all in {n_ahead} of {len(at_imbalance)}."
        )
        for verdict in all_verdicts:
            if not verdict.no_worse:
                dataset, ratio, rough = verdict.key
                yield (
                    f"- {dataset}, imbalance {ratio}, e = {rough:g}:"
                    f" {100 * verdict.difference:+.1f} points (standard error"
                    f" {100 * verdict.error:.1f}) against {verdict.rival}"
                )


def html(cells: Sequence[Cell]) -> str:
    """Return a page of figures in the paper's form, one figure for each problem."""
    sections = [("What the table says", text("\n".join(summary(cells)).strip()))]
    for dataset, ratio in sorted({(cell.dataset, cell.ratio) for cell in cells}):
        title = f"{dataset}, imbalance {ratio}"
        sections.append((title, picture(figure(cells, dataset, ratio), title)))
    return page("Accuracy of private classifiers", sections)


def figure(
    cells: Sequence[Cell], dataset: str, ratio: int, methods: Sequence[str] = tuple(METHODS)
) -> bytes:
    """Return a PNG of both accuracies of these methods against rho."""
    cells_of_problem = [
        cell
        for cell in cells
        if (cell.dataset, cell.ratio) == (dataset, ratio) and cell.method in methods
    ]
    results = []
    for cell in sorted(cells_of_problem, key=lambda cell: methods.index(cell.method)):
        rho = cell.rough**2 / 2
        results.append(result_of_fit(cell.method, rho, cell.seed, cell.balanced, cell.minority))
    title = f"{dataset}, imbalance {ratio}"
    return paper.image(charts.lines, both_measures(results, title), "png")
