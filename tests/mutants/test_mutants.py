"""Every mutant still applies to the code."""

from pathlib import Path

import pytest

from contracts.mutants import MUTANTS

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_mutant_edits_one_place_and_names_tests_that_exist(mutant):
    text = (ROOT / mutant.file).read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1, f"update the mutant {mutant.name!r}: {mutant.old!r} must occur once"
    assert mutant.old != mutant.new
    for name in mutant.tests.split():
        assert (ROOT / name.partition("::")[0]).exists(), f"update the tests of the mutant {mutant.name!r}"
