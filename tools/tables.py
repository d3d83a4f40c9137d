"""Write the tables of methods, encoders and commands into the docs.

A table stands between `<!-- table: NAME -->` and `<!-- end -->`. Its rows come from the code that
they describe. `--check` fails where a table is out of date.
"""

import re
import sys
from collections.abc import Callable, Collection, Iterator
from inspect import signature
from pathlib import Path

from tacit.cli.verbs import VERBS
from tacit.encoding.encoders import FAMILIES
from tacit.learners.common.base import PrivateClassifier
from tacit.learners.methods import ALIASES, METHODS, load
from tacit.privacy.unit import Unit

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))
MARKED = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
BUDGETS = {"pure": "pure", "zcdp": "zCDP", "approx": "approximate", "gdp": "Gaussian"}


def methods() -> Iterator[tuple[str, ...]]:
    """Yield a row for each method: its names, and its release by the summary of its class."""
    yield "command", "class", "what is released"
    for name, path in METHODS.items():
        learner = load(path)
        command = f"`{name}`"
        names_in_papers = [f"`{alias}`" for alias, method in ALIASES.items() if method == name]
        if names_in_papers:
            command += f" ({', '.join(names_in_papers)})"
        yield command, f"{{py:obj}}`~tacit.{learner.__name__}`", learner.summary


def inputs() -> Iterator[tuple[str, ...]]:
    """Yield a row for each method: the budgets, units, rows and labels that its class accepts."""
    yield "command", "budgets", "units", "public rows", "labels of a record"
    for name, path in METHODS.items():
        learner = load(path)
        yield (
            f"`{name}`",
            _budgets(learner.budget_kinds),
            _units(learner.units),
            learner.public_use,
            _labels(learner),
        )


def _budgets(kinds: Collection[str]) -> str:
    missing = [word for kind, word in BUDGETS.items() if kind not in kinds]
    if not missing:
        return "all"
    return f"all but {' and '.join(missing)}"


def _units(units: Collection[Unit]) -> str:
    if set(units) == set(Unit):
        return "all"
    return ", ".join(f"`{unit}`" for unit in units)


def _labels(learner: type[PrivateClassifier]) -> str:
    words = ["one"]
    if learner.takes_several_labels:
        words.append("several")
    if "tree" in signature(learner).parameters:
        words.append("a node of a tree")
    return ", ".join(words)


def encoders() -> Iterator[tuple[str, ...]]:
    """Yield a row for each family of encoders."""
    yield "name", "takes", "looked for in"
    for name, family in FAMILIES.items():
        yield (
            f"`{name}:{family.model}`",
            " or ".join(f"{kind}s" for kind in family.takes),
            family.weights,
        )


def commands() -> Iterator[tuple[str, ...]]:
    """Yield a row for each command."""
    yield "command", "what it does"
    for verb, summary in VERBS.items():
        yield f"`tacit {verb}`", summary


TABLES: dict[str, Callable[[], Iterator[tuple[str, ...]]]] = {
    "methods": methods,
    "inputs": inputs,
    "encoders": encoders,
    "commands": commands,
}


def table(name: str) -> str:
    """Return the Markdown of a table."""
    header, *rows = TABLES[name]()
    lines = [header, ("---",) * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def with_tables(text: str) -> str:
    """Return the text of a page with its tables as they should be."""

    def replacement(match: re.Match[str]) -> str:
        start, name, end = match.groups()
        return f"{start}\n{table(name)}\n{end}"

    return MARKED.sub(replacement, text)


if __name__ == "__main__":
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        new_text = with_tables(text)
        if "--check" not in sys.argv:
            page.write_text(new_text, encoding="utf-8")
        elif text != new_text:
            sys.exit(f"a table of {page} is out of date; run python tools/tables.py")
