"""Every figure of the README and the pages is listed in figures.toml with what it is compared with,
and equals it. `docs/figures.py` has the kinds of comparison.
"""

import re

import pytest

from docs import figures
from docs.figures import (
    ROOT,
    STATED,
    Block,
    Figure,
    blocks,
    entry_of,
    listed,
    sha256,
    stated,
    uncovered,
)

PAGES = ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
INCLUDE = re.compile(r"^```\{include\} \.\./(benchmarks/[\w/-]+\.md)$", re.MULTILINE)


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def entries():
    return listed()


@pytest.mark.parametrize("page", PAGES)
def test_every_figure_of_a_page_is_what_it_is_compared_with(page, entries):
    text = text_of(page)
    for block in blocks(text):
        if block.generator is None:
            entry = entry_of(block, entries.get(page, []))
            wrong = uncovered(block, entry, text)
            assert not wrong, (
                f"{page}: {' '.join(wrong)} in the block {entry['block']!r} differ from what"
                " tests/docs/figures.toml compares them with"
            )


def test_every_entry_has_its_block_and_states_no_other_figure(entries):
    for page, of_page in entries.items():
        found = [block for block in blocks(text_of(page)) if block.generator is None]
        for entry in of_page:
            # tables of the same form share an entry
            named = [block for block in found if entry["block"] in block.words]
            assert named, f"{page} has no block {entry['block']!r}"
            for block in named:
                _, lacking = stated(block, entry)
                assert not lacking, f"{page}, {entry['block']!r}: {lacking} are not on the page"
            assert all(entry[kind]["because"] for kind in STATED if kind in entry)
            if "dated" in entry:
                assert re.fullmatch(r"\d{4}-\d\d-\d\d", entry["dated"]["date"])
                assert entry["dated"]["command"]


def test_stored_results_are_those_that_the_figures_were_compared_with(entries):
    for page, of_page in entries.items():
        for entry in of_page:
            for file, known in entry.get("files", {}).items():
                assert sha256(file) == known, (
                    f"{file} has changed: see whether {entry['block']!r} of {page} still says what"
                    f" it shows, then write {sha256(file)} into tests/docs/figures.toml"
                )


def test_tables_that_pages_include_are_those_that_their_commands_wrote():
    included = figures.included()
    assert included.keys() == {name for page in PAGES for name in INCLUDE.findall(text_of(page))}
    for file, result in included.items():
        script = re.search(r"[\w/]+\.py", result["command"]).group()
        assert (ROOT / script).exists(), script
        assert sha256(file) == result["sha256"], (
            f"{file} has changed: if its command wrote it, write {sha256(file)} and the date into"
            " tests/docs/figures.toml"
        )


def test_generators_and_tools_are_compared_in_make_lint(entries):
    lint = (ROOT / "Makefile").read_text(encoding="utf-8")
    tools = {entry["tool"] for of_page in entries.values() for entry in of_page if "tool" in entry}
    for tool in tools | set(figures.GENERATED.values()):
        assert f"$(BIN)/python {tool} --check" in lint


@pytest.mark.parametrize(
    ("page", "block", "was", "now"),
    [
        ("README.md", "What epsilon # means", "4.9", "4.8"),
        ("docs/privacy.md", "runs (mean)", "1.71", "1.72"),
        ("docs/faults.md", "A step of CoinPress", "3.2 off", "3.3 off"),
        ("docs/auto.md", "Both add a floor", "0.003", "0.004"),
        ("docs/label-privacy.md", "*AG News*", "13.7", "13.8"),
        ("docs/pate.md", "noise sigma/s", "62.9", "63.9"),
        ("docs/cifar100.md", "| method | budget", "0.371", "0.381"),
        ("docs/hand-out-labels.md", "Class names are public", ".82", ".81"),
    ],
)
def test_a_changed_figure_is_noticed(page, block, was, now, entries):
    (entry,) = (entry for entry in entries[page] if block in entry["block"])
    text = text_of(page)
    (found,) = (part for part in blocks(text) if entry["block"] in part.words)
    assert was in found.text
    assert not uncovered(found, entry, text)
    (changed,) = blocks(found.text.replace(was, now, 1))
    assert entry_of(changed, entries[page]) == entry
    assert uncovered(changed, entry, text) == [now.split()[0]]


def test_most_last_digits_that_change_are_noticed(entries):
    """Some are not: where a file of constants or a table has the changed number too. Four in five
    were noticed when this was written; a page with a dense table moves that by a few in a hundred.
    """
    noticed = []
    for page, of_page in entries.items():
        text = text_of(page)
        for block in blocks(text):
            if block.generator is None:
                entry = entry_of(block, of_page)
                if "tool" not in entry:
                    changed = [Figure(next_digit(figure.text)) for figure in block.figures]
                    wrong = uncovered(Block(block.text, tuple(changed)), entry, text)
                    noticed.extend(figure.text in wrong for figure in changed)
    assert sum(noticed) > 0.75 * len(noticed) > 400


def next_digit(text):
    return f"{text[:-1]}{(int(text[-1]) + 1) % 10}"


def test_a_block_without_entry_is_noticed(entries):
    (block,) = blocks("It takes 2.5 seconds.")
    with pytest.raises(AssertionError, match="0 entries"):
        entry_of(block, entries["README.md"])


def test_figures_are_numbers_that_look_measured():
    text = "At e = .5, `rho=0.5`: .91, 12 % of 10,003 rows (arXiv 2406.08039), 3 seeds, 1.5e-6."
    assert [figure.text for figure in figures.figures(text)] == [".91", "12", "10,003"]
    assert Figure(".91").rounds(0.9149)
    assert not Figure(".91").rounds(0.9161)
    assert Figure("12").rounds(0.118)
    assert Figure("10,003").rounds(10_003)
    assert figures.numbers("1_000 of 2,000: .5, 1e-6 and 3.") == [1000, 2000, 0.5, 1e-6, 3]
