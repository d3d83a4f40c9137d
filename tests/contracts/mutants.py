"""The list of mutants and how they apply, for the tests that look things up in it."""

import runpy
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "mutants"
SYNTAX = runpy.run_path(str(FOLDER / "syntax.py"))

MUTANTS = runpy.run_path(str(FOLDER / "mutants.py"))["MUTANTS"]
NAMES = SYNTAX["NAMES"]
NoSuchPlace = SYNTAX["NoSuchPlace"]
bound_names = SYNTAX["bound_names"]
changed_place = SYNTAX["changed_place"]
is_private = SYNTAX["is_private"]
mutated = SYNTAX["mutated"]
public_names = SYNTAX["public_names"]
