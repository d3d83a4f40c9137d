"""Labels are compared with the class list as texts, whatever file they come from."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.test_bad_input import refused
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
    refused(run, f"import {name} --classes yes,no --out other", "row 0", "True", "yes, no")


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
    for verb in (f"import {line} --out other", f"fit noisy-sum {line} --budget rho=1 --out r"):
        refused(run, verb, "row 0", "--labels index", "classes")
    assert labels(run, f"{line} --labels index") == names
    refused(run, f"import {name} --labels index --out other", "--labels index", "--classes")

    fit = f"fit noisy-sum {line} --labels index --budget rho=100 --out r"
    assert run(fit)[0] == 0
    refused(run, f"evaluate r {name}", "row 0", "--labels index")
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
