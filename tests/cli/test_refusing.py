"""`tacit predict --refuse` and `tacit evaluate --foreign` on a release of auto."""

import csv
import json

import numpy as np
import pytest

import tacit

RNG = np.random.default_rng(0)


def rows(n, centres):
    return np.repeat(centres, n, axis=0) + 0.15 * RNG.normal(size=(n * len(centres), 16))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("refusing")
    centres, labels = np.eye(4, 16), ["a", "b", "c", "d"]
    clf = tacit.AutoPrototypes(
        "rho=2", public=RNG.normal(size=(300, 16)), classes=labels, noise="research", random_state=0
    )
    release = tacit.Release.of(clf.fit(rows(200, centres), np.repeat(labels, 200)))
    release.save(folder / "release", allow_research=True)
    np.savez(folder / "test.npz", x=rows(50, centres), y=np.repeat(labels, 50))
    np.savez(folder / "foreign.npz", x=rows(100, np.eye(16)[8:9]))
    return folder


@pytest.fixture
def run(folder, monkeypatch, capsys):
    from tacit.cli.main import main

    monkeypatch.chdir(folder)

    def run(command, status=0):
        assert main(command.split()) == status
        return capsys.readouterr()

    return run


def test_rows_of_no_class_are_left_without_a_label(run, folder):
    run("predict release foreign.npz --out labels.csv --refuse 0.05")
    with (folder / "labels.csv").open(encoding="utf-8") as file:
        labels = [row["label"] for row in csv.DictReader(file)]
    assert np.mean([label == "" for label in labels]) > 0.9

    command = "predict release test.npz --out answers.csv --at-least 0.6 --refuse 0.05"
    run(f"{command} --familiar test.npz --foreign foreign.npz")
    with (folder / "answers.csv").open(encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    assert [row["level"] == "0" for row in table] == [row["label"] == "" for row in table]
    assert np.mean([row["label"] != "" for row in table]) > 0.8


def test_evaluate_tells_foreign_rows_from_test_rows(run):
    figures = json.loads(run("evaluate release test.npz --foreign foreign.npz --json").out)
    foreign = figures["foreign"]
    assert foreign["foreign_rows"] == 100
    assert foreign["area_under_roc"] > 0.95
    assert foreign["refused"]["0.05"]["foreign"] > 0.9
    assert foreign["refused"]["0.05"]["test"] < 0.2
    lines = run("evaluate release test.npz --foreign foreign.npz").out
    assert "--refuse 0.05 refuses" in lines


def test_faults_are_named_in_one_line(run):
    fault = run("predict release test.npz --out a.csv --refuse 1.5", 2).err
    assert "refuse=1.5 must be above 0 and below 1" in fault
    fault = run("predict release test.npz --out a.csv --foreign foreign.npz", 2).err
    assert "add --refuse 0.05" in fault


@pytest.mark.parametrize("option", ["familiar", "foreign"])
def test_rows_that_a_ledger_covers_are_no_threshold(run, option):
    run(f"import foreign.npz --out private-{option}")
    run(f"ledger private-{option} --allow rho=1")
    command = f"predict release test.npz --out b.csv --refuse 0.05 --{option} private-{option}"
    assert "a guarantee covers these records" in run(command, 2).err
