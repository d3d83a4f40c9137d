"""Sums bounded by person: all neighbours of small data that differ in one person, or in one record
of a person.
"""

from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.data.persons import Persons
from tacit.mechanisms import gaussian, outer_products
from tacit.mechanisms.blocks import Block, Picked
from tacit.mechanisms.noise import ResearchNoise
from tacit.mechanisms.rounding import sensitivity

CLASSES = 3
LABELS = np.array([0, 1, 1, 0, 1, 0])
ROWS = np.array([[1.0, 0.0], [-1.0, 0.0], [0.6, 0.8], [30.0, -40.0]])
RECORDS = list(product(range(len(ROWS)), range(CLASSES)))
PERSONS = [person for size in range(4) for person in combinations_with_replacement(RECORDS, size)]


def block(persons):
    """One block of persons, each a sequence of (row, class)."""
    rows, labels = (
        np.array([record[i] for person in persons for record in person], int) for i in (0, 1)
    )
    return Block(ROWS[rows], labels, np.cumsum([len(person) for person in persons if person]))


def class_sums(persons):
    return gaussian.class_sums([block(persons)], n_classes=CLASSES, width=2)


def product_sums(persons):
    """Left rows of three columns, by class, as gradients have them."""
    rows, labels, ends = block(persons)
    left = np.array([[-1.0, 0.5, 0.5], [0.7, -0.7, 0.0], [0.1, 0.2, -0.9]])[labels]
    return outer_products.product_sums([Block(left, rows, ends)], shape=(3, 2))


def moments(persons):
    """The upper triangle of the second moments; off the diagonal it counts twice, as in the whole
    matrix.
    """
    rows, labels, ends = block(persons)
    return np.triu(outer_products.triangle_sums([Block(rows, labels, ends)], width=2))


def class_moments(persons):
    rows, labels, ends = block(persons)
    sums = outer_products.class_product_sums(
        [Block(rows, labels, ends)], n_classes=CLASSES, width=2
    )
    return np.triu(sums)


def weighted_moments(persons):
    rows, labels, ends = block(persons)
    weights = np.array([[0.9, 0.1, 0.1], [0.0, 0.7, 0.7], [0.2, 0.0, 0.6]])[labels]
    sums = outer_products.weighted_product_sums(
        [Block(outer_products.rounded(rows), weights, ends)], n_weights=3, width=2
    )
    return np.triu(sums)


UNITS = {
    class_sums: gaussian.UNIT,
    product_sums: outer_products.UNIT,
    moments: outer_products.UNIT,
    class_moments: outer_products.UNIT,
    weighted_moments: outer_products.UNIT,
}
ALL = pytest.mark.parametrize("sums", UNITS, ids=lambda function: function.__name__)
OTHERS = [[(2, 0), (3, 1)], [(0, 2)], [(1, 1), (1, 1), (0, 0), (2, 2)]]


def squared(integers):
    return sum(int(value) ** 2 for value in integers.ravel())


def alone(sums, person):
    return sums([person]) if person else np.zeros_like(sums([RECORDS[:1]]))


@ALL
def test_a_person_moves_sums_by_one_unit_and_another_person_or_other_labels_by_two(sums):
    adds = {person: alone(sums, person) for person in PERSONS}
    unit = UNITS[sums]
    largest = max(squared(added) for added in adds.values())
    assert 0.99 * unit**2 < largest <= unit**2
    replaced = max(
        squared(adds[one] - adds[other]) for one in PERSONS[::3] for other in PERSONS[::7]
    )
    assert replaced <= 4 * unit**2
    relabelled = max(
        squared(
            adds[tuple(sorted(zip(rows, some, strict=True)))]
            - adds[tuple(sorted(zip(rows, other, strict=True)))]
        )
        for rows in combinations_with_replacement(range(len(ROWS)), 2)
        for some in product(range(CLASSES), repeat=2)
        for other in product(range(CLASSES), repeat=2)
    )
    assert relabelled <= 4 * unit**2
    if sums is class_sums:  # x and -x in two classes, and the other way round
        assert relabelled > 0.99 * 4 * unit**2
        assert max(replaced, relabelled) > 0.99 * 4 * unit**2
    if sums in (moments, class_moments, weighted_moments):  # matrices without negative directions
        covered = sensitivity(unit, 12, per_person=True)
        assert max(replaced, relabelled) <= 2 * covered**2


def test_other_persons_move_counts_of_classes_by_the_root_of_two():
    """All pairs of persons with up to three records, who count by their classes alone."""

    def counts(person):
        labels = np.array([label for _, label in person], int)
        ends = np.array([len(person)] if person else [], int)
        ones = Block(np.ones((len(person), 1)), labels, ends)
        return gaussian.class_sums([ones], n_classes=CLASSES, width=1)

    adds = [counts(person) for person in PERSONS]
    largest = max(squared(one - other) for one in adds[::3] for other in adds[::7])
    stated = (gaussian.CLASS_COUNTS.replace_person * gaussian.UNIT) ** 2
    assert gaussian.CLASS_COUNTS.change_labels_of_person == gaussian.CLASS_COUNTS.replace_person
    assert 0.99 * stated < largest <= stated


@ALL
def test_one_record_of_a_person_moves_sums_by_no_more_than_the_noise_is_scaled_to(sums):
    unit, largest = UNITS[sums], 0
    for person in PERSONS:
        if len(person) < 3:
            without = alone(sums, person)
            moved = max(
                squared(alone(sums, tuple(sorted((*person, record)))) - without)
                for record in RECORDS
            )
            largest = max(largest, moved)
    assert 0.9 * unit < largest**0.5 <= sensitivity(unit, alone(sums, ()).size, per_person=True)


@ALL
def test_what_others_add_does_not_depend_on_a_person(sums):
    without = sums(OTHERS)
    for person in PERSONS[1::11]:
        for place in range(4):
            together = sums([*OTHERS[:place], list(person), *OTHERS[place:]])
            assert np.array_equal(together - without, alone(sums, person))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    width=st.integers(1, 40),
    scale=st.sampled_from([1e-3, 1.0, 1e3, 1e200]),
)
def test_the_bound_holds_for_any_magnitudes_and_numbers_of_records(seed, width, scale):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    rows = rng.normal(size=(n, width)) * scale + rng.normal(size=width) * scale
    rows[rng.random(n) < 0.1] = np.nan
    labels, ids = rng.integers(0, CLASSES, n), rng.integers(0, 4, n)

    def sums(chosen):
        persons = Persons.of(ids[chosen], len(ids[chosen]))
        blocks = [
            Block(rows[chosen][at], labels[chosen][at], ends) for at, ends in persons.parts(10)
        ]
        of_classes = gaussian.class_sums(
            blocks, n_classes=CLASSES, width=width, unit_rows=bool(seed % 2)
        )
        products = [Block(block.rows[:, :1].copy(), block.rows, block.ends) for block in blocks]
        return of_classes, outer_products.product_sums(products, shape=(1, width))

    whole, without = sums(np.ones(n, bool)), sums(ids != ids[0])
    for one, other, unit in zip(whole, without, (gaussian.UNIT, outer_products.UNIT), strict=True):
        assert squared(one - other) <= unit**2


def test_rows_read_in_place_add_up_to_the_same_integers():
    rng = np.random.default_rng(3)
    ids, labels = rng.integers(0, 20, 200), rng.integers(0, CLASSES, 200)
    for dtype in (np.float16, np.float32, np.float64):
        rows = rng.normal(size=(200, 7)).astype(dtype)
        parts = list(Persons.of(ids, 200).parts(50))
        assert len(parts) > 3
        copied = [Block(rows[at], labels[at], ends) for at, ends in parts]
        in_place = [Block(Picked(rows, at), labels[at], ends) for at, ends in parts]
        expected, found = (
            gaussian.class_sums(one, n_classes=CLASSES, width=7) for one in (copied, in_place)
        )
        assert np.array_equal(expected, found)


def test_sums_of_persons_are_scaled_as_one_vector():
    """Three records of one person in two classes, against floats."""
    rows, labels = ROWS[[0, 0, 2]], np.array([0, 0, 1])
    found = (
        gaussian.class_sums([(rows, labels, np.array([3]))], n_classes=3, width=2) / gaussian.UNIT
    )
    whole = np.array([[2.0, 0.0], [0.6, 0.8], [0.0, 0.0]])
    assert np.allclose(found, whole / np.linalg.norm(whole), atol=1e-7)
    products = (
        outer_products.triangle_sums([Block(rows, labels, np.array([3]))], width=2)
        / outer_products.UNIT
    )
    expected = rows.T @ rows
    assert np.allclose(np.triu(products), np.triu(expected / np.linalg.norm(expected)), atol=1e-4)


def test_matrices_of_a_person_with_many_records_are_scaled_as_one_vector():
    person = 3 * [(2, label) for label in range(CLASSES)]
    assert squared(class_moments([person])) <= UNITS[class_moments] ** 2
    assert squared(weighted_moments([person])) <= UNITS[weighted_moments] ** 2


def test_sums_and_counts_of_persons_are_scaled_as_one_vector():
    """Three records of one person in two classes, and one of another, against floats."""
    rows, labels, ends = ROWS[[0, 0, 2, 0]], np.array([0, 0, 1, 1]), np.array([3, 4])
    facts = {
        "n_classes": 2,
        "width": 2,
        "noise_multipliers": (1e-6, 1e-6),
        "noise": ResearchNoise(0),
    }
    sums, counts = gaussian.noisy_sums_and_counts([(rows, labels, ends)], **facts)
    whole, number = np.array([[2.0, 0.0], [0.6, 0.8]]), np.array([2.0, 1.0])
    norm = np.sqrt((np.sum(whole**2) + np.sum(number**2)) / 2)
    assert np.allclose(sums, whole / norm + [[0, 0], [1, 0]], atol=1e-4)
    assert np.allclose(counts, number / norm + [0, 1], atol=1e-4)


def test_noise_covers_a_record_of_a_person():
    seen = []

    class Spy(ResearchNoise):
        def gaussian(self, values, scale):
            seen.append(scale)
            return super().gaussian(values, scale)

    rows, labels = np.eye(2), np.array([0, 1])
    whole, ends = outer_products.rounded(rows), np.array([1, 2])
    two = {"noise_multiplier": 2.0, "noise": Spy(0)}
    for last in ((), (ends,)):
        gaussian.noisy_class_sums([(rows, labels, *last)], n_classes=3, width=2, **two)
        outer_products.noisy_products([Block(rows, rows, *last)], shape=(2, 2), **two)
        outer_products.noisy_second_moments([Block(rows, rows, *last)], width=2, **two)
        outer_products.noisy_class_second_moments(
            [Block(rows, labels, *last)], n_classes=3, width=2, **two
        )
        outer_products.noisy_weighted_second_moments(
            [Block(whole, np.ones((2, 4)), *last)], n_weights=4, width=2, **two
        )
    units = [gaussian.UNIT] + [outer_products.UNIT] * 4
    assert seen[:5] == [2.0 * unit for unit in units]
    entries = [6, 4, 4, 12, 16]
    assert seen[5:] == [
        2.0 * sensitivity(unit, n, per_person=True) for unit, n in zip(units, entries, strict=True)
    ]


def test_a_person_with_more_records_than_one_exact_product_takes():
    rows = np.tile([[1.0, 0.0]], (20_000, 1))
    one = [Block(rows, rows, np.array([20_000]))]
    for found in (
        outer_products.product_sums(one, shape=(2, 2)),
        outer_products.triangle_sums(one, width=2),
    ):
        assert 0.999 * outer_products.UNIT < found[0, 0] <= outer_products.UNIT


def test_the_norm_of_many_records_is_that_of_few():
    """More records than columns, and fewer: their products, or the sum itself, have the same
    norm.
    """
    rows = np.random.default_rng(0).normal(size=(6, 4))
    wide = np.hstack([rows, np.zeros((6, 4))])
    weights = np.array([[0.9, 0.1], [0.0, 1.0], [0.5, 0.5]])[[0, 1, 2, 0, 1, 2]]
    for sums, beside in (
        (outer_products.weighted_product_sums, weights),
        (outer_products.class_product_sums, LABELS),
    ):
        size = {"n_weights": 2} if beside is weights else {"n_classes": 2}
        found, expected = (
            sums([Block(one, beside, np.array([6]))], width=one.shape[1], **size)[:, :4, :4]
            for one in (rows, wide)
        )
        assert np.array_equal(np.triu(found), np.triu(expected))
        assert (
            np.sqrt(float(squared(np.triu(found) + np.triu(found, 1).transpose(0, 2, 1))))
            > 0.99 * outer_products.UNIT
        )


def test_a_person_with_very_many_records_takes_little_memory():
    """A table of all products of two records would take 320 GB."""
    rows = np.tile([[0.6, 0.8]], (200_000, 1))
    found = (
        outer_products.triangle_sums([Block(rows, rows, np.array([len(rows)]))], width=2)
        / outer_products.UNIT
    )
    assert np.allclose(np.triu(found), [[0.36, 0.48], [0.0, 0.64]], atol=1e-4)


def test_without_records_sums_are_zero():
    nobody = Block(np.zeros((0, 2)), np.zeros(0, int), np.array([], int))
    assert not gaussian.class_sums([nobody], n_classes=3, width=2).any()
    assert not outer_products.product_sums(
        [nobody._replace(beside=nobody.rows)], shape=(2, 2)
    ).any()
    assert not np.triu(outer_products.triangle_sums([nobody], width=2)).any()
    assert not np.triu(outer_products.class_product_sums([nobody], n_classes=3, width=2)).any()
