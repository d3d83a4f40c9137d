"""The report on a sweep: one page that needs nothing else, one PDF, or a folder of figures.

A new kind of figure is a function in `drawings.py` that finds it, one in `charts.py` and one in `paper.py` that draw
it, and its line in `FIGURES`.
"""

from __future__ import annotations

import csv
import json
import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import InputError
from tacit.experiments.results import Result
from tacit.report import charts, drawings, paper, summary
from tacit.report.page import page, table
from tacit.report.summary import Row, Sweep, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("html", "pdf", "svg", "png")
CAPTIONS, TABLES = "captions.txt", "tables.csv"
DPI = 200
LETTERS = 100  # in a line of text


@dataclass(frozen=True)
class Kind:
    """A kind of figure: its heading, what finds its drawings, and what draws each on a page and on paper."""

    heading: str
    find: Callable[[Sweep], Sequence[Any]]
    chart: Callable[[Any], Any]
    paper: Callable[[Any], Any]


FIGURES = (
    Kind("Accuracy against cost", drawings.accuracy, charts.lines, paper.lines),
    Kind("Minority accuracy against cost", drawings.minority, charts.lines, paper.lines),
    Kind("Best parameter", drawings.best_parameter, charts.lines, paper.lines),
    Kind("Number of public rows", drawings.public_rows, charts.lines, paper.lines),
    Kind("Public sets", drawings.public_sets, charts.dots, paper.dots),
    Kind("Encoders", drawings.encoders, charts.dots, paper.dots),
    Kind("Means", drawings.means, charts.pictures, paper.pictures),
    Kind("Steps", drawings.steps, charts.lines, paper.lines),
    Kind("Class sizes", drawings.class_sizes, charts.lines, paper.lines),
    Kind("Run times", drawings.run_times, charts.bars, paper.bars),
)

HEADER = ("learner", "budget", "rho", "epsilon (delta)", "unit", "tuning", "seeds", "balanced", "minority")
CELL_HEADER = ("cell", "seed", "balanced", "minority", "fit, seconds")
FAILED_HEADER = ("cell", "learner", "data", "encoder", "imbalance", "budget", "seed", "error")
MEDIANS = (
    "Medians over seeds, with their 25 to 75 % quantiles, of balanced accuracy, and of minority accuracy, which is the "
    "same over the 25 % smallest training classes. The last column leads to the cells. Tuning: "
    + "; ".join(f"{name}: {words}" for name, words in summary.TUNING.items())
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


def html(results: Sequence[Result], title: str) -> str:
    """The page.

    Raises
    ------
    InputError
        If no result is that of a cell that was done.
    """
    sweep = _sorted_out(results)
    found = _figures(sweep)
    tables = drawings.tables(sweep)
    specs = {drawing.name: kind.chart(drawing).to_dict(validate=False) for kind, drawing in found}
    sections = [("Contents", STYLE + _contents(sweep, found))]
    for heading in dict.fromkeys(kind.heading for kind, _ in found):
        sections.append((heading, "".join(_figure(drawing) for kind, drawing in found if kind.heading == heading)))
    sections.append(("Tables", f"<p>{MEDIANS}</p>" + "".join(_table(name, rows) for name, rows in tables)))
    if sweep.failed:
        sections.append(("Cells that failed", f'<div class="wide failed">{table(FAILED_HEADER, _failed(sweep))}</div>'))
    sections.append(("Cells", _cells([row for _, rows in tables for row in rows]) + _script(specs)))
    return page(title, sections)


def write_html(results: Sequence[Result], title: str, path: Path) -> None:
    """The page as a file."""
    path.write_text(html(results, title), encoding="utf-8")


def write_pdf(results: Sequence[Result], title: str, path: Path) -> None:
    """The figures with their captions, a page each, then the tables; see `html`."""
    from matplotlib.backends.backend_pdf import PdfPages

    sweep = _sorted_out(results)
    with PdfPages(path, metadata={"Title": title, "CreationDate": None}) as file:
        for sheet in _sheets(sweep, title):
            file.savefig(sheet)


def _sheets(sweep: Sweep, title: str) -> Iterator[Figure]:
    yield from paper.text_pages(title, textwrap.wrap(_overview(sweep), LETTERS))
    for kind, drawing in _figures(sweep):
        yield paper.captioned(kind.paper(drawing), drawing.caption)
    for name, rows in drawings.tables(sweep):
        yield from paper.text_pages(name, _aligned([HEADER, *map(_shown, rows)]))
    if sweep.failed:
        yield from paper.text_pages("Cells that failed", _aligned([FAILED_HEADER, *_failed(sweep)]))


def write_images(results: Sequence[Result], format: str, folder: Path) -> None:
    """A file for each figure, the captions, and the tables as CSV; see `html`."""
    from matplotlib import rc_context

    sweep = _sorted_out(results)
    found = _figures(sweep)
    metadata = {"Date": None} if format == "svg" else {}
    with rc_context({"svg.hashsalt": "tacit"}):  # else the same figure gets other names inside
        for kind, drawing in found:
            path = folder / f"{drawing.name}.{format}"
            kind.paper(drawing).savefig(path, format=format, dpi=DPI, metadata=metadata)
    captions = [f"{drawing.name}.{format}: {drawing.title}\n\n{drawing.caption}\n" for _, drawing in found]
    (folder / CAPTIONS).write_text("\n".join(captions), encoding="utf-8")
    with (folder / TABLES).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["data, encoder, imbalance", *HEADER])
        writer.writerows([name, *_shown(row)] for name, rows in drawings.tables(sweep) for row in rows)


def is_images(folder: Path) -> bool:
    """Whether a folder holds what `write_images` makes, and nothing else."""
    names = {path.name for path in folder.iterdir()}
    figures = {name for name in names if Path(name).suffix in (".svg", ".png")}
    return names - figures == {CAPTIONS, TABLES}


def _sorted_out(results: Sequence[Result]) -> Sweep:
    """The sweep, if any cell was done."""
    sweep = Sweep.of(results)
    if not sweep.done:
        first = f"; the first error is: {sweep.failed[0].error}" if sweep.failed else ""
        raise InputError(
            f"results hold {len(results)} cells and none that was done{first}; mend the plan and sweep again, "
            "or choose other cells"
        )
    return sweep


def _figures(sweep: Sweep) -> list[tuple[Kind, Any]]:
    """What applies to the results, each under a name of its own."""
    found: list[tuple[Kind, Any]] = []
    taken: set[str] = set()
    for kind in FIGURES:
        for drawing in kind.find(sweep):
            names = (drawing.name, *(f"{drawing.name}-{number}" for number in range(2, len(taken) + 3)))
            name = next(name for name in names if name not in taken)
            taken.add(name)
            found.append((kind, replace(drawing, name=name)))
    return found


# The page


def _contents(sweep: Sweep, found: Sequence[tuple[Kind, Any]]) -> str:
    links: dict[str, list[str]] = {}
    for kind, drawing in found:
        links.setdefault(kind.heading, []).append(f'<a href="#{drawing.name}">{escape(drawing.title)}</a>')
    lists = "".join(f"<li>{heading}<ul><li>{'<li>'.join(own)}</ul>" for heading, own in links.items())
    return f'<p>{escape(_overview(sweep))} {HINTS}</p><ul class="contents">{lists}</ul>'


def _overview(sweep: Sweep) -> str:
    plans = ", ".join(sorted({cell.plan for cell in sweep.done}))
    said = f"Plan: {plans}. {len(sweep.done):,} cells were done, {len(sweep.failed):,} failed. {summary.NOISE}"
    if unplaced := summary.unplaced(sweep):
        said += f" {unplaced:,} cells state no cost above 0, so they have no place on an axis of costs."
    return said


def _figure(drawing: Any) -> str:
    return (
        f'<figure id="{drawing.name}"><h3>{escape(drawing.title)}</h3><div class="chart"></div>'
        f"<figcaption>{escape(drawing.caption)}</figcaption></figure>"
    )


def _table(name: str, rows: Sequence[Row]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in (*HEADER, "cells"))
    body = "".join(f"<tr>{_linked(row)}</tr>" for row in rows)
    return f'<h3>{escape(name)}</h3><div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def _linked(row: Row) -> str:
    link = f'<a href="#{_anchor(row)}">{len(row.cells)}</a>'
    return "".join(f"<td>{escape(cell)}</td>" for cell in _shown(row)) + f"<td>{link}</td>"


def _cells(rows: Sequence[Row]) -> str:
    """The cells behind each row of the tables."""
    bodies = "".join(_cells_of(row) for row in rows)
    head = "".join(f"<th>{escape(cell)}</th>" for cell in CELL_HEADER)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead>{bodies}</table></div>'


def _cells_of(row: Row) -> str:
    first = row.cells[0]
    said = f"{row.label}, {row.budget}; {first.data}, {first.encoder}, imbalance {first.imbalance:g}"
    lines = "".join(
        "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in _measured(cell)) + "</tr>" for cell in row.cells
    )
    heading = f'<tr><th colspan="{len(CELL_HEADER)}">{escape(said)}</th></tr>'
    return f'<tbody id="{_anchor(row)}">{heading}{lines}</tbody>'


def _anchor(row: Row) -> str:
    return escape(f"cells-{row.cells[0].key}")


def _measured(cell: Result) -> list[str]:
    accuracies = [number(getattr(cell, measure)) for measure in (summary.BALANCED, summary.MINORITY)]
    shown = ["none" if value is None else f"{value:.3f}" for value in accuracies]
    return [cell.key, str(cell.seed), *shown, _digits(cell.fit_seconds)]


def _script(specs: dict[str, Any]) -> str:
    """The charts, and once the libraries that draw them; no text of a name can end the script."""
    charts = json.dumps(specs, allow_nan=False).replace("<", "\\u003c")
    return f"<script>{_libraries()}</script>{SCRIPT % charts}"


@cache
def _libraries() -> str:
    import vl_convert

    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")


# Tables


def _shown(row: Row) -> list[str]:
    cell = row.cells[0]
    return [
        row.label,
        row.budget,
        _stated(_digits(one.rho) for one in row.cells),
        _stated(f"{_digits(one.epsilon)} ({_digits(one.delta)})" for one in row.cells),
        summary.unit_words(cell.unit),
        cell.tuning,
        str(len({one.seed for one in row.cells})),
        _median(row, summary.BALANCED),
        _median(row, summary.MINORITY),
    ]


def _stated(texts: Iterable[str]) -> str:
    """What cells state, once where they agree."""
    return ", ".join(dict.fromkeys(texts))


def _digits(value: float | None) -> str:
    return "none" if value is None or math.isnan(value) else f"{value:.3g}"


def _median(row: Row, measure: str) -> str:
    """With quantiles, where there is more than one seed."""
    found = row.spread(measure)
    if found is None:
        return "none"
    return f"{found.median:.3f}" + (f" [{found.low:.3f}, {found.high:.3f}]" if len(row.cells) > 1 else "")


def _failed(sweep: Sweep) -> list[list[str]]:
    return [
        [one.key, one.learner, one.data, one.encoder, f"{one.imbalance:g}", one.budget, str(one.seed), one.error or ""]
        for one in sweep.failed
    ]


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines whose columns stand below each other."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
