"""`tacit sweep` and `tacit results` as commands."""

import contextlib
import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments.conftest import SMALL
from tacit.report.sweep import is_images_of_plans


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


SECOND = """
name: second plan
about: Sums <alone>.
data:
  - {name: digits, encoder: pixels, builtin: digits}
learners:
  - {name: sums, method: noisy-sum}
budgets: [rho=0.1, inf]
"""


@pytest.fixture
def plans(plan):
    """A folder of two plans and a file that is none."""
    folder = plan.parent / "plans"
    folder.mkdir()
    first = plan.read_text(encoding="utf-8").replace("seeds: 2", "seeds: 1")
    (folder / "b.yaml").write_text(SECOND, encoding="utf-8")
    (folder / "a.yaml").write_text(first, encoding="utf-8")
    (folder / "schema.json").write_text("{}", encoding="utf-8")
    return folder


def test_a_folder_of_plans(plans, run):
    status, out, _ = run("sweep plans --out runs --dry-run")
    assert (status, out.splitlines()[0]) == (0, "plans/a.yaml: 6 of 6 cells to compute")
    assert out.endswith("8 of 8 cells of 2 plans to compute\n")
    assert not Path("runs").exists()
    assert "8 cells, 0 failed" in run("sweep plans --out runs")[1]
    assert sorted(path.name for path in Path("runs").iterdir()) == ["a", "b"]
    _, out, _ = run("sweep plans --out runs --dry-run")
    assert out.endswith("0 of 8 cells of 2 plans to compute\n")

    # the cells of b are cells of a too, and listed for both
    _, out, _ = run("results runs")
    lines = out.splitlines()
    assert lines[0].startswith("plan  learner  data")
    assert (out.count("\nsmall  "), out.count("\nsecond plan  "), lines[-1]) == (6, 2, "8 cells")
    assert "plan  learner" not in run("results runs/a")[1]

    assert run("report runs --out page.html")[0] == 0
    html = Path("page.html").read_text(encoding="utf-8")
    assert re.findall('<h2 id="(.*?)">(.*?)</h2>', html) == [
        ("a-plan", "small"),
        ("b-plan", "second plan"),
    ]
    assert '<a href="#b-plan">second plan</a>' in html
    assert "<p>Sums &lt;alone&gt;.</p>" in html
    names = re.findall(r'\bid="(.*?)"', html)
    assert len(names) == len(set(names))
    assert set(re.findall(r'href="#([\w.-]+)"', html)) <= set(names)
    charts = re.search('id="charts">(.*?)</script>', html).group(1)
    assert set(json.loads(charts)) == set(re.findall('<figure id="(.*?)"', html))

    assert run("report runs --out figures --format svg")[0] == 0
    assert is_images_of_plans(Path("figures"))
    assert {path.parent.name for path in Path("figures").glob("*/*.svg")} == {"a", "b"}
    assert run("report runs --out page.html --force --where seed=7")[0] == 2


def test_a_plan_without_finished_cells_has_a_section(plans, run):
    (plans / "b.yaml").write_text(
        SECOND.replace("method: noisy-sum", "method: noisy-sum, keep: [radius_]"), encoding="utf-8"
    )
    assert run("sweep plans --out runs")[0] == 1
    assert run("report runs --out page.html")[0] == 0
    html = Path("page.html").read_text(encoding="utf-8")
    section = html[html.index('id="b-plan"') :]
    assert "No cell was done." in section
    assert section.count("keep names &#x27;radius_&#x27;") == 2


def test_a_faulty_plan_of_a_folder_is_named_before_anything_runs(plans, run):
    (plans / "c.yaml").write_text(SECOND.replace("noisy-sum", "noisy"), encoding="utf-8")
    for options in ("", "--dry-run"):
        status, out, err = run(f"sweep plans --out runs {options}")
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert "plan plans/c.yaml, line 7: method 'noisy'" in err
    assert not Path("runs").exists()
    Path("empty").mkdir()
    assert "folder empty has no plans" in run("sweep empty --out runs")[2]
