"""What a person sees in a terminal: help of commands and methods, the nearest word, results 80
columns wide.
"""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest

from messages import lacking
from tacit.cli import common
from tacit.cli.method_help import own_parameters
from tacit.cli.verbs import VERBS
from tacit.compute import progress_display
from tacit.compute.progress import progress
from tacit.learners.methods import METHODS, load

FIT = "fit noisy-sum private --budget rho=0.5 --out release"


@pytest.fixture
def narrow(monkeypatch):
    """A terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")  # for help
    monkeypatch.setattr(common, "terminal_columns", lambda: 80)


def too_wide(text):
    """Lines of more than 80 columns that could have been cut at a space, blocks of code left
    out.
    """
    prose = re.sub(r"(?m)^```.*?^```", "", text, flags=re.DOTALL)
    return [line for line in prose.splitlines() if len(line) > 80 and len(line.split()) > 1]


@pytest.mark.parametrize(
    "line", ["", *VERBS, *(f"fit {method}" for method in METHODS), "promise auto"]
)
def test_help_fits_80_columns(run, narrow, line):
    status, out, err = run(f"{line} --help")
    assert (status, err) == (0, "")
    assert f"Usage: tacit {line}".rstrip() in out
    assert "[default: ]" not in out
    assert too_wide(out) == []


def test_results_fit_80_columns(stores, run, narrow):
    for line in (
        "promise noisy-sum --budget rho=0.5",
        "ledger private --allow rho=1",
        FIT,
        "evaluate release test --record --class-sizes private",
        "inspect release",
        "predict release test --out labels.csv",
        "ledger private",
        "page release --out page.html",
        "split private --n-public 30 --out parts",
        "subset private --imbalance 3 --out part",
        "overlap private public",
        "publish release --to hub",
    ):
        status, out, err = run(line)
        assert (status, err) == (0, ""), line
        assert out
        assert too_wide(out) == [], line


def test_a_terminal_has_its_own_width(monkeypatch):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    command = [sys.executable, "-m", "tacit", "promise", "noisy-sum", "--budget", "rho=0.5"]
    subprocess.run(command, stdout=theirs, env=environment, check=True)
    lines = os.read(ours, 100_000).decode().splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) > 20


def test_results_in_a_pipe_are_not_cut(stores, run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert too_wide(run("promise noisy-sum --budget rho=0.5")[1]) != []


def test_a_cut_line_goes_on_further_right_and_code_stays(narrow, capsys):
    words = "word " * 20
    common.say(f"  - {words}\n```\n{words}\n```\n\n{'x' * 90}")
    first, second, *rest = capsys.readouterr().out.split("\n")
    assert first == "  - " + " ".join(["word"] * 15)
    assert second == "    " + " ".join(["word"] * 5)
    assert rest == ["```", words, "```", "", "x" * 90, ""]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("verb", ["fit", "promise"])
def test_help_of_a_method_lists_its_parameters_with_defaults(run, monkeypatch, verb, method):
    monkeypatch.setenv("COLUMNS", "10000")
    status, out, _ = run(f"{verb} {method} --help")
    assert status == 0
    assert "--budget" in out
    assert "--[KEYWORD]" not in out
    kind = load(METHODS[method])
    for name, text, default in own_parameters(kind):
        option = f"│ --{name.replace('_', '-')} "
        line = next(
            line
            for line in out.replace("*", " ").splitlines()
            if option in line.replace("│    ", "│ ")
        )
        if name not in ("seed", "delta"):  # options of the command too
            assert text in line
            assert default is None or f"[default: {default}]" in line
    assert "[default: None]" not in out
    flags = [line for line in out.splitlines() if "--force" in line or "--allow-research" in line]
    assert [line for line in flags if "[default" in line] == []
    if "public" in kind.flat_parameters():
        line = next(line for line in out.splitlines() if "--public PATH  " in line)
        assert ("[required]" in line) == (verb == "fit" and kind.needs_public)
    for option in ("public", "names"):
        assert (f"--{option} " in out) == (option in kind.flat_parameters())


def test_a_description_is_the_first_sentence_and_references_are_followed():
    told = {name: text for name, text, _ in own_parameters(load(METHODS["pate"]))}
    assert not lacking(told["sigma1"], "float", "noise of the check")
    assert not lacking(told["shape"], "tuple of int", "(1, 28, 28)")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ft", ("'ft'", "'fit'")),
        ("xyz", ("'xyz'", "demo", "encode")),
        ("--versoin", ("'--versoin'", "'--version'")),
        ("fit nosy-sum private --out r", ("'nosy-sum'", "'noisy-sum'")),
        ("fit nosy-sum --help", ("'nosy-sum'", "'noisy-sum'")),
        ("promise DPPL-Maen --budget rho=1", ("'DPPL-Maen'", "'dppl-mean'")),
        (
            "fit noisy-sum private --buget rho=1 --out r",
            ("--buget", "noisy-sum", "--budget"),
        ),
        ("promise coinpress --stpes 1 --budget rho=1", ("--stpes", "coinpress", "--steps")),
        ("fit noisy-sum private --out r --intended-usr x", ("did you mean --intended-use?",)),
        ("evaluate r test --recrod", ("--recrod", "--record")),
        ("predict r test --ot labels.csv", ("--out", "--ot")),
        ("predict r test --out", ("--out", "tacit predict --help")),
        ("fit pate private --out r --collector", ("--collector", "tacit fit --help")),
        ("fit", ("METHOD", "tacit fit --help")),
        ("fit auto --out r", ("STORE", "tacit fit --help")),
        ("fit auto --out=r --name x --budget rho=1", ("STORE", "tacit fit --help")),
        ("fit atuo", ("'atuo'", "'auto'")),
        ("fit auto --budgt rho=1", ("--budgt", "auto", "--budget")),
        ("fit auto private --budgt=1", ("--budgt", "auto", "--budget")),
        ("fit auto private --out r", ("auto", "--public STORE")),
        ("fit noisy-sum private --budget inf --out r", ("rho=inf", "protection")),
    ],
)
def test_the_nearest_word_is_named(stores, run, line, said):
    status, out, err = run(line)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert not lacking(err, *said)


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_shows_only_after_two_seconds(monkeypatch, capsys, terminal):
    now = [0.0]
    monkeypatch.setattr(progress_display, "monotonic", lambda: now[0])
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    monkeypatch.setenv("TTY_COMPATIBLE", "1")

    def work(seconds):
        for _ in progress(range(4), "rows", 4):
            now[0] += seconds / 4

    with progress_display.shown_progress():
        work(1.9)
    assert capsys.readouterr().err == ""
    with progress_display.shown_progress():
        work(4.0)
    assert "rows" in capsys.readouterr().err


def test_tests_see_no_progress_lines_unless_they_drive_the_clock(capsys):
    """The clock stands still in tests (tests/conftest.py): a busy machine adds nothing to
    stderr.
    """
    with progress_display.shown_progress():
        for _ in progress(range(3), "rows", 3):
            assert progress_display.monotonic() == 0.0
    assert capsys.readouterr().err == ""
