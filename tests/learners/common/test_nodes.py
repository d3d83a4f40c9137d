"""Records labelled with an inner node: gradients by finite differences and enumeration, and sums."""

import itertools
import math

import numpy as np
import pytest

import tacit
from tacit.data.trees import Tree
from tacit.errors import InputError
from tacit.learners.common.nodes import NodeResiduals, Nodes
from tacit.learners.common.softmax import Residuals, gradient_sensitivity
from tacit.privacy.unit import Unit

# a class beside the roots, two levels of inner nodes
TREE = Tree({"a": "x", "b": "x", "c": "y", "x": "top", "y": "top"})
CLASSES = np.array(["c", "a", "d", "b"])
NODES = Nodes.of(TREE, CLASSES)
X_NODE = 4 + NODES.labels[4:].tolist().index("x")

# probabilities from nearly certain to even, at which gradients are enumerated
GRID = np.array([row for row in itertools.product((-40.0, -3.0, 0.0, 2.0), repeat=4)])


def names_below(inner):
    return {str(CLASSES[leaf]) for leaf in NODES.below(inner)}


def test_nodes_are_numbered_after_the_leaves():
    assert NODES.labels[:4].tolist() == CLASSES.tolist()
    below = {str(NODES.labels[4 + i]): names_below(i) for i in range(NODES.n_inner)}
    assert below == {"top": {"a", "b", "c"}, "x": {"a", "b"}, "y": {"c"}}


def residuals(logits, label):
    """Residuals of rows whose logits are given, all with one label."""
    kind = NodeResiduals(
        labels=np.full(len(logits), label),
        offsets=np.zeros((1, 4)),
        head=np.eye(4),
        unit=1.0,
        clip=1.0,
        nodes=NODES,
    )
    return kind.of(logits.copy())


def loss(logits, label):
    """-log of the probability of the leaves below a label."""
    p = np.exp(logits - logits.max())
    p /= p.sum()
    leaves = [label] if label < 4 else NODES.below(label - 4)
    return -math.log(p[leaves].sum())


@pytest.mark.parametrize("label", range(7))
def test_the_residual_is_the_gradient_of_the_loss(label):
    rng = np.random.default_rng(label)
    logits = rng.normal(size=(3, 4))
    found = residuals(logits, label)
    step = 1e-6
    for row, residual in zip(logits, found, strict=True):
        slopes = [
            (loss(row + step * unit, label) - loss(row - step * unit, label)) / (2 * step)
            for unit in np.eye(4)
        ]
        assert np.allclose(residual, slopes, atol=1e-8)


def test_no_gradient_is_longer_than_that_of_a_leaf_can_be():
    norms = [np.linalg.norm(residuals(GRID, label), axis=1) for label in range(7)]
    assert max(map(np.max, norms)) <= math.sqrt(2) * (1 + 1e-15)
    assert max(np.max(norm) for norm in norms[4:]) > 1.39  # an inner node reaches the bound too

    # 2 (1 - P)^2, where P is the probability of the node
    for label, norm in enumerate(norms):
        shares = np.exp([-loss(row, label) for row in GRID])
        assert np.all(norm <= math.sqrt(2) * (1 - shares) + 1e-12)


def test_a_changed_label_moves_a_gradient_by_the_root_of_two():
    of_labels = [residuals(GRID, label) for label in range(7)]
    moved = [np.linalg.norm(one - other, axis=1).max() for one in of_labels for other in of_labels]
    assert math.sqrt(2) * (1 - 1e-9) < max(moved) <= math.sqrt(2) * (1 + 1e-12)
    assert gradient_sensitivity(Unit.CHANGE_LABEL, 1.0, 4) >= max(moved)


def test_a_leaf_has_the_residual_of_softmax_to_the_bit():
    logits = np.random.default_rng(1).normal(size=(5, 4))
    labels = np.array([0, 3, 2, 1, 0])
    plain = Residuals(labels, np.zeros((1, 4)), np.eye(4), 1.0, 0.5)
    marginal = NodeResiduals(labels, np.zeros((1, 4)), np.eye(4), 1.0, 0.5, NODES)
    assert np.array_equal(plain.of(logits), marginal.of(logits))
    assert np.array_equal(plain[1:3].of(logits[1:3]), marginal[1:3].of(logits[1:3]))


def test_probabilities_that_underflow_leave_equal_shares():
    logits = np.array([[0.0, -2000.0, 0.0, -2000.0]])
    assert np.allclose(residuals(logits, X_NODE), [[0.5, -0.5, 0.5, -0.5]])


def test_records_of_inner_nodes_are_divided_among_their_leaves():
    counts = np.array([10.0, 30.0, 5.0, 10.0, 0.0, 0.0, 0.0])
    counts[X_NODE] = 40.0
    found = NODES.counts_of_leaves(counts, uncertainty=1e-9)
    assert np.allclose(found, [10.0, 60.0, 5.0, 20.0])

    sums = np.zeros((7, 2))
    sums[X_NODE] = [8.0, 0.0]
    assert np.allclose(NODES.sums_of_leaves(sums, 0.0), [[0, 0], [4, 0], [0, 0], [4, 0]])
    # a sum that its noise explains adds nothing
    assert not NODES.sums_of_leaves(sums, 8.0).any()


def records(n_inner):
    """Rows about four directions, of which some are labelled with x, the node above a and b."""
    rng = np.random.default_rng(2)
    truth = np.tile(np.arange(4), 100)
    X = np.eye(4)[truth] + 0.3 * rng.normal(size=(400, 4))
    y = CLASSES[truth].copy()
    y[np.flatnonzero(np.isin(truth, [1, 3]))[:n_inner]] = "x"
    return X, y, CLASSES[truth]


@pytest.mark.parametrize("method", ["GradientDescent", "NoisySumPrototypes", "AutoPrototypes"])
def test_records_of_inner_nodes_are_learned_from(method):
    X, y, truth = records(150)
    public = {"public": np.random.default_rng(3).normal(size=(200, 4))}
    if method != "AutoPrototypes":
        public = {}
    learner = getattr(tacit, method)(
        "rho=50", classes=[*CLASSES, "x"], tree=TREE, noise="research", random_state=0, **public
    )
    learner.fit(X, y)
    assert learner.classes_.tolist() == CLASSES.tolist()
    assert learner.score(X, truth) > 0.8
    release = tacit.Release.of(learner)
    assert release.tree == TREE
    assert set(release.predict(X, at_least=0.6)) <= {*CLASSES, "x", "y", "top", ""}


def test_the_guarantee_is_that_of_labels_of_leaves():
    for method in (tacit.GradientDescent, tacit.NoisySumPrototypes):
        for unit in ("add-remove", "change-label", "add-remove-person"):
            plain = method("rho=0.5", classes=CLASSES, unit=unit).promise()
            assert method("rho=0.5", classes=CLASSES, unit=unit, tree=TREE).promise() == plain


def test_what_a_tree_does_not_fit_is_refused():
    X, y, _ = records(10)
    learner = tacit.NoisySumPrototypes("rho=1", classes=["a", "b"], tree=TREE)
    with pytest.raises(InputError, match="has 'c', which is no parent"):
        learner.fit(X, y)
    with pytest.raises(InputError, match="a recipe has no sums"):
        tacit.NoisySumPrototypes("rho=1", classes=CLASSES, tree=TREE).recipe(4)
    sets = tacit.GradientDescent("rho=1", classes=CLASSES, tree=TREE, most_labels=2)
    with pytest.raises(InputError, match="tree is of exclusive classes"):
        sets.fit(X, [[label] for label in y])
