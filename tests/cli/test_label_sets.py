"""Releases of several labels a row at the command line: predictions and figures."""

import csv
import json

import numpy as np
import pyarrow.parquet as pq
import pytest

import tacit
from label_sets import CLASSES, example_rows, label_set_release
from messages import lacking
from tacit.cli.main import main
from tacit.models.label_set_metrics import evaluate_label_sets
from tacit.releases.release import Release

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


@pytest.fixture
def test_set(folder):
    """Write a public test set as CSV, of which the release labels most rows right."""
    truth = RELEASE.predict(ROWS)
    truth[::5, 0] = 1 - truth[::5, 0]
    names = np.array(CLASSES)
    with open("test.csv", "w", encoding="utf-8") as file:
        file.write(",".join([*(f"x{i}" for i in range(6)), "label"]) + "\n")
        for row, labels in zip(ROWS, truth, strict=True):
            file.write(",".join([*map(str, row), "|".join(names[labels == 1])]) + "\n")
    return truth


def test_figures_are_printed_and_recorded(test_set, capsys):
    scores = evaluate_label_sets(
        test_set, RELEASE.predict(ROWS), RELEASE.predict_proba(ROWS), np.array(CLASSES)
    )
    line = ["evaluate", "release", "test.csv", "--label-separator", "|"]
    assert main([*line, "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["mean_average_precision"] == pytest.approx(scores.mean_average_precision)
    assert figures["exact_match"] == 0.8
    assert figures["rare_by"] == "counts in the test set"
    assert list(figures["per_label"]) == CLASSES
    assert figures["outside_guarantee"] is True
    assert main(line) == 0
    assert "outside the guarantee: " in capsys.readouterr().out

    assert main([*line, "--record", "--public-test"]) == 0
    said = capsys.readouterr().out
    assert "200 rows, 4 of 4 labels" in said
    assert "outside the guarantee" not in said
    assert "exact match 0.8000 (95 % interval over test rows" in said
    assert f"{scores.few_records} labels have fewer than 40 test records" in said
    utility = Release.load("release").verify().document.utility
    assert utility.micro_f1 == pytest.approx(scores.micro_f1)


def test_private_training_counts_are_told_apart(test_set, capsys):
    line = ["evaluate", "release", "test.csv", "--label-separator", "|"]
    assert main([*line, "--class-sizes", "test.csv", "--record", "--public-test"]) == 0
    assert "rarest by training counts (private counts)" in capsys.readouterr().out
    unprotected = Release.load("release").verify().guarantee.unprotected
    assert "training counts of labels (through the rare third)" in unprotected


def test_one_label_and_several_are_not_mixed_up(test_set, capsys):
    np.savez("one.npz", x=ROWS[:4], y=np.array(CLASSES))
    assert main(["evaluate", "release", "one.npz"]) == 2
    said = capsys.readouterr().err
    assert "one.npz has one label a row, and the release predicts several" in said
    single = tacit.NoisySumPrototypes(classes=CLASSES).fit(ROWS[:4], CLASSES)
    Release.of(single).save("single")
    assert main(["evaluate", "single", "test.csv", "--label-separator", "|"]) == 2
    assert "several labels a record, and the release predicts one" in capsys.readouterr().err


@pytest.mark.parametrize(
    "line",
    [
        "evaluate release test.csv --label-separator | --at-least .9",
        "evaluate release test.csv --label-separator | --foreign rows.npy",
        "predict release rows.npy --at-least .9 --out o.csv",
    ],
)
def test_answers_that_are_likely_enough_are_of_one_label(test_set, line, capsys):
    assert main(line.split()) == 2
    assert not lacking(capsys.readouterr().err, "release", "labels")
