"""The card of a release laid out as HTML: an item each to open and close."""

import re
from collections.abc import Iterator
from html import escape

OPEN = ("1.", "4.", "5.", "6.", "15.")  # items that are shown at once

_ESCAPED = re.compile(r"\\([\\`*<\]])")
_BULLET = re.compile(r"( *)- (?:([a-z0-9 ]+):( |$))?(.*)")


def laid_out(card: str) -> str:
    """The items of a card, which `render_card` writes as headings, bullets, paragraphs and blocks
    of code.
    """
    _, *sections = re.split(r"^## ", card, flags=re.MULTILINE)
    html = ""
    for section in sections:
        title, _, body = section.partition("\n")
        opened = " open" if title.startswith(OPEN) else ""
        html += (
            f"<details{opened}><summary>{escape(title)}</summary>{''.join(_body(body))}</details>\n"
        )
    return html


def _body(body: str) -> Iterator[str]:
    depth, code = 0, False
    for line in body.splitlines():
        bullet = None if code else _BULLET.fullmatch(line)
        level = len(bullet[1]) // 2 + 1 if bullet else 0
        yield "</li></ul>" * (depth - level)
        if bullet:
            yield "</li><li>" if level <= depth else "<ul><li>"
            yield (f"<b>{bullet[2]}:</b> " if bullet[2] else "") + _text(bullet[4])
        elif line.startswith("```"):
            code = not code
            yield '<pre tabindex="0">' if code else "</pre>"
        elif code:
            yield escape(line) + "\n"
        elif line:
            yield f"<p>{_text(line)}</p>"
        depth = level
    yield "</li></ul>" * depth


def _text(markdown: str) -> str:
    return escape(_ESCAPED.sub(r"\1", markdown))
