"""`tacit evaluate --sets`, `tacit predict --sets`, and figures of sets on a test set."""

import csv
import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from tacit.releases.release import Release


@pytest.fixture
def released(stores, run):
    assert run("fit noisy-sum private --budget rho=5 --classes ant,bee,cow --out release")[0] == 0
    rng = np.random.default_rng(5)
    y = np.arange(600) % 3
    np.savez("calibration.npz", x=np.eye(3, 5)[y] * 2 + rng.normal(size=(600, 5)), y=y)
    return stores


CALIBRATE = "evaluate release calibration.npz --labels index --sets 0.9 --budget rho=0.5"


def test_a_new_release_carries_sets_and_the_old_one_none(released, run):
    status, out, _ = run(f"{CALIBRATE} --out calibrated --json")
    facts = json.loads(out)
    assert (status, facts["release"], facts["level"]) == (0, "calibrated", 0.9)
    assert facts["rho"] == pytest.approx(0.5)
    assert Release.load("calibrated").verify().prediction_sets.threshold == facts["threshold"]
    assert Release.load("release").prediction_sets is None

    status, out, _ = run(f"{CALIBRATE} --out calibrated")
    assert status == 2
    assert run(f"{CALIBRATE} --out calibrated --force")[0] == 0


def test_sets_are_recorded_written_and_measured(released, run):
    status, out, _ = run(f"{CALIBRATE} --record")
    assert status == 0
    assert "The threshold of the sets hides whether any one record" in out
    assert "rho = 0.5 (zCDP)" in out
    assert "No ledger counts this run" in out
    release = Release.load("release").verify()

    assert run("predict release test --sets --out labels.csv --label-separator /")[0] == 0
    assert run("predict release test --sets --probabilities --out labels.parquet")[0] == 0
    sets = pq.read_table("labels.parquet").column("set").to_pylist()
    with open("labels.csv", encoding="utf-8") as file:
        written = [row["set"] for row in csv.DictReader(file)]
    expected = ["all classes" if len(one) == 3 else "/".join(one) for one in sets]
    assert written == expected
    assert {labels[0] for labels in sets} <= set(release.classes)

    status, out, _ = run("evaluate release test --json")
    figures = json.loads(out)["sets"]
    truth = ["ant", "bee", "cow"] * 20
    assert figures["coverage"] == np.mean(
        [y in labels for y, labels in zip(truth, sets, strict=True)]
    )
    assert figures["mean_size"] == pytest.approx(np.mean([len(labels) for labels in sets]))
    assert "prediction sets hold the right class of" in run("evaluate release test")[1]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (CALIBRATE, "add --record"),
        (f"{CALIBRATE} --record --out new", "add --record"),
        (CALIBRATE.replace("--budget rho=0.5", "--record"), "add --budget"),
        (f"{CALIBRATE} --record --at-least 0.9", "--at-least measures a release"),
        (f"{CALIBRATE} --record --noise research --seed 0", "or add --allow-research"),
        (f"{CALIBRATE} --record --unit add-remove-person", "needs person ids"),
        (f"{CALIBRATE.replace('0.9', '1.5')} --record", "level=1.5 must be above 0"),
        (f"{CALIBRATE} --record --tables predicted", "--tables measures a release"),
        ("evaluate release test --allow-research", "is for prediction sets"),
        ("predict release test --sets --out labels.csv", "carries no prediction sets"),
    ],
)
def test_wrong_options_are_refused_in_one_line(released, run, line, message):
    status, _, error = run(line)
    assert status == 2
    assert message in error
    assert len(error.strip().splitlines()) == 1


def test_the_ledger_beside_the_records_is_charged(released, run):
    assert run("ledger calibration.npz --allow rho=0.6")[0] == 0
    status, out, _ = run(f"{CALIBRATE} --record --json")
    assert (status, json.loads(out)["charged"]) == (0, True)
    status, _, error = run(f"{CALIBRATE} --out new")
    assert status == 2
    assert "ledger" in error
    assert not (released / "new").exists()
