"""Write the pictures of README and gallery; `--check` fails where one, or its description, is out
of date.

Their numbers come from the code, from examples, and from benchmarks/utility/cells.csv.
"""

import sys
from math import ceil
from pathlib import Path
from runpy import run_path
from statistics import fmean
from tempfile import TemporaryDirectory

import numpy as np

import tacit
from tacit.data.digits import load_digits_split

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
BUDGET = "rho=0.5"
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#4d4d4d"
STYLE = (
    "text { font-family: system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', sans-serif;"
    " font-size: 18px } text { fill: #222 } .light { fill: #fff } .ground { fill: #f4f6f8 }"
    " .panel { fill: #fff } .head { font-size: 22px; font-weight: 700 } .small { font-size:"
    " 16px; fill: #4d4d4d } .code { font-family: ui-monospace, 'Liberation Mono', monospace;"
    " font-size: 16px } @media (prefers-color-scheme: dark) { text { fill: #eee } .small {"
    " fill: #bbb } .light { fill: #fff } .ground { fill: #1b1f24 } .panel { fill: #2b3138 }"
    f" [stroke='{GREY}'] {{ stroke: #bbb }} [fill='{GREY}'] {{ fill: #767676 }} }}"
)


def accuracy(rough: str) -> float:
    """Balanced accuracy of `auto` on Banking77, mean over seeds, at a budget in the papers'
    form.
    """
    lines = (ROOT / "benchmarks" / "utility" / "cells.csv").read_text(encoding="utf-8").splitlines()
    cells = (line.split(",") for line in lines if line.startswith("banking77,1,"))
    return fmean(float(cell[5]) for cell in cells if cell[3:5] == ["auto", rough])


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{words}</text>'


def moved(x: float, y: float, drawn: str, turn: int = 0) -> str:
    return f'<g transform="translate({x} {y}) rotate({turn})">{drawn}</g>'


def box(colour: str, head: str, *lines: tuple[str, str]) -> str:
    """A panel with a heading, and lines with the class of each."""
    shown = "".join(
        text(120, 82 + 30 * i, words, kind, "middle") for i, (words, kind) in enumerate(lines)
    )
    return (
        f'<rect width="240" height="182" rx="12" class="panel" stroke="{colour}" stroke-width="3"/>'
        + text(120, 38, head, "head", "middle")
        + shown
    )


def arrow() -> str:
    return (
        f'<path d="M0 0 h26 m-11 -10 l11 10 l-11 10" fill="none" stroke="{GREY}" stroke-width="3.5"'
        ' stroke-linecap="round" stroke-linejoin="round"/>'
    )


def bar(share: float, width: int, colour: str) -> str:
    """A bar whose full width is an accuracy of 1."""
    return f'<rect width="{width * share:.0f}" height="24" rx="4" fill="{colour}"/>' + text(
        width * share + 10, 19, f"{100 * share:.1f} %"
    )


def boxes() -> tuple[str, str, str]:
    """What goes in, what happens to it, and what comes out."""
    promise = tacit.AutoPrototypes(BUDGET, classes=77).promise()
    guess = ceil(500 * (1 + promise.advantage)) / 10
    return (
        box(
            ORANGE,
            "Private data",
            ("“my card is gone”", "code"),
            ("lost_or_stolen_card", "code"),
            ("10,003 such records", "small"),
            ("in 77 classes", "small"),
        ),
        box(
            GREY,
            "tacit",
            ("states the cost first", ""),
            ("learns with exact noise", ""),
            ("tracks the total cost", ""),
            (f"epsilon {promise.epsilon(1e-6):.1f} at delta 10⁻⁶", "small"),
        ),
        box(
            BLUE,
            "Public release",
            ("a classifier for all", ""),
            ("“was Anna in the data?”", "code"),
            (f"attacker: at most {guess:.1f} %", ""),
            ("correct (coin: 50 %)", "small"),
        ),
    )


BARS = ((BLUE, "1", "77 classes, with privacy"), (GREY, "inf", "77 classes, without privacy"))
FLOW = "Sensitive records go into tacit; a release and a statement that you can publish come out"


def overview() -> str:
    """What goes in, what comes out, and what privacy costs in accuracy."""
    parts = [moved(24 + 286 * i, 24, drawn) for i, drawn in enumerate(boxes())]
    parts += [moved(x, 115, arrow()) for x in (274, 560)]
    for y, (colour, rough, words) in zip((228, 264), BARS, strict=True):
        parts += [text(24, y + 18, words), moved(330, y, bar(accuracy(rough), 400, colour))]
    said = "Balanced accuracy on Banking77 (questions to a bank), embedded by MiniLM"
    return svg(860, 330, FLOW, [*parts, text(24, 312, said, "small")])


def overview_narrow() -> str:
    """The same for a phone: one panel below the other."""
    parts = [moved(40, 24 + 226 * i, drawn) for i, drawn in enumerate(boxes())]
    parts += [moved(160, y, arrow(), turn=90) for y in (215, 441)]
    for y, (colour, rough, words) in zip((688, 752), BARS, strict=True):
        parts += [text(24, y, words), moved(24, y + 10, bar(accuracy(rough), 170, colour))]
    said = ("Balanced accuracy on Banking77", "(questions to a bank)")
    parts += [text(24, 818 + 24 * i, words, "small") for i, words in enumerate(said)]
    return svg(320, 860, FLOW, parts)


def first_release() -> str:
    """The ten prototypes that examples/first_release.py publishes, as pictures of 8 x 8 pixels."""
    example = run_path(str(ROOT / "examples" / "first_release.py"))
    digits = load_digits_split()
    learner = example["learner"]().set_params(noise="research", random_state=0)
    prototypes = learner.fit(
        digits.private_x - digits.public_x.mean(axis=0), digits.private_y
    ).prototypes_
    squares = []
    for digit, pixels in enumerate(prototypes.reshape(10, 8, 8)):
        darkest = abs(pixels).max()
        for (row, column), value in np.ndenumerate(pixels):
            x, y = 24 + 164 * (digit % 5) + 18 * column, 24 + 174 * (digit // 5) + 18 * row
            colour = BLUE if value > 0 else ORANGE
            squares.append(
                f'<rect x="{x}" y="{y}" width="18" height="18" fill="{colour}"'
                f' opacity="{abs(value) / darkest:.2f}"/>'
            )
    return svg(860, 370, "Ten pictures of 8 x 8 pixels: the noisy prototype of each digit", squares)


def shared_ledger() -> str:
    """What examples/shared_ledger.py charges to the allowance, and the fit that was refused."""
    example = run_path(str(ROOT / "examples" / "shared_ledger.py"))
    digits = load_digits_split()
    with TemporaryDirectory() as folder:
        ledger = tacit.Ledger(Path(folder) / "ledger.jsonl", identity="digits")
        ledger.allow(example["ALLOWANCE"])
        total, spent = 0.0, {}
        for fit in ("noisy_sum", "public"):
            example[fit](digits, ledger)
            spent[fit], total = ledger.account().spent.rho - total, ledger.account().spent.rho
        example["refused"](digits, ledger)
        allowed = tacit.Budget.parse(example["ALLOWANCE"]).rho
    parts = [text(24, 52, "The allowance: rho = 1 for all releases from these records", "head")]
    x, width = 24.0, 600
    for (name, cost), colour in zip(spent.items(), (BLUE, GREY), strict=True):
        wide = width * cost / allowed
        said = f"{name.replace('_', '-')}: {cost:g}"
        parts.append(
            f'<rect x="{x:.0f}" y="80" width="{wide:.0f}" height="64" fill="{colour}"'
            ' stroke="#fff"/>'
        )
        parts.append(text(x + wide / 2, 119, said, "light", "middle"))
        x += wide
    parts.append(
        f'<rect x="{24 + width + 12}" y="80" width="200" height="64" fill="none" stroke="{ORANGE}"'
        ' stroke-width="3" stroke-dasharray="8 6"/>'
    )
    parts.append(text(24 + width + 112, 119, "third: refused", "", "middle"))
    return svg(860, 170, "Two releases fill the allowance of a ledger; a third is refused", parts)


def svg(width: int, height: int, label: str, parts: list[str]) -> str:
    """A picture on a ground of its own, dark where the reader prefers dark pages."""
    return "\n".join(
        [
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
                f' aria-label="{label}">'
            ),
            f"<style>{STYLE}</style>",
            f'<rect width="{width}" height="{height}" rx="14" class="ground"/>',
            *parts,
            "</svg>",
            "",
        ]
    )


if __name__ == "__main__":
    for draw in (overview, overview_narrow, first_release, shared_ledger):
        file = PICTURES / f"{draw.__name__.replace('_', '-')}.svg"
        if "--check" not in sys.argv:
            file.write_text(draw(), encoding="utf-8")
        elif not file.exists() or file.read_text(encoding="utf-8") != draw():
            sys.exit(f"{file} is out of date; run python tools/pictures.py")
    words = (
        " percent, and ".join(f"{100 * accuracy(rough):.1f}" for _, rough, _ in BARS)
        + " percent without privacy"
    )
    for page in ("README.md", "docs/index.md"):
        if words not in (ROOT / page).read_text(encoding="utf-8"):
            sys.exit(f"{page} describes the overview by other figures; write: {words}")
