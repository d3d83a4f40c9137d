"""Write the picture of README and docs; `--check` fails where it is out of date.

Its numbers come from the code and from benchmarks/utility/cells.csv.
"""

import sys
from math import ceil
from pathlib import Path
from statistics import fmean

import tacit

ROOT = Path(__file__).resolve().parents[1]
OVERVIEW = ROOT / "docs" / "pictures" / "overview.svg"
BUDGET = "rho=0.5"
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#4d4d4d"
STYLE = (
    "text { font-family: system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', sans-serif; font-size: 18px }"
    " text { fill: #222 }"
    " .head { font-size: 22px; font-weight: 700 } .small { font-size: 16px; fill: #4d4d4d }"
    " .code { font-family: ui-monospace, 'Liberation Mono', monospace; font-size: 16px }"
)


def accuracy(rough: str) -> float:
    """Balanced accuracy of `auto` on Banking77, mean over seeds, at a budget in the papers' form."""
    lines = (ROOT / "benchmarks" / "utility" / "cells.csv").read_text(encoding="utf-8").splitlines()
    cells = (line.split(",") for line in lines if line.startswith("banking77,1,"))
    return fmean(float(cell[5]) for cell in cells if cell[3:5] == ["auto", rough])


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{words}</text>'


def box(x: float, width: float, colour: str, head: str, *lines: tuple[str, str]) -> str:
    """A panel with a heading, and lines with the class of each."""
    middle = x + width / 2
    shown = "".join(text(middle, 106 + 30 * i, words, kind, "middle") for i, (words, kind) in enumerate(lines))
    return (
        f'<rect x="{x}" y="24" width="{width}" height="182" rx="12" fill="#fff" stroke="{colour}" stroke-width="3"/>'
        + text(middle, 62, head, "head", "middle")
        + shown
    )


def arrow(x: float) -> str:
    return (
        f'<path d="M{x} 115 h26 m-11 -10 l11 10 l-11 10" fill="none" stroke="{GREY}" stroke-width="3.5" '
        'stroke-linecap="round" stroke-linejoin="round"/>'
    )


def bar(y: float, share: float, colour: str, words: str) -> str:
    """A bar whose full length is an accuracy of 1."""
    return (
        text(24, y + 18, words)
        + f'<rect x="330" y="{y}" width="{400 * share:.0f}" height="24" rx="4" fill="{colour}"/>'
        + text(340 + 400 * share, y + 19, f"{100 * share:.1f} % right")
    )


def overview() -> str:
    """What goes in, what comes out, and what privacy costs in accuracy."""
    promise = tacit.AutoPrototypes(BUDGET, classes=77).promise()
    private, open_ = accuracy("1"), accuracy("inf")
    guess = ceil(500 * (1 + promise.advantage)) / 10
    epsilon = promise.epsilon(1e-6)
    label = (
        "Sensitive records go into tacit, which adds noise; a release and a statement that anybody may have come out. "
        f"With 77 kinds of customer questions the classifier is right in {100 * private:.1f} percent of cases, and in "
        f"{100 * open_:.1f} percent without privacy."
    )
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 330" role="img" aria-label="{label}">',
        f"<style>{STYLE}</style>",
        '<rect width="860" height="330" rx="14" fill="#f4f6f8"/>',
        box(24, 240, ORANGE, "Private data", ("“my card is gone”", "code"), ("lost_or_stolen_card", "code"),
            ("10,003 such records", "small"), ("in 77 classes", "small")),
        arrow(274),
        box(310, 240, GREY, "tacit", ("states the price first", ""), ("learns with exact noise", ""),
            ("keeps the account", ""), (f"epsilon {epsilon:.1f} at delta 10⁻⁶", "small")),
        arrow(560),
        box(596, 240, BLUE, "Public release", ("a classifier for all", ""), ("“was Anna in the data?”", "code"),
            (f"at most {guess:.1f} in 100", ""), ("are right; with a coin, 50", "small")),
        bar(228, private, BLUE, "77 classes, with privacy"),
        bar(264, open_, GREY, "77 classes, without privacy"),
        text(24, 312, "Balanced accuracy on Banking77 (questions to a bank), embedded by MiniLM", "small"),
        "</svg>",
        "",
    ])  # fmt: skip


if __name__ == "__main__":
    if "--check" in sys.argv:
        if not OVERVIEW.exists() or OVERVIEW.read_text(encoding="utf-8") != overview():
            sys.exit(f"{OVERVIEW} is out of date; run python tools/pictures.py")
    else:
        OVERVIEW.write_text(overview(), encoding="utf-8")
