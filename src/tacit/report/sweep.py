"""The report on a sweep: a page, a PDF, or a folder of figures.

A new kind of figure is a function that finds it (in `accuracy.py` or `fits.py`), one in `charts.py` that draws it, and
its line in `FIGURES`.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tacit.experiments.results import Result
from tacit.report import accuracy, charts, fits, paper
from tacit.report.captions import overview
from tacit.report.figure import Figure
from tacit.report.groups import SweepResults
from tacit.report.html import sweep_page
from tacit.report.pdf import joined
from tacit.report.tables import FAILED_HEADER, HEADER, failed_texts, tables
from tacit.report.theme import PAGE, PAPER, Theme

if TYPE_CHECKING:
    import altair as alt

FORMATS = ("html", "pdf", "svg", "png")
CAPTIONS, TABLES = "captions.txt", "tables.csv"


class Kind(NamedTuple):
    """A kind of figure: its heading, what finds its figures, and what draws them."""

    heading: str
    find: Callable[[SweepResults], Iterable[Figure]]
    chart: Callable[[Figure, Theme], alt.TopLevelConcatSpec]


FIGURES = (
    Kind("Accuracy against cost", accuracy.accuracy, charts.lines),
    Kind("Minority accuracy against cost", accuracy.minority, charts.lines),
    Kind("Best parameter", accuracy.best_parameter, charts.lines),
    Kind("Number of public rows", accuracy.public_rows, charts.lines),
    Kind("Public sets", accuracy.public_sets, charts.dots),
    Kind("Encoders", accuracy.encoders, charts.dots),
    Kind("Means", fits.means, charts.means),
    Kind("Steps", fits.steps, charts.lines),
    Kind("Class sizes", fits.class_sizes, charts.lines),
    Kind("Run times", fits.run_times, charts.bars),
)


def figures(sweep: SweepResults) -> list[tuple[Kind, Figure]]:
    """The figures that apply to the results, each under a name of its own."""
    found: dict[str, tuple[Kind, Figure]] = {}
    for kind in FIGURES:
        for figure in kind.find(sweep):
            names = (figure.name, *(f"{figure.name}-{number}" for number in range(2, len(found) + 3)))
            name = next(name for name in names if name not in found)
            found[name] = (kind, replace(figure, name=name))
    return list(found.values())


def html(results: Sequence[Result], title: str) -> str:
    """The page, which needs no network.

    Raises
    ------
    InputError
        If no result is that of a cell that was done.
    """
    sweep = SweepResults.of(results)
    sections: dict[str, list[tuple[Figure, Any]]] = {}
    for kind, figure in figures(sweep):
        sections.setdefault(kind.heading, []).append((figure, kind.chart(figure, PAGE).to_dict(validate=False)))
    return sweep_page(title, sweep, sections)


def pdf(results: Sequence[Result], title: str) -> bytes:
    """A PDF of the figures with their captions, a page each, then the tables; raises as `html` does."""
    sweep = SweepResults.of(results)
    sheets = list(paper.text_pages(title, paper.wrapped(overview(sweep))))
    sheets += [paper.titled(kind.chart(figure, PAPER), figure, caption=True) for kind, figure in figures(sweep)]
    for name, rows in tables(sweep):
        sheets += paper.text_pages(name, [HEADER, *(row.texts for row in rows)])
    if sweep.failed:
        sheets += paper.text_pages("Cells that failed", [FAILED_HEADER, *map(failed_texts, sweep.failed)])
    return joined([paper.drawn(sheet, "pdf") for sheet in sheets], title)


def write_images(results: Sequence[Result], format: str, folder: Path) -> None:
    """Write a file for each figure, the captions, and the tables as CSV; raises as `html` does."""
    sweep = SweepResults.of(results)
    found = figures(sweep)
    for kind, figure in found:
        image = paper.drawn(paper.titled(kind.chart(figure, PAPER), figure), format)
        (folder / f"{figure.name}.{format}").write_bytes(image)
    captions = [f"{figure.name}.{format}: {figure.title}\n\n{figure.caption}\n" for _, figure in found]
    (folder / CAPTIONS).write_text("\n".join(captions), encoding="utf-8")
    with (folder / TABLES).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["data, encoder, imbalance", *HEADER])
        writer.writerows([name, *row.texts] for name, rows in tables(sweep) for row in rows)


def is_images(folder: Path) -> bool:
    """Whether a folder holds what `write_images` makes, and nothing else."""
    names = {path.name for path in folder.iterdir()}
    images = {name for name in names if Path(name).suffix in (".pdf", ".svg", ".png")}
    return names - images == {CAPTIONS, TABLES}
