"""The lines that end a card, run as printed, predict what the release predicts."""

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import tacit
from tacit.models.decisions import (
    AnyDecision,
    LinearHead,
    NearestPrototype,
    NetworkHead,
    QuadraticHead,
)
from tacit.models.networks import NETWORKS, weight_shapes
from tacit.models.released import Released
from tacit.releases.recipe import _SCORES
from tacit.releases.release import Release

BLOCK = re.compile(
    r"^## Predicting without tacit$.*?^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
WRITTEN = Path(__file__).parent / "written"
CLASSES, WIDTH, PICTURE = 5, 12, (3, 17, 15)
ALONE = """
import runpy, sys
import numpy as np

class Blocked:
    def find_spec(self, name, *_):
        if name.partition(".")[0] not in {*sys.stdlib_module_names, "numpy", "safetensors"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Blocked())
np.save("labels.npy", runpy.run_path("recipe.py", {"X": np.load("X.npy")})["labels"])
"""


def drawn(*shapes, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape) for shape in shapes]


def prototypes(decision, *shape, **others):
    """Prototypes of which the third class has no direction."""
    (array,) = drawn((CLASSES, *shape))
    array[2] = 0
    return decision, {"prototypes": array} | others


def heads(decision, **others):
    coefficients, intercepts, centre, axes, squares = drawn(
        (CLASSES, WIDTH), CLASSES, WIDTH, (WIDTH, 7), (CLASSES, 7)
    )
    arrays = {"coefficients": coefficients, "intercepts": intercepts, "centre": centre / 9}
    return decision, arrays | (
        {"axes": axes, "squares": squares} if isinstance(decision, QuadraticHead) else {}
    )


def without_centre(case):
    decision, arrays = case
    return decision, {name: array for name, array in arrays.items() if name != "centre"}


def network(name, shape, scale=1.0):
    """A network of random weights, and of biases that balance the classes."""
    decision = NetworkHead(network=name, shape=shape, scale=scale)
    rng = np.random.default_rng(1)
    weights = weight_shapes(name, shape, CLASSES)
    arrays = {key: rng.normal(size=shape).astype(np.float32) / 4 for key, shape in weights.items()}
    rows = rng.normal(size=(200, int(np.prod(shape))))
    last = max(
        (key for key in weights if key.endswith("bias")), key=lambda key: int(key.partition(".")[0])
    )
    arrays[last] -= np.median(decision.similarities(arrays, rows), axis=0).astype(np.float32)
    return decision, arrays


CENTRE = drawn(WIDTH, seed=5)[0] / 9
ROWS, COSINE = "rows and prototypes", NearestPrototype()
CASES = {
    "cosine": prototypes(COSINE, WIDTH),
    "cosine, float32": prototypes(COSINE, 3, WIDTH, indices=np.zeros((CLASSES, 3), dtype=np.int64)),
    "cosine, k": prototypes(COSINE, 3, WIDTH),
    "cosine, centre": prototypes(COSINE, WIDTH, centre=CENTRE),
    "cosine, k, centre of both": prototypes(
        NearestPrototype(centred=ROWS), 3, WIDTH, centre=CENTRE
    ),
    "cosine, centre of both": prototypes(NearestPrototype(centred=ROWS), WIDTH, centre=CENTRE),
    "cosine, pooling": prototypes(NearestPrototype(pooling=5), WIDTH // 5),
    "euclidean": prototypes(NearestPrototype("euclidean"), WIDTH),
    "euclidean, k, pooling": prototypes(NearestPrototype("euclidean", pooling=5), 4, WIDTH // 5),
    "linear": without_centre(heads(LinearHead())),
    "linear, centre": heads(LinearHead()),
    "quadratic": without_centre(heads(QuadraticHead())),
    "quadratic, centre": heads(QuadraticHead()),
    "network of a line": network("linear", (WIDTH,)),
    "network of a hidden layer": network("mlp", (WIDTH,), 2.0),
    "network, cnn": network("cnn", PICTURE, 255.0),
    "network, vgg": network("vgg", PICTURE),
    "network, resnet": network("resnet", PICTURE),
}
CASES["cosine, float32"][1]["prototypes"] = CASES["cosine, float32"][1]["prototypes"].astype(
    np.float32
)


def release_of(decision, arrays, classes=None):
    """A release that decides so; its guarantee is that of any learner."""
    width = int(np.prod(decision.shape)) if isinstance(decision, NetworkHead) else WIDTH
    model = tacit.NoisySumPrototypes(classes=CLASSES).fit(
        np.ones((CLASSES, width)), np.arange(CLASSES)
    )
    if classes is not None:
        model.classes_ = np.array(classes)
    model.released_ = Released("arrays of a test", arrays, decision)
    return Release.of(model)


def rows_for(release):
    """Rows, of which the last is zero and, for networks, none is near a boundary within float32's
    rounding.
    """
    rows = np.random.default_rng(3).normal(size=(400, release.width)).astype(np.float32)
    rows[-1] = 0
    scores = np.sort(release.similarities(rows), axis=1)
    clear = scores[:, -1] - scores[:, -2] > 1e-4 * np.abs(scores[:, -1])
    assert clear.mean() > 0.9
    return rows[clear] if isinstance(release.decision, NetworkHead) else rows


def lines_of(release):
    (block,) = BLOCK.findall(release.card())
    return block.splitlines()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_lines_of_a_card_predict_what_the_release_predicts(case, tmp_path, monkeypatch):
    release = release_of(*case)
    rows = rows_for(release)
    loaded = Release.load(release.save(tmp_path / "out")).verify()
    expected = loaded.predict(rows)
    assert len(np.unique(expected)) >= CLASSES - 1
    found = run_in(tmp_path / "out", rows, loaded, monkeypatch)
    assert np.array_equal(found["labels"], expected)
    assert found["labels"].dtype == expected.dtype
    assert np.allclose(found["scores"], loaded.similarities(rows), rtol=1e-4, atol=1e-4)


def run_in(folder, rows, release, monkeypatch):
    """What the lines define, run in the folder of the release."""
    monkeypatch.chdir(folder)
    names = {"X": rows}
    exec("\n".join(lines_of(release)), names)
    return names


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_ten_lines_suffice_but_for_convolutions(case):
    release = release_of(*case)
    lines = lines_of(release)
    convolves = isinstance(release.decision, NetworkHead) and release.decision.network in (
        "cnn",
        "vgg",
        "resnet",
    )
    assert len(lines) <= (22 if convolves else 10)
    assert max(map(len, lines)) <= 120


def test_every_decision_and_network_has_lines():
    assert set(_SCORES) == set(get_args(AnyDecision))
    assert {case[0].network for case in CASES.values() if isinstance(case[0], NetworkHead)} == set(
        NETWORKS
    )


def test_labels_keep_their_type(tmp_path, monkeypatch):
    for number, classes in enumerate(
        (["a", "b", "ü", "", "d"], [0.5, 1.0, -2.0, 3.0, 4.0], [-1, 2**40, 0, 3, 7])
    ):
        release = release_of(*CASES["linear"], classes=classes)
        rows = rows_for(release)
        labels = run_in(release.save(tmp_path / str(number)), rows, release, monkeypatch)["labels"]
        assert labels.tolist() == release.predict(rows).tolist()
        assert labels.dtype == release.classes.dtype


@pytest.mark.parametrize("case", ["cosine, k, centre of both", "network, resnet"])
def test_numpy_and_safetensors_are_all_that_is_needed(case, tmp_path, monkeypatch):
    release = release_of(*CASES[case])
    rows = rows_for(release)
    monkeypatch.chdir(release.save(tmp_path / "out"))
    np.save("X.npy", rows)
    Path("recipe.py").write_text("\n".join(lines_of(release)), encoding="utf-8")
    subprocess.run([sys.executable, "-c", ALONE], check=True)
    assert np.array_equal(np.load("labels.npy"), release.predict(rows))


def test_releases_of_earlier_versions_verify_as_they_were_written():
    release = Release.load(WRITTEN / "version-3").verify()
    assert release.document.version == 3
    assert "Predicting without tacit" not in release.card_text
    assert release.predict(np.eye(3, 4)).tolist() == ["ant", "bee", "cow"]
    later = release.document.model_copy(update={"version": 4})
    assert lines_of(Release(later, release.arrays, release.sha256, ""))
