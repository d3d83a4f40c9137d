"""Sums of the rows of labels: their sensitivity by enumeration, and what they estimate."""

from itertools import product

import numpy as np
import pytest

from tacit.data.persons import Persons
from tacit.learners.common.base import Prepared
from tacit.learners.common.label_sums import COUNT_SHARE, LabelSums, sums_alone
from tacit.learners.common.unit_rows import UnitRows
from tacit.mechanisms.noise import ResearchNoise
from tacit.mechanisms.outer_products import LABEL_PRODUCTS, UNIT
from tacit.privacy.unit import Unit

N_LABELS, WIDTH = 4, 3
SETS = np.array(list(product([False, True], repeat=N_LABELS)))
ROWS = np.array([[1.0, 0, 0], [-1.0, 0, 0], [0.6, -0.8, 0], [1e9, 1e9, -1e9], [-1e-9, 3e-9, 0]])


def exact(X, labels, most_labels, persons=None):
    """Exact sums, in units of the bound on one record."""
    records = UnitRows(np.atleast_2d(X), np.atleast_2d(labels), persons=persons)
    sums = LabelSums("label sums", N_LABELS, WIDTH, most_labels).exact(records)
    return sums.astype(object)


def squared_norm(sums):
    return int((sums**2).sum())


@pytest.mark.parametrize("most_labels", [1, 2, 4])
def test_a_record_with_any_set_of_labels_adds_one_unit_at_most(most_labels):
    for x, labels in product(ROWS, SETS):
        assert squared_norm(exact(x, labels, most_labels)) <= UNIT**2


@pytest.mark.parametrize("most_labels", [1, 2, 4])
def test_all_labels_move_no_value_further_than_one_label(most_labels):
    for x in ROWS:
        of_all = np.abs(exact(x, SETS[-1], most_labels))
        of_each = [np.abs(exact(x, labels, most_labels)) for labels in np.eye(N_LABELS, dtype=bool)]
        assert (of_all <= np.maximum.reduce(of_each)).all()


@pytest.mark.parametrize("most_labels", [1, 2, 4])
def test_a_changed_set_moves_the_sums_by_the_root_of_two_and_a_record_by_two(most_labels):
    farthest = 0
    for x, before, after in product(ROWS, SETS, SETS):
        moved = exact(x, before, most_labels) - exact(x, after, most_labels)
        farthest = max(farthest, squared_norm(moved))
    assert farthest <= 2 * UNIT**2 <= (LABEL_PRODUCTS.change_label * UNIT) ** 2
    # two disjoint sets of as many labels as are declared move them that far, but for the share of
    # the number of records
    if 2 * most_labels <= N_LABELS:
        assert farthest > 1.79 * UNIT**2

    # opposite rows leave only their count in place
    moved = exact(ROWS[0], SETS[-1], most_labels) - exact(ROWS[1], SETS[-1], most_labels)
    share = max(most_labels, N_LABELS) / N_LABELS
    assert squared_norm(moved) > 3.7 * UNIT**2 / share
    assert LABEL_PRODUCTS.replace == 2


def test_the_labels_of_a_person_may_move_the_sums_by_two_and_a_person_adds_one_unit():
    codes = Persons(np.zeros(2, dtype=np.int64))
    empty, full = SETS[0], SETS[-1]
    before = exact(ROWS[[0, 1]], np.stack([full, empty]), 1, codes)
    after = exact(ROWS[[0, 1]], np.stack([empty, full]), 1, codes)
    assert squared_norm(before) <= UNIT**2
    moved = squared_norm(before - after) / UNIT**2
    assert 2.5 < moved <= LABEL_PRODUCTS.change_labels_of_person**2


def test_sums_estimate_means_sizes_and_the_number_of_records():
    rng = np.random.default_rng(0)
    labels = SETS[rng.integers(0, len(SETS), 4000)]
    X = rng.normal(size=(4000, WIDTH)) + 1
    records = UnitRows(X, labels)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    query = LabelSums("label sums", N_LABELS, WIDTH, N_LABELS)
    for multiplier in (0.0, 2.0):
        sums = query.released(records, multiplier=multiplier, noise=ResearchNoise(0))
        # with as many labels declared as there are, every record counts in full
        np.testing.assert_allclose(
            sums.counts, labels.sum(axis=0), atol=5 * sums.count_noise + 1e-6
        )
        np.testing.assert_allclose(sums.sums, labels.T @ unit, atol=5 * sums.noise + 1e-6)
        assert sums.records == pytest.approx(4000, abs=5 * sums.records_noise + 1e-6)
        np.testing.assert_allclose(sums.grand, unit.mean(axis=0), atol=0.02)
        assert sums.noise == pytest.approx(multiplier * np.sqrt(4 / 0.9 / (1 - COUNT_SHARE)))


def test_noise_has_the_stated_deviation():
    records = Prepared(np.zeros((0, WIDTH)), np.zeros((0, N_LABELS), dtype=bool))
    query = LabelSums("label sums", N_LABELS, WIDTH, 2, blocks=lambda records, label: iter(()))
    draws = [
        query.released(records, multiplier=3.0, noise=ResearchNoise(seed)) for seed in range(2000)
    ]
    assert np.std([draw.sums for draw in draws]) == pytest.approx(draws[0].noise, rel=0.03)
    assert np.std([draw.counts for draw in draws]) == pytest.approx(draws[0].count_noise, rel=0.05)


@pytest.mark.parametrize("unit", list(Unit))
def test_the_noise_of_each_unit_is_that_of_its_sensitivity(unit):
    split = sums_alone("rho=0.5", unit)
    assert split.event().rho == pytest.approx(0.5)
    assert split.noise("label sums") == pytest.approx(LABEL_PRODUCTS.under(unit), rel=1e-9)
