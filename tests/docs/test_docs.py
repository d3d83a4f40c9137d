"""What the README and the pages show is run as shown, each page alone, and so is every example in a
docstring.
"""

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
from docs import public_files
from tacit.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
# a block, after a comment that says why it is not run, or that it runs in a clone
BLOCK = re.compile(
    r"(?:^ *<!-- (not run: .*?|in a clone) -->\n\n?)?^ *```(bash|python)\n(.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)
OTHER = re.compile(r"^ *```(sh|shell|console|py|python3)$", re.MULTILINE)
FILES = re.compile(r"^<!-- files: (.*) -->$", re.MULTILINE)
PAGES = [
    path
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if BLOCK.search(path.read_text())
]
NOT_RUN = [
    pytest.param(mark.removeprefix("not run: "), id=f"{page.name}-{number}")
    for page in PAGES
    for number, (mark, _, _) in enumerate(BLOCK.findall(page.read_text()))
    if mark.startswith("not run")
]
SESSION = re.compile(r"^```pycon\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MODULES = sorted(module.name for module in pkgutil.walk_packages(tacit.__path__, "tacit."))


def run_bash(block):
    """Each line, with its status: 2 where it ends in the comment `# refused`, 1 where it ends in
    `# answers no`, else 0.
    """
    for line in block.replace("\\\n", " ").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        expected = 0
        if line.rstrip().endswith("# refused"):
            expected = 2
        if line.rstrip().endswith("# answers no"):
            expected = 1
        words = shlex.split(line, comments=True)
        if (
            Path(words[0]).name == "tacit"
            and not {"|", ">", "&&", ";"} & set(words)
            and "$" not in line
        ):
            status = main(words[1:])
        else:
            status = in_shell(line)
        assert status == expected, line


def in_shell(line):
    """Anything else, with `tacit` and `python` those of the tests."""
    here = f'tacit() {{ {shlex.quote(sys.executable)} -m tacit.cli.main "$@"; }}\n'
    here += f'python() {{ {shlex.quote(sys.executable)} "$@"; }}\n'
    return subprocess.run(["bash", "-c", here + line], check=False, timeout=600).returncode


@pytest.mark.filterwarnings("default::tacit.errors.PrivacyLeakWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_of_a_page_runs_as_shown(page, tmp_path, monkeypatch, capsys):
    """Alone, in an empty folder with an empty home; with the public files that the page names."""
    text, folder = page.read_text(encoding="utf-8"), tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(folder)
    for name in " ".join(FILES.findall(text)).split():
        public_files.write(name, folder)
    namespace = {"__name__": "__main__"}
    for mark, language, block in BLOCK.findall(text):
        if mark.startswith("not run"):
            continue
        if mark == "in a clone" and not Path("examples").exists():
            os.symlink(ROOT / "examples", "examples")
        if language == "bash":
            run_bash(block)
        else:
            exec(compile(block, str(page), "exec"), namespace)


@pytest.mark.parametrize("reason", NOT_RUN)
def test_a_block_that_is_not_run_says_why(reason):
    assert len(reason.split()) > 0
    pytest.skip(reason)


def test_every_block_of_code_is_one_that_is_run():
    """A block in another language, such as `sh`, would be left out silently."""
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        assert not OTHER.search(page.read_text(encoding="utf-8")), (
            f"{page.name}: write bash or python, and a comment why it is not run"
        )


def test_every_page_is_in_the_table_of_contents():
    trees = re.compile(r"^```{toctree}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    pages = {page.stem: page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md")}
    listed = [
        line for text in pages.values() for tree in trees.findall(text) for line in tree.split("\n")
    ]
    for page in pages.keys() - {"index"}:
        assert listed.count(page) == 1, f"list docs/{page}.md in the toctree of one page"


def test_the_readme_says_in_words_what_the_guarantee_says():
    """The landing page includes the same lines."""
    promise = tacit.NoisySumPrototypes("rho=0.5", classes=2, unit="add-remove-person").promise()
    readme, words = (ROOT / "README.md").read_text(encoding="utf-8"), f"\n> {promise.in_words()}\n"
    assert words in readme[readme.index("<!-- words -->") : readme.index("<!-- end of words -->")]
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    assert (
        "```{include} ../README.md\n:start-after: <!-- words -->\n:end-before: <!-- end of words"
        " -->\n```" in index
    )


EXTRAS = [
    "PIL",
    "altair",
    "duckdb",
    "h5py",
    "huggingface_hub",
    "mlflow",
    "model_signing",
    "onnx",
    "onnxruntime",
    "opacus",
    "open_clip",
    "optuna",
    "pandas",
    "ray",
    "sentence_transformers",
    "submitit",
    "timm",
    "torch",
    "torchvision",
    "transformers",
    "vl_convert",
]


IMPORT_WITHOUT_EXTRAS = """
import pkgutil, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in EXTRAS:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
for name in NAMES:
    pkgutil.resolve_name(name)
"""


def test_the_reference_builds_without_the_other_extras():
    """`make docs` installs the extra docs alone, and autodoc imports what api.md lists."""
    names = re.findall(
        r"^   (tacit\.[\w.]+)$", (ROOT / "docs/api.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    program = f"EXTRAS = {EXTRAS}\nNAMES = {names}\n{IMPORT_WITHOUT_EXTRAS}"
    outcome = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert outcome.returncode == 0, outcome.stderr
    assert "EXTRA := .[docs]\n" in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 90


def test_every_example_is_in_the_gallery():
    gallery = (ROOT / "docs/gallery.md").read_text(encoding="utf-8")
    for script in (ROOT / "examples").glob("*.py"):
        assert f"{{literalinclude}} ../examples/{script.name}\n" in gallery, (
            f"show {script.name} in docs/gallery.md"
        )


def test_pages_have_the_tables_that_make_lint_compares():
    for table, page in {
        "methods": "choosing",
        "inputs": "choosing",
        "commands": "commands",
        "encoders": "encoders",
    }.items():
        assert f"<!-- table: {table} -->" in (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")


def test_tests_listed_as_slow_exist():
    for line in (ROOT / "tests/slow.txt").read_text(encoding="utf-8").split():
        file, name = line.split("::")
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), line


def test_tests_named_in_the_docs_exist():
    """`tests/.../test_x.py::test_y` in a page names a test that is there."""
    for page in (ROOT / "docs").glob("*.md"):
        for file, name in re.findall(
            r"`(tests/[\w/]+\.py)::(\w+)`", page.read_text(encoding="utf-8")
        ):
            assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), (
                f"{page.name}: {file}::{name}"
            )


def failures(text):
    """How many examples in the `pycon` blocks of a page, run one after the other, print something
    else.
    """
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
    assert text.count(">>> ") == sum(block.count(">>> ") for block in SESSION.findall(text)), (
        "mark the block as pycon"
    )


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
