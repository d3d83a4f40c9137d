"""`tacit export` and `tacit predict --probabilities`."""

import sys

import numpy as np
import onnxruntime
import pyarrow.csv
import pyarrow.parquet
import pytest

from cli.conftest import CLASSES
from cli.test_bad_input import refused
from messages import lacking
from tacit.data.embeddings import EmbeddingStore
from tacit.releases.release import Release


@pytest.fixture
def release(stores, run):
    assert run("fit noisy-sum private --budget rho=8 --out r")[0] == 0
    return Release.load("r")


def test_the_file_predicts_as_predict_does(release, run):
    status, out, err = run("export r --onnx head.onnx")
    assert (status, err) == (0, "")
    assert out.startswith("head.onnx: ")
    assert not lacking(out, "embeddings", "label", "probabilities")
    rows = EmbeddingStore.open("test").x[:].astype(np.float32)
    label, probabilities = onnxruntime.InferenceSession("head.onnx").run(None, {"embeddings": rows})
    assert run("predict r test --probabilities --out p.parquet")[0] == 0
    table = pyarrow.parquet.read_table("p.parquet")
    assert table.column_names == ["row", "label", *CLASSES]
    assert table["label"].to_pylist() == label.tolist() == release.predict(rows).tolist()
    found = np.stack([table[name].to_numpy() for name in CLASSES], axis=1)
    assert np.array_equal(found, release.predict_proba(rows))
    assert np.allclose(found, probabilities, rtol=0, atol=1e-6)


def test_labels_are_the_same_with_and_without_probabilities(release, run):
    assert run("predict r test --out plain.csv")[0] == 0
    assert run("predict r test --probabilities --out more.csv")[0] == 0
    plain, more = (pyarrow.csv.read_csv(name) for name in ("plain.csv", "more.csv"))
    assert plain.column_names == ["row", "label"]
    assert more.select(["row", "label"]).equals(plain)


def test_a_class_with_the_name_of_a_column_is_one_line(stores, run):
    x = EmbeddingStore.open("private").x[:]
    EmbeddingStore.write("odd", x, np.arange(len(x)) % 2, classes=["ant", "row"], labels="index")
    assert run("fit noisy-sum odd --budget rho=8 --out o")[0] == 0
    refused(
        run,
        "predict o test --probabilities --out p.csv",
        "class 'row' has the name of another column of p.csv",
    )


def test_what_cannot_be_exported_is_one_line(release, run, monkeypatch):
    assert run("export r --onnx head.onnx")[0] == 0
    refused(run, "export r --onnx head.onnx", "head.onnx exists", "--force")
    assert run("export r --onnx head.onnx --force")[0] == 0
    refused(
        run,
        "export r --onnx a.onnx --mirror --dtype float32",
        "--mirror, --dtype",
        "pass --encoder FILE.onnx",
    )
    refused(run, "export r --onnx a.onnx --encoder no.onnx", "no.onnx does not exist")
    monkeypatch.setitem(sys.modules, "onnx", None)
    refused(
        run,
        "export r --onnx a.onnx",
        "onnx is not installed",
        "run pip install -c constraints.txt '.[onnx]'",
    )


def test_the_stamp_travels(stores, run):
    assert (
        run("fit noisy-sum private --budget rho=8 --noise research --allow-research --out s")[0]
        == 0
    )
    refused(run, "export s --onnx head.onnx", "NOT FOR RELEASE")
    assert "stamped NOT FOR RELEASE" in run("export s --onnx head.onnx --allow-research")[1]
