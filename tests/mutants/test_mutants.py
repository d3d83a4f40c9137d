"""Every mutant applies to the code, and goes on doing so when the code is reformatted or private
names change.
"""

import ast
from functools import cache
from pathlib import Path

import pytest

from contracts.mutants import (
    MUTANTS,
    NAMES,
    NoSuchPlace,
    bound_names,
    changed_place,
    is_private,
    mutated,
    public_names,
)

ROOT = Path(__file__).resolve().parents[2]
SUFFIX = "_renamed"


class Renaming(ast.NodeTransformer):
    """Rename every local variable, parameter and private name that no public name of the module
    equals.
    """

    def __init__(self, public):
        self.public = public
        self.local = set()

    def generic_visit(self, node):
        field = NAMES.get(type(node))
        if isinstance(node, ast.Attribute):
            field = "attr"
        if field:
            name = getattr(node, field)
            is_local = field != "attr" and name in self.local - self.public
            if name and (is_local or is_private(name)):
                setattr(node, field, name + SUFFIX)

        outside = self.local
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            self.local = outside | bound_names(node)
        super().generic_visit(node)
        self.local = outside
        return node


@cache
def text_of(file):
    return (ROOT / file).read_text(encoding="utf-8")


@cache
def module_of(file):
    """The syntax tree of a file, which many mutants share: nothing may change it."""
    return ast.parse(text_of(file))


@cache
def renamed(file):
    """The source of a file with other local and private names."""
    tree = ast.parse(text_of(file))
    return ast.unparse(Renaming(public_names(tree)).visit(tree))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_mutant_changes_one_place_and_names_tests_that_exist(mutant):
    try:
        changed_place(module_of(mutant.file), mutant.address, mutant.old, mutant.new)
    except NoSuchPlace as error:
        pytest.fail(f"update the mutant {mutant.name!r} in tests/mutants/lists: {error}")

    for test in mutant.tests.split():
        file, _, name = test.partition("::")
        assert (ROOT / file).exists(), (
            f"{file}, the tests of the mutant {mutant.name!r}, is not there"
        )
        if name:
            function = f"def {name.partition('[')[0]}("
            assert function in text_of(file), (
                f"{test}, the test of the mutant {mutant.name!r}, is not there"
            )


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_rename_of_private_and_local_names_touches_no_mutant(mutant):
    before = mutated(text_of(mutant.file), mutant.address, mutant.old, mutant.new)
    after = mutated(renamed(mutant.file), mutant.address, mutant.old, mutant.new)
    assert SUFFIX in after
    assert after.replace(SUFFIX, "") == before


def test_names_of_mutants_are_distinct():
    names = [mutant.name for mutant in MUTANTS]
    assert len(set(names)) == len(names)
