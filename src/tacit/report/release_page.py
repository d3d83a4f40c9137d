"""The page of a release: what it says, what an attacker may learn, and its classifier, in one file
without a network.

The script and the style lie in `assets/`. The page's policy admits these two texts by their hashes
and nothing else, so that neither a request nor a script in a text of the release can run. A network
is run by onnxruntime-web, which lies in the page too: the policy then also admits that script by
its hash, WebAssembly, and scripts that the page itself makes.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from tacit.compute.extras import check_installed
from tacit.compute.libraries.onnx import load_onnx
from tacit.errors import InputError, ReleaseError
from tacit.models.carried import deciding
from tacit.models.decisions import NetworkHead
from tacit.models.label_sets import SEPARATOR, stated_label_sets
from tacit.models.scaling import Scaling
from tacit.releases.onnx_graph import CLASSES_ALONE, LABEL, head_model
from tacit.releases.opening import NOT_SIGNED, opening
from tacit.releases.release import Release
from tacit.releases.schema import Accounting
from tacit.report import attack, coefficients
from tacit.report.card import card_html
from tacit.report.page import asset, data_block, definitions, page

# files of the npm package onnxruntime-web, in its folder `dist`: the library, and the engine that
# it loads, which is WebAssembly with a script around it
RUNTIME = ("ort.wasm.min.js", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")

# bytes of the arrays that a page holds
LARGEST = 64 * 2**20

# bytes of a file that a page classifies
LARGEST_FILE = 256 * 2**20

# types of arrays that the script reads, by the names that it has for them
_FLOATS = {"float16": "f2", "float32": "f4", "float64": "f8"}

_CLASSIFIER = """<p>Choose a file of embeddings by the encoder of the card, or drop it anywhere on
this page: {width} columns of numbers, as <code>.npy</code> or <code>.csv</code>. It stays on this
device.</p>
<div class="drop"><label for="file">File of embeddings</label><input
type="file" id="file" accept=".npy,.csv"></div>
<p id="message" role="status"></p>
<div id="results" hidden>
<p><a id="download" download="labels.csv" href="#results">Download all labels as CSV</a></p>
<div class="columns">
<div class="wide tall" tabindex="0" role="region" aria-label="Rows of each class"><table>
<caption>Rows of each class</caption>
<thead><tr><th scope="col">class</th><th scope="col">rows</th></tr></thead>
<tbody id="counts"></tbody></table></div>
<div class="wide tall" tabindex="0" role="region" aria-label="Labels"><table>
<caption id="first"></caption>
<thead><tr><th scope="col">row</th><th scope="col">{label}</th></tr></thead>
<tbody id="labels"></tbody></table></div>
</div></div>"""

_SETS = """<p>A row may have several of the labels, or none. A label is given where its probability
reaches its threshold.</p>"""

SETS_ELSEWHERE = """<p>This page gives the most likely class alone. The release also carries
prediction sets, which <code>tacit predict --sets</code> writes; item 8 of the card says what they
promise.</p>"""

_NETWORK = """<p>This release decides by a network, which this page cannot run: label files with
<code>tacit predict</code>, or make the page with <code>tacit page --onnxruntime</code>.</p>"""


def release_page(
    release: Release, onnxruntime: Path | None = None, signature: str = NOT_SIGNED
) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    release : Release
    onnxruntime : Path, optional
        The folder `dist` of the npm package onnxruntime-web, with which the page runs a network.
    signature : str
        A sentence on who signed the release, and whether that was checked.

    Raises
    ------
    InputError
        If the release is not a network and needs no onnxruntime, or predicts several labels a row
        by one, a file of it is missing, or onnx is not installed.
    ReleaseError
        If the arrays are too large for a page.
    """
    is_network = isinstance(release.decision, NetworkHead)
    if onnxruntime is not None and not is_network:
        raise InputError(
            f"onnxruntime={onnxruntime} is for networks, and {release.source} is none; leave it out"
        )
    if onnxruntime is not None and release.several:
        raise InputError(
            f"onnxruntime={onnxruntime} runs networks of one label a row, and {release.source}"
            " predicts several; leave it out, and label files with tacit predict"
        )
    classifies = not is_network or onnxruntime is not None
    arrays = _deciding_arrays(release)
    if classifies:
        _check_size(release, arrays)

    # a network decides by its graph, which `_runtime` brings, and not by arrays in the data
    data = _data(release, None if is_network else arrays)
    blocks = data_block("release", data)

    if onnxruntime is None:
        scripts = [asset("attack.js") + asset("classify.js")]
        script_sources = [_hash(script) for script in scripts]
    else:
        library, parts = _runtime(onnxruntime, release)
        blocks += parts
        scripts = [library, asset("attack.js") + asset("network.js") + asset("classify.js")]
        # the library compiles its engine, and makes scripts of its own
        script_sources = [_hash(script) for script in scripts] + ["'wasm-unsafe-eval'", "blob:"]
    blocks += "".join(f"<script>{script}</script>" for script in scripts)

    classifier = _NETWORK
    if classifies:
        classifier = _CLASSIFIER.format(
            width=release.width, label="labels" if release.several else "label"
        )
        if release.several:
            classifier = _SETS + classifier
        if release.tree is not None:
            classifier = f"<p>Labels here are {escape(CLASSES_ALONE)}.</p>" + classifier
        if release.prediction_sets is not None:
            classifier = SETS_ELSEWHERE + classifier
    sections = [
        ("", _head(release, signature)),
        ("What an attacker may learn", _guarantee(release) + attack.section(release.guarantee)),
        *_coefficients(release),
        ("Classify embeddings here", classifier),
        ("The card", card_html(release.card())),
    ]
    policy = _policy(script_sources)
    return page(release.document.product.name, sections, blocks=blocks, policy=policy)


def _coefficients(release: Release) -> list[tuple[str, str]]:
    """Return the section of coefficients, if the release takes tables."""
    html = coefficients.section(release)
    return [] if html is None else [("What each value of a column adds", html)]


def _data(release: Release, arrays: dict[str, np.ndarray[Any, Any]] | None) -> dict[str, Any]:
    """Return the values that the scripts of the page read."""
    contents = release.document.contents
    data: dict[str, Any] = {
        "attack": attack.data(release.guarantee),
        "classes": [_label(label) for label in contents.classes],
        "width": release.width,
        "largest": LARGEST_FILE,
    }
    if arrays is not None:
        data["decision"] = contents.model_dump(mode="json")["decision"]
        data["arrays"] = {name: _array(array) for name, array in arrays.items()}
    label_sets = stated_label_sets(release.arrays)
    if label_sets is not None:
        data["label_sets"] = {
            "scale": label_sets.scale,
            "thresholds": label_sets.thresholds.tolist(),
            "separator": SEPARATOR,
        }
    return data


def _deciding_arrays(release: Release) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of floats that decide, and those of the scaling if there is one."""
    arrays = dict(deciding(release.arrays))
    scaling = Scaling.stated(release.arrays)
    if scaling is not None:
        arrays |= scaling.arrays()

    # sorted, since a file of arrays may be read in another order each time
    return {name: array for name, array in sorted(arrays.items()) if array.dtype.name in _FLOATS}


def _check_size(release: Release, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
    """Refuse arrays that are too large for a page."""
    size = sum(array.nbytes for array in arrays.values())
    if size > LARGEST:
        fault = f"{release.source} has arrays of {size} bytes, and a page holds at most {LARGEST}"
        raise ReleaseError(f"{fault}; classify with tacit predict")


def _policy(script_sources: list[str]) -> str:
    """Return the content security policy, which admits the page's scripts and its style alone."""
    return (
        f"default-src 'none'; script-src {' '.join(script_sources)}; style-src"
        f" {_hash(asset('page.css'))}; img-src data:; base-uri 'none'; form-action 'none'"
    )


def _runtime(folder: Path, release: Release) -> tuple[str, str]:
    """Return the library of onnxruntime-web; and, as blocks of the page, its engine and the graph.

    The graph is that of the release's network.
    """
    check_installed("onnx")
    library_file, glue_file, engine_file = RUNTIME
    try:
        library = (folder / library_file).read_bytes().decode("utf-8")
        glue = (folder / glue_file).read_bytes()
        engine = (folder / engine_file).read_bytes()
    except (OSError, UnicodeDecodeError) as error:
        fault = f"onnxruntime={folder} does not hold {', '.join(RUNTIME)}"
        raise InputError(
            f"{fault}; give the folder dist of the npm package onnxruntime-web"
        ) from error
    if "</script" in library.lower():
        raise InputError(
            f"{folder / library_file} holds </script, which ends a script in a page; take another"
            " version"
        )

    blocks = ""
    for name, data in {"glue": glue, "wasm": engine, "graph": _graph(release)}.items():
        blocks += f'<script type="text/plain" id="{name}">{_compressed(data)}</script>'
    return library, blocks


def _graph(release: Release) -> bytes:
    """Return the ONNX graph of a release, without the card.

    Its output is the position of the class: the page has the labels, so the node that gathers them
    is taken out.
    """
    onnx = load_onnx()
    model = head_model(release.head())
    (gather,) = (node for node in model.graph.node if LABEL in node.output)
    class_position = gather.input[1]
    model.graph.node.remove(gather)

    del model.metadata_props[:]
    del model.graph.output[:]
    model.graph.output.append(
        onnx.helper.make_tensor_value_info(class_position, onnx.TensorProto.INT64, ["n"])
    )
    return bytes(model.SerializeToString(deterministic=True))


def _compressed(data: bytes) -> str:
    # without the time, so that equal releases give equal pages
    return base64.b64encode(gzip.compress(data, mtime=0)).decode("ascii")


def _head(release: Release, signature: str) -> str:
    """Return what the release is, in plain words."""
    document = release.document
    html = ""
    if document.stamp:
        html += f'<p class="stamp">{document.stamp}</p>'
    facts = opening(document, signature).facts() | {"Date": document.product.date}
    return html + definitions(facts)


def _guarantee(release: Release) -> str:
    """Return the guarantee in words, and what it does not protect."""
    document = release.document
    if isinstance(document.accounting, Accounting):
        words = document.accounting.in_words
    else:
        # documents of older formats state the guarantee in numbers alone
        words = release.guarantee.in_words()
    html = f"<p>{escape(words)}</p>"

    unprotected = document.guarantee.unprotected
    if unprotected:
        html += f"<p>Not protected by it: {escape(', '.join(unprotected))}.</p>"
    return html


def _label(label: bool | int | float | str) -> str:
    """Return a label as `tacit predict` writes it to a CSV file."""
    if isinstance(label, bool):
        return str(label).lower()
    return str(label)


def _array(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Return an array as the script reads it: little-endian, row by row."""
    little_endian = array.astype(array.dtype.newbyteorder("<"), order="C")
    data = base64.b64encode(little_endian.tobytes()).decode("ascii")
    return {"dtype": _FLOATS[array.dtype.name], "shape": array.shape, "data": data}


def _hash(text: str) -> str:
    """Return the source expression by which a content security policy admits a text."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    encoded = base64.b64encode(digest).decode("ascii")
    return f"'sha256-{encoded}'"
