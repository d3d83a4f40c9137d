"""Drawn rows: moments in closed form, the sphere, and draws that are replaced."""

import numpy as np
import pytest

from tacit.models.carried import CarriedPosterior
from tacit.models.posterior import ClassPosterior
from tacit.models.rows import unit_rows_about
from tacit.models.synthetic import (
    ROUNDS,
    SyntheticClasses,
    dealt_labels,
    drawn_rows,
    on_sphere,
)

AXES = np.linalg.qr(np.random.default_rng(3).normal(size=(4, 3)))[0]
VARIANCES = np.array([0.5, 0.3, 0.2])
MEANS = np.array([[0.6, 0.1, 0.0], [-0.2, 0.3, 0.0]])
SPREADS = np.array([[0.01, 0.02, 0.03], [0.04, 0.05, 0.06]])
WITHIN = 0.4
COEFFICIENTS = np.array([[3.0, 1.0, 0.0], [1.0, 5.0, 2.0]]) @ AXES.T


def known(n_classes=2):
    posterior = ClassPosterior(
        MEANS[:n_classes], SPREADS[:n_classes], np.ones(n_classes), trust=1.0, within=WITHIN
    )
    return CarriedPosterior(posterior, AXES, VARIANCES, np.ones(n_classes))


def test_centres_have_the_directions_of_coefficients_and_the_length_of_means():
    classes = SyntheticClasses.of(known(), COEFFICIENTS, None)
    grand = [0.2, 0.2, 0.0]
    # half the difference of the coefficients, of squared length 6; that of the means is 0.17
    half = np.array([1.0, -2.0, -1.0]) * np.sqrt(0.17 / 6)
    assert np.allclose(classes.centres, [grand + half, grand - half])
    # the variance within classes, evenly over the axes
    assert np.allclose(classes.deviations**2, SPREADS + WITHIN / 3)


def test_a_single_class_lies_at_its_mean():
    classes = SyntheticClasses.of(known(1), COEFFICIENTS[:1], None)
    assert np.allclose(classes.centres, MEANS[:1])


def test_draws_have_the_moments_of_their_class():
    """Directions of draws have the mean of directions of Gaussian rows, by numbers drawn apart."""
    classes = SyntheticClasses.of(known(), COEFFICIENTS, None)
    n = 40_000
    rows = classes.draw(np.ones(n, np.int64), np.random.default_rng(0))
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)
    assert np.allclose(rows @ AXES @ AXES.T, rows), "rows lie along the axes"

    # E x/|x| of x ~ N(a, D), by an integral over the length: x/|x| = 2/sqrt(pi) int x exp(-|x|^2 t^2)
    times = np.linspace(0, 40, 40_001)
    centre, variances = classes.centres[1], classes.deviations[1] ** 2
    shrink = 1 / (1 + 2 * variances * times[:, None] ** 2)
    weight = np.sqrt(shrink).prod(axis=1) * np.exp(-(centre**2 * shrink) @ np.ones(3) * times**2)
    mean = 2 / np.sqrt(np.pi) * np.trapezoid(weight[:, None] * centre * shrink, times, axis=0)
    deviations = (rows @ AXES).std(axis=0) / np.sqrt(n)
    assert np.all(np.abs((rows @ AXES).mean(axis=0) - mean) < 4.5 * deviations + 1e-4)


def test_rows_on_the_sphere_have_their_direction_about_the_centre():
    rng = np.random.default_rng(0)
    centre = np.array([0.5, -0.6, 0.2, 0.1])
    directions = unit_rows_about(rng.normal(size=(20, 4)), None)
    rows = on_sphere(directions, centre)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)
    assert np.allclose(unit_rows_about(rows, centre), directions)


def test_draws_that_the_release_labels_otherwise_are_replaced():
    classes = SyntheticClasses.of(known(), COEFFICIENTS, None)
    labels = np.arange(300) % 2
    direction = COEFFICIENTS[0] - COEFFICIENTS[1]

    def classify(rows):
        return np.where(rows @ direction > 0, 0, 1)

    rows, unlike = drawn_rows(classes, labels, classify, np.random.default_rng(0))
    assert unlike == 0
    assert classify(rows).tolist() == labels.tolist()
    draws = classes.draw(labels, np.random.default_rng(0))
    assert (classify(draws) != labels).any(), "nothing to replace"


def test_draws_of_a_class_that_is_never_predicted_are_kept_and_counted():
    classes = SyntheticClasses.of(known(), COEFFICIENTS, None)
    calls = []

    def classify(rows):
        calls.append(len(rows))
        return np.zeros(len(rows), np.int64)

    rows, unlike = drawn_rows(classes, np.array([0, 1, 1]), classify, np.random.default_rng(0))
    assert (unlike, calls) == (2, [3] + [2] * (ROUNDS - 1))
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)


@pytest.mark.parametrize(
    ("n", "sizes", "counts"),
    [(7, [1, 1, 1], [3, 2, 2]), (10, [6, 3, 1], [6, 3, 1]), (3, [5, 4, 1], [2, 1, 0])],
)
def test_labels_are_dealt_by_largest_remainders(n, sizes, counts):
    labels = dealt_labels(n, np.array(sizes, float))
    assert np.bincount(labels, minlength=3).tolist() == counts
