"""Figures of the pages, and the list of what each of them is compared with (`figures.toml`).

A figure is a number that looks measured: a decimal, a percentage, or a number with commas. Figures
stand in blocks, which are paragraphs, lists and tables. A block is named by its first words, with
`#` for every number, so that the name survives new figures and new line breaks.
"""

import ast
import csv
import hashlib
import math
import pkgutil
import re
import statistics
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_suffix(".toml")

FIGURE = re.compile(
    r"(?<![\w.,])(?:\d{1,3}(?:,\d{3})+(?!\w|,?\d)|\d*\.\d+(?!\w|\.\d)|\d+(?=\s?%|\spercent\b))"
)
FENCED = re.compile(r"^ *```.*?^ *```[ \t]*$", re.DOTALL | re.MULTILINE)
# numbers that nobody measured: names of papers, licences, versions, and stated budgets
NOT_FIGURES = re.compile(
    r"`[^`]*`|<!--.*?-->|\]\([^)]*\)|arXiv \d+\.\d+|Python \d\.\d+(?: to \d\.\d+)?|BY 4\.0"
    r"|Apache-2\.0|\b(?:e|rho|imbalance) ?= ?[\d.]*\d",
    re.DOTALL,
)
# what stands between such a mark and the next comment is compared by `make lint`
GENERATED = {
    "<!-- table: ": "tools/tables.py",
    "<!-- claims: written by ": "benchmarks/papers/page.py",
}
EXECUTED = re.compile(
    r"(?:^ *<!-- (not run: .*?|in a clone) -->\n\n?)?^ *```(bash|python|pycon)\n(.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)

# the kinds that state where a figure is from, and compare it with nothing
STATED = ("given", "paper", "dated")


@dataclass(frozen=True)
class Figure:
    """A number as a page prints it."""

    text: str

    @property
    def decimals(self) -> int:
        return len(self.text.partition(".")[2])

    def rounds(self, value: float) -> bool:
        """Tell whether the figure is the value, or the value in percent, to its last digit."""
        number = float(self.text.replace(",", ""))
        half = 0.5 * 10.0**-self.decimals
        return any(abs(abs(scaled) - number) <= half * 1.001 for scaled in (value, 100 * value))


@dataclass(frozen=True)
class Block:
    """A paragraph, list or table of a page."""

    text: str
    figures: tuple[Figure, ...]
    generator: str | None = None

    @property
    def words(self) -> str:
        return words(self.text)


def words(text: str) -> str:
    """Return a text on one line, with `#` for every number."""
    return re.sub(r"[\d.,]*\d", "#", " ".join(text.split()))


def figures(text: str) -> tuple[Figure, ...]:
    """Return the figures of a text in their order."""
    return tuple(Figure(found) for found in FIGURE.findall(NOT_FIGURES.sub(" ", text)))


def blocks(page: str) -> list[Block]:
    """Return the blocks of a page that have figures."""
    found = []
    generator = None
    for text in re.split(r"\n\s*\n", FENCED.sub("", page)):
        for mark, tool in GENERATED.items():
            if mark in text:
                generator = tool
        numbers = figures(text)
        if numbers:
            found.append(Block(text.strip(), numbers, generator))
        if "<!-- end" in text:
            generator = None
    return found


def listed() -> dict[str, list[dict]]:
    """Return the entries of each page."""
    found = tomllib.loads(LIST.read_text(encoding="utf-8"))
    del found["included"]
    return found


def included() -> dict[str, dict[str, str]]:
    """Return the stored tables that pages include: each with its command, date and hash."""
    return tomllib.loads(LIST.read_text(encoding="utf-8"))["included"]


def entry_of(block: Block, entries: Iterable[dict]) -> dict:
    """Return the one entry whose words are in the block."""
    found = [entry for entry in entries if entry["block"] in block.words]
    assert len(found) == 1, (
        f"tests/docs/figures.toml has {len(found)} entries, and needs one, for the block"
        f" {block.words[:80]!r}, with the figures {' '.join(f.text for f in block.figures)}"
    )
    return found[0]


def uncovered(block: Block, entry: dict, page: str) -> list[str]:
    """Return the figures of a block that its entry compares with nothing, or that differ."""
    found, _ = stated(block, entry)
    checks: list[Callable[[Figure], bool]] = []
    if "run" in entry:
        shown = " ".join(executed(page))
        checks.append(lambda figure: any(figure.rounds(value) for value in numbers(shown)))
    if "test" in entry:
        asserted = numbers(" ".join(map(source_of_test, entry["test"])))
        checks.append(lambda figure: any(figure.rounds(value) for value in asserted))
    if "tool" in entry:
        checks.append(lambda figure: True)
    if "code" in entry:
        constants = flat(map(constants_of, entry["code"]))
        checks.append(lambda figure: any(figure.rounds(value) for value in constants))
    if "values" in entry:
        values = flat(evaluate(expression) for expression in entry["values"])
        checks.append(lambda figure: any(figure.rounds(value) for value in values))
    return [
        figure.text
        for index, figure in enumerate(block.figures)
        if index not in found and not any(check(figure) for check in checks)
    ]


def stated(block: Block, entry: dict) -> tuple[set[int], list[str]]:
    """Return which figures of a block its entry lists in their order, and those that it lists and
    the block lacks.
    """
    found: set[int] = set()
    lacking = []
    for kind in STATED:
        start = 0
        for text in entry.get(kind, {"figures": ""})["figures"].split():
            texts = [figure.text for figure in block.figures[start:]]
            if text in texts:
                start += texts.index(text) + 1
                found.add(start - 1)
            else:
                lacking.append(text)
    return found, lacking


def executed(page: str) -> list[str]:
    """Return the code that the tests run, and sessions with what they print."""
    return [code for mark, _, code in EXECUTED.findall(page) if not mark.startswith("not run")]


def numbers(text: str) -> list[float]:
    """Return all numbers in a text."""
    found = re.findall(r"(?<![\w.])(?:\d[\d_,]*\d|\d)?(?:\.\d+)?(?:e-?\d+)?", text)
    values = []
    for number in found:
        try:
            values.append(float(number.replace(",", "").replace("_", "")))
        except ValueError:
            continue
    return values


@cache
def source_of_test(node: str) -> str:
    """Return the source of a test, with its decorators."""
    file, _, name = node.partition("::")
    text = (ROOT / file).read_text(encoding="utf-8")
    for item in ast.parse(text).body:
        if isinstance(item, ast.FunctionDef) and item.name == name:
            decorators = [ast.unparse(decorator) for decorator in item.decorator_list]
            return "\n".join([*decorators, ast.get_source_segment(text, item) or ""])
    raise AssertionError(f"{node} does not exist")


@cache
def constants_of(file: str) -> list[float]:
    """Return the numbers in the code of a file, without those of its docstrings."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return [
        float(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float)
    ]


@cache
def evaluate(expression: str) -> object:
    """Return the value of an expression of the list, in which the library is at hand."""
    import tacit
    from tacit.privacy import accounting

    return eval(
        expression,
        {
            "tacit": tacit,
            "accounting": accounting,
            "attribute": pkgutil.resolve_name,
            "math": math,
            "cells": cells,
            "mean": mean,
            "means": means,
            "deviations": deviations,
            "errors": errors,
            "lines": lines,
            "promise": promise,
        },
    )


@cache
def promise(method: str, budget: str, unit: str = "add-remove"):
    """Return what a method promises."""
    from tacit.learners.methods import METHODS, load

    return load(METHODS[method])(budget=budget, classes=2, unit=unit).promise()


def lines(file: str, *texts: str) -> list[float]:
    """Return the numbers in the lines of a stored result that hold one of the texts."""
    read = (ROOT / file).read_text(encoding="utf-8").splitlines()
    kept = [line for line in read if not texts or any(text in line for text in texts)]
    return numbers(" ".join(kept))


def cells(file: str, column: str, **where: str) -> list[float]:
    """Return a column of the rows of a stored CSV file that have these values."""
    return [float(row[column]) for row in rows(file) if matches(row, where)]


def matches(row: dict[str, str], where: dict[str, str]) -> bool:
    """Tell whether a row has these values, several of which may be given with `|` between them."""
    return all(row[key] in values.split("|") for key, values in where.items())


def mean(file: str, column: str, **where: str) -> float:
    """Return the mean of a column over the rows of a stored CSV file that have these values."""
    return statistics.fmean(cells(file, column, **where))


def means(file: str, column: str, by: str, **where: str) -> list[float]:
    """Return the means of a column by the values of other columns, which `by` names."""
    return [statistics.fmean(group) for group in groups(file, column, by, where)]


def deviations(file: str, column: str, by: str, **where: str) -> list[float]:
    """Return the standard deviations of a column by the values of other columns."""
    return [statistics.stdev(group) for group in groups(file, column, by, where)]


def errors(file: str, column: str, by: str, **where: str) -> list[float]:
    """Return the standard errors of the means of a column by the values of other columns."""
    return [
        statistics.stdev(group) / math.sqrt(len(group))
        for group in groups(file, column, by, where)
        if len(group) > 1
    ]


def groups(file: str, column: str, by: str, where: dict[str, str]) -> list[list[float]]:
    """Return a column by the values of other columns."""
    found: dict[tuple[str, ...], list[float]] = {}
    for row in rows(file):
        if matches(row, where):
            key = tuple(row[name] for name in by.split())
            found.setdefault(key, []).append(float(row[column]))
    return list(found.values())


@cache
def rows(file: str) -> list[dict[str, str]]:
    with (ROOT / file).open(encoding="utf-8", newline="") as source:
        return list(csv.DictReader(source))


def flat(values: Iterable) -> list[float]:
    """Return the numbers of nested lists, and those in texts."""
    found: list[float] = []
    for value in values:
        if isinstance(value, str):
            found.extend(numbers(value))
        elif isinstance(value, list | tuple):
            found.extend(flat(value))
        else:
            found.append(float(value))
    return found


def sha256(file: str) -> str:
    """Return the first digits of the hash of a file."""
    return hashlib.sha256((ROOT / file).read_bytes()).hexdigest()[:16]
