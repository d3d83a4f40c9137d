"""The mutants: one change of one function's syntax tree each, and the tests that must notice it.

They are listed in `lists/`, in files that mirror the packages of `src/tacit`. `at` names a module
and, after a colon, a public function, class or method in it; `old` and `new` are a pattern and its
replacement, as `syntax.py` defines them.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "lists"


@dataclass(frozen=True)
class Mutant:
    """Replace the one place at `at` that matches `old` by `new`; `tests` must then fail.

    Parameters
    ----------
    name : str
        How the mechanism is wrong.
    at : str
        A module below `tacit`, and a public name in it if the pattern matches elsewhere in the
        module too: "mechanisms.gaussian:event".
    old, new : str
        A pattern and its replacement.
    tests : str
        Files or names of tests, separated by spaces, as pytest takes them.
    """

    name: str
    at: str
    old: str
    new: str
    tests: str

    @property
    def file(self) -> str:
        """The path of the module's file, relative to the repository."""
        module = self.at.partition(":")[0]
        return f"src/tacit/{module.replace('.', '/')}.py"

    @property
    def address(self) -> str:
        """The dotted name of the function, class or method; empty for the whole module."""
        return self.at.partition(":")[2]


def listed(folder: Path) -> list[Mutant]:
    """Every mutant of the lists in a folder, in the order of the files' names."""
    paths = sorted(folder.rglob("*.toml"))
    tables = [tomllib.loads(path.read_text(encoding="utf-8")) for path in paths]
    return [Mutant(**entry) for table in tables for entry in table["mutant"]]


MUTANTS = listed(FOLDER)
