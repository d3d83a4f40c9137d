"""What a new mechanism needs; each failure names the file to write."""

import importlib
import re
from pathlib import Path

import pytest

from contracts.mutants import MUTANTS

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "src" / "tacit" / "mechanisms"
MODULES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")
SAMPLERS = [
    module
    for module in MODULES
    if re.search(r"import .*\bNoiseSource\b", (FOLDER / f"{module}.py").read_text())
]


@pytest.mark.parametrize("module", SAMPLERS)
def test_each_sampler_states_what_it_rests_on(module):
    doc = importlib.import_module(f"tacit.mechanisms.{module}").__doc__
    for word in ("Unit:", "Theorem", "Source:"):
        assert f"\n{word}" in doc, (
            f"state {word.strip(':')} in the docstring at the top of {FOLDER / f'{module}.py'}"
        )


@pytest.mark.parametrize("module", MODULES)
def test_each_mechanism_has_a_test(module):
    path = ROOT / "tests" / "mechanisms" / f"test_{module}.py"
    assert path.exists(), f"write {path}: test the sampler by enumeration or against a closed form"
    imported = re.search(
        rf"from tacit\.mechanisms(\.| import .*\b){module}\b", path.read_text(encoding="utf-8")
    )
    assert imported, f"import tacit.mechanisms.{module} in {path} and test it"


@pytest.mark.parametrize("module", MODULES)
def test_each_mechanism_has_a_mutant(module):
    file = f"src/tacit/mechanisms/{module}.py"
    assert file in {mutant.file for mutant in MUTANTS}, (
        f"add a mutant of {file} to tests/mutants/lists"
    )


@pytest.mark.parametrize("module", MODULES)
def test_each_mechanism_is_in_the_reference(module):
    reference = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    line = f"   tacit.mechanisms.{module}\n"
    assert line in reference, f"add '{line.strip()}' to docs/api.md"
