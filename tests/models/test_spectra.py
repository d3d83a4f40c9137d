"""Axes and eigenvectors against numpy's."""

import numpy as np
import pytest

from tacit.models import spectra
from tacit.models.spectra import eigenvectors, principal_axes

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(40, 12)) * np.linspace(2, 0.1, 12)


def test_eigenvectors_are_those_of_numpy_up_to_their_sign():
    matrix = ROWS.T @ ROWS
    expected, others = np.linalg.eigh(matrix)
    values, vectors = eigenvectors(matrix.copy())
    assert np.allclose(values, expected)
    assert np.allclose(np.abs(np.sum(vectors * others, axis=0)), 1)


def test_all_axes_of_narrow_rows():
    values, axes = principal_axes(ROWS)
    assert np.all(np.diff(values) <= 0)
    assert np.allclose(axes.T @ axes, np.eye(12))
    assert np.allclose((axes * values) @ axes.T, ROWS.T @ ROWS / 40)


@pytest.mark.parametrize("rows", [ROWS[:11], ROWS[:3]], ids=["eleven", "three"])
def test_wide_rows_have_the_axes_that_their_products_give(rows, monkeypatch):
    """The same axes as by second moments, as long as there are rows for them."""
    monkeypatch.setattr(spectra, "MOST_AXES", 11)
    values, axes = principal_axes(rows)
    assert axes.shape == (12, len(rows))
    assert np.all(np.diff(values) <= 0)
    assert np.allclose(axes.T @ axes, np.eye(len(rows)))
    assert np.allclose((axes * values) @ axes.T, rows.T @ rows / len(rows))


def test_wide_rows_have_a_limited_number_of_axes(monkeypatch):
    monkeypatch.setattr(spectra, "MOST_AXES", 5)
    values, axes = principal_axes(ROWS)
    few = ROWS[np.linspace(0, 39, 5).astype(int)]
    assert np.allclose((axes * values) @ axes.T, few.T @ few / 5)


def test_rows_without_a_direction_have_an_axis_of_zeros(monkeypatch):
    monkeypatch.setattr(spectra, "MOST_AXES", 5)
    values, axes = principal_axes(np.zeros((7, 12)))
    assert values.tolist() == [0.0]
    assert not axes.any()
    assert axes.shape == (12, 1)
