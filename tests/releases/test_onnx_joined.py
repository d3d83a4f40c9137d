"""A release joined with its encoder's ONNX file: pictures in, what `encode` and `predict` say of
them out.
"""

import json
import zipfile
from functools import partial

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import tacit
from conftest import SHARED
from label_sets import label_set_release
from messages import stating
from tacit.encoding.encoders import load_encoder
from tacit.encoding.encoders.pictures import decoded
from tacit.errors import InputError
from tacit.models.decisions import LinearHead
from tacit.models.rows import unit_rows
from tacit.releases.release import Release

RNG = np.random.default_rng(0)
SIZE, WIDTH, CLASSES = 8, 6, ["ant", "bee", "cow"]
PICTURES = RNG.integers(0, 256, size=(40, SIZE, SIZE, 3)).astype(np.uint8)


def encoder(folder, *, opset=17, layout="nchw"):
    """A network of one convolution and a mean over places, its sidecar beside it."""
    sides = ["n", 3, SIZE, SIZE] if layout == "nchw" else ["n", SIZE, SIZE, 3]
    kernel = numpy_helper.from_array(RNG.normal(size=(WIDTH, 3, 3, 3)).astype(np.float32), "kernel")
    first = (
        []
        if layout == "nchw"
        else [helper.make_node("Transpose", ["pixels"], ["turned"], perm=[0, 3, 1, 2])]
    )
    nodes = [
        *first,
        helper.make_node("Conv", ["turned" if first else "pixels", "kernel"], ["maps"]),
        helper.make_node("Relu", ["maps"], ["label"]),  # a name that the release uses too
        helper.make_node("GlobalAveragePool", ["label"], ["features"]),
    ]
    graph = helper.make_graph(
        nodes,
        "encoder",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, sides)],
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["n", WIDTH, 1, 1])],
        [kernel],
    )
    path = folder / "encoder.onnx"
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path
    )
    stated = {"size": [SIZE, SIZE], "layout": layout, "scale": 255}
    path.with_suffix(".json").write_text(json.dumps(stated), encoding="utf-8")
    return path


def projection(folder):
    np.save(folder / "p.npy", RNG.normal(size=(WIDTH, 4)).astype(np.float32))
    return folder / "p.npy"


def encoded(path, pictures, dtype="float32", **options):
    """Rows as `tacit encode` stores them, and the encoder's input."""
    loaded = load_encoder(f"onnx:{path}", **options)
    prepared = np.stack([loaded.backbone.input.prepare(picture) for picture in pictures])
    return loaded(prepared, dtype).astype(dtype), loaded.backbone.input.scaled(prepared)


def fitted(rows):
    return Release.of(
        tacit.NoisySumPrototypes("rho=50", classes=CLASSES).fit(rows, np.resize(CLASSES, len(rows)))
    )


@pytest.mark.parametrize("opset", [13, 17, 21])
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("mirror", [False, True])
@pytest.mark.parametrize("projected", [False, True])
def test_pictures_get_the_labels_of_encode_and_predict(opset, layout, mirror, projected, tmp_path):
    path = encoder(tmp_path, opset=opset, layout=layout)
    options = {"mirror": mirror} | ({"projection": projection(tmp_path)} if projected else {})
    rows, inputs = encoded(path, PICTURES, **options)
    release = fitted(rows)
    made = release.to_onnx(tmp_path / "joined.onnx", encoder=path, **options)
    session = onnxruntime.InferenceSession(made)
    for n in (1, 40):
        label, probabilities = session.run(None, {"pixels": inputs[:n]})
        assert np.array_equal(label, release.predict(rows[:n]))
        assert np.allclose(probabilities, release.predict_proba(rows[:n]), rtol=0, atol=1e-5)
    said = {prop.key: prop.value for prop in onnx.load(made).metadata_props}
    assert json.loads(said["picture_input"])["size"] == [SIZE, SIZE]
    assert said["card"] == release.card()
    assert onnx.load(made).opset_import[0].version == opset


def test_pictures_get_several_labels(tmp_path):
    path = encoder(tmp_path)
    rows, inputs = encoded(path, PICTURES)
    # pictures of noise have similar features, which differ about their mean
    arrays = {
        "coefficients": RNG.normal(size=(4, WIDTH)),
        "intercepts": np.zeros(4),
        "centre": unit_rows(rows.astype(np.float64)).mean(axis=0),
    }
    release = label_set_release(LinearHead(), arrays)
    made = release.to_onnx(tmp_path / "joined.onnx", encoder=path)
    session = onnxruntime.InferenceSession(made)
    labels, probabilities = session.run(["labels", "probabilities"], {"pixels": inputs})
    assert len(np.unique(labels, axis=0)) > 1
    assert np.array_equal(labels, release.predict(rows))
    assert np.allclose(probabilities, release.predict_proba(rows), rtol=0, atol=1e-5)


def test_rows_are_rounded_as_a_store_of_float16_rounds_them(tmp_path):
    path = encoder(tmp_path)
    rows, inputs = encoded(path, PICTURES, "float16")
    release = fitted(rows)
    made = release.to_onnx(tmp_path / "joined.onnx", encoder=path, dtype="float16")
    label, probabilities = onnxruntime.InferenceSession(made).run(None, {"pixels": inputs})
    assert np.array_equal(label, release.predict(rows))
    assert np.allclose(probabilities, release.predict_proba(rows), rtol=0, atol=1e-5)


def test_an_encoder_that_does_not_fit_is_one_line(tmp_path):
    path = encoder(tmp_path)
    rows, _ = encoded(path, PICTURES)
    release = fitted(rows)
    out = partial(release.to_onnx, tmp_path / "joined.onnx")
    with pytest.raises(InputError, match=stating("release", "encoder")):
        out(encoder=path, projection=projection(tmp_path))
    with pytest.raises(InputError, match=stating("dtype='int8'", "float16", "float32")):
        out(encoder=path, dtype="int8")
    with pytest.raises(InputError, match=stating("missing.onnx", "exist")):
        out(encoder=tmp_path / "missing.onnx")
    with pytest.raises(InputError, match=stating("opset 12", "13")):
        out(encoder=encoder(tmp_path, opset=12))
    path.write_bytes(b"no model")
    with pytest.raises(InputError, match="is not an ONNX file"):
        out(encoder=path)
    other = tmp_path / "other.json"
    with pytest.raises(InputError, match=stating("other.json", "onnx:")):
        out(encoder=encoder(tmp_path), sidecar=other)
    assert not (tmp_path / "joined.onnx").exists()


def test_real_pictures_get_the_labels_of_encode_and_predict(tmp_path, cifar10):
    source = SHARED / "mobilenetv2_in1k_160.onnx"
    basis = SHARED / "embeddings" / "mobilenetv2-in1k-160" / "public_svd256_basis.npy"
    sidecar = tmp_path / "input.json"
    stated = {"size": [160, 160], "layout": "nchw", "scale": 1, "resize": "bicubic-float"}
    sidecar.write_text(json.dumps(stated), encoding="utf-8")
    with zipfile.ZipFile(SHARED / "cifar10_pictures.zip") as archive:
        names = [name for name in archive.namelist() if name.startswith("test/")][:64]
        pictures = [decoded(archive.read(name)) for name in names]
    options = {"sidecar": sidecar, "mirror": True, "projection": basis}
    rows, inputs = encoded(source, pictures, **options)
    stored = unit_rows(
        cifar10.test_x[[int(name.rpartition("/")[2].split(".")[0]) for name in names]]
    )
    assert (unit_rows(rows) * stored).sum(axis=1).min() > 0.999
    classes = json.loads((basis.parent / "cifar10" / "card.json").read_text(encoding="utf-8"))[
        "classes"
    ]
    model = tacit.AutoPrototypes("rho=0.125", public=cifar10.public[:5000], classes=range(10))
    release = Release.of(model.fit(cifar10.train_x[:5000], cifar10.train_y[:5000]))
    session = onnxruntime.InferenceSession(
        release.to_onnx(tmp_path / "joined.onnx", encoder=source, **options)
    )
    label, probabilities = session.run(None, {"pixels": inputs})
    assert np.array_equal(label, release.predict(rows))
    # rounding to float16 in both
    assert np.abs(probabilities - release.predict_proba(rows)).max() < 0.005
    truth = [classes.index(name.split("/")[1]) for name in names]
    assert (label == truth).mean() > 0.7
