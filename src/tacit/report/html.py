"""The page of a sweep, which holds its charts and the libraries that draw them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from html import escape
from typing import Any

from tacit.report.captions import TUNING, overview
from tacit.report.figure import Figure
from tacit.report.groups import SweepResults
from tacit.report.page import page, table
from tacit.report.tables import CELL_HEADER, FAILED_HEADER, HEADER, Row, cell_texts, failed_texts, tables
from tacit.report.words import imbalance_words

MEDIANS = (
    "Medians over seeds, with their 25 to 75 % quantiles, of balanced accuracy, and of minority accuracy, which is the "
    "same over the 25 % smallest training classes. The last column leads to the cells. Tuning: "
    + "; ".join(f"{name}: {words}" for name, words in TUNING.items())
    + "."
)
HINTS = "Point at a mark for its numbers and cells. Click a name in a legend to pick it out, shift-click to add one."
STYLE = """<style>
body { max-width: 1140px; }
figure { margin: 2rem 0; }
figcaption { font-size: 14px; color: #444; max-width: 60rem; }
.contents { columns: 2; font-size: 14px; }
.contents > li { break-inside: avoid; }
.chart { overflow-x: auto; }
.wide { overflow-x: auto; font-size: 14px; }
.wide td, .wide th { white-space: nowrap; padding: .15rem .5rem; }
.failed td:last-child { white-space: normal; text-align: left; }
tbody:target { background: #fff3cd; }
tbody th { text-align: left; padding-top: .8rem; }
</style>"""
SCRIPT = """<script>
const charts = %s;
const actions = {export: true, source: false, compiled: false, editor: false};
const options = {mode: "vega-lite", renderer: "svg", actions: actions};
for (const [name, chart] of Object.entries(charts)) {
  const place = document.getElementById(name).querySelector(".chart");
  vegaEmbed(place, chart, options).catch(error => { place.textContent = error; });
}
</script>"""


def sweep_page(title: str, sweep: SweepResults, figures: dict[str, list[tuple[Figure, dict[str, Any]]]]) -> str:
    """The page; `figures` and their Vega-Lite charts are by heading."""
    contents, sections = "", []
    for heading, drawn in figures.items():
        links = "".join(f'<li><a href="#{figure.name}">{escape(figure.title)}</a>' for figure, _ in drawn)
        contents += f"<li>{heading}<ul>{links}</ul>"
        sections.append((heading, "".join(_figure(figure) for figure, _ in drawn)))
    first = f'{STYLE}<p>{escape(overview(sweep))} {HINTS}</p><ul class="contents">{contents}</ul>'
    sections.insert(0, ("Contents", first))
    named = tables(sweep)
    sections += [("Tables", f"<p>{MEDIANS}</p>" + "".join(_table(name, rows) for name, rows in named))]
    if sweep.failed:
        failed = table(FAILED_HEADER, [failed_texts(one) for one in sweep.failed])
        sections.append(("Cells that failed", f'<div class="wide failed">{failed}</div>'))
    charts = {figure.name: chart for drawn in figures.values() for figure, chart in drawn}
    script = SCRIPT % json.dumps(charts, allow_nan=False).replace("<", "\\u003c")  # no text in a chart ends the script
    cells = _cells([row for _, rows in named for row in rows])
    sections.append(("Cells", f"{cells}<script>{libraries()}</script>{script}"))
    return page(title, sections)


def _figure(figure: Figure) -> str:
    return (
        f'<figure id="{figure.name}"><h3>{escape(figure.title)}</h3><div class="chart"></div>'
        f"<figcaption>{escape(figure.caption)}</figcaption></figure>"
    )


def _table(name: str, rows: Sequence[Row]) -> str:
    body = "".join(
        f'<tr>{_tags("td", row.texts)}<td><a href="#{_anchor(row)}">{len(row.results)}</a></td></tr>' for row in rows
    )
    head = _tags("th", (*HEADER, "cells"))
    return f'<h3>{escape(name)}</h3><div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def _cells(rows: Sequence[Row]) -> str:
    """The cells behind each row of the tables."""
    bodies = ""
    for row in rows:
        first, (label, budget, *_) = row.results[0], row.texts
        place = f"{label}, {budget}; {first.data}, {first.encoder}, {imbalance_words(first.imbalance)}"
        lines = "".join(f"<tr>{_tags('td', cell_texts(one))}</tr>" for one in row.results)
        heading = f'<tr><th colspan="{len(CELL_HEADER)}">{escape(place)}</th></tr>'
        bodies += f'<tbody id="{_anchor(row)}">{heading}{lines}</tbody>'
    return f'<div class="wide"><table><thead><tr>{_tags("th", CELL_HEADER)}</tr></thead>{bodies}</table></div>'


def _tags(tag: str, texts: Sequence[str]) -> str:
    return "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts)


def _anchor(row: Row) -> str:
    return escape(f"cells-{row.results[0].key}")


@cache
def libraries() -> str:
    """Vega and its companions as JavaScript."""
    import vl_convert

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))
