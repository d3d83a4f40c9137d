"""The page of a sweep, which holds its charts and the libraries that draw them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from tacit.report.captions import TUNING, overview
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


def sweep_page(
    title: str, sweep: SweepResults, figures: dict[str, list[tuple[Figure, dict[str, Any]]]]
) -> str:
    """Return the page; `figures` are by heading, each with its Vega-Lite chart."""
    sections = [("Contents", _contents(sweep, figures))]
    charts: dict[str, dict[str, Any]] = {}
    for heading, pairs in figures.items():
        places = "".join(figure_place(figure) for figure, _ in pairs)
        sections.append((heading, places))
        charts |= {figure.name: chart for figure, chart in pairs}

    titled_tables = tables(sweep)
    tables_html = "".join(_table(name, rows) for name, rows in titled_tables)
    sections.append(("Tables", f"<p>{MEDIANS}</p>{tables_html}"))

    settings = [
        f"<h3>{escape(name)}</h3>{table(SETTINGS_HEADER, rows)}"
        for name, rows in settings_tables(sweep)
    ]
    if settings:
        sections.append(("Hyperparameters", f"<p>{ABOUT_SETTINGS}</p>{''.join(settings)}"))

    if sweep.failed:
        failed_rows = [failed_texts(result) for result in sweep.failed]
        sections.append(
            ("Cells that failed", table(FAILED_HEADER, failed_rows, "Cells that failed"))
        )

    all_rows = [row for _, rows in titled_tables for row in rows]
    sections.append(("Cells", _cells(all_rows)))
    return page(title, sections, blocks=chart_blocks(charts))


def _contents(sweep: SweepResults, figures: dict[str, list[tuple[Figure, dict[str, Any]]]]) -> str:
    """Return an overview of the sweep, and links to all figures."""
    # headings are constants of `sweep.py`, with nothing to escape
    entries = ""
    for heading, pairs in figures.items():
        links = "".join(
            f'<li><a href="#{figure.name}">{escape(figure.title)}</a></li>' for figure, _ in pairs
        )
        entries += f"<li>{heading}<ul>{links}</ul></li>"
    return f'<p>{escape(overview(sweep))} {HINTS}</p><ul class="contents">{entries}</ul>'


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


def _table(title: str, rows: Sequence[Row]) -> str:
    """Return a table of medians, whose last column leads to the cells of each row."""
    body = ""
    for row in rows:
        link = f'<a href="#{_anchor(row)}">{len(row.results)}</a>'
        body += f"<tr>{_tags('td', row.texts)}<td>{link}</td></tr>"
    head = _tags("th", (*HEADER, "cells"))

    # "dense" is a class of `page.css`: small text
    html = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<h3>{escape(title)}</h3>{scrolled(html, title, 'dense')}"


def _cells(rows: Sequence[Row]) -> str:
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
        bodies += f'<tbody id="{_anchor(row)}">{heading}{lines}</tbody>'
    head = f"<thead><tr>{_tags('th', CELL_HEADER)}</tr></thead>"
    return scrolled(f"<table>{head}{bodies}</table>", "Cells", "dense")


def _tags(tag: str, texts: Sequence[str]) -> str:
    return "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts)


def _anchor(row: Row) -> str:
    """Return the name by which a row of medians links to its cells."""
    return escape(f"cells-{row.results[0].key}")
