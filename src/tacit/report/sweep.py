"""The report on a sweep: a page, or a folder of figures.

A new kind of figure is a function that finds it (in `accuracy.py`, `fits.py` or `votings.py`), one
in `charts.py` that draws it, and its line in `FIGURES`.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from tacit.experiments.results import Result
from tacit.report import accuracy, charts, fits, paper, vega, votings
from tacit.report.figure import Figure
from tacit.report.groups import SweepResults
from tacit.report.html import sweep_page
from tacit.report.tables import HEADER, SETTINGS_HEADER, settings_tables, tables
from tacit.report.theme import PAGE, Theme

# files beside the images
CAPTIONS = "captions.txt"
TABLES = "tables.csv"
HYPERPARAMETERS = "hyperparameters.csv"


class Kind(NamedTuple):
    """A kind of figure: its heading, a function that makes the figures, and one that draws them."""

    heading: str
    find: Callable[[SweepResults], Iterable[Figure]]
    chart: Callable[[Figure, Theme], charts.Chart]


FIGURES = (
    Kind("Accuracy against cost", accuracy.accuracy, charts.lines),
    Kind("Minority accuracy against cost", accuracy.minority, charts.lines),
    Kind("Encoders against cost", accuracy.accuracy_of_encoders, charts.lines),
    Kind("Data sets against cost", accuracy.accuracy_of_data_sets, charts.lines),
    Kind("Parameters", accuracy.best_parameter, charts.lines),
    Kind("Best values of parameters", accuracy.best_values, charts.lines),
    Kind("Number of public rows", accuracy.public_rows, charts.lines),
    Kind("Public sets", accuracy.public_sets, charts.dots),
    Kind("Encoders", accuracy.encoders, charts.dots),
    Kind("Units", accuracy.units, charts.dots),
    Kind("Trials of searches", fits.trials, charts.scatter),
    Kind("Means", fits.means, charts.means),
    Kind("Steps", fits.steps, charts.lines),
    Kind("Cost of answers", votings.costs, charts.lines),
    Kind("Readings of one voting", votings.readings, charts.dots),
    Kind("Consensus of teachers", votings.consensus, charts.lines),
    Kind("Class sizes", fits.class_sizes, charts.lines),
    Kind("Shares of records by class", fits.class_shares, charts.lines),
    Kind("Run times", fits.run_times, charts.bars),
)


def figures(sweep: SweepResults) -> list[tuple[Kind, Figure]]:
    """Return the figures that apply to the results; no two have the same name."""
    figures_by_name: dict[str, tuple[Kind, Figure]] = {}
    for kind in FIGURES:
        for figure in kind.find(sweep):
            # Names are cut to a length, so long ones may be equal: the second gets "-2" and so on.
            name = figure.name
            suffix = 1
            while name in figures_by_name:
                suffix += 1
                name = f"{figure.name}-{suffix}"
            figures_by_name[name] = (kind, replace(figure, name=name))
    return list(figures_by_name.values())


def html(results: Sequence[Result], title: str) -> str:
    """Return the page, which needs no network; InputError if no cell was done."""
    sweep = SweepResults.of(results)
    sections: dict[str, list[tuple[Figure, dict[str, Any]]]] = {}
    for kind, figure in figures(sweep):
        # without Altair's slow check against the schema of Vega-Lite
        chart = kind.chart(figure, PAGE).to_dict(validate=False)
        sections.setdefault(kind.heading, []).append((figure, chart))
    return sweep_page(title, sweep, sections)


def write_images(results: Sequence[Result], format: str, folder: Path) -> None:
    """Write a file for each figure, the captions, and the tables as CSV.

    `format` is one of `vega.FORMATS`. Raises InputError if no cell was done.
    """
    sweep = SweepResults.of(results)
    captions = []
    for kind, figure in figures(sweep):
        name = f"{figure.name}.{format}"
        (folder / name).write_bytes(paper.image(kind.chart, figure, format))
        captions.append(f"{name}: {figure.title}\n\n{figure.caption}\n")
    (folder / CAPTIONS).write_text("\n".join(captions), encoding="utf-8")

    # the first column has the title of a row's table, which is several facts in one text
    medians = [(title, [row.texts for row in rows]) for title, rows in tables(sweep)]
    _write_csv(folder / TABLES, ("data, encoder, imbalance", *HEADER), medians)
    _write_csv(
        folder / HYPERPARAMETERS, ("data, encoder", *SETTINGS_HEADER), settings_tables(sweep)
    )


def _write_csv(
    path: Path, header: Sequence[str], titled_rows: Iterable[tuple[str, list[tuple[str, ...]]]]
) -> None:
    """Write tables to one file, with the title of each before its rows."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        for title, rows in titled_rows:
            for row in rows:
                writer.writerow([title, *row])


def is_images(folder: Path) -> bool:
    """Return true if a folder holds the files of `write_images`, and nothing else.

    There may be no image, where no figure applied. Earlier versions wrote no hyperparameters.
    """
    names = {path.name for path in folder.iterdir()}
    images = {name for name in names if Path(name).suffix.removeprefix(".") in vega.FORMATS}
    return names - images - {HYPERPARAMETERS} == {CAPTIONS, TABLES}
