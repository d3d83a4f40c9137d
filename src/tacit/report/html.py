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
    Row,
    cell_texts,
    failed_texts,
    tables,
)
from tacit.report.vega import libraries
from tacit.report.words import imbalance_words

MEDIANS = (
    "Medians over seeds, with their 25 to 75 % quantiles, of balanced accuracy, and of minority"
    " accuracy, which is the same over the 25 % smallest training classes. The last column leads to"
    " the cells. Tuning: " + "; ".join(f"{name}: {words}" for name, words in TUNING.items()) + "."
)
HINTS = (
    "Point at a mark for its numbers and cells. Click a name in a legend to pick it out,"
    " shift-click to add one."
)


def sweep_page(
    title: str, sweep: SweepResults, figures: dict[str, list[tuple[Figure, dict[str, Any]]]]
) -> str:
    """The page; `figures` and their Vega-Lite charts are by heading."""
    contents, sections = "", []
    for heading, drawn in figures.items():
        links = "".join(
            f'<li><a href="#{figure.name}">{escape(figure.title)}</a></li>' for figure, _ in drawn
        )
        contents += f"<li>{heading}<ul>{links}</ul></li>"
        sections.append((heading, "".join(figure_place(figure) for figure, _ in drawn)))
    first = f'<p>{escape(overview(sweep))} {HINTS}</p><ul class="contents">{contents}</ul>'
    sections.insert(0, ("Contents", first))
    named = tables(sweep)
    sections += [
        ("Tables", f"<p>{MEDIANS}</p>" + "".join(_table(name, rows) for name, rows in named))
    ]
    if sweep.failed:
        failed = table(
            FAILED_HEADER, [failed_texts(one) for one in sweep.failed], "Cells that failed"
        )
        sections.append(("Cells that failed", failed))
    sections.append(("Cells", _cells([row for _, rows in named for row in rows])))
    charts = {figure.name: chart for drawn in figures.values() for figure, chart in drawn}
    return page(title, sections, blocks=chart_blocks(charts))


def figure_place(figure: Figure, level: int = 3) -> str:
    """Where a chart is drawn: its title as a heading of a level, and its caption."""
    return (
        f'<figure id="{figure.name}"><h{level}>{escape(figure.title)}</h{level}><div'
        f' class="chart"></div><figcaption>{escape(figure.caption)}</figcaption></figure>'
    )


def chart_blocks(charts: dict[str, dict[str, Any]]) -> str:
    """The data and scripts at the end of a page that draw charts, by the names of their figures."""
    data = data_block("charts", charts)
    script = asset("chart.js")
    return f"{data}<script>{libraries()}</script><script>{script}</script>"


def _table(name: str, rows: Sequence[Row]) -> str:
    body = "".join(
        f"<tr>{_tags('td', row.texts)}<td><a"
        f' href="#{_anchor(row)}">{len(row.results)}</a></td></tr>'
        for row in rows
    )
    head = _tags("th", (*HEADER, "cells"))
    return f"<h3>{escape(name)}</h3>" + scrolled(
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>", name, "dense"
    )


def _cells(rows: Sequence[Row]) -> str:
    """The cells behind each row of the tables."""
    bodies = ""
    for row in rows:
        first, (label, budget, *_) = row.results[0], row.texts
        place = (
            f"{label}, {budget}; {first.data}, {first.encoder}, {imbalance_words(first.imbalance)}"
        )
        lines = "".join(f"<tr>{_tags('td', cell_texts(one))}</tr>" for one in row.results)
        heading = f'<tr><th colspan="{len(CELL_HEADER)}">{escape(place)}</th></tr>'
        bodies += f'<tbody id="{_anchor(row)}">{heading}{lines}</tbody>'
    head = f"<thead><tr>{_tags('th', CELL_HEADER)}</tr></thead>"
    return scrolled(f"<table>{head}{bodies}</table>", "Cells", "dense")


def _tags(tag: str, texts: Sequence[str]) -> str:
    return "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts)


def _anchor(row: Row) -> str:
    return escape(f"cells-{row.results[0].key}")
