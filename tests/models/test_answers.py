"""The deepest node of a tree that is likely enough, against a search of all nodes."""

import numpy as np
import pytest

from tacit.data.trees import Tree
from tacit.errors import InputError
from tacit.models.answers import BLOCK, Levels, check_distinct, checked_share, no_label

# three levels, a class beside the roots, an inner node with one child
PARENTS = {"a": "x", "b": "x", "c": "y", "d": "y", "x": "top", "y": "top", "e": "z"}
CLASSES = np.array(["d", "a", "e", "c", "f", "b"])


def slow_answers(probabilities, tree, classes, at_least):
    """Search all nodes of each row: label, level and probability."""
    paths = [tree.path(name) for name in classes.tolist()]
    level_of = {node: i for path in paths for i, node in enumerate(path, 1)}
    for row in probabilities:
        best = ("", 0, row.max())
        for node, level in level_of.items():
            share = sum(p for p, path in zip(row, paths, strict=True) if node in path)
            if share >= at_least and level > best[1]:
                best = (node, level, share)
        yield best


@pytest.mark.parametrize("at_least", [0.51, 0.75])
def test_the_deepest_node_that_reaches_the_probability(at_least):
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.full(6, 0.2), size=400)
    tree = Tree(PARENTS)
    found = Levels.of(tree, CLASSES).answers(probabilities, at_least, "")
    expected = list(slow_answers(probabilities, tree, CLASSES, at_least))
    assert found.label.tolist() == [label for label, _, _ in expected]
    assert found.level.tolist() == [level for _, level, _ in expected]
    assert np.allclose(found.probability, [p for _, _, p in expected], atol=1e-12)
    assert set(found.level.tolist()) == {0, 1, 2, 3}


def test_blocks_of_rows_are_joined():
    rng = np.random.default_rng(1)
    probabilities = rng.dirichlet(np.full(6, 0.2), size=BLOCK + 3)
    levels = Levels.of(Tree(PARENTS), CLASSES)
    joined = levels.answers(probabilities, 0.8, "")
    last = levels.answers(probabilities[BLOCK:], 0.8, "")
    assert joined.label[BLOCK:].tolist() == last.label.tolist()
    assert joined.level[BLOCK:].tolist() == last.level.tolist()


def test_a_node_above_all_classes_is_no_answer():
    tree = Tree({"a": "x", "b": "x", "c": "all", "x": "all"})
    classes = np.array(["a", "b", "c"])
    rows = np.array([[0.4, 0.35, 0.25], [0.45, 0.5, 0.05], [0.97, 0.02, 0.01]])
    found = Levels.of(tree, classes).answers(rows, 0.9, "")
    assert found.label.tolist() == ["", "x", "a"]
    assert found.level.tolist() == [0, 1, 2]
    assert np.allclose(found.probability, [0.4, 0.95, 0.97])


def test_without_a_tree_a_class_answers_or_nothing():
    levels = Levels.of(None, np.array([5, 7]))
    found = levels.answers(np.array([[0.95, 0.05], [0.4, 0.6]]), 0.9, -1)
    assert found.label.tolist() == [5, -1]
    assert found.level.tolist() == [1, 0]


def test_long_names_of_inner_nodes_are_whole():
    levels = Levels.of(Tree({"a": "a very long name", "b": "a very long name"}), CLASSES[[1, 5, 3]])
    found = levels.answers(np.array([[0.5, 0.5, 0.0]]), 0.9, "")
    assert found.label.tolist() == ["a very long name"]


@pytest.mark.parametrize("at_least", [0.5, 1.01, 0, True, "0.9", float("nan")])
def test_half_or_less_is_refused(at_least):
    with pytest.raises(InputError, match=r"must be above 0\.5 and at most 1"):
        checked_share(at_least)


def test_labels_of_no_answer():
    assert no_label(np.array(["a"])) == ""
    assert no_label(np.array([3])) == -1
    with pytest.raises(InputError, match="no label for no answer"):
        no_label(np.array([True]))
    with pytest.raises(InputError, match="class -1 would look like no answer"):
        check_distinct(np.array([-1, 1]))
