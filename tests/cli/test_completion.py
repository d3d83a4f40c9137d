"""Completion in shells: what the script that is installed completes, and where it goes."""

import subprocess

import pytest

from messages import lacking
from tacit.cli.app import app
from tacit.compute.engines import ENGINES
from tacit.data.manifest import DTYPES
from tacit.learners.label_dp.randomize import OF_BLOCKS, OF_CLASSES, OF_NUMBERS, UNITS
from tacit.learners.label_dp.regression import LOSSES
from tacit.learners.methods import METHODS
from tacit.learners.pate.aggregators import AGGREGATORS
from tacit.learners.pate.collectors import COLLECTORS
from tacit.learners.pate.pate import PATE
from tacit.privacy.unit import Unit
from tacit.report.vega import FORMATS


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_is_written_where_it_is_asked_for(stores, run, shell):
    status, out, err = run(f"--install-completion --shell {shell} --output script")
    assert (status, err) == (0, "")
    assert f"script: completion for {shell}; source " in out
    script = (stores / "script").read_text()
    assert "privatize-labels" in script
    assert "class-sizes" in script


def test_bash_completes_commands_methods_options_and_their_values(stores, run):
    assert run("--install-completion --shell bash --output script")[0] == 0
    call = '$(complete -p tacit | sed "s/.*-F //;s/ .*//"); echo "${COMPREPLY[@]}"'
    for line, wanted in {
        "pri": ["privatize-labels"],
        "evaluate --class": ["--class-sizes"],
        "evaluate release te": ["test"],
        "fit ": [*METHODS],
        "fit noisy-sum pri": ["private"],
        "fit pate --coll": ["--collector"],
        "fit noisy-sum --coll": [],
        "promise pate --collector ": [*COLLECTORS],
        "fit pate --unit ": [*PATE.units],
        "fit auto private --noise ": ["secure", "opendp", "research"],
        "fit public private --selection per": ["permute-and-flip"],
        "sweep plan.yaml --engine ": [*ENGINES],
        "fit public private --engine ": [*ENGINES],
    }.items():
        words = ["tacit", *line.split(" ")]
        typed = f'source ./script; COMP_WORDS=("$@"); COMP_CWORD={len(words) - 1}; {call}'
        done = subprocess.run(
            ["bash", "-c", typed, "bash", *words], capture_output=True, text=True, check=False
        )
        assert set(done.stdout.split()) == set(wanted), line


@pytest.mark.parametrize(
    ("verb", "option", "values"),
    [
        ("fit", "unit", Unit),
        ("votes", "aggregator", AGGREGATORS),
        ("votes", "collector", COLLECTORS),
        ("votes", "unit", ("replace", "replace-person")),
        ("privatize-labels", "randomizer", (*OF_CLASSES, *OF_BLOCKS, *OF_NUMBERS)),
        ("privatize-labels", "loss", LOSSES),
        ("privatize-labels", "unit", UNITS),
        ("sweep", "engine", ENGINES),
        ("import", "dtype", DTYPES),
        ("report", "format", ("html", *FORMATS)),
    ],
)
def test_listed_values_are_those_of_the_library(verb, option, values):
    argument = app[verb].assemble_argument_collection()[f"--{option}"]
    assert set(argument.get_choices()) == set(values)


def test_completion_is_installed_for_the_shell_in_use(stores, run, monkeypatch):
    monkeypatch.setenv("HOME", str(stores))
    monkeypatch.setenv("SHELL", "/bin/bash")
    status, out, err = run("--install-completion")
    assert (status, err) == (0, ""), err
    assert "completion for bash" in out
    assert "tacit" in (stores / ".bashrc").read_text()


def test_a_shell_that_is_not_known_is_one_line(stores, run, monkeypatch):
    from cyclopts.completion import detect

    def unknown():
        raise detect.ShellDetectionError

    monkeypatch.setattr(detect, "detect_shell", unknown)
    status, out, err = run("--install-completion")
    assert (status, out) == (2, "")
    assert not lacking(err, "--shell bash", "zsh", "fish")
