import numpy as np
import pytest

from tacit.models.set_figures import set_figures


def test_figures_are_means_over_rows_with_intervals_around_them():
    members = np.array([[True, False, True], [True, False, False], [True, True, True]] * 20)
    labels = np.array([2, 1, 0] * 20)
    figures = set_figures(members, labels, 0.9)
    assert figures.coverage == pytest.approx(2 / 3)
    assert figures.mean_size == pytest.approx(2)
    assert figures.single == pytest.approx(1 / 3)
    for value, (low, high) in (
        (figures.coverage, figures.coverage_interval),
        (figures.mean_size, figures.mean_size_interval),
    ):
        assert low < value < high

    # rows of one person are alike, so they tell less
    persons = np.arange(60) % 6
    low, high = set_figures(members, labels, 0.9, persons).coverage_interval
    narrow_low, narrow_high = figures.coverage_interval
    assert high - low > narrow_high - narrow_low
