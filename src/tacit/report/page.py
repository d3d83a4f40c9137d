"""A self-contained page: its style, sections, tables and pictures. It follows the colour scheme and
the width.
"""

import base64
import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

ASSETS = Path(__file__).with_name("assets")

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">{policy}
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><link rel="icon" href="data:,"><style>{style}</style></head>
<body><main><h1>{title}</h1>
{sections}</main>
{blocks}</body></html>
"""


def page(
    title: str, sections: Sequence[tuple[str, str]], *, blocks: str = "", policy: str = ""
) -> str:
    """An HTML page of titled sections, each already HTML; a section without a title comes without a
    heading.

    `blocks` are the scripts and data at the end of the page, `policy` the texts and hosts that it
    may load.
    """
    body = "".join(
        f"<h2>{escape(heading)}</h2>\n{html}\n" if heading else f"{html}\n"
        for heading, html in sections
    )
    meta = f'\n<meta http-equiv="Content-Security-Policy" content="{policy}">' if policy else ""
    return _PAGE.format(
        title=escape(title), sections=body, blocks=blocks, policy=meta, style=asset("page.css")
    )


def asset(name: str) -> str:
    """The text of a file in `assets/`."""
    return (ASSETS / name).read_text(encoding="utf-8")


def data_block(name: str, values: Any) -> str:
    """Values for the scripts of a page, as JSON; no text in them ends the block."""
    data = json.dumps(values, allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{data}</script>'


def picture(png: bytes, alternative: str) -> str:
    """An image held in the page itself."""
    data = base64.b64encode(png).decode("ascii")
    return f'<img alt="{escape(alternative)}" src="data:image/png;base64,{data}">'


def table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """A table, whose first column names its rows."""
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    head = "".join(map(_head_cell, header))
    body = "".join(map(_body_row, rows))
    return scrolled(
        f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>",
        caption or "Table",
    )


def _head_cell(title: str) -> str:
    # A cell without a title heads no column.
    if not title:
        return "<td></td>"
    return f'<th scope="col">{escape(title)}</th>'


def _body_row(cells: Sequence[str]) -> str:
    name, *figures = cells
    columns = "".join(f"<td>{escape(figure)}</td>" for figure in figures)
    return f'<tr><th scope="row">{escape(name)}</th>{columns}</tr>'


def scrolled(html: str, name: str, kind: str = "") -> str:
    """Put what may be wider than the page into a region that scrolls, also by keys; `name` is for
    screen readers.
    """
    return (
        f'<div class="{f"wide {kind}".strip()}" tabindex="0" role="region"'
        f' aria-label="{escape(name)}">{html}</div>'
    )


def text(content: str) -> str:
    """Text as it is."""
    return f'<pre tabindex="0">{escape(content)}</pre>'
