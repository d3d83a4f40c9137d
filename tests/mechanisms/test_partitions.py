"""Partitions: their information against the joint distribution, all candidates, and all set
partitions.
"""

import itertools
import math

import numpy as np
import pytest

from tacit.mechanisms import partitions
from tacit.mechanisms.partitions import (
    greedy_partition,
    information_bounds,
    partitions_of,
    public_orders,
)

EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)


def information(masses, epsilon):
    """I by the formula of the module."""
    w = 1 + math.expm1(epsilon) * np.asarray(masses)
    return (epsilon * math.exp(epsilon) - (w * np.log(w)).sum()) / (math.exp(epsilon) + len(w) - 1)


def from_joint(prior, blocks, g, epsilon):
    """Mutual information of the class and the answer."""
    same = np.asarray(blocks)[:, None] == np.arange(g)
    joint = (
        np.asarray(prior)[:, None]
        * np.where(same, math.exp(epsilon), 1.0)
        / (math.exp(epsilon) + g - 1)
    )
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    held = joint > 0
    return (joint[held] * np.log(joint[held] / apart[held])).sum()


def masses_of(prior, blocks, g):
    return np.bincount(blocks, weights=prior, minlength=g)


def greedy(prior, g):
    """Masses of classes in falling order, each to the lightest of g blocks."""
    masses = np.zeros(g)
    for value in np.sort(prior)[::-1]:
        masses[masses.argmin()] += value
    return masses


def singled_out(prior, g):
    """Masses of the g - 1 likeliest classes, each alone, and of all the rest."""
    falling = np.sort(prior)[::-1]
    return np.r_[falling[: g - 1], falling[g - 1 :].sum()]


def priors_of(size, count=3, seed=0):
    """Priors that are peaked, flat, with zeros and with ties."""
    rng = np.random.default_rng(seed)
    rows = [rng.dirichlet(np.full(size, spread), count) for spread in (0.03, 0.2, 1.0, 20.0)]
    ties = np.repeat(np.arange(1, size + 1), 2)[:size]
    return np.concatenate(
        [*rows, np.full((1, size), 1 / size), np.eye(size)[:1], ties[None] / ties.sum()]
    )


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("size", [2, 3, 7, 40])
def test_the_formula_is_the_mutual_information(size, epsilon):
    rows = priors_of(size)
    for prior, blocks, g in zip(rows, *partitions_of(rows, epsilon), strict=True):
        stated = information(masses_of(prior, blocks, g), epsilon)
        assert stated == pytest.approx(from_joint(prior, blocks, g, epsilon), abs=1e-12)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("size", [2, 3, 4, 7, 12, 40])
def test_no_candidate_tells_more(size, epsilon):
    """Neither greedy ones of any number of blocks nor those that single out the likeliest
    classes.
    """
    rows = priors_of(size)
    for prior, blocks, g in zip(rows, *partitions_of(rows, epsilon), strict=True):
        chosen = information(masses_of(prior, blocks, g), epsilon)
        for other in range(2, size + 1):
            best = information(greedy(prior, other), epsilon)
            assert chosen >= best * (1 - 2e-6) - 1e-11
            assert best >= information(singled_out(prior, other), epsilon) - 1e-12


def set_partitions(size):
    """All partitions of so many classes, as the block of each class; blocks are numbered as they
    appear.
    """
    found = [[0]]
    for _ in range(size - 1):
        found = [[*blocks, block] for blocks in found for block in range(max(blocks) + 2)]
    return found


@pytest.mark.parametrize("size", [3, 4, 5, 6])
def test_the_best_of_all_partitions_tells_little_more(size):
    """Greedy is not optimal; over these priors it keeps at least 97 % of the information, and 99.9
    % on average.
    """
    candidates = [np.array(blocks) for blocks in set_partitions(size)[1:]]
    rows, kept = priors_of(size, count=4, seed=size), []
    for epsilon in (0.5, 1.0, 3.0):
        for prior, blocks, g in zip(rows, *partitions_of(rows, epsilon), strict=True):
            best = max(
                information(masses_of(prior, other, other.max() + 1), epsilon)
                for other in candidates
            )
            chosen = information(masses_of(prior, blocks, g), epsilon)
            assert chosen <= best + 1e-12
            kept.append(chosen / best if best > 1e-9 else 1.0)
    assert min(kept) > 0.97
    assert np.mean(kept) > 0.999


@pytest.mark.parametrize("size", [2, 3, 5, 6])
def test_no_partition_exceeds_the_bound_for_its_number_of_blocks(size):
    candidates = [np.array(blocks) for blocks in set_partitions(size)]
    for epsilon in EPSILONS:
        for prior in priors_of(size):
            bounds = information_bounds(np.sort(prior)[::-1].copy(), epsilon)
            for blocks in candidates:
                g = blocks.max() + 1
                if g > 2:
                    assert information(masses_of(prior, blocks, g), epsilon) <= bounds[g] + 1e-12


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_equal_classes_reach_the_bound(epsilon):
    size = 12
    bounds = information_bounds(np.full(size, 1 / size), epsilon)
    for g in (3, 4, 6, 12):
        assert bounds[g] == pytest.approx(information(np.full(g, 1 / g), epsilon), abs=1e-12)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_bound_counts_a_likely_class_alone(epsilon):
    bounds = information_bounds(np.array([0.6, 0.1, 0.1, 0.1, 0.1]), epsilon)
    assert bounds[3] == pytest.approx(information([0.6, 0.2, 0.2], epsilon), abs=1e-12)
    assert bounds[5] == pytest.approx(information([0.6, 0.1, 0.1, 0.1, 0.1], epsilon), abs=1e-12)


def test_the_stated_information_is_that_of_the_greedy_partition():
    masses = np.array([0.4, 0.25, 0.2, 0.1, 0.05])
    blocks = np.empty(5, dtype=np.int64)
    assert greedy_partition(masses, 3, 1.5, blocks) == pytest.approx(
        information([0.4, 0.3, 0.3], 1.5), abs=1e-12
    )
    assert blocks.tolist() == [0, 1, 2, 2, 1]


@pytest.mark.parametrize("size", [2, 5, 40])
def test_permuted_classes_have_permuted_partitions(size):
    rng = np.random.default_rng(size)
    rows, order = rng.dirichlet(np.ones(size), 50), rng.permutation(size)
    for epsilon in EPSILONS:
        blocks, counts = partitions_of(rows, epsilon)
        permuted, again = partitions_of(rows[:, order], epsilon)
        assert np.array_equal(counts, again)
        apart = counts < size  # otherwise every class is alone, with its index
        assert np.array_equal(blocks[apart][:, order], permuted[apart])  # there are no ties


def test_blocks_are_numbered_by_their_likeliest_class():
    assert partitions_of(np.array([[0.1, 0.5, 0.4]]), 0.5)[0].tolist() == [[1, 0, 1]]
    assert partitions_of(np.array([[0.05, 0.6, 0.05, 0.05, 0.25]]), 1.0)[0].tolist() == [
        [1, 0, 1, 1, 1]
    ]


@pytest.mark.parametrize("size", [4, 10, 33, 150])
def test_the_number_of_a_row_breaks_ties(size):
    """By one of 256 public orders, also if rows come in parts; equal classes are in as many
    different blocks as any.
    """
    flat = np.full((600, size), 1 / size)
    blocks, _ = partitions_of(flat, 0.5)
    orders = public_orders(size)
    assert np.array_equal(np.sort(orders, axis=1), np.tile(np.arange(size), (256, 1)))
    assert np.array_equal(blocks[:344], blocks[256:])
    assert len(np.unique(blocks, axis=0)) > (100 if size > 4 else 2)
    assert np.array_equal(partitions_of(flat[300:], 0.5, first=300)[0], blocks[300:])
    for row, order in zip(blocks[:256], orders, strict=True):
        assert np.array_equal(row[order], np.arange(size) % 2)
    together = np.mean(blocks[:256, :, None] == blocks[:256, None], axis=0)
    assert together[~np.eye(size, dtype=bool)].max() < 0.65


def test_equal_classes_keep_their_order_among_others():
    prior = np.tile([2.0, 1.0, 3.0], 50)
    prior /= prior.sum()
    blocks, counts = partitions_of(np.tile(prior, (256, 1)), 0.5)
    assert (counts == 2).all()
    for row, order in zip(blocks, public_orders(150), strict=True):
        falling = sorted(order.tolist(), key=lambda label: -prior[label])  # a stable sort
        loads = [0.0, 0.0]
        for label in falling:
            lightest = loads.index(min(loads))
            loads[lightest] += prior[label]
            assert row[label] == lightest


@pytest.mark.parametrize("size", [2, 6, 33, 150, 300])
def test_as_many_blocks_are_stated_as_there_are(size):
    rows = priors_of(size, count=10)
    for epsilon in (1e-9, *EPSILONS, 50.0, 700.0):
        blocks, counts = partitions_of(rows, epsilon)
        assert (counts >= 2).all()
        assert all(
            np.array_equal(np.unique(row), np.arange(g))
            for row, g in zip(blocks, counts, strict=True)
        )


def test_large_epsilon_leaves_classes_of_a_flat_prior_alone():
    for size in (10, 150):
        for epsilon in (12.0, 700.0, math.inf):
            blocks, counts = partitions_of(np.full((1, size), 1 / size), epsilon)
            assert counts.tolist() == [size]
            assert np.array_equal(blocks, np.arange(size)[None])


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64", ">f8"])
def test_types_and_memory_layouts(dtype):
    """Also rows that are not contiguous, and of which a task has few."""
    rows = np.tile([[16, 0, 8, 4, 4], [1, 1, 28, 1, 1]], (40, 1)) / 32
    whole = rows if dtype != "int64" else np.eye(5)[np.arange(80) % 5]
    expected = partitions_of(whole, 1.0)
    for given in (
        whole.astype(dtype),
        np.asfortranarray(whole.astype(dtype)),
        np.repeat(whole, 2, axis=0)[::2],
    ):
        for found, of_float64 in zip(partitions_of(given, 1.0), expected, strict=True):
            assert np.array_equal(found, of_float64)


def test_partitions_do_not_depend_on_the_other_rows(monkeypatch):
    rows = priors_of(50, count=20)
    whole = partitions_of(rows, 2.0)
    monkeypatch.setattr(partitions, "_VALUES", 150)
    for found, expected in zip(partitions_of(rows, 2.0), whole, strict=True):
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
@pytest.mark.parametrize("size", [1, 2, 5, 64])
def test_rows_that_are_no_probabilities_have_no_partition(size, epsilon):
    good = np.full(size, 1 / size)
    rows = [good]
    for place, bad in itertools.product({0, size // 2, size - 1}, (math.nan, -1.0, math.inf, 1.1)):
        rows.append(good.copy())
        rows[-1][place] = bad
    rows += [2 * good, np.zeros(size), good]
    counts = partitions_of(np.array(rows), epsilon)[1]
    assert (counts[1:-1] == 0).all()
    assert (counts[[0, -1]] > 0).all()
    if size > 1:
        below = good + np.r_[-2 / size, 2 / size, np.zeros(size - 2)]  # adds up to 1
        assert partitions_of(below[None], epsilon)[1].tolist() == [0]


def test_many_classes_are_numbered_by_wider_integers():
    for size, dtype in ((256, np.uint8), (257, np.uint16)):
        blocks, counts = partitions_of(np.full((1, size), 1 / size), math.inf)
        assert blocks.dtype == dtype
        assert np.array_equal(blocks[0], np.arange(size))
        assert counts.tolist() == [size]


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 4.0])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_rows_that_are_nearly_certain_have_two_blocks_whatever_they_add_up_to(kind, epsilon):
    rows = np.zeros((4, 150), kind)
    rows[:, 0], rows[:, 1] = 1, [0, 1e-8, 3e-8, 1e-6]
    assert (rows.sum(axis=1) >= 1).all()
    blocks, counts = partitions_of(rows, epsilon)
    assert counts.tolist() == [2] * 4
    assert (blocks[:, 0] != blocks[:, 1]).all()


def test_what_a_row_lacks_to_1_is_no_mass_of_unlikely_classes():
    rows = np.zeros((1, 150))
    rows[0, :2] = np.array([0.6, 0.4]) * (1 - 9e-6)
    assert partitions_of(rows, 12.0)[1].tolist() == [2]
