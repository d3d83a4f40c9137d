import numpy as np
import pytest

from tacit.errors import InputError
from tacit.learners.common.names import name_directions

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
        (np.eye(2), None, "names need a declared class list, in their order"),
        (np.eye(2), 3, "names has rows for 2 classes and the class list 3"),
        (5, 3, "names=5 must be rows of each class, in the order of the classes; pass an array"),
        (["cat", "dog"], 2, "names must be rows, not texts; encode them"),
        ({"cat": [1.0, 0.0]}, 1, "must be rows of each class"),
        (object(), 2, "must be rows of each class"),
        ([[1.0, 0.0], [np.nan, 1.0]], 2, r"names\[1\]"),
        ([[1.0, 0.0], [0.0, 0.0]], 2, r"names\[1\]"),
        ([[1.0, 0.0], [0.0, 1.0, 2.0]], 2, r"names\[1\] has shape \(1, 3\) and the private rows 2 columns"),
        ([[1.0, 0.0], [[1.0], [0.0, 1.0]]], 2, r"names\[1\] has entries of different lengths"),
        ([[1.0, 0.0], []], 2, r"names\[1\]"),
        ([[1.0, 0.0], [[0.0, 1.0], [0.0, -2.0]]], 2, r"the rows of names\[1\] have no direction"),
    ],
)
def test_bad_names_are_named(names, classes, said):
    with pytest.raises(InputError, match=said):
        name_directions(names, classes, 2, None)
