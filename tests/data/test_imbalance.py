import math

import numpy as np
import pytest

from messages import stating
from tacit.data.imbalance import class_sizes, imbalanced_subset
from tacit.errors import InputError


@pytest.mark.parametrize(
    ("smallest", "n_classes", "published"),
    [
        (5000, 10, {10: (1594, 2043), 50: (724, 1400), 100: (517, 1241)}),  # CIFAR-10
        (500, 100, {10: (158, 196), 50: (71, 127), 100: (50, 109)}),  # CIFAR-100
        (750, 101, {10: (237, 294), 50: (106, 190), 100: (75, 163)}),  # Food-101
        (500, 10, {10: (160, 204), 50: (73, 140), 100: (52, 124)}),  # STL-10
    ],
)
def test_medians_and_means_of_the_published_sets(smallest, n_classes, published):
    for ratio, (median, mean) in published.items():
        sizes = class_sizes(smallest, n_classes, ratio)
        assert math.floor(np.median(sizes) + 0.5) == median
        assert math.floor(sizes.mean() + 0.5) == mean
        assert sizes[0] == smallest
        assert sizes[-1] == round(smallest / ratio)


def test_two_means_that_the_published_table_misprints():
    """The paper's formula, added up by hand: of 5,000 records in 10 classes, and of 750 in 101."""
    cifar10 = sum(round(5000 * 50 ** (-i / 9)) for i in range(10)) / 10
    food101 = sum(round(750 * 10 ** (-i / 100)) for i in range(101)) / 101
    assert round(cifar10) == round(class_sizes(5000, 10, 50).mean()) == 1400
    assert round(food101) == round(class_sizes(750, 101, 10).mean()) == 294


def test_the_seed_only_deals_the_sizes():
    plain, dealt = class_sizes(500, 10, 50), class_sizes(500, 10, 50, seed=3)
    assert sorted(dealt, reverse=True) == plain.tolist()
    assert dealt.tolist() != plain.tolist()
    assert dealt.tolist() == class_sizes(500, 10, 50, seed=3).tolist()


def test_one_class_and_ratio_one_keep_everything():
    assert class_sizes(7, 1, 100).tolist() == [7]
    assert class_sizes(7, 3, 1).tolist() == [7, 7, 7]


def test_a_subset_has_the_sizes_and_no_row_twice():
    y = np.random.default_rng(0).permutation(np.repeat(np.arange(5), [40, 50, 60, 45, 42]))
    rows = imbalanced_subset(y, ratio=10, seed=1)
    counts = np.bincount(y[rows])
    assert len(set(rows.tolist())) == len(rows)
    assert sorted(counts, reverse=True) == class_sizes(40, 5, 10).tolist()
    assert rows.tolist() == imbalanced_subset(y, ratio=10, seed=1).tolist()
    assert rows.tolist() != imbalanced_subset(y, ratio=10, seed=2).tolist()


def test_subsets_of_one_seed_are_nested_in_the_permutation():
    y = np.repeat([0, 1], 30)
    sizes = {ratio: np.bincount(y[imbalanced_subset(y, ratio, seed=0)]) for ratio in (1, 30)}
    assert sizes[1].tolist() == [30, 30]
    assert sorted(sizes[30].tolist()) == [1, 30]


def test_names_and_classes_without_records_work():
    names = np.array(["b", "a"] * 20)
    assert len(imbalanced_subset(names, ratio=2, seed=0)) == 20 + 10
    rows = imbalanced_subset(np.repeat([0, 2], 20), ratio=1, seed=0, n_classes=4)
    assert sorted(rows) == list(range(40))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: class_sizes(5, 2, 0.5), "ratio=0.5 must be a finite number >= 1"),
        (lambda: class_sizes(5, 2, math.nan), "ratio=nan must be"),
        (lambda: class_sizes(0, 2, 2), stating("smallest=0", "n_classes=2", "positive")),
        (lambda: class_sizes(50, 2, 101), stating("ratio=101", "smallest class")),
        (lambda: imbalanced_subset([], 2, 0), "y is empty"),
        (
            lambda: imbalanced_subset([0, 5], 2, 0, n_classes=3),
            "whole numbers 0..2; leave n_classes out",
        ),
        (lambda: imbalanced_subset(["a"], 2, 0, n_classes=3), "whole numbers 0..2"),
    ],
)
def test_bad_requests_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
