"""Write the pictures of README and gallery.

`--check` fails where a picture or its description is out of date. Numbers come from the code, from
examples, and from cells that benchmarks stored.
"""

import csv
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

BLUE = "#0072B2"
ORANGE = "#D55E00"
GREY = "#4d4d4d"
STYLE = (
    "text { font-family: system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', sans-serif;"
    " font-size: 18px } text { fill: #222 } .light { fill: #fff } .ground { fill: #f4f6f8 }"
    " .panel { fill: #fff } .head { font-size: 22px; font-weight: 700 } .small { font-size:"
    " 16px; fill: #4d4d4d } .code { font-family: ui-monospace, 'Liberation Mono', monospace;"
    " font-size: 16px } @media (prefers-color-scheme: dark) { text { fill: #eee } .small {"
    " fill: #bbb } .light { fill: #fff } .ground { fill: #1b1f24 } .panel { fill: #2b3138 }"
    f" [stroke='{GREY}'] {{ stroke: #bbb }} [fill='{GREY}'] {{ fill: #767676 }} }}"
)


def accuracy(rough_epsilon: str) -> float:
    """Return the balanced accuracy of `auto` on Banking77, mean over seeds.

    `rough_epsilon` is the budget in the form of the papers.
    """
    accuracies = []
    with (ROOT / "benchmarks" / "utility" / "cells.csv").open(encoding="utf-8", newline="") as file:
        for cell in csv.DictReader(file):
            if (
                cell["dataset"] == "banking77"
                and cell["ratio"] == "1"
                and cell["method"] == "auto"
                and cell["rough"] == rough_epsilon
            ):
                accuracies.append(float(cell["balanced"]))
    return fmean(accuracies)


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    """Return text at a place; `kind` is a class of STYLE."""
    return f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{words}</text>'


def at(x: float, y: float, part: str, degrees: int = 0) -> str:
    """Return a part of a picture, moved to a place and turned there."""
    return f'<g transform="translate({x} {y}) rotate({degrees})">{part}</g>'


def box(colour: str, head: str, *lines: tuple[str, str]) -> str:
    """Return a panel with a heading, and lines with the class of each."""
    frame = (
        f'<rect width="240" height="182" rx="12" class="panel" stroke="{colour}" stroke-width="3"/>'
    )
    body = ""
    for number, (words, kind) in enumerate(lines):
        body += text(120, 82 + 30 * number, words, kind, "middle")
    return frame + text(120, 38, head, "head", "middle") + body


def arrow() -> str:
    """Return an arrow to the right."""
    return (
        f'<path d="M0 0 h26 m-11 -10 l11 10 l-11 10" fill="none" stroke="{GREY}" stroke-width="3.5"'
        ' stroke-linecap="round" stroke-linejoin="round"/>'
    )


def bar(share: float, width: int, colour: str) -> str:
    """Return a bar for an accuracy; one of 1 has the full width."""
    length = width * share
    label = text(length + 10, 19, f"{100 * share:.1f} %")
    return f'<rect width="{length:.0f}" height="24" rx="4" fill="{colour}"/>{label}'


def boxes() -> tuple[str, str, str]:
    """Return the panels of the private data, of tacit and of the release."""
    promise = tacit.AutoPrototypes(BUDGET, classes=77).promise()

    # a guess between two equally likely data sets, rounded up to a tenth of a percent
    correct_guesses = (1 + promise.advantage) / 2
    percentage = ceil(1000 * correct_guesses) / 10
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
            (f"attacker: at most {percentage:.1f} %", ""),
            ("correct (coin: 50 %)", "small"),
        ),
    )


# colour, rough epsilon and words of each bar
BARS = ((BLUE, "1", "77 classes, with privacy"), (GREY, "inf", "77 classes, without privacy"))
FLOW = "Sensitive records go into tacit; a release and a statement that you can publish come out"


def overview() -> str:
    """Return what goes in, what comes out, and what privacy costs in accuracy."""
    parts = [at(24 + 286 * number, 24, panel) for number, panel in enumerate(boxes())]
    parts += [at(x, 115, arrow()) for x in (274, 560)]
    for y, (colour, rough_epsilon, words) in zip((228, 264), BARS, strict=True):
        parts.append(text(24, y + 18, words))
        parts.append(at(330, y, bar(accuracy(rough_epsilon), 400, colour)))

    source = "Balanced accuracy on Banking77 (questions to a bank), embedded by MiniLM"
    parts.append(text(24, 312, source, "small"))
    return svg(860, 330, FLOW, parts)


def overview_narrow() -> str:
    """Return the same for a phone: one panel below the other."""
    parts = [at(40, 24 + 226 * number, panel) for number, panel in enumerate(boxes())]
    parts += [at(160, y, arrow(), degrees=90) for y in (215, 441)]
    for y, (colour, rough_epsilon, words) in zip((688, 752), BARS, strict=True):
        parts.append(text(24, y, words))
        parts.append(at(24, y + 10, bar(accuracy(rough_epsilon), 170, colour)))

    parts.append(text(24, 818, "Balanced accuracy on Banking77", "small"))
    parts.append(text(24, 842, "(questions to a bank)", "small"))
    return svg(320, 860, FLOW, parts)


def first_release() -> str:
    """Return the ten prototypes that examples/first_release.py publishes, as 8 x 8 pixels each."""
    example = run_path(str(ROOT / "examples" / "first_release.py"))
    digits = load_digits_split()
    learner = example["learner"]().set_params(noise="research", random_state=0)
    learner.fit(digits.private_x - digits.public_x.mean(axis=0), digits.private_y)

    squares = []
    for digit, pixels in enumerate(learner.prototypes_.reshape(10, 8, 8)):
        # two rows of five digits
        left = 24 + 164 * (digit % 5)
        top = 24 + 174 * (digit // 5)
        largest = abs(pixels).max()
        for (row, column), value in np.ndenumerate(pixels):
            colour = BLUE if value > 0 else ORANGE
            squares.append(
                f'<rect x="{left + 18 * column}" y="{top + 18 * row}" width="18" height="18"'
                f' fill="{colour}" opacity="{abs(value) / largest:.2f}"/>'
            )
    return svg(860, 370, "Ten pictures of 8 x 8 pixels: the noisy prototype of each digit", squares)


def charges() -> dict[str, float]:
    """Return the share of the allowance that each fit of examples/shared_ledger.py spends."""
    example = run_path(str(ROOT / "examples" / "shared_ledger.py"))
    digits = load_digits_split()
    allowed = tacit.Budget.parse(example["ALLOWANCE"]).rho
    shares = {}
    with TemporaryDirectory() as folder:
        ledger = tacit.Ledger(Path(folder) / "ledger.jsonl", identity="digits")
        ledger.allow(example["ALLOWANCE"])
        total = 0.0
        for name in ("noisy_sum", "public"):
            example[name](digits, ledger)
            new_total = ledger.account().spent.rho
            shares[name] = (new_total - total) / allowed
            total = new_total
        # raises if the third fit is not refused
        example["refused"](digits, ledger)
    return shares


def shared_ledger() -> str:
    """Return the charges of examples/shared_ledger.py, and the fit that was refused."""
    parts = [text(24, 52, "The allowance: rho = 1 for all releases from these records", "head")]
    x = 24.0
    full_width = 600
    for (name, share), colour in zip(charges().items(), (BLUE, GREY), strict=True):
        width = full_width * share
        parts.append(
            f'<rect x="{x:.0f}" y="80" width="{width:.0f}" height="64" fill="{colour}"'
            ' stroke="#fff"/>'
        )
        # the allowance is rho = 1, so a share of it is rho too
        label = f"{name.replace('_', '-')}: {share:g}"
        parts.append(text(x + width / 2, 119, label, "light", "middle"))
        x += width

    parts.append(
        f'<rect x="{24 + full_width + 12}" y="80" width="200" height="64" fill="none"'
        f' stroke="{ORANGE}" stroke-width="3" stroke-dasharray="8 6"/>'
    )
    parts.append(text(24 + full_width + 112, 119, "third: refused", "", "middle"))
    return svg(860, 170, "Two releases fill the allowance of a ledger; a third is refused", parts)


def ten_owners() -> str:
    """Return the balanced accuracy of ten owners alone, of their summaries, and of central fits."""
    shown = {
        **{f"owner {i}": (GREY, f"owner {i} alone") for i in range(1, 11)},
        "combined": (BLUE, "ten summaries"),
        "central fit": (ORANGE, "one central fit"),
    }
    accuracies: dict[str, list[float]] = {who: [] for who in shown}
    cells = ROOT / "benchmarks" / "summaries" / "owners.csv"
    with cells.open(encoding="utf-8", newline="") as file:
        for cell in csv.DictReader(file):
            if cell["epsilon"] == "2" and cell["who"] in shown:
                accuracies[cell["who"]].append(float(cell["balanced"]))

    parts = []
    y = 24
    for who, (colour, words) in shown.items():
        parts.append(text(24, y + 18, words))
        parts.append(at(200, y, bar(fmean(accuracies[who]), 800, colour)))
        y += 32
    parts.append(
        text(24, y + 28, "Balanced accuracy on CIFAR-100, epsilon 2 for each record", "small")
    )
    return svg(860, y + 50, "Ten owners learn more by their summaries than alone", parts)


def svg(width: int, height: int, label: str, parts: list[str]) -> str:
    """Return a picture with a ground that is dark where the reader prefers dark pages."""
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
            f' aria-label="{label}">'
        ),
        f"<style>{STYLE}</style>",
        f'<rect width="{width}" height="{height}" rx="14" class="ground"/>',
        *parts,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def check_descriptions() -> None:
    """Exit if a page describes the overview by other numbers than it shows."""
    numbers = [f"{100 * accuracy(rough_epsilon):.1f}" for _, rough_epsilon, _ in BARS]
    words = f"{' percent, and '.join(numbers)} percent without privacy"
    for page in ("README.md", "docs/index.md"):
        if words not in (ROOT / page).read_text(encoding="utf-8"):
            sys.exit(f"{page} describes the overview by other figures; write: {words}")


if __name__ == "__main__":
    for draw in (overview, overview_narrow, first_release, shared_ledger, ten_owners):
        file = PICTURES / f"{draw.__name__.replace('_', '-')}.svg"
        if "--check" not in sys.argv:
            file.write_text(draw(), encoding="utf-8")
        elif not file.exists() or file.read_text(encoding="utf-8") != draw():
            sys.exit(f"{file} is out of date; run python tools/pictures.py")
    check_descriptions()
