"""The card of a release as HTML, in which each item can be opened and closed."""

import re
from collections.abc import Iterator
from html import escape

# numbers of the items that are open when the page is
OPEN = ("1.", "4.", "5.", "6.", "15.")

# a character of Markdown that a backslash keeps as it is
_ESCAPED = re.compile(r"\\([\\`*<\]])")

# "  - name: text" or "  - text", with two spaces for each level
_BULLET = re.compile(r"(?P<indent> *)- (?:(?P<name>[a-z0-9 ]+):(?: |$))?(?P<text>.*)")


def card_html(card: str) -> str:
    """Return the items of a card as HTML.

    `render_card` writes them as headings, bullets, paragraphs and blocks of code, so no other
    Markdown has to be read here.
    """
    _, *items = re.split(r"^## ", card, flags=re.MULTILINE)
    html = ""
    for item in items:
        title, _, body = item.partition("\n")
        attribute = " open" if title.startswith(OPEN) else ""
        body_html = "".join(_body(body))
        html += f"<details{attribute}><summary>{escape(title)}</summary>{body_html}</details>\n"
    return html


def _body(body: str) -> Iterator[str]:
    """Yield the HTML of an item, line by line."""
    # level of the bullet before, 0 outside of lists
    depth = 0
    in_code = False
    for line in body.splitlines():
        # lines of code may look like bullets
        bullet = None if in_code else _BULLET.fullmatch(line)
        level = 0
        if bullet is not None:
            level = len(bullet["indent"]) // 2 + 1

        yield "</li></ul>" * (depth - level)
        if bullet is not None:
            yield "</li><li>" if level <= depth else "<ul><li>"
            if bullet["name"]:
                yield f"<b>{bullet['name']}:</b> "
            yield _text(bullet["text"])
        elif line.startswith("```"):
            in_code = not in_code
            yield '<pre tabindex="0">' if in_code else "</pre>"
        elif in_code:
            yield escape(line) + "\n"
        elif line:
            yield f"<p>{_text(line)}</p>"
        depth = level
    yield "</li></ul>" * depth


def _text(markdown: str) -> str:
    """Return text of the card without its backslashes, as HTML."""
    return escape(_ESCAPED.sub(r"\1", markdown))
