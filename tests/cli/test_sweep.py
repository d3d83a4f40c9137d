"""`tacit sweep` and `tacit results` as commands."""

import contextlib
import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments.conftest import SMALL


@pytest.fixture
def plan(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.yaml").write_text(
        SMALL.replace("imbalance: [1, 10]", "imbalance: [1]"), encoding="utf-8"
    )
    return tmp_path / "plan.yaml"


def test_a_sweep_and_its_results(plan, run):
    status, out, _ = run("sweep plan.yaml --out runs --dry-run")
    assert status == 0
    assert out.endswith("12 of 12 cells to compute\n")
    assert out.count("seed") == 12
    status, out, _ = run("sweep plan.yaml --out runs")
    assert (status, "12 cells, 0 failed" in out) == (0, True)
    status, out, _ = run("sweep plan.yaml --out runs --dry-run")
    assert out == "0 of 12 cells to compute\n"
    status, out, _ = run("results runs --where seed=0")
    assert (status, "6 cells" in out) == (0, True)
    assert run("results runs --csv all.csv")[0] == 0
    with (plan.parent / "all.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12
    assert len(json.loads(rows[0]["recall"])) == 10
    status, one, _ = run("results runs --hash")
    assert run("sweep plan.yaml --out again --jobs 2")[0] == 0
    assert run("results again --hash")[1] == one
    assert run("results again --hash --where seed=0")[1] != one


def test_a_dry_run_writes_nothing(plan, run):
    assert run("sweep plan.yaml --out runs --dry-run")[0] == 0
    assert not (plan.parent / "runs").exists()


def test_failed_cells_are_shown(plan, run):
    plan.write_text(
        plan.read_text().replace("method: noisy-sum", "method: noisy-sum\n    keep: [radius_]"),
        encoding="utf-8",
    )
    for _ in range(2):
        status, out, err = run("sweep plan.yaml --out runs")
        assert status == 1
        assert "12 cells, 4 failed" in out
        assert "keep names 'radius_'" in out
        said = err.splitlines()[-1]
        assert said.startswith(
            "tacit: 4 of 12 cells failed; tacit results runs --columns learner,data,error --where"
        )
    status, out, _ = run("results runs --columns learner,data,error --where status='failed'")
    assert (status, out.splitlines()[-1], "keep names 'radius_'" in out) == (0, "4 cells", True)


def test_a_terminals_interrupt_of_a_sweep_is_one_line(plan):
    text = plan.read_text(encoding="utf-8")
    # so that it never ends before
    plan.write_text(text.replace("seeds: 2", "seeds: 500"), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "tacit.cli.main",
        "sweep",
        "plan.yaml",
        "--out",
        "runs",
        "--jobs",
        "2",
    ]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    while process.poll() is None and not any(Path("runs").glob("cells/*")):
        time.sleep(0.02)
    for _ in range(2):  # to the whole group, as a terminal does
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.3)
    error = process.communicate(timeout=600)[1]
    assert process.returncode == 130, error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("sweep none.yaml --out runs", "none.yaml cannot be read"),
        ("sweep plan.yaml --out runs --engine spark", 'Choose from: "joblib", "ray", "slurm"'),
        ("sweep plan.yaml --out runs --jobs 0", "jobs=0"),
        ("sweep plan.yaml --out plan.yaml", "plan.yaml cannot be written"),
        ("sweep plan.yaml --out runs --partition gpu", "partition='gpu' does not apply"),
        ("results runs", "runs holds no results"),
    ],
)
def test_bad_input_is_one_line_and_status_2(plan, run, line, says):
    status, _, err = run(line)
    assert (status, err.count("\n")) == (2, 1)
    assert says in err
    assert not (plan.parent / "runs").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--where colour=1", "--where 'colour=1' cannot be answered"),
        ("--where )", "cannot be answered"),
        ("--columns colour", "not a field"),
        ("--csv nowhere/file.csv", "nowhere is not a folder"),
        ("--csv plan.yaml", "plan.yaml exists"),
    ],
)
def test_bad_questions(plan, run, options, says):
    run("sweep plan.yaml --out runs")
    status, _, err = run(f"results runs {options}")
    assert (status, err.count("\n")) == (2, 1)
    assert says in err


def test_results_go_to_mlflow(plan, run):
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed; it is an extra")
    address = f"sqlite:///{plan.parent / 'mlflow.db'}"
    pytest.importorskip("sqlalchemy", reason="MLflow's local store needs sqlalchemy")
    status, _, err = run(f"sweep plan.yaml --out runs --mlflow {address}")
    assert status == 0, err
    client = mlflow.MlflowClient(tracking_uri=address)
    runs = client.search_runs([client.get_experiment_by_name("plan").experiment_id])
    assert len(runs) == 12
    assert {one.data.params["learner"] for one in runs} == {"sums", "Top-K, k=1", "Top-K, k=3"}
