"""The page of a release: what it says, what an attacker may learn, and its classifier, in one file without a network.

The script and the style lie in `assets/`. The page's policy admits these two texts by their hashes and nothing else, so
that neither a request nor a script in a text of the release can run.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from tacit.errors import ReleaseError
from tacit.models.carried import deciding
from tacit.models.decisions import NetworkHead
from tacit.privacy.guarantee import DELTAS, Guarantee, rounded_up
from tacit.releases.release import Release
from tacit.releases.schema import Accounting

ASSETS = Path(__file__).with_name("assets")
LARGEST = 64 * 2**20
"""Bytes of the arrays that a page holds."""
LARGEST_FILE = 256 * 2**20
"""Bytes of a file that a page classifies."""
RATES = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
"""False-positive rates at the positions of the slider."""
FIRST_RATE = RATES.index(0.01)
OPEN = ("1.", "4.", "5.", "6.", "15.")  # items of the card that are shown at once

_FLOATS = {"float16": "f2", "float32": "f4", "float64": "f8"}
_ESCAPED = re.compile(r"\\([\\`*<\]])")
_BULLET = re.compile(r"( *)- (?:([a-z0-9 ]+):( |$))?(.*)")

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><link rel="icon" href="data:,"><style>{style}</style></head>
<body><main><h1>{title}</h1>
{head}
<h2>What an attacker may learn</h2>{attack}
<h2>Classify embeddings here</h2>{classifier}
<h2>The card</h2>{card}
</main><script type="application/json" id="release">{data}</script><script>{script}</script></body></html>
"""

_ATTACK = """<p>Suppose an attacker knows everything else and asks whether {sentence}. The attack looks at the release
and raises an alarm or not. Choose how often it raises a false alarm, and how strong the suspicion was before.</p>
<div class="columns"><div>
<label for="rate">False alarms: <output id="rate-value" for="rate"></output></label>
<input type="range" id="rate" min="0" max="{last}" step="1" value="{first}">
<label for="prior">Suspicion before: <output id="prior-value" for="prior"></output></label>
<input type="range" id="prior" min="1" max="99" step="1" value="50">
<p aria-live="polite">Where the suspicion is true, the attack raises an alarm in at most <strong id="found"></strong>
of 100 cases. An alarm is right at most <strong id="belief"></strong> times in 100.</p>
<p>At any rate of false alarms, right alarms are more frequent by at most {advantage}.</p>
<p class="soft">{source}</p></div>
<div><svg viewBox="-12 -4 116 120" role="img" aria-label="Most right alarms for each share of false alarms">
<rect class="frame" width="100" height="100"/><line class="blind" x1="0" y1="100" x2="100" y2="0"/>
<polyline id="curve"/><circle id="mark" r="2.2"/>
<text x="0" y="106">0</text><text x="94" y="106">100</text><text x="20" y="113">false alarms, in 100</text>
<text x="-9" y="3">100</text><text x="-4" y="100">0</text><text x="3" y="6">right alarms, in 100</text></svg>
<p class="soft">The solid line is the most that an attack reaches; the dashed line is a blind guess.</p></div></div>
<div class="wide" tabindex="0" role="region" aria-label="Privacy parameters"><table>
<caption>The guarantee in numbers, under unit {unit}</caption>{numbers}</table></div>"""

_EXACT = "This release is protected by Gaussian noise of mu = {mu}: the line is exact, and this page computes it."
_TABLE = """This guarantee has no closed form. The numbers are computed from the recorded events beforehand, at each
position of the slider; between them the line only guides the eye."""

_CLASSIFIER = """<p>Choose a file of embeddings by the encoder of the card, or drop it anywhere on this page: {width}
columns, as <code>.npy</code> (float16, float32 or float64) or <code>.csv</code>. It stays on this device.</p>
<div class="drop"><label for="file">File of embeddings</label><input type="file" id="file" accept=".npy,.csv"></div>
<p id="message" role="status"></p>
<div id="results" hidden><p><a id="download" download="labels.csv" href="#results">Download all labels as CSV</a></p>
<div class="columns"><div class="wide" tabindex="0" role="region" aria-label="Rows of each class"><table>
<caption>Rows of each class</caption>
<thead><tr><th scope="col">class</th><th scope="col">rows</th></tr></thead><tbody id="counts"></tbody></table></div>
<div class="wide" tabindex="0" role="region" aria-label="Labels"><table><caption id="first"></caption>
<thead><tr><th scope="col">row</th><th scope="col">label</th></tr></thead><tbody id="labels"></tbody></table></div>
</div></div>"""

_NETWORK = """<p>This release decides by a network, which this page does not run. Make an ONNX file of it with
<code>tacit export</code>, or use <code>tacit predict</code>.</p>"""


def release_page(release: Release) -> str:
    """The page as HTML.

    Raises
    ------
    ReleaseError
        If the arrays are too large for a page.
    """
    arrays = {name: array for name, array in deciding(release.arrays).items() if array.dtype.name in _FLOATS}
    network = isinstance(release.decision, NetworkHead)
    size = 0 if network else sum(array.nbytes for array in arrays.values())
    if size > LARGEST:
        fault = f"{release.source} has arrays of {size} bytes, and a page holds at most {LARGEST}"
        raise ReleaseError(f"{fault}; classify with tacit predict")
    guarantee, document = release.guarantee, release.document
    mu = exact_mu(guarantee)
    bounds = [guarantee.attack_rate(rate) for rate in RATES] if mu is None else []
    data: dict[str, Any] = {
        "attack": {"mu": mu, "rates": RATES, "bounds": bounds},
        "classes": [_label(label) for label in document.contents.classes],
        "width": release.width,
        "largest": LARGEST_FILE,
    }
    if not network:
        decision = document.model_dump(mode="json")["contents"]["decision"]
        data |= {"decision": decision, "arrays": {name: _array(array) for name, array in arrays.items()}}
    style, script = ((ASSETS / name).read_text(encoding="utf-8") for name in ("release.css", "release.js"))
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return _PAGE.format(
        policy=policy,
        title=escape(document.product.name),
        head=_head(release),
        attack=_attack(guarantee, mu),
        classifier=_NETWORK if network else _CLASSIFIER.format(width=release.width),
        card=_card(release.card()),
        data=json.dumps(data, allow_nan=False).replace("<", "\\u003c"),  # no text ends the block
        style=style,
        script=script,
    )


def exact_mu(guarantee: Guarantee) -> float | None:
    """The mu whose Gaussian trade-off curve is that of the guarantee; None if its curve has another form."""
    parts = [part for total in guarantee.totals() for part, _ in total.base().counted()]
    return guarantee.mu if all(part.exact_mu for part in parts) else None


def _head(release: Release) -> str:
    document = release.document
    stamp = f'<p class="stamp">{document.stamp}</p>' if document.stamp else ""
    accounting, product = document.accounting, document.product
    words = accounting.in_words if isinstance(accounting, Accounting) else release.guarantee.in_words()
    facts = f"Description: {product.description}. Curator: {product.curator}. Date: {product.date}."
    unprotected = document.guarantee.unprotected
    rest = f"<p>Not protected by it: {escape(', '.join(unprotected))}.</p>" if unprotected else ""
    return f"{stamp}<p>{escape(facts)}</p><p>{escape(words)}</p>{rest}"


def _attack(guarantee: Guarantee, mu: float | None) -> str:
    return _ATTACK.format(
        sentence=guarantee.unit.sentence,
        unit=guarantee.unit.value,
        last=len(RATES) - 1,
        first=FIRST_RATE,
        advantage=f"{rounded_up(100 * guarantee.advantage)} in 100",
        source=_TABLE if mu is None else _EXACT.format(mu=rounded_up(mu)),
        numbers="".join(f'<tr><th scope="row">{name}</th><td>{value}</td></tr>' for name, value in _numbers(guarantee)),
    )


def _numbers(guarantee: Guarantee) -> Iterator[tuple[str, str]]:
    for delta in DELTAS:
        yield f"epsilon at delta = {delta:g}", _bound(guarantee.epsilon(delta))
    yield "pure epsilon", _bound(guarantee.epsilon())
    yield "rho (zCDP)", _bound(guarantee.rho)
    yield "mu (Gaussian DP)", _bound(guarantee.mu)


def _bound(value: float | None) -> str:
    return "none" if value is None or np.isinf(value) else rounded_up(value)


def _card(card: str) -> str:
    """The items of a card, which `render_card` writes as headings, bullets, paragraphs and blocks of code."""
    _, *sections = re.split(r"^## ", card, flags=re.MULTILINE)
    html = ""
    for section in sections:
        title, _, body = section.partition("\n")
        opened = " open" if title.startswith(OPEN) else ""
        html += f"<details{opened}><summary>{escape(title)}</summary>{''.join(_body(body))}</details>\n"
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


def _label(label: bool | int | float | str) -> str:
    """A label as `tacit predict` writes it to a CSV file."""
    return str(label).lower() if isinstance(label, bool) else str(label)


def _array(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    little = array.astype(array.dtype.newbyteorder("<"), order="C")
    data = base64.b64encode(little.tobytes()).decode("ascii")
    return {"dtype": _FLOATS[array.dtype.name], "shape": array.shape, "data": data}


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"
