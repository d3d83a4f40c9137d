"""Sets of labels as people give them: a matrix of 0 and 1, or a list of the labels of each record."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from tacit.data.label_sets import label_matrix
from tacit.errors import InputError

CLASSES = np.array(["fear", "joy", "pride"])
MATRIX = np.array([[0, 1, 0], [0, 0, 0], [1, 1, 0]])


@pytest.mark.parametrize(
    "y",
    [
        MATRIX,
        MATRIX.astype(bool),
        MATRIX.astype(np.float32),
        csr_matrix(MATRIX),
        [["joy"], [], ["joy", "fear"]],
        [{"joy"}, set(), {"fear", "joy"}],
        np.array([["joy"], [], ("fear", "joy")], dtype=object),
    ],
)
def test_every_form_gives_the_same_matrix(y):
    np.testing.assert_array_equal(label_matrix(y, CLASSES), MATRIX.astype(bool))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([["joy"], ["rage"]], "row 1 of y has label 'rage', which is not among the 3 declared"),
        ([["joy"], "fear"], "row 1 of y is no list of labels; give a list for each record"),
        ([["joy"], None], "row 1 of y is no list of labels; give a list for each record"),
        (MATRIX[:, :2], r"y has shape \(3, 2\); give one column of 0 and 1 for each of the 3"),
        (2 * MATRIX, "row 0 of y has an entry that is neither 0 nor 1; correct it"),
        (np.where(MATRIX, np.nan, 0), "row 0 of y has an entry that is neither 0 nor 1"),
        (csr_matrix((3, 10**12)), r"y has shape \(3, 1000000000000\); give one column of 0 and 1"),
        (MATRIX.astype(bool).tolist(), "row 0 of y is a list of truth values; give an array"),
        (list(MATRIX == 1), "row 0 of y is a list of truth values; give an array"),
        (MATRIX.tolist(), "y has lists of 0 and 1, as many in each, .* give an array"),
        (MATRIX.astype(str), "y has dtype <U21; give a matrix of 0 and 1, or lists of labels"),
    ],
)
def test_other_forms_are_refused_by_row(y, message):
    with pytest.raises(InputError, match=message):
        label_matrix(y, CLASSES)


def test_short_lists_of_the_numbers_0_and_1_are_labels():
    truth = label_matrix([[0, 1], [1, 0], [1, 1]], np.arange(3))
    np.testing.assert_array_equal(truth, [[1, 1, 0], [1, 1, 0], [0, 1, 0]])
