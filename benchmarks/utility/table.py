"""The table of cells, what it shows about `auto`, and a page of figures."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from methods import METHODS, NAMED, needs_names

from tacit.report import charts, paper
from tacit.report.accuracy import both_measures, result_of_fit
from tacit.report.page import page, picture, text

OURS = "auto"
WITH_NAMES = (OURS, f"{OURS}{NAMED}", f"gradient-descent{NAMED}", "names")
PICTURES = {  # of the documentation: problem, and methods if not all
    "utility-cifar100-10.png": (
        "cifar100",
        10,
        tuple(method for method in METHODS if not needs_names(method)),
    ),
    "public-knowledge.png": ("banking77", 10, (*WITH_NAMES[:2], "names")),
}
HALF_A_POINT = 0.005
TIE = 1e-5  # less than one test row, more than rounding
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


Values = Mapping[int, tuple[float, float]]
Columns = dict[tuple[str, int, float], dict[str, Values]]


def columns(cells: Sequence[Cell]) -> Columns:
    """The measures by seed, for each method, for each problem and rough epsilon."""
    found: Columns = defaultdict(dict)
    for cell in cells:
        own = found[cell.dataset, cell.ratio, cell.rough].setdefault(cell.method, {})
        own[cell.seed] = (cell.balanced, cell.minority)  # type: ignore[index]
    return dict(sorted(found.items(), key=lambda item: (item[0][0], item[0][1], item[0][2])))


def markdown(cells: Sequence[Cell], methods: Sequence[str] = tuple(METHODS)) -> Iterator[str]:
    """The table, with a part for each problem: mean over seeds of balanced / minority accuracy. The
    best is bold.
    """
    table = columns([cell for cell in cells if cell.method in methods])
    for dataset, ratio in dict.fromkeys((dataset, ratio) for dataset, ratio, _ in table):
        rows = {key[2]: own for key, own in table.items() if key[:2] == (dataset, ratio)}
        present = [method for method in methods if any(method in own for own in rows.values())]
        yield f"\n### {dataset}, imbalance {ratio}\n"
        yield "| e | " + " | ".join(present) + " |"
        yield "|---|" + "---|" * len(present)
        for rough, own in rows.items():
            means = {
                method: np.mean(list(values.values()), axis=0) for method, values in own.items()
            }
            best = [max(mean[i] for mean in means.values()) for i in range(2)]
            yield (
                f"| {rough:g} | "
                + " | ".join(_shown(means.get(method), best) for method in present)
                + " |"
            )


def with_names(cells: Sequence[Cell]) -> Iterator[str]:
    """The table of the problems that have names: what names alone, records alone, and both together
    give.
    """
    named = {(cell.dataset, cell.ratio, cell.rough) for cell in cells if needs_names(cell.method)}
    return markdown(
        [cell for cell in cells if (cell.dataset, cell.ratio, cell.rough) in named], WITH_NAMES
    )


def _shown(mean: np.ndarray | None, best: list[float]) -> str:
    if mean is None:
        return ""
    return " / ".join(
        f"**{value:.3f}**" if value >= top - 5e-4 else f"{value:.3f}"
        for value, top in zip(mean, best, strict=True)
    )


@dataclass(frozen=True)
class Verdict:
    """`auto` against another private method in a cell, over the seeds that both methods have."""

    key: tuple[str, int, float]
    rival: str
    difference: float
    error: float
    ahead: bool = True
    """Whether `auto` is ahead of all other methods, on average over seeds."""

    @property
    def margin(self) -> float:
        """Difference plus tolerance; below 0 `auto` is behind by more than two standard errors and
        half a point.
        """
        return self.difference + max(2 * self.error, HALF_A_POINT)

    @property
    def no_worse(self) -> bool:
        """Whether `auto` is behind by at most two standard errors of the paired difference or half
        a point.
        """
        return self.margin >= 0


def verdicts(cells: Sequence[Cell], measure: str) -> list[Verdict]:
    """For each problem and rough epsilon, the verdict against the method that leaves `auto` the
    smallest margin.
    """
    which = MEASURES.index(measure)
    result = []
    for key, own in columns(cells).items():
        if OURS not in own:
            continue
        rivals = [method for method in own if method != OURS and set(own[OURS]) & set(own[method])]
        each = [_verdict(key, method, own[OURS], own[method], which) for method in rivals]
        if each:
            least = min(each, key=lambda verdict: verdict.margin)
            result.append(replace(least, ahead=all(verdict.difference > TIE for verdict in each)))
    return result


def _verdict(
    key: tuple[str, int, float], rival: str, ours: Values, theirs: Values, which: int
) -> Verdict:
    gaps = np.array(
        [ours[seed][which] - theirs[seed][which] for seed in sorted(set(ours) & set(theirs))]
    )
    error = float(gaps.std(ddof=1) / math.sqrt(len(gaps))) if len(gaps) > 1 else 0.0
    return Verdict(key, rival, float(gaps.mean()), error)


def summary(cells: Sequence[Cell]) -> Iterator[str]:
    """The conditions that `auto` must meet, and every cell in which it does not, without names and
    with them.
    """
    yield "\nWithout class names:"
    yield from _summary([cell for cell in cells if not needs_names(cell.method)])
    yield "\nWith class names:"
    named = [cell for cell in cells if needs_names(cell.method)]
    yield from _summary([replace(cell, method=cell.method.removesuffix(NAMED)) for cell in named])


def _summary(cells: Sequence[Cell]) -> Iterator[str]:
    for measure in MEASURES:
        found = verdicts(cells, measure)
        if not found:
            continue
        good = sum(verdict.no_worse for verdict in found)
        hard = [verdict for verdict in found if verdict.key[1] >= 10]
        ahead = sum(verdict.ahead for verdict in hard)
        yield (
            f"\n**{measure}**: `auto` is no worse than any other method (by 2 standard errors, or"
            f" half a point) in {good} of {len(found)} cells; at imbalance 10 and more it is ahead"
            f" of all in {ahead} of {len(hard)}."
        )
        for verdict in found:
            if not verdict.no_worse:
                dataset, ratio, rough = verdict.key
                yield (
                    f"- {dataset}, imbalance {ratio}, e = {rough:g}:"
                    f" {100 * verdict.difference:+.1f} points (standard error"
                    f" {100 * verdict.error:.1f}) against {verdict.rival}"
                )


def html(cells: Sequence[Cell]) -> str:
    """A page of figures in the paper's form, one figure for each problem."""
    sections = [("What the table says", text("\n".join(summary(cells)).strip()))]
    for dataset, ratio in dict.fromkeys(
        (cell.dataset, cell.ratio) for cell in sorted(cells, key=lambda c: (c.dataset, c.ratio))
    ):
        title = f"{dataset}, imbalance {ratio}"
        sections.append((title, picture(drawn(cells, dataset, ratio), title)))
    return page("Accuracy of private classifiers", sections)


def drawn(
    cells: Sequence[Cell], dataset: str, ratio: int, methods: Sequence[str] = tuple(METHODS)
) -> bytes:
    """A PNG of both accuracies of these methods against rho."""
    own = [
        cell
        for cell in cells
        if (cell.dataset, cell.ratio) == (dataset, ratio) and cell.method in methods
    ]
    own.sort(key=lambda cell: methods.index(cell.method))
    results = [result_of_fit(c.method, c.rough**2 / 2, c.seed, c.balanced, c.minority) for c in own]
    return paper.image(charts.lines, both_measures(results, f"{dataset}, imbalance {ratio}"), "png")
