"""The report on a sweep: a page, or a folder of figures; of several plans, with a section or a
sub-folder for each.

A new kind of figure is a function that finds it (in `accuracy.py`, `fits.py` or `votings.py`), one
in `charts.py` that draws it, and its line in `FIGURES`.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from tacit.experiments.results import Result, folders_of, results_of_one
from tacit.experiments.run import plan_of
from tacit.report import accuracy, charts, fits, paper, vega, votings
from tacit.report.figure import Figure
from tacit.report.groups import SweepResults
from tacit.report.html import PlanSection, plans_page, sweep_page
from tacit.report.tables import HEADER, SETTINGS_HEADER, settings_tables, tables
from tacit.report.theme import PAGE, Theme
from tacit.report.words import slug

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


class PlanResults(NamedTuple):
    """Results of one plan of a sweep of several, and what the plan says about itself.

    `name` is that of the sub-folder.
    """

    name: str
    title: str
    about: str
    results: Sequence[Result]


def read_plans(runs: Path, where: str = "") -> list[PlanResults]:
    """Return the results of each plan in the folder of a sweep of several; a plan without a cell of
    which `where` is true is left out.
    """
    plans = []
    for folder in folders_of(runs):
        # the results of a plan that was swept alone lie in the folder itself
        results = results_of_one(folder, where)
        if not results:
            continue
        plan = plan_of(folder)
        title = results[0].plan if plan is None else plan.name
        about = "" if plan is None else plan.about
        plans.append(PlanResults(folder.resolve().name, title, about, results))
    return plans


def html(results: Sequence[Result], title: str) -> str:
    """Return the page, which needs no network; InputError if no cell was done."""
    sweep = SweepResults.of(results)
    return sweep_page(title, sweep, _charts(sweep))


def html_of_plans(plans: Sequence[PlanResults], title: str) -> str:
    """Return the page with a section for each plan; InputError if no cell of any was done."""
    sections = []
    for plan, sweep in _sweeps(plans):
        prefix = f"{slug(plan.name)}-"
        charts = {} if sweep is None else _charts(sweep, prefix)
        sections.append(PlanSection(prefix, plan.title, plan.about, plan.results, sweep, charts))
    return plans_page(title, sections)


def _sweeps(plans: Sequence[PlanResults]) -> list[tuple[PlanResults, SweepResults | None]]:
    """Return each plan with its results for figures, None if no cell was done; InputError if none
    of any plan was.
    """
    # raises where no cell of any plan was done
    SweepResults.of([result for plan in plans for result in plan.results])
    sweeps: list[tuple[PlanResults, SweepResults | None]] = []
    for plan in plans:
        done = any(result.status == "done" for result in plan.results)
        sweeps.append((plan, SweepResults.of(plan.results) if done else None))
    return sweeps


def _charts(
    sweep: SweepResults, prefix: str = ""
) -> dict[str, list[tuple[Figure, dict[str, Any]]]]:
    """Return each figure with its Vega-Lite chart, by heading; names begin with `prefix`."""
    charts_by_heading: dict[str, list[tuple[Figure, dict[str, Any]]]] = {}
    for kind, figure in figures(sweep):
        # without Altair's slow check against the schema of Vega-Lite
        chart = kind.chart(figure, PAGE).to_dict(validate=False)
        named = replace(figure, name=f"{prefix}{figure.name}")
        charts_by_heading.setdefault(kind.heading, []).append((named, chart))
    return charts_by_heading


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


def write_images_of_plans(plans: Sequence[PlanResults], format: str, folder: Path) -> None:
    """Write a sub-folder for each plan of which a cell was done, as `write_images` does."""
    for plan, sweep in _sweeps(plans):
        if sweep is not None:
            (folder / plan.name).mkdir()
            write_images(plan.results, format, folder / plan.name)


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


def is_images_of_plans(folder: Path) -> bool:
    """Return true if a folder holds the sub-folders of `write_images_of_plans`, and nothing
    else.
    """
    paths = list(folder.iterdir())
    return bool(paths) and all(path.is_dir() and is_images(path) for path in paths)
