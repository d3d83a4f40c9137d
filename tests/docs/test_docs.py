"""What the README and the quickstart show is run as shown, and so is every example in a docstring."""

import doctest
import importlib
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import tacit
from tacit.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if BLOCK.search(path.read_text())]
FROM_NOTHING = ("README.md", "quickstart.md")  # the other pages take the stores of the quickstart for granted
# what sets up a working copy, which the tests already have
SKIPPED = ("make", "git ", "pip ", "python -m venv", "python3 -m venv", "source ", ". ", "cd ", "#")
SESSION = re.compile(r"^```pycon\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MODULES = sorted(module.name for module in pkgutil.walk_packages(tacit.__path__, "tacit."))


def run_bash(block):
    """Each line, with its status: 2 where it ends in the comment `# refused`, else 0."""
    for line in block.replace("\\\n", " ").splitlines():
        if not line.strip() or line.startswith(SKIPPED):
            continue
        refused = line.rstrip().endswith("# refused")
        words = shlex.split(line, comments=True)
        if Path(words[0]).name == "tacit" and not {"|", ">", "&&", ";"} & set(words):
            status = main(words[1:])
        else:
            status = in_shell(line)
        assert status == (2 if refused else 0), line


def in_shell(line):
    """Anything else, with `tacit` and `python` those of the tests."""
    here = f'tacit() {{ {shlex.quote(sys.executable)} -m tacit.cli.main "$@"; }}\n'
    here += f'python() {{ {shlex.quote(sys.executable)} "$@"; }}\n'
    return subprocess.run(["bash", "-c", here + line], check=False, timeout=120).returncode


@pytest.mark.filterwarnings("default::tacit.errors.PrivacyLeakWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_of_a_page_runs_as_shown(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    os.symlink(ROOT / "examples", tmp_path / "examples")
    if page.name not in FROM_NOTHING:
        assert main(["demo", "--out", "quickstart", "--seeds", "1"]) == 0
    namespace = {"__name__": "__main__"}
    for language, block in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "bash":
            run_bash(block)
        else:
            exec(compile(block, str(page), "exec"), namespace)


def test_every_page_is_in_the_table_of_contents():
    listed = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        assert page.stem == "index" or re.search(rf"^{page.stem}$", listed, re.MULTILINE), page


def test_generated_tables_are_up_to_date():
    check = subprocess.run([sys.executable, ROOT / "tools/tables.py", "--check"], check=False, timeout=120)
    assert check.returncode == 0, "run python tools/tables.py"
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "<!-- table: methods -->" in text
    assert "<!-- table: commands -->" in text


def test_tests_listed_as_slow_exist():
    for line in (ROOT / "tests/slow.txt").read_text(encoding="utf-8").split():
        file, name = line.split("::")
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), line


def test_tests_named_in_the_docs_exist():
    """`tests/.../test_x.py::test_y` in a page names a test that is there."""
    for page in (ROOT / "docs").glob("*.md"):
        for file, name in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page.read_text(encoding="utf-8")):
            assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), f"{page.name}: {file}::{name}"


def failures(text):
    """How many examples in the `pycon` blocks of a page, run one after the other, print something else."""
    runner, names = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE), {}
    for block in SESSION.findall(text):
        examples = doctest.DocTestParser().get_doctest(block, names, "page", None, 0)
        runner.run(examples, clear_globs=False)
        names = examples.globs
    return runner.summarize().failed


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_examples_in_pages(page):
    text = page.read_text(encoding="utf-8")
    assert failures(text) == 0
    assert text.count(">>> ") == sum(block.count(">>> ") for block in SESSION.findall(text)), "mark the block as pycon"


def test_an_example_that_rots_is_noticed():
    assert failures("```pycon\n>>> x = 2\n```\nand\n```pycon\n>>> x + 1\n3\n```\n") == 0
    assert failures("```pycon\n>>> 1 + 1\n3\n```\n") == 1


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    module = importlib.import_module(name)
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_public_learners_have_an_example():
    from tacit.learners.methods import METHODS

    for path in METHODS.values():
        module, _, name = path.partition(":")
        assert ">>> " in getattr(importlib.import_module(module), name).__doc__
