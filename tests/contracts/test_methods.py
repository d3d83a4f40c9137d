"""What a method needs beside its class; each failure names the file or the line to add."""

import inspect
from dataclasses import fields
from pathlib import Path

import pytest

from contracts.learners import CLASSES
from contracts.mutants import MUTANTS
from tacit.learners.common.base import PrivateClassifier

# parameters beside those that all learners have; more belong into groups, as `teachers` of PATE
MOST_PARAMETERS = 15

ROOT = Path(__file__).resolve().parents[2]
METHOD = pytest.mark.parametrize("method", CLASSES)


def place(method):
    """The file of a method, from the root."""
    return Path(inspect.getsourcefile(CLASSES[method])).resolve().relative_to(ROOT)


@METHOD
def test_a_method_has_a_test_file_of_its_name(method):
    file = place(method)
    wanted = Path("tests", *file.parts[2:-1], f"test_{file.name}")
    assert (ROOT / wanted).is_file(), f"{method} has no tests; write {wanted}"


@METHOD
def test_a_method_has_a_mutant(method):
    file = place(method).as_posix()
    assert any(mutant.file == file for mutant in MUTANTS), (
        f"add a mutant of {file} to tests/mutants/lists"
    )


@METHOD
def test_a_method_has_a_row_in_the_tables_of_the_docs(method):
    kind = CLASSES[method]
    assert kind.summary, f"{kind.__name__}.summary is empty; say in a phrase what is released"
    assert f"`{method}`" in (ROOT / "docs/choosing.md").read_text(), "run python tools/tables.py"
    line = f"   tacit.{kind.__name__}\n"
    assert line in (ROOT / "docs/api.md").read_text(), f"docs/api.md lacks {line!r}"


@METHOD
def test_a_method_states_facts_that_hold_together(method):
    kind = CLASSES[method]
    assert kind.units, "units is empty; name the neighbouring relations, first that of _event"
    assert set(kind.budget_kinds) <= {"pure", "zcdp", "approx", "gdp"}
    assert not kind.needs_public or kind.public_use.startswith("needed")


@METHOD
def test_a_method_has_few_parameters(method):
    shared = {field.name for field in fields(PrivateClassifier)}
    parameters = {field.name for field in fields(CLASSES[method])} - shared
    assert len(parameters) <= MOST_PARAMETERS, f"{method} has {len(parameters)}; group some"
