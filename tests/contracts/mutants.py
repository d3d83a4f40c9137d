"""The list of mutants, for the tests that look things up in it."""

import runpy
from pathlib import Path

MUTANTS = runpy.run_path(str(Path(__file__).resolve().parents[1] / "mutants" / "mutants.py"))["MUTANTS"]
