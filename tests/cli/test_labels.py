"""Labels are compared with the class list as texts, whatever file they come from."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from cli.test_bad_input import refused
from messages import lacking, stating
from tacit import EmbeddingStore

X = np.random.default_rng(0).normal(size=(6, 3))


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def table(name, labels):
    """Write a table of features and labels, as CSV text or as Parquet."""
    if name.endswith(".parquet"):
        columns = {"label": pa.array(labels), "x": pa.array(X.tolist())}
        pq.write_table(pa.table(columns), name)
        return
    rows = [f"{label},{row[0]},{row[1]}" for label, row in zip(labels, X, strict=True)]
    Path(name).write_text("\n".join(["label,a,b", *rows]) + "\n")


def labels(run, line):
    status, _, err = run(f"import {line} --out store --force")
    assert status == 0, err
    return EmbeddingStore.open("store").labels.tolist()


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
@pytest.mark.parametrize("classes", ["True,False", "False,True"])
def test_booleans_are_texts(here, run, name, classes):
    table(name, [True, False, True, True, False, True])
    expected = ["True", "False", "True", "True", "False", "True"]
    assert labels(run, f"{name} --classes {classes}") == expected
    first = "line 2" if name == "t.csv" else "row 0"
    refused(run, f"import {name} --classes yes,no --out other", first, "True", "yes, no")


@pytest.mark.parametrize("codes", [["3E2", "300", "3e2"], ["1", "01", "1.0"], ["a", "b", "c"]])
def test_codes_are_texts(here, run, codes):
    table("t.csv", codes * 2)
    assert labels(run, f"t.csv --classes {','.join(codes)}") == codes * 2
    assert EmbeddingStore.open("store").classes == codes

    line = f"--column label --classes {','.join(codes)} --budget epsilon=100 --out o.csv"
    assert run(f"privatize-labels t.csv {line}")[0] == 0


@pytest.mark.parametrize("spelling", ["{}", " {}", "{}.0", "{:.18e}"])
def test_numbers_of_one_spelling_are_whole_numbers(here, run, spelling):
    numbers = [0, 12, 2, 0, 12, 2]
    table("t.csv", [spelling.format(number) for number in numbers])
    assert labels(run, "t.csv --classes 13") == numbers
    assert labels(run, "t.csv --classes 12,0,2") == numbers


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_numbers_beside_names_are_refused_unless_stated(here, run, name):
    table(name, [0, 1, 2, 0, 1, 2])
    names = ["ant", "bee", "cow"] * 2
    line = f"{name} --classes ant,bee,cow"
    first = "line 2" if name == "t.csv" else "row 0"
    for verb in (f"import {line} --out other", f"fit noisy-sum {line} --budget rho=1 --out r"):
        refused(run, verb, first, "--labels index", "classes")
    assert labels(run, f"{line} --labels index") == names
    refused(run, f"import {name} --labels index --out other", "--labels index", "--classes")

    fit = f"fit noisy-sum {line} --labels index --budget rho=100 --out r"
    assert run(fit)[0] == 0
    refused(run, f"evaluate r {name}", first, "--labels index")
    assert run(f"evaluate r {name} --labels index")[0] == 0


def test_sources_that_state_positions_keep_them(here, run):
    names = ["ant", "bee", "cow"] * 2
    np.save("d_train.npy", X)
    np.save("d_train_targets.npy", np.arange(6) % 3)
    assert labels(run, "d_train.npy --classes ant,bee,cow") == names

    np.savez("d.npz", x=X, y=np.arange(6) % 3, classes=["ant", "bee", "cow"])
    assert labels(run, "d.npz") == names
    np.savez("codes.npz", x=X, y=np.arange(6) % 3 + 1, classes=["1", "2", "3"])
    assert labels(run, "codes.npz") == ["1", "2", "3"] * 2

    np.save("x.npy", X)
    np.save("y.npy", np.arange(6) % 3)
    refused(run, "import x.npy y.npy --classes ant,bee,cow --out other", "--labels index")
    card = {"files": ["x.npy"], "classes": ["2", "1", "0"]}
    Path("card.json").write_text(json.dumps(card))
    assert labels(run, "x.npy y.npy") == ["2", "1", "0"] * 2


def test_encoded_tables_follow_the_same_rule(here, run):
    pixels = np.random.default_rng(0).integers(0, 256, (6, 8, 8), dtype=np.uint8)
    np.savez("p.npz", x=pixels, y=np.arange(6) % 3)
    line = "encode p.npz --encoder edges:8 --classes ant,bee,cow"
    refused(run, f"{line} --out store", "row 0", "--labels index")
    assert run(f"{line} --labels index --out store")[0] == 0
    assert EmbeddingStore.open("store").labels.tolist() == ["ant", "bee", "cow"] * 2


@pytest.mark.parametrize("header", ["Label", "label ", " CLASS", "Target"])
def test_headers_are_found_whatever_their_case_and_white_space(here, run, header):
    table("t.csv", ["a", "b", "c"] * 2)
    text = Path("t.csv").read_text()
    Path("t.csv").write_text(text.replace("label", header, 1))
    assert labels(run, "t.csv --classes a,b,c") == ["a", "b", "c"] * 2
    columns = {header: pa.array(["a", "b", "c"] * 2), "x": pa.array(X.tolist())}
    pq.write_table(pa.table(columns), "t.parquet")
    assert labels(run, "t.parquet --classes a,b,c") == ["a", "b", "c"] * 2


def test_columns_left_out_are_printed_with_the_reason(here, run):
    columns = {"age": [1] * 6, "hours": X[:, 0], "name": list("abcdef"), "label": [0, 1] * 3}
    pq.write_table(pa.table(columns), "t.parquet")
    for verb in ("import t.parquet --out s", "fit noisy-sum t.parquet --budget rho=1 --out r"):
        status, _, err = run(f"{verb} --classes 2")
        assert status == 0
        assert not lacking(err, "t.parquet", "'age' (int64", "'name' (string", "floats")


def test_labels_and_features_of_the_wrong_kind_get_the_right_reason(here, run):
    dates = pa.array([20000 + day for day in range(6)], pa.date32())
    pq.write_table(pa.table({"label": dates, "x": pa.array(X.tolist())}), "dates.parquet")
    refused(run, "import dates.parquet --out s", "labels are dates")
    pq.write_table(pa.table({"text": list("abcdef"), "label": [0, 1] * 3}), "texts.parquet")
    refused(run, "import texts.parquet --out s", "texts (text)", "tacit encode texts.parquet")
    Path("texts.csv").write_text("text,label\nhello,1\nworld,0\n")
    refused(run, "import texts.csv --out s", "line 2, column 1", "encode texts first")

    # several columns are a table
    commands = ("tacit schema", "tacit encode", "--encoder table")
    Path("table.csv").write_text("job,age,label\nbaker,31,1\nclerk,42,0\n")
    refused(run, "fit noisy-sum table.csv --budget rho=1 --out r", "table.csv line 2", *commands)
    pq.write_table(pa.table({"job": list("abcdef"), "age": [*range(6)]}), "table.parquet")
    refused(run, "fit noisy-sum table.parquet --budget rho=1 --out r", "texts (job)", *commands)


def test_arrays_of_the_wrong_kind_get_the_right_reason(tmp_path):
    model = tacit.NoisySumPrototypes("rho=1", classes=[0, 1])
    y = np.array([0, 1] * 3)
    for missing in (np.nan, None):
        values = [0, 1, 0, missing, 0, 1]
        for array in (np.array(values, float), np.array(values, object)):
            with pytest.raises(tacit.TacitError, match=stating("y", "row 3", "NaN")):
                model.fit(X, array)
    with pytest.raises(tacit.TacitError, match=stating("encode texts first")):
        model.fit(np.array([["a", "b"]] * 6), y)
    with pytest.raises(tacit.TacitError, match=stating("texts", "encode")):
        EmbeddingStore.write(tmp_path / "s", np.array([["a", "b"]] * 6))
    with pytest.raises(tacit.TacitError, match=stating("dates")):
        EmbeddingStore.write(tmp_path / "s", X, np.arange(6).astype("datetime64[D]"))

    for call in (lambda x: model.fit(x, y), lambda x: EmbeddingStore.write(tmp_path / "s", x)):
        with pytest.raises(tacit.TacitError, match=stating("LazyFrame", "X.collect()")):
            call(pl.LazyFrame(X))


def test_columns_left_out_are_printed_whenever_a_table_is_read(here, run):
    columns = {"a": X[:, 0], "b": X[:, 1], "age": [30, 40, 50, 60, 70, 80], "label": list("pqpqpq")}
    pq.write_table(pa.table(columns), "t.parquet")
    assert run("fit noisy-sum t.parquet --classes p,q --budget rho=100 --out r")[0] == 0
    pq.write_table(pa.table(columns | {"extra": X[:, 2]}), "wide.parquet")
    for line in ("evaluate r wide.parquet", "predict r wide.parquet --out labels.csv --force"):
        status, _, err = run(line)
        assert status == 0
        assert not lacking(err, "wide.parquet", "left out", "age", "int64")
        assert not lacking(err, "wide.parquet", "left out", "extra", "release")
