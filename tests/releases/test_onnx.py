"""ONNX files of releases: onnxruntime gives the labels and the probabilities of the release, for
every decision.
"""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pytest

import tacit
from messages import stating
from tacit.errors import InputError, ReleaseError
from tacit.models.decisions import LinearHead, NearestPrototype, NetworkHead, QuadraticHead
from tacit.models.networks import network, weights
from tacit.models.probabilities import Probabilities
from tacit.models.released import Released
from tacit.releases.onnx_graph import OPSET
from tacit.releases.release import Release

RNG = np.random.default_rng(0)
D, C = 12, 5
CENTRES = 2 * RNG.normal(size=(C, D))
ROWS = (CENTRES[RNG.integers(0, C, 10_000)] + RNG.normal(size=(10_000, D))).astype(np.float32)
ROWS[7] = 0
CLASSES = ["ant", "bée", "cow", "dog", "élan"]
CENTRE = RNG.normal(size=D) / 20
LINEAR = {"coefficients": RNG.normal(size=(C, D)), "intercepts": RNG.normal(size=C)}


def net(kind, shape, scale=1.0):
    import torch

    torch.manual_seed(0)
    return NetworkHead(kind, shape, scale), weights(network(kind)(shape, C))


EMPTY = np.concatenate([CENTRES[:4], np.zeros((1, D))])
SETS = CENTRES[:, None] + RNG.normal(size=(C, 3, D))
CASES = {
    "cosine": (NearestPrototype(), {"prototypes": CENTRES}),
    "cosine, an empty class": (NearestPrototype(), {"prototypes": EMPTY}),
    "cosine, all empty": (NearestPrototype(), {"prototypes": np.zeros((C, D))}),
    "cosine, centred": (NearestPrototype(), {"prototypes": CENTRES, "centre": CENTRE}),
    "cosine, sets": (
        NearestPrototype(centred="rows and prototypes"),
        {
            "prototypes": SETS.astype(np.float32),
            "centre": CENTRE,
            "indices": np.zeros((C, 3), np.int64),
        },
    ),
    "cosine, pooled": (NearestPrototype(pooling=5), {"prototypes": CENTRES[:, :2]}),
    "euclidean": (NearestPrototype("euclidean"), {"prototypes": CENTRES}),
    "euclidean, sets": (NearestPrototype("euclidean"), {"prototypes": SETS}),
    "euclidean, pooled": (NearestPrototype("euclidean", pooling=3), {"prototypes": CENTRES[:, :4]}),
    "linear": (LinearHead(), LINEAR),
    "linear, centred": (LinearHead(), LINEAR | {"centre": CENTRE}),
    "quadratic": (
        QuadraticHead(),
        LINEAR
        | {
            "centre": CENTRE,
            "axes": RNG.normal(size=(D, 4)),
            "squares": RNG.normal(size=(C, 4)),
        },
    ),
    "network, linear": net("linear", (D,)),
    "network, mlp": net("mlp", (D,), 2.0),
}


def release_of(decision, arrays, classes=CLASSES, width=D, confidence=None):
    model = tacit.NoisySumPrototypes(classes=classes).fit(
        np.ones((2, width)), np.array(classes)[[0, 1]]
    )
    confidence = confidence or Probabilities(3.0, 0.2)
    model.released_ = Released("test", arrays, decision, probabilities=confidence)
    return Release.of(model)


def run(path, rows, name="embeddings"):
    return onnxruntime.InferenceSession(path).run(["label", "probabilities"], {name: rows})


def check(release, rows, path, atol=1e-6):
    label, probabilities = run(release.to_onnx(path), rows)
    assert np.array_equal(label, release.predict(rows))
    assert probabilities.dtype == np.float32
    assert np.abs(probabilities - release.predict_proba(rows)).max() <= atol


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("even", [0.0, 0.2])
def test_onnxruntime_gives_labels_and_probabilities_of_the_release(name, even, tmp_path):
    release = release_of(*CASES[name], confidence=Probabilities(3.0, even))
    check(release, ROWS, tmp_path / "head.onnx")
    check(release, ROWS[:1], tmp_path / "one.onnx")


@pytest.mark.parametrize("kind", ["linear", "mlp"])
def test_networks_of_rows_agree_where_logits_are_large_and_need_no_torch(
    kind, tmp_path, monkeypatch
):
    decision, arrays = net(kind, (D,))
    release = release_of(
        decision,
        {name: 30 * array for name, array in arrays.items()},
        confidence=Probabilities(1.0),
    )
    label, probabilities = run(release.to_onnx(tmp_path / "net.onnx"), ROWS)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert np.array_equal(label, release.predict(ROWS))
    assert np.abs(probabilities - release.predict_proba(ROWS)).max() <= 1e-6
    assert (
        np.abs(
            decision.similarities({name: 30 * array for name, array in arrays.items()}, ROWS)
        ).max()
        > 50
    )


@pytest.mark.parametrize("kind", ["cnn", "vgg", "resnet"])
def test_networks_of_pictures_are_built_layer_by_layer(kind, tmp_path):
    shape = (3, 12, 13)
    decision, arrays = net(kind, shape, 255.0)
    pictures = RNG.integers(0, 256, size=(10_000, np.prod(shape))).astype(np.float32)
    logits = Probabilities(1.0)  # as of every network that was trained
    release = release_of(decision, arrays, width=int(np.prod(shape)), confidence=logits)
    check(release, pictures, tmp_path / "net.onnx")


@pytest.mark.parametrize("classes", [[3, -1, 2**40], [True, False]])
def test_labels_have_the_type_of_the_class_list(classes, tmp_path):
    n = len(classes)
    release = release_of(NearestPrototype(), {"prototypes": CENTRES[:n]}, classes=classes)
    label, _ = run(release.to_onnx(tmp_path / "head.onnx"), ROWS)
    assert label.dtype == release.classes.dtype
    assert np.array_equal(label, release.predict(ROWS))


def test_the_file_says_what_the_release_says(tmp_path):
    release = release_of(*CASES["cosine"])
    path = release.to_onnx(tmp_path / "head.onnx")
    model = onnx.load(path)
    said = {prop.key: prop.value for prop in model.metadata_props}
    assert said["card"] == release.card()
    assert json.loads(said["guarantee"])["unit"] == "add-remove"
    assert json.loads(said["classes"]) == CLASSES
    assert model.doc_string == release.document.accounting.statement
    assert [(each.domain, each.version) for each in model.opset_import] == [("", OPSET)]
    assert model.producer_name == "tacit"
    assert path.stat().st_size < 20_000 + sum(array.nbytes for array in release.arrays.values())
    assert path.read_bytes() == release.to_onnx(tmp_path / "again.onnx").read_bytes()


def test_an_existing_file_stays_without_force(tmp_path):
    release, path = release_of(*CASES["linear"]), tmp_path / "head.onnx"
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match=stating("exists", "--force")):
        release.to_onnx(path)
    assert path.read_text(encoding="utf-8") == "mine"
    release.to_onnx(path, force=True)
    assert [file.name for file in tmp_path.iterdir()] == ["head.onnx"]


def test_a_network_is_checked_without_torch_and_predicts_with_it(tmp_path, monkeypatch):
    folder = release_of(*net("cnn", (1, 8, 8)), width=64).save(tmp_path / "cnn")
    code = (
        "import sys; sys.modules['torch'] = None; from tacit.cli.main import main;"
        " sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code]
    inspected = subprocess.run([*command, "inspect", str(folder)], capture_output=True, text=True)
    assert (inspected.returncode, inspected.stderr) == (0, "")
    assert f"{folder}: verified;" in inspected.stdout
    rows = np.ones((2, 64), dtype=np.float32)
    np.save(tmp_path / "rows.npy", rows)
    line = ["predict", str(folder), str(tmp_path / "rows.npy"), "--out", str(tmp_path / "out.csv")]
    predicted = subprocess.run([*command, *line], capture_output=True, text=True)
    command = "pip install -c constraints.txt '.[torch]'"
    said = (
        f"tacit: torch is not installed, and this needs it; run {command} in a working copy of"
        " tacit\n"
    )
    assert (predicted.returncode, predicted.stderr) == (2, said)
    assert not (tmp_path / "out.csv").exists()
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError, match=r"torch is not installed.*'\.\[torch\]'"):
        Release.load(folder).verify().predict(rows)


def test_another_ending_is_refused(tmp_path):
    with pytest.raises(InputError, match=stating("head.txt", ".onnx", "head.onnx")):
        release_of(*CASES["linear"]).to_onnx(tmp_path / "head.txt")
    assert not list(tmp_path.iterdir())


def test_stamped_and_older_releases_are_refused(tmp_path):
    research = tacit.NoisySumPrototypes(classes=3, noise="research", random_state=0).fit(
        ROWS[:9], np.arange(9) % 3
    )
    with pytest.raises(ReleaseError, match="is NOT FOR RELEASE"):
        Release.of(research).to_onnx(tmp_path / "head.onnx")
    assert Release.of(research).to_onnx(tmp_path / "kept.onnx", allow_research=True).exists()
    release = release_of(*CASES["linear"])
    older = replace(
        release,
        arrays={name: array for name, array in release.arrays.items() if name != "probabilities"},
    )
    with pytest.raises(ReleaseError, match=stating("before", "probabilities")):
        older.to_onnx(tmp_path / "head.onnx")
    assert not (tmp_path / "head.onnx").exists()
