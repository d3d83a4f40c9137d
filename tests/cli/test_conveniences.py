"""Short options, JSON, standard output, defaults from outside the command, and loudness."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tacit
from messages import lacking
from tacit.cli.verbs import PRINTS_FACTS, VERBS
from tacit.compute import progress_display
from tacit.compute.progress import progress


@pytest.fixture
def workdir(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


FIT = "fit noisy-sum private --budget rho=0.5"


@pytest.mark.parametrize("columns", ["0", "1", "2", "200"])
def test_help_ends_whatever_the_width_of_the_terminal(columns):
    ran = subprocess.run(
        [sys.executable, "-m", "tacit", "ledger", "--help"],
        env={**os.environ, "COLUMNS": columns},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "--allow" in ran.stdout


def test_help_is_a_command_too(run):
    assert run("help ledger") == run("ledger --help")
    assert run("help fit noisy-sum") == run("fit noisy-sum --help")
    assert run("help") == run("--help")
    assert run("-V") == run("--version")


def test_methods_are_listed(run):
    status, out, _ = run("methods --json")
    assert status == 0
    listed = {facts["method"]: facts for facts in json.loads(out)["methods"]}
    assert listed["auto"]["needs_public"]
    assert not listed["noisy-sum"]["needs_public"]
    assert listed["coinpress"]["class"] == "tacit.CoinPressPrototypes"
    assert "dppl-mean" in listed["coinpress"]["published_names"]
    assert all(name in run("methods")[1] for name in listed)


def test_facts_are_printed_as_one_json_object(stores, run):
    assert run("ledger private --allow rho=1")[0] == 0
    printed = {}
    for line in (
        "promise noisy-sum --budget rho=0.5",
        f"{FIT} -o release",
        "inspect release",
        "evaluate release test",
        "ledger private",
        "overlap private public",
    ):
        status, out, err = run(f"{line} --json")
        assert (status, err, out.count("\n")) == (0, "", 1), line
        printed[line.split()[0]] = json.loads(out)
    promised = tacit.NoisySumPrototypes("rho=0.5", classes=3).promise()
    for verb in ("promise", "fit", "inspect"):
        assert printed[verb]["epsilon"] == promised.epsilon(1e-6)
        assert printed[verb]["pure_epsilon"] is None  # there is none, and JSON has no infinity
    assert printed["inspect"]["verified"] is True
    assert printed["ledger"]["charges"][0]["rho"] == promised.rho
    assert float(printed["ledger"]["left"]) == pytest.approx(0.5)
    assert printed["overlap"]["private_records"] == 90
    assert 0 <= printed["evaluate"]["accuracy"] <= 1


def test_every_verb_that_prints_facts_can_print_json(run):
    for verb in PRINTS_FACTS:
        assert "--json" in run(f"{verb} --help")[1], verb
    for verb in VERBS:
        help_text = run(f"{verb} --help")[1]
        if "--out " in help_text:
            assert "-o" in help_text.split(), verb


def test_predictions_go_to_standard_output(stores, run):
    assert run(f"{FIT} --out release")[0] == 0
    assert run("predict release test --out labels.csv")[0] == 0
    status, out, err = run("predict release test -o -")
    assert status == 0
    assert out == Path("labels.csv").read_text(encoding="utf-8")
    assert "rows" in err  # what was written is told apart from the table
    assert len(list(csv.reader(io.StringIO(out)))) > 1


@pytest.mark.parametrize("loud", ["-q", "--quiet"])
def test_quiet_prints_only_what_was_asked_for(stores, run, loud):
    assert run(f"{FIT} --out release {loud}") == (0, "", "")
    assert run(f"predict release test -o labels.csv {loud}") == (0, "", "")
    assert run(f"evaluate release test {loud}") == run("evaluate release test")


def test_verbose_says_where_options_came_from_and_how_long_it_took(stores, run, monkeypatch):
    monkeypatch.setenv("TACIT_JSON", "true")
    status, out, err = run("promise noisy-sum --budget rho=0.5 -v")
    assert status == 0
    assert json.loads(out)["rho"] == pytest.approx(0.5)
    assert not lacking(err, "--json true", "TACIT_JSON")
    assert err.splitlines()[-1].endswith(" s")


def test_a_file_in_the_working_folder_sets_defaults_and_the_command_overrides(run, workdir):
    (workdir / "tacit.toml").write_text("json = true\n\n[sweep]\njobs = 0\n", encoding="utf-8")
    (workdir / "plan.yaml").write_text("name: x\n", encoding="utf-8")
    assert json.loads(run("promise noisy-sum --budget rho=0.5")[1])["rho"] == pytest.approx(0.5)
    assert "jobs=0" in run("sweep plan.yaml --out runs --dry-run")[2].replace(" ", "=")


@pytest.mark.parametrize("name", ["budget", "unit", "noise", "ledger", "seed", "declare-public"])
def test_what_changes_a_release_is_taken_from_the_command_alone(run, monkeypatch, workdir, name):
    line = "promise noisy-sum --budget rho=0.5"
    variable = f"TACIT_{name.upper().replace('-', '_')}"
    monkeypatch.setenv(variable, "x")
    status, out, err = run(line)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert variable in err
    monkeypatch.delenv(variable)
    (workdir / "tacit.toml").write_text(f'{name} = "x"\n', encoding="utf-8")
    status, out, err = run(line)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert not lacking(err, "tacit.toml", name)


def test_long_work_prints_few_lines(monkeypatch, capsys):
    now = 0.0
    monkeypatch.setattr(progress_display, "monotonic", lambda: now)
    report = progress_display.line_reporter()
    for second in range(3600):
        now = float(second)
        report("steps", second, 3600)
    assert 5 < len(capsys.readouterr().err.splitlines()) < 25


def test_python_shows_progress_when_asked(monkeypatch, capsys):
    monkeypatch.setattr(progress_display, "is_installed", lambda library: False)
    now = [0.0]
    monkeypatch.setattr(progress_display, "monotonic", lambda: now[0])

    def work():
        for _ in progress(range(4), "rows", 4):
            now[0] += 3.0

    work()
    assert capsys.readouterr().err == ""
    tacit.progress(True)
    try:
        work()
    finally:
        tacit.progress(False)
    assert "rows" in capsys.readouterr().err
    work()
    assert capsys.readouterr().err == ""


def test_a_bar_counts_what_is_done_and_closes(monkeypatch, capsys):
    monkeypatch.setattr(progress_display, "QUICK_SECONDS", 0.0)
    tacit.progress(True)
    try:
        assert list(progress(range(4), "rows", 4)) == [0, 1, 2, 3]
    finally:
        tacit.progress(False)
    assert "rows: 100%" in capsys.readouterr().err
