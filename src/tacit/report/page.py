"""A self-contained page: a figure, a table, a card."""

import base64
from collections.abc import Sequence
from html import escape

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
td, th {{ padding: .15rem .8rem; text-align: right; border-bottom: 1px solid #ddd; }}
td:first-child, th:first-child {{ text-align: left; }}
img {{ max-width: 100%; }}
pre {{ background: #f6f6f6; padding: 1rem; overflow-x: auto; white-space: pre-wrap; font-size: 13px; }}
</style></head>
<body><h1>{title}</h1>{sections}</body></html>
"""


def page(title: str, sections: Sequence[tuple[str, str]]) -> str:
    """An HTML page of titled sections, each already HTML."""
    body = "".join(f"<h2>{escape(heading)}</h2>\n{html}\n" for heading, html in sections)
    return _PAGE.format(title=escape(title), sections=body)


def picture(png: bytes, alternative: str) -> str:
    """An image held in the page itself."""
    data = base64.b64encode(png).decode("ascii")
    return f'<img alt="{escape(alternative)}" src="data:image/png;base64,{data}">'


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def text(content: str) -> str:
    """Text as it is."""
    return f"<pre>{escape(content)}</pre>"
