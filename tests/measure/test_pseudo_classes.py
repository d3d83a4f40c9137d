"""Pseudo-classes of public rows: labels that are drawn, and clusters of a spread."""

import numpy as np
import pytest

from tacit.errors import InputError
from tacit.measure.pseudo_classes import (
    FEWEST_ROWS,
    OVERLAP,
    class_means,
    guessed_spread,
    pseudo_classes_of_clusters,
    pseudo_classes_of_labels,
    spread_of,
    usable_classes,
    with_spread,
)
from tacit.models.rows import unit_rows


@pytest.fixture
def labelled():
    """Rows about eight centres, and their labels."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(8), 50)
    return 2 * rng.normal(size=(8, 12))[labels] + rng.normal(size=(400, 12)), labels


def test_labels_draw_classes_and_leave_the_rows_of_others_public(labelled):
    rows, labels = labelled

    pseudo = pseudo_classes_of_labels(rows, labels, 5, np.random.default_rng(1))

    assert np.bincount(pseudo.labels).tolist() == [50] * 5
    assert pseudo.public.shape == (150, 12)
    # rows of one pseudo-class are rows of one class
    first = pseudo.rows[pseudo.labels == 0]
    origins = {int(labels[np.flatnonzero((rows == row).all(axis=1))[0]]) for row in first}
    assert len(origins) == 1


def test_where_all_classes_are_drawn_a_share_of_each_is_public(labelled):
    rows, labels = labelled

    pseudo = pseudo_classes_of_labels(rows, labels, 8, np.random.default_rng(1))

    assert np.bincount(pseudo.labels).tolist() == [40] * 8
    assert len(pseudo.public) == 80


def test_classes_of_too_few_rows_are_not_drawn():
    labels = np.array([0] * FEWEST_ROWS + [1] * (FEWEST_ROWS - 1) + [3] * FEWEST_ROWS)

    assert usable_classes(labels).tolist() == [0, 3]


@pytest.mark.parametrize("spread", [0.1, 0.6])
def test_rows_are_moved_to_a_spread_and_keep_mean_and_variance(labelled, spread):
    rows, labels = labelled

    moved = with_spread(rows, labels, spread)

    means = class_means(moved, labels)[labels]
    between = ((means - moved.mean(axis=0)) ** 2).sum()
    within = ((moved - means) ** 2).sum()
    np.testing.assert_allclose(between / (between + within), spread)
    np.testing.assert_allclose(moved.mean(axis=0), rows.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(moved.var(axis=0).sum(), rows.var(axis=0).sum())


def test_equal_rows_and_a_single_class_have_no_variance_to_move():
    rows = np.ones((6, 2))

    np.testing.assert_array_equal(with_spread(rows, np.repeat([0, 1], 3), 0.3), rows)
    assert spread_of(rows, np.repeat([0, 1], 3)) == 0


def test_the_spread_of_rows_whose_labels_say_nothing_is_0_in_the_mean():
    rng = np.random.default_rng(0)
    rows = unit_rows(rng.normal(size=(2000, 30)))
    informed = np.argmax(rows[:, :3], axis=1)

    # classes of four rows would seem to have a spread of 1/4 without degrees of freedom
    assert spread_of(rows, rng.permutation(2000) % 500) < 0.01
    assert 0.03 < spread_of(rows, informed) < 0.06


def test_clusters_have_the_spread_up_to_their_overlap(labelled):
    rows, _ = labelled

    pseudo = pseudo_classes_of_clusters(rows, 6, 0.4, np.random.default_rng(2))

    assert pseudo.labels.max() == 5
    assert np.bincount(pseudo.labels).min() >= FEWEST_ROWS
    assert len(pseudo.rows) + len(pseudo.public) == 400
    means = class_means(pseudo.rows, pseudo.labels)
    distances = ((pseudo.rows[:, None] - means) ** 2).sum(axis=2)
    strangers = np.mean(np.argmin(distances, axis=1) != pseudo.labels)
    assert 0 < strangers < 4 * OVERLAP


def test_more_clusters_than_rows_suffice_for_are_refused():
    with pytest.raises(InputError, match="classes=4 are more than the 1 clusters"):
        pseudo_classes_of_clusters(np.ones((12, 3)), 4, 0.3, np.random.default_rng(0))


def test_the_guess_grows_with_the_number_of_classes():
    guesses = [guessed_spread(number) for number in (2, 6, 12, 24, 1000)]

    assert guesses == sorted(guesses)
    assert guesses[0] == guesses[1] < guesses[2] < guesses[3] == guesses[4]
