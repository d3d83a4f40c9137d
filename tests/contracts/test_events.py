"""What a new kind of event needs; each failure names the file to write."""

import ast
from pathlib import Path

import pytest

from contracts.mutants import MUTANTS
from privacy.events.samples import EVENTS
from tacit.privacy import events

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "src" / "tacit" / "privacy" / "events"
FILES = [
    path for path in sorted(FOLDER.glob("*.py")) if path.stem not in ("__init__", "base", "priced")
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_file_is_one_kind_that_is_listed(path):
    classes = [
        node.name
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    ]
    assert len(classes) == 1, f"{path} must hold one event and nothing else; it has {classes}"
    listed = [kind.__name__ for kind in events.KINDS]
    assert classes[0] in listed, f"add {classes[0]} to KINDS in {FOLDER / '__init__.py'}"
    assert classes[0] in events.__all__, f"add {classes[0]} to __all__ in {FOLDER / '__init__.py'}"


@pytest.mark.parametrize("kind", events.KINDS)
def test_each_kind_has_a_sample_for_the_tests_of_all_kinds(kind):
    """Sums, group privacy and JSON are tested on the samples."""
    assert kind in {type(event) for event in EVENTS}, (
        f"add a {kind.__name__} to EVENTS in tests/privacy/events/samples.py"
    )


@pytest.mark.parametrize("kind", events.KINDS)
def test_each_kind_has_a_test_of_its_curve(kind):
    path = ROOT / "tests" / "privacy" / "events" / f"test_{kind.__module__.rpartition('.')[2]}.py"
    assert path.exists(), f"write {path}: compare the Renyi curve with an independent formula"
    text = path.read_text(encoding="utf-8")
    tested = kind.__name__ in text and (".renyi(" in text or "accounting.epsilon(" in text)
    assert tested, f"test the Renyi curve, or epsilon at delta, of {kind.__name__} in {path}"


@pytest.mark.parametrize("kind", events.KINDS)
def test_each_kind_has_a_mutant(kind):
    file = f"src/tacit/privacy/events/{kind.__module__.rpartition('.')[2]}.py"
    assert file in {mutant.file for mutant in MUTANTS}, (
        f"add a mutant of {file} to tests/mutants/lists"
    )
