"""Releases match the columns of tables by name, and carry the schema by which they are encoded."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.pipeline import make_pipeline

import tacit
from messages import stating
from tacit.errors import InputError, ReleaseError
from tacit.models.table_schema import TableSchema
from tacit.releases.columns import ColumnNames, unsafe_encoder
from tacit.releases.release import Release

RNG = np.random.default_rng(0)
Y = np.repeat(range(3), 100)
X = np.eye(3)[Y] + 0.05 * RNG.normal(size=(300, 3))
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
SCHEMA = {
    "columns": {
        "age": {"kind": "number", "low": 0, "high": 100, "cells": 4},
        "plan": {"kind": "category", "levels": ["free", "paid"]},
        "score": {"kind": "ordered", "low": 0, "high": 1},
    },
    "label": "left",
    "missing": ["?"],
}
TABLE = {"age": [10, 90] * 500, "plan": ["free", "paid"] * 500, "score": [0.1, "?"] * 500}


def learner():
    return tacit.NoisySumPrototypes("rho=100", classes=3)


@pytest.fixture(scope="module")
def encoded():
    clf = tacit.FeatureCovariance("epsilon=50,delta=1e-5", classes=["stays", "leaves"])
    return make_pipeline(tacit.TableEncoder(SCHEMA), clf).fit(TABLE, ["stays", "leaves"] * 500)


def reloaded(release, folder):
    return Release.load(release.save(folder / "release")).verify()


def test_columns_of_a_frame_are_matched_by_name(tmp_path):
    release = reloaded(Release.of(learner().fit(FRAME, Y), name="abc"), tmp_path)
    assert release.document.version == 9
    assert release.columns == ColumnNames(("a", "b", "c"))
    assert "columns: a; b; c" in release.card()
    assert "publishes with the release" in release.card()

    order = ["c", "a", "b"]
    columns = {name: X[:, place].tolist() for place, name in enumerate("abc")}
    tables = [
        FRAME,
        FRAME[order].assign(other="x"),
        pl.DataFrame(columns).select(order),
        pa.table(columns).select(order),
        {name: columns[name] for name in order},
        X,
        pd.DataFrame(X),
    ]
    for table in tables:
        assert release.score(table, Y) == 1
    with pytest.raises(InputError, match=stating("lacks", "'b'", "fitted on")):
        release.predict(FRAME[["a", "c"]])


def test_a_release_of_rows_without_names_has_no_columns():
    release = Release.of(learner().fit(X, Y), name="rows")
    assert release.columns is None
    assert "- columns:" not in release.card()
    assert release.score(FRAME[["a", "b", "c"]], Y) == 1


def test_a_scaler_remembers_the_names_too():
    pipeline = make_pipeline(tacit.PublicScaler(public=X + 1.0), learner()).fit(FRAME, Y)
    release = Release.of(pipeline, name="scaled")
    wanted = pipeline.predict(FRAME)
    assert (pipeline.predict(FRAME[["b", "c", "a"]]) == wanted).all()
    assert (release.predict(FRAME[["b", "c", "a"]]) == wanted).all()


def test_the_schema_is_carried(encoded, tmp_path):
    release = reloaded(Release.of(encoded, name="churn"), tmp_path)
    assert (
        release.columns.declaration()["columns"]
        == encoded[0].loaded_schema().of_features().declaration()["columns"]
    )
    # so that `tacit evaluate` finds the labels of a table
    assert release.columns.label == "left"
    assert "age: kind = number, low = 0, high = 100, cells = 4, spacing = even" in release.card()
    new = pd.DataFrame({"plan": ["paid", "free"], "score": ["?", 0.2], "age": [80, 20]})
    assert release.predict(new).tolist() == ["leaves", "stays"]
    rows = encoded[0].transform(TABLE)
    assert (release.predict(rows) == release.predict(TABLE)).all()
    with pytest.raises(InputError, match=stating("'age'", "lacks")):
        release.predict(new[["plan", "score"]])


def test_cells_other_than_declared_are_counted(encoded):
    release = Release.of(encoded, name="churn")
    table = {"age": [-1, 200, 300], "plan": ["gold", "free", None], "score": [0.5, "x", 0.1]}
    with pytest.warns(UserWarning, match="other than declared") as caught:
        release.predict(table)
    (warning,) = caught
    said = str(warning.message)
    assert "column 'age': 1 below 0, 2 above 100" in said
    assert "column 'plan': 1 of no declared level" in said
    assert "column 'score': 1 no number" in said
    assert warning.filename == __file__


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"columns": ["a", "b"]}, "do not fit width"),
        ({"columns": ["a"] * 12}, "do not fit width"),
        ({"columns": {"a": {"kind": "number"}}}, "no low"),
        ({"columns": {"a": {"kind": "ordered", "low": 0, "high": 1}}}, "do not fit width"),
        ({"columns": {"a": {"kind": "category", "levels": ["a\n## 5. None"]}}}, "columns"),
        ({"columns": {"a": {"kind": ["number"]}}}, "has kind"),
        ({"about_columns": "nothing"}, "publishes"),
        ({"missing_texts": "?"}, "missing_texts"),
    ],
)
def test_columns_that_do_not_fit_are_refused(encoded, tmp_path, change, fault):
    folder = Release.of(encoded, name="churn").save(tmp_path / "release")
    path = folder / "release.json"
    document = json.loads(path.read_text())
    document["contents"] |= change
    path.write_text(json.dumps(document))
    with pytest.raises(ReleaseError, match=fault):
        Release.load(folder)


def test_columns_go_with_version_7(encoded, tmp_path):
    folder = Release.of(encoded, name="churn").save(tmp_path / "release")
    path = folder / "release.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document | {"version": 6}))
    with pytest.raises(ReleaseError, match=stating("columns", "version 7")):
        Release.load(folder)


def test_a_schema_of_its_own_kind_only_is_carried(encoded):
    class Other(tacit.TableEncoder):
        pass

    pipeline = make_pipeline(Other(SCHEMA), tacit.NoisySumPrototypes("rho=1", classes=["s", "l"]))
    with pytest.raises(ReleaseError, match="Other"):
        Release.of(pipeline.fit(TABLE, ["s", "l"] * 500))


def test_a_release_runs_no_code_that_its_document_names(encoded, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_code.py").write_text("raise SystemExit('code of a release ran')\n")
    (tmp_path / "folder").mkdir()
    folder = Release.of(encoded, name="churn").save(tmp_path / "release")
    path = folder / "release.json"
    document = json.loads(path.read_text())
    for encoder in ["torch:own_code.model", "onnx:a.onnx", "timm:/a", "transformers:folder"]:
        document["contents"]["columns"] = {"a": {"kind": "text", "encoder": encoder}}
        path.write_text(json.dumps(document))
        release = Release.load(folder)
        with pytest.raises(InputError, match=stating(encoder, "runs no code", "TableEncoder")):
            release.predict({"a": ["x"]})
        with pytest.raises(ReleaseError, match="encoder"):
            release.coefficients()
        assert release.predict(np.ones((1, release.width))).shape == (1,)
    named = {"columns": {"a": {"kind": "image", "encoder": "timm:vit_tiny.augreg_in21k"}}}
    assert unsafe_encoder(TableSchema.parse(named)) is None
