import math

import numpy as np
import pytest

from tacit.errors import InputError
from tacit.mechanisms.noise import ResearchNoise, SecureNoise
from tacit.mechanisms.response_table import ResponseTable


@pytest.mark.parametrize("factor", [1.0, 4.0, 0.3])
def test_rows_are_taken_in_proportion(factor):
    rows = np.array([[0.5, 0.3, 0.2, 0.0], [0.1, 0.1, 0.8, 0.0]])
    table = ResponseTable(factor * rows)
    assert table.matrix() == pytest.approx(rows, abs=1e-15)
    assert [sum(row) for row in table.words] == [2**64, 2**64]
    assert table.epsilon == pytest.approx(math.log(5))


def test_the_smallest_probability_keeps_a_word():
    table = ResponseTable(np.array([[1.0, 1e-300], [1e-300, 1.0]]))
    assert [min(row) for row in table.words] == [1, 1]
    assert table.epsilon == pytest.approx(64 * math.log(2))


@pytest.mark.parametrize(
    "noise", [SecureNoise(), ResearchNoise(0)], ids=lambda source: type(source).__name__
)
def test_outputs_are_drawn_with_their_probabilities(noise):
    rows = np.array([[0.0, 0.6, 0.4], [0.0, 0.2, 0.8]])
    labels = np.repeat([0, 1], 5000)
    found = ResponseTable(rows).sample(labels, noise)
    for label in (0, 1):
        shares = np.bincount(found[labels == label], minlength=3) / 5000
        assert shares[0] == 0
        assert shares == pytest.approx(rows[label], abs=0.04)


def test_a_column_with_zeros_and_others_is_refused():
    with pytest.raises(InputError, match="a column with zeros and others"):
        ResponseTable(np.array([[0.5, 0.5], [1.0, 0.0]]))
