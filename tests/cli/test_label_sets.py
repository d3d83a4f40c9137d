"""Releases of several labels a row at the command line: predictions and figures."""

import csv

import numpy as np
import pyarrow.parquet as pq
import pytest

from label_sets import CLASSES, example_rows, label_set_release
from tacit.cli.main import main

RELEASE = label_set_release()
ROWS = example_rows()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", ROWS)
    return RELEASE.save("release")


def cells(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_predictions_are_texts_in_csv_and_lists_in_parquet(folder, capsys):
    sets = [np.array(CLASSES)[row == 1].tolist() for row in RELEASE.predict(ROWS)]
    assert main(["predict", "release", "rows.npy", "--out", "labels.csv"]) == 0
    assert cells("labels.csv") == [
        ["row", "labels"],
        *([str(row), "|".join(labels)] for row, labels in enumerate(sets)),
    ]

    options = ["--probabilities", "--label-separator", " + ", "--force"]
    assert main(["predict", "release", "rows.npy", "--out", "labels.csv", *options]) == 0
    heading, *lines = cells("labels.csv")
    assert heading == ["row", "labels", *CLASSES]
    assert [line[1] for line in lines] == [" + ".join(labels) for labels in sets]
    probabilities = np.array([line[2:] for line in lines], float)
    np.testing.assert_allclose(probabilities, RELEASE.predict_proba(ROWS))

    assert main(["predict", "release", "rows.npy", "--out", "labels.parquet"]) == 0
    table = pq.read_table("labels.parquet")
    assert table.column_names == ["row", "labels"]
    assert table["labels"].to_pylist() == sets


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--out", "o.csv", "--label-separator", "n"], "label 'ant' holds the separator 'n'"),
        (["--out", "o.csv", "--label-separator", ""], "holds the separator ''"),
        (["--out", "o.parquet", "--label-separator", "|"], "Parquet holds lists; leave it out"),
    ],
)
def test_separators_that_cannot_be_read_back_are_refused(folder, options, message, capsys):
    assert main(["predict", "release", "rows.npy", *options]) == 2
    assert message in capsys.readouterr().err


def test_a_column_of_probabilities_has_a_name_of_its_own(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", ROWS)
    label_set_release(classes=["labels", "b", "c", "d"]).save("release")
    arguments = ["predict", "release", "rows.npy", "--out", "o.csv", "--probabilities"]
    assert main(arguments) == 2
    assert "class 'labels' has the name of another column of o.csv" in capsys.readouterr().err
