import numpy as np
import pytest

from messages import stating
from tacit.errors import InputError
from tacit.models.name_directions import name_directions

CENTRE = np.array([0.5, 0.0])


def test_one_row_a_class_is_made_unit_about_the_centre():
    found = name_directions([[2.0, 0.0], [0.0, 3.0]], 2, 2, CENTRE)
    expected = np.array([[1.0, 0.0], np.array([-0.5, 1.0]) / np.hypot(0.5, 1.0)])
    assert np.allclose(found, expected, rtol=0, atol=1e-15)


def test_several_rows_of_a_class_are_averaged_as_unit_rows():
    found = name_directions([[[9.0, 0.0], [0.0, 1.0]], [0.0, 5.0]], ["a", "b"], 2, None)
    assert np.allclose(found, [[np.sqrt(0.5), np.sqrt(0.5)], [0.0, 1.0]], rtol=0, atol=1e-15)


def test_no_names_give_none():
    assert name_directions(None, None, 2, None) is None


@pytest.mark.parametrize(
    ("names", "classes", "said"),
    [
        (np.eye(2), None, stating("names", "declared class list")),
        (np.eye(2), 3, stating("names", "2 classes", "3")),
        (5, 3, stating("names=5", "array")),
        (["cat", "dog"], 2, stating("names", "texts", "encode")),
        ({"cat": [1.0, 0.0]}, 1, stating("rows of each class")),
        (object(), 2, stating("rows of each class")),
        ([[1.0, 0.0], [np.nan, 1.0]], 2, r"names\[1\]"),
        ([[1.0, 0.0], [0.0, 0.0]], 2, r"names\[1\]"),
        ([[1.0, 0.0], [0.0, 1.0, 2.0]], 2, stating("names[1]", "(1, 3)", "2 columns")),
        ([[1.0, 0.0], [[1.0], [0.0, 1.0]]], 2, stating("names[1]", "lengths")),
        ([[1.0, 0.0], []], 2, r"names\[1\]"),
        ([[1.0, 0.0], [[0.0, 1.0], [0.0, -2.0]]], 2, stating("names[1]", "direction")),
    ],
)
def test_bad_names_are_named(names, classes, said):
    with pytest.raises(InputError, match=said):
        name_directions(names, classes, 2, None)
