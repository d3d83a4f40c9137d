"""The page of a sweep, of one plan or of several, which holds its charts and the libraries that
draw them.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

from tacit.experiments.results import Result
from tacit.report.captions import NOISE, TUNING, overview
from tacit.report.figure import Figure
from tacit.report.groups import SweepResults
from tacit.report.page import asset, data_block, page, scrolled, table
from tacit.report.tables import (
    CELL_HEADER,
    FAILED_HEADER,
    HEADER,
    SETTINGS_HEADER,
    Row,
    cell_texts,
    failed_texts,
    settings_tables,
    tables,
)
from tacit.report.vega import libraries
from tacit.report.words import imbalance_words

MEDIANS = (
    "Medians over seeds, with their 25 to 75 % quantiles, of balanced accuracy, and of minority"
    " accuracy, which is the same over the 25 % smallest training classes. The last column leads to"
    " the cells. Tuning: " + "; ".join(f"{name}: {words}" for name, words in TUNING.items()) + "."
)
ABOUT_SETTINGS = (
    "What each method used in its cells: parameters that the plan or a search set, those left at"
    " their default, and what was computed from public rows, such as the window. The column on"
    " tuning says whether the choice was paid for."
)
HINTS = (
    "Point at a mark for its numbers and cells. Click a name in a legend to pick it out,"
    " shift-click to add one."
)


Charts = dict[str, list[tuple[Figure, dict[str, Any]]]]
"""Figures by heading, each with its Vega-Lite chart."""


class PlanSection(NamedTuple):
    """What the page of several plans says about one of them.

    `prefix` begins the names of its anchors; `sweep` is None if no cell was done.
    """

    prefix: str
    title: str
    about: str
    results: Sequence[Result]
    sweep: SweepResults | None
    figures: Charts


def sweep_page(title: str, sweep: SweepResults, figures: Charts) -> str:
    """Return the page of one plan, or of several whose results are in one folder."""
    sections = [("Contents", _contents(sweep, figures)), *_sections(sweep, figures)]
    return page(title, sections, blocks=chart_blocks(_charts_by_name(figures)))


def plans_page(title: str, plans: Sequence[PlanSection]) -> str:
    """Return the page of several plans, each a section with the parts of `sweep_page`."""
    n_done = sum(result.status == "done" for plan in plans for result in plan.results)
    n_failed = sum(len(plan.results) for plan in plans) - n_done
    summary = f"{len(plans)} plans. {n_done:,} cells were done, {n_failed:,} failed. {NOISE}"
    links = "".join(_link_to_plan(plan) for plan in plans)
    contents = f'<p>{summary} {HINTS}</p><ul class="contents">{links}</ul>'

    sections = [("Contents", contents)]
    charts: dict[str, dict[str, Any]] = {}
    for plan in plans:
        sections.append(("", _plan_html(plan)))
        charts |= _charts_by_name(plan.figures)
    return page(title, sections, blocks=chart_blocks(charts))


def _plan_anchor(plan: PlanSection) -> str:
    """Return the name of a plan's section; those of figures have words after the prefix."""
    return f"{plan.prefix}plan"


def _link_to_plan(plan: PlanSection) -> str:
    return f'<li><a href="#{_plan_anchor(plan)}">{escape(plan.title)}</a></li>'


def _plan_html(plan: PlanSection) -> str:
    """Return the section of one plan, whose headings are one level below those of its page."""
    html = f'<h2 id="{_plan_anchor(plan)}">{escape(plan.title)}</h2>'
    if plan.about:
        html += f"<p>{escape(plan.about)}</p>"
    if plan.sweep is None:
        failed_rows = [failed_texts(result) for result in plan.results]
        return f"{html}<p>No cell was done.</p>{_failed_table(failed_rows)}"

    html += _contents(plan.sweep, plan.figures, hints="")
    for heading, content in _sections(plan.sweep, plan.figures, plan.prefix):
        # texts are escaped, so these are tags
        lower = content.replace("<h3>", "<h4>").replace("</h3>", "</h4>")
        html += f"<h3>{heading}</h3>{lower}"
    return html


def _charts_by_name(figures: Charts) -> dict[str, dict[str, Any]]:
    return {figure.name: chart for pairs in figures.values() for figure, chart in pairs}


def _sections(sweep: SweepResults, figures: Charts, prefix: str = "") -> list[tuple[str, str]]:
    """Return the heading and the content of each part below the contents: figures and tables.

    `prefix` begins the names of the anchors of cells.
    """
    sections = []
    for heading, pairs in figures.items():
        sections.append((heading, "".join(figure_place(figure) for figure, _ in pairs)))

    titled_tables = tables(sweep)
    tables_html = "".join(_table(name, rows, prefix) for name, rows in titled_tables)
    sections.append(("Tables", f"<p>{MEDIANS}</p>{tables_html}"))

    settings = [
        f"<h3>{escape(name)}</h3>{table(SETTINGS_HEADER, rows)}"
        for name, rows in settings_tables(sweep)
    ]
    if settings:
        sections.append(("Hyperparameters", f"<p>{ABOUT_SETTINGS}</p>{''.join(settings)}"))

    if sweep.failed:
        failed_rows = [failed_texts(result) for result in sweep.failed]
        sections.append(("Cells that failed", _failed_table(failed_rows)))

    all_rows = [row for _, rows in titled_tables for row in rows]
    sections.append(("Cells", _cells(all_rows, prefix)))
    return sections


def _failed_table(rows: Sequence[tuple[str, ...]]) -> str:
    return table(FAILED_HEADER, rows, "Cells that failed")


def _contents(sweep: SweepResults, figures: Charts, hints: str = HINTS) -> str:
    """Return an overview of the sweep, and links to all figures."""
    # headings are constants of `sweep.py`, with nothing to escape
    entries = ""
    for heading, pairs in figures.items():
        links = "".join(
            f'<li><a href="#{figure.name}">{escape(figure.title)}</a></li>' for figure, _ in pairs
        )
        entries += f"<li>{heading}<ul>{links}</ul></li>"
    return f'<p>{escape(overview(sweep))} {hints}</p><ul class="contents">{entries}</ul>'


def figure_place(figure: Figure) -> str:
    """Return the place where the script draws a chart, between its title and its caption."""
    return (
        f'<figure id="{figure.name}"><h3>{escape(figure.title)}</h3><div'
        f' class="chart"></div><figcaption>{escape(figure.caption)}</figcaption></figure>'
    )


def chart_blocks(charts: dict[str, dict[str, Any]]) -> str:
    """Return the data and scripts, at the end of a page, that draw charts.

    The charts are by the names of their figures.
    """
    data = data_block("charts", charts)
    script = asset("chart.js")
    return f"{data}<script>{libraries()}</script><script>{script}</script>"


def _table(title: str, rows: Sequence[Row], prefix: str) -> str:
    """Return a table of medians, whose last column leads to the cells of each row."""
    body = ""
    for row in rows:
        link = f'<a href="#{_anchor(row, prefix)}">{len(row.results)}</a>'
        body += f"<tr>{_tags('td', row.texts)}<td>{link}</td></tr>"
    head = _tags("th", (*HEADER, "cells"))

    # "dense" is a class of `page.css`: small text
    html = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<h3>{escape(title)}</h3>{scrolled(html, title, 'dense')}"


def _cells(rows: Sequence[Row], prefix: str) -> str:
    """Return a table of the cells behind each row of the tables of medians."""
    bodies = ""
    for row in rows:
        # the first two columns of HEADER
        label, budget, *_ = row.texts
        first = row.results[0]
        place = (
            f"{label}, {budget}; {first.data}, {first.encoder}, {imbalance_words(first.imbalance)}"
        )
        heading = f'<tr><th colspan="{len(CELL_HEADER)}">{escape(place)}</th></tr>'
        lines = "".join(f"<tr>{_tags('td', cell_texts(result))}</tr>" for result in row.results)
        bodies += f'<tbody id="{_anchor(row, prefix)}">{heading}{lines}</tbody>'
    head = f"<thead><tr>{_tags('th', CELL_HEADER)}</tr></thead>"
    return scrolled(f"<table>{head}{bodies}</table>", "Cells", "dense")


def _tags(tag: str, texts: Sequence[str]) -> str:
    return "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts)


def _anchor(row: Row, prefix: str) -> str:
    """Return the name by which a row of medians links to its cells."""
    return escape(f"{prefix}cells-{row.results[0].key}")
