"""Write the tables of methods, encoders and commands into the docs; `--check` fails where one is
out of date.

A table stands between `<!-- table: NAME -->` and `<!-- end -->`. Its rows come from the code that
they describe.
"""

import re
import sys
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from tacit.cli.app import VERBS
from tacit.encoding.encoders import FAMILIES
from tacit.learners.methods import ALIASES, METHODS, load
from tacit.privacy.unit import Unit

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))
MARKED = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
BUDGETS = {"pure": "pure", "zcdp": "zCDP", "approx": "approximate", "gdp": "Gaussian"}


def methods() -> Iterator[tuple[str, ...]]:
    """A row for each method: its names and what it releases, from the facts on its class."""
    yield "command", "class", "what is released"
    for name, path in METHODS.items():
        learner = load(path)
        papers = [alias for alias, method in ALIASES.items() if method == name]
        also = f" ({', '.join(f'`{alias}`' for alias in papers)})" if papers else ""
        yield f"`{name}`{also}", f"{{py:obj}}`~tacit.{learner.__name__}`", learner.summary


def inputs() -> Iterator[tuple[str, ...]]:
    """A row for each method: what it accepts, from the facts on its class."""
    yield "command", "budgets", "units", "public rows"
    for name, path in METHODS.items():
        learner = load(path)
        yield f"`{name}`", _budgets(learner.budget_kinds), _units(learner.units), learner.public_use


def _budgets(kinds: Collection[str]) -> str:
    missing = [word for kind, word in BUDGETS.items() if kind not in kinds]
    if not missing:
        return "all"
    return f"all but {' and '.join(missing)}"


def _units(units: Collection[Unit]) -> str:
    if set(units) == set(Unit):
        return "all"
    return ", ".join(f"`{unit}`" for unit in units)


def encoders() -> Iterator[tuple[str, ...]]:
    """A row for each family of encoders."""
    yield "name", "takes", "looked for in"
    for name, family in FAMILIES.items():
        yield (
            f"`{name}:{family.model}`",
            " or ".join(f"{kind}s" for kind in family.takes),
            family.weights,
        )


def commands() -> Iterator[tuple[str, ...]]:
    """A row for each command."""
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
    """The Markdown of a table."""
    header, *rows = TABLES[name]()
    lines = [header, ("---",) * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def with_tables(text: str) -> str:
    """The text of a page with its tables as they should be."""
    return MARKED.sub(lambda found: found[1] + "\n" + table(found[2]) + "\n" + found[3], text)


if __name__ == "__main__":
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if "--check" in sys.argv and text != with_tables(text):
            sys.exit(f"a table of {page} is out of date; run python tools/tables.py")
        if "--check" not in sys.argv:
            page.write_text(with_tables(text), encoding="utf-8")
