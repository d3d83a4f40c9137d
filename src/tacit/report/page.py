"""A self-contained page: its style, sections, tables and pictures.

It follows the colour scheme and the width of the browser.
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

ASSETS = Path(__file__).with_name("assets")

# The empty icon keeps browsers from asking for /favicon.ico.
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
    """Return an HTML page.

    Parameters
    ----------
    title : str
    sections : sequence of (str, str)
        The heading of each section, which may be empty, and its HTML.
    blocks : str
        Scripts and data at the end of the page.
    policy : str
        Content security policy: the texts and hosts that the page may load.
    """
    body = ""
    for heading, html in sections:
        if heading:
            body += f"<h2>{escape(heading)}</h2>\n"
        body += f"{html}\n"

    meta = ""
    if policy:
        meta = f'\n<meta http-equiv="Content-Security-Policy" content="{policy}">'
    return _PAGE.format(
        title=escape(title), sections=body, blocks=blocks, policy=meta, style=asset("page.css")
    )


def style_policy() -> str:
    """Return the content security policy of a page without scripts: it admits its style alone."""
    digest = base64.b64encode(hashlib.sha256(asset("page.css").encode("utf-8")).digest())
    return (
        f"default-src 'none'; style-src 'sha256-{digest.decode('ascii')}'; img-src data:;"
        " base-uri 'none'; form-action 'none'"
    )


def asset(name: str) -> str:
    """Return the text of a file in `assets/`."""
    return (ASSETS / name).read_text(encoding="utf-8")


def data_block(name: str, values: Any) -> str:
    """Return an element with values for the scripts of a page, as JSON; `name` is its id."""
    # without "<", no text in the values can end the block
    data = json.dumps(values, allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{data}</script>'


def picture(png: bytes, alternative: str) -> str:
    """Return an image that the page itself holds."""
    data = base64.b64encode(png).decode("ascii")
    return f'<img alt="{escape(alternative)}" src="data:image/png;base64,{data}">'


def table(
    header: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "", *, label: str = "Table"
) -> str:
    """Return a table, whose first column names its rows, in a region that scrolls.

    A table without a caption has a `label`, which only screen readers say.
    """
    caption_html = f"<caption>{escape(caption)}</caption>" if caption else ""
    head = "".join(map(_head_cell, header))
    body = "".join(map(_body_row, rows))
    html = f"<table>{caption_html}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return scrolled(html, caption or label)


def _head_cell(title: str) -> str:
    # the cell above the names of rows has no title, and heads no column
    if not title:
        return "<td></td>"
    return f'<th scope="col">{escape(title)}</th>'


def _body_row(cells: Sequence[str]) -> str:
    name, *values = cells
    columns = "".join(f"<td>{escape(value)}</td>" for value in values)
    return f'<tr><th scope="row">{escape(name)}</th>{columns}</tr>'


def definitions(facts: Mapping[str, str]) -> str:
    """Return facts by their names."""
    entries = ""
    for name, fact in facts.items():
        entries += f"<div><dt>{escape(name)}</dt><dd>{escape(fact)}</dd></div>"
    return f'<dl class="stated">{entries}</dl>'


def scrolled(html: str, name: str, kind: str = "") -> str:
    """Return a region that scrolls, also by keys, around content that may be wider than the page.

    `name` is for screen readers, `kind` is a class of the style.
    """
    classes = f"wide {kind}".strip()
    label = escape(name)
    return f'<div class="{classes}" tabindex="0" role="region" aria-label="{label}">{html}</div>'


def text(content: str) -> str:
    """Return text with its lines and spaces as they are."""
    # tabindex: long lines scroll by keys too
    return f'<pre tabindex="0">{escape(content)}</pre>'
