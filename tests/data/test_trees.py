"""Trees of classes: levels, files, prefixes, and what is refused."""

import unicodedata

import pytest

from tacit.data.trees import MOST_LEVELS, Tree, tree_of_option
from tacit.errors import InputError

ANIMALS = Tree({"cat": "pet", "dog": "pet", "pet": "animal", "cow": "animal"})


def test_levels_paths_and_leaves():
    assert ANIMALS.nodes == ("animal", "pet", "cow", "cat", "dog")
    assert [ANIMALS.level(node) for node in ANIMALS.nodes] == [1, 2, 2, 3, 3]
    assert ANIMALS.leaves == ("cow", "cat", "dog")
    assert ANIMALS.path("cat") == ("animal", "pet", "cat")
    assert ANIMALS.path("oak") == ("oak",)  # stands beside the roots
    assert ANIMALS.below("pet") == ("cat", "dog")
    assert ANIMALS.below("cow") == ("cow",)


def test_several_roots_are_fine():
    tree = Tree({"cat": "animal", "oak": "plant"}).over(["cat", "oak", "stone"])
    assert [tree.level(node) for node in ("animal", "plant")] == [1, 1]


def test_texts_are_compared_in_one_form_of_unicode():
    decomposed = unicodedata.normalize("NFD", "café")
    tree = Tree({decomposed: "shop"})
    assert tree.over([unicodedata.normalize("NFC", "café")]).leaves == ("café",)


def test_nodes_are_of_the_type_of_the_classes(tmp_path):
    path = tmp_path / "tree.csv"
    path.write_text("class,parent\n1,10\n2,10\n")
    tree = Tree.read(path)
    assert tree.over([1, 2]).parents == {1: 10, 2: 10}
    assert tree.over(["1", "2"]).parents == {"1": "10", "2": "10"}
    with pytest.raises(InputError, match="'animal' beside classes that are whole numbers"):
        Tree({"1": "animal"}).over([1])


def test_a_file_may_have_roots_without_a_parent_and_further_columns(tmp_path):
    path = tmp_path / "tree.csv"
    path.write_text("note,class,parent\n,cat,animal\n,animal,\n,dog,animal\n", encoding="utf-8-sig")
    assert Tree.read(path).parents == {"cat": "animal", "dog": "animal"}


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ("label,parent\ncat,animal\n", "has no column 'class'"),
        ("class,parent\ncat,animal\ncat,plant\n", "line 3 gives class 'cat' a second parent"),
        ("class,parent\n,animal\n", "line 2 names no class"),
        ("class,parent\ncat,\n", "must have the parent of each class"),
    ],
)
def test_bad_files_are_refused_in_one_line(tmp_path, lines, fault):
    path = tmp_path / "tree.csv"
    path.write_text(lines)
    with pytest.raises(InputError, match=fault) as error:
        Tree.read(path)
    assert "\n" not in str(error.value)
    with pytest.raises(InputError, match="cannot be read as a tree"):
        Tree.read(tmp_path / "absent.csv")


@pytest.mark.parametrize(
    ("parents", "fault"),
    [
        ({}, "must have the parent of each class"),
        (["cat"], "must have the parent of each class"),
        ({"cat": "cat"}, "makes 'cat' its own parent"),
        ({"a": "b", "b": "c", "c": "a"}, "circle of parents .a below b below c below a"),
        ({"cat": 3}, "mixes texts and whole numbers"),
        ({i: i + 1 for i in range(MOST_LEVELS)}, "has 0 below more than 63 others"),
        ({i + 1: i for i in range(MOST_LEVELS)}, "has 64 below more than 63 others"),
    ],
)
def test_bad_trees_are_refused_in_one_line(parents, fault):
    with pytest.raises(InputError, match=fault):
        Tree(parents)


def test_a_tree_of_as_many_levels_as_are_allowed_is_taken():
    assert Tree({i + 1: i for i in range(MOST_LEVELS - 1)}).level(MOST_LEVELS - 1) == MOST_LEVELS


def test_classes_must_be_the_leaves():
    with pytest.raises(InputError, match="has 'cow', which is no parent and not among the 2"):
        ANIMALS.over(["cat", "dog"])
    with pytest.raises(InputError, match="class 'pet' is the parent of others"):
        ANIMALS.over(["cat", "dog", "cow", "pet"])
    assert ANIMALS.divided(["cow", "pet", "cat"]) == (["cow", "cat"], ["pet"])


def test_beginnings_of_codes():
    lengths = Tree.of_prefixes(["E10", "E112", "I"], [3, 1])
    assert lengths.parents == {"E10": "E", "E11": "E", "E112": "E11"}
    parts = Tree.of_prefixes(["a/b/c", "a/d"], "/")
    assert parts.parents == {"a/b": "a", "a/b/c": "a/b", "a/d": "a"}


@pytest.mark.parametrize(
    ("rule", "classes", "fault"),
    [
        ("prefix:3", ["ab"], "prefix:3 gives no class a parent"),
        ("prefix:0", ["ab"], "prefix length 0 must be"),
        ("prefix:", ["ab"], "needs lengths or a separator"),
        ("prefix:1", [10, 11], "class 10 has no beginning"),
        ("prefix:1", None, "is a tree of the class list"),
    ],
)
def test_bad_prefixes_are_refused(rule, classes, fault):
    with pytest.raises(InputError, match=fault):
        tree_of_option(rule, classes)
