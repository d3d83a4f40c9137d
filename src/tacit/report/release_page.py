"""The page of a release: what it says, what an attacker may learn, and its classifier, in one file without a network.

The script and the style lie in `assets/`. The page's policy admits these two texts by their hashes and nothing else, so
that neither a request nor a script in a text of the release can run. A network is run by onnxruntime-web, which lies in
the page too: the policy then also admits that script by its hash, WebAssembly, and scripts that the page itself makes.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from tacit.compute.extras import check_installed
from tacit.errors import InputError, ReleaseError
from tacit.models.carried import deciding
from tacit.models.decisions import NetworkHead
from tacit.privacy.guarantee import DELTAS, Guarantee, rounded_up
from tacit.releases.onnx_graph import LABEL, head_model
from tacit.releases.release import Release
from tacit.releases.schema import Accounting

ASSETS = Path(__file__).with_name("assets")
RUNTIME = ("ort.wasm.min.js", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")
"""Files of the npm package onnxruntime-web, in its folder `dist`: the library, and the engine that it loads."""
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
</main><script type="application/json" id="release">{data}</script>{runtime}<script>{script}</script></body></html>
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
columns of numbers, as <code>.npy</code> or <code>.csv</code>. It stays on this device.</p>
<div class="drop"><label for="file">File of embeddings</label><input type="file" id="file" accept=".npy,.csv"></div>
<p id="message" role="status"></p>
<div id="results" hidden><p><a id="download" download="labels.csv" href="#results">Download all labels as CSV</a></p>
<div class="columns"><div class="wide" tabindex="0" role="region" aria-label="Rows of each class"><table>
<caption>Rows of each class</caption>
<thead><tr><th scope="col">class</th><th scope="col">rows</th></tr></thead><tbody id="counts"></tbody></table></div>
<div class="wide" tabindex="0" role="region" aria-label="Labels"><table><caption id="first"></caption>
<thead><tr><th scope="col">row</th><th scope="col">label</th></tr></thead><tbody id="labels"></tbody></table></div>
</div></div>"""

_NETWORK = """<p>This release decides by a network, which this page cannot run: label files with
<code>tacit predict</code>, or make the page with <code>tacit page --onnxruntime</code>.</p>"""


def release_page(release: Release, onnxruntime: Path | None = None) -> str:
    """The page as HTML.

    Parameters
    ----------
    release : Release
    onnxruntime : Path, optional
        The folder `dist` of the npm package onnxruntime-web, with which the page runs a network.

    Raises
    ------
    InputError
        If the release is no network and needs no onnxruntime, a file of it is missing, or onnx is not installed.
    ReleaseError
        If the arrays are too large for a page.
    """
    arrays = {name: array for name, array in deciding(release.arrays).items() if array.dtype.name in _FLOATS}
    network = isinstance(release.decision, NetworkHead)
    if onnxruntime is not None and not network:
        raise InputError(f"onnxruntime={onnxruntime} is for networks, and {release.source} is none; leave it out")
    runs = not network or onnxruntime is not None
    size = sum(array.nbytes for array in arrays.values()) if runs else 0
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
    style, script, of_networks = (asset(name) for name in ("release.css", "release.js", "network.js"))
    scripts, runtime = [script], ""
    if onnxruntime is not None:
        library, parts = _runtime(onnxruntime, release)
        scripts = [library, of_networks + script]
        runtime = f"{parts}<script>{library}</script>"
    admitted = [*map(_hash, scripts), *(("'wasm-unsafe-eval'", "blob:") if runtime else ())]
    policy = (
        f"default-src 'none'; script-src {' '.join(admitted)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return _PAGE.format(
        policy=policy,
        title=escape(document.product.name),
        head=_head(release),
        attack=_attack(guarantee, mu),
        classifier=_CLASSIFIER.format(width=release.width) if runs else _NETWORK,
        card=_card(release.card()),
        data=json.dumps(data, allow_nan=False).replace("<", "\\u003c"),  # no text ends the block
        style=style,
        runtime=runtime,
        script=scripts[-1],
    )


def asset(name: str) -> str:
    """The text of a file in `assets/`."""
    return (ASSETS / name).read_text(encoding="utf-8")


def _runtime(folder: Path, release: Release) -> tuple[str, str]:
    """The script of onnxruntime-web; and, as blocks of the page, its engine and the graph of a network."""
    check_installed("onnx")
    try:
        library, glue, engine = ((folder / name).read_bytes() for name in RUNTIME)
        text = library.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        fault = f"onnxruntime={folder} does not hold {', '.join(RUNTIME)}"
        raise InputError(f"{fault}; give the folder dist of the npm package onnxruntime-web") from error
    if "</script" in text.lower():
        raise InputError(f"{folder / RUNTIME[0]} holds </script, which ends a script in a page; take another version")
    parts = {"glue": glue, "wasm": engine, "graph": _graph(release)}
    return text, "".join(
        f'<script type="text/plain" id="{name}">{_packed(part)}</script>' for name, part in parts.items()
    )


def _graph(release: Release) -> bytes:
    """The ONNX graph of a release, with the positions of the classes as its output, without the card."""
    from onnx import TensorProto, helper

    model = head_model(release)
    (gather,) = (node for node in model.graph.node if LABEL in node.output)
    model.graph.node.remove(gather)
    del model.graph.output[:], model.metadata_props[:]
    model.graph.output.append(helper.make_tensor_value_info(gather.input[1], TensorProto.INT64, ["n"]))
    return bytes(model.SerializeToString(deterministic=True))


def _packed(data: bytes) -> str:
    return base64.b64encode(gzip.compress(data, mtime=0)).decode("ascii")


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
