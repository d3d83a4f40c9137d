"""Sets of labels: which of the declared classes each record has, none of them included.

They come as an array of 0 and 1, one column a class in the order of the class list, or as a list of
the labels of each record; lists are never read as rows of a matrix.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.texts import composed_texts
from tacit.data.labels import class_indices, clean_labels
from tacit.errors import InputError, RowError

# the remedy for lists that may be rows of a matrix
AS_MATRIX = "give an array for one column a class, or a list of labels for each record"


def label_matrix(y: Any, classes: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which classes each record has, of shape (n, K), in the order of `classes`.

    Parameters
    ----------
    y : array-like of shape (n, K), or a list of n lists of labels
        A matrix of 0 and 1 or truth values, dense or sparse, or the labels of each record.
    classes : array of shape (K,)
        The class list, texts in Unicode NFC.

    Raises
    ------
    InputError
        If y has another form, or a label is not in the class list; the error names the row.

    Examples
    --------
    >>> label_matrix([["joy"], [], ["joy", "fear"]], np.array(["fear", "joy"]))
    array([[False,  True],
           [False, False],
           [ True,  True]])
    """
    if hasattr(y, "toarray"):
        # a sparse matrix, which may have too many columns for the memory
        _check_shape(y.shape, classes)
        y = y.toarray()
    if isinstance(y, list | tuple):
        return _of_lists(y, classes)

    matrix = np.asarray(y)
    if matrix.dtype == object and matrix.ndim == 1:
        return _of_lists(matrix.tolist(), classes)
    _check_shape(matrix.shape, classes)
    if matrix.dtype.kind not in "biuf":
        raise InputError(
            f"y has dtype {matrix.dtype}; give a matrix of 0 and 1, or lists of labels"
        )

    outside = (matrix != 0) & (matrix != 1)
    if outside.any():
        row = int(outside.any(axis=1).argmax())
        raise RowError("", row, " of y has an entry that is neither 0 nor 1; correct it")
    return matrix.astype(bool)


def _check_shape(shape: tuple[int, ...], classes: NDArray[Any]) -> None:
    """Refuse a matrix that has not one column for each class."""
    if len(shape) != 2 or shape[1] != len(classes):
        raise InputError(
            f"y has shape {shape}; give one column of 0 and 1 for each of the {len(classes)}"
            " classes, or a list of labels for each record"
        )


def _of_lists(rows: Any, classes: NDArray[Any]) -> NDArray[np.bool_]:
    """Return the matrix of lists, tuples, sets or arrays of labels."""
    matrix = np.zeros((len(rows), len(classes)), dtype=bool)
    record_of_label = []
    sizes = set()
    labels: list[Any] = []
    for record, row in enumerate(rows):
        if isinstance(row, str | bytes) or not hasattr(row, "__iter__"):
            raise RowError("", record, " of y is no list of labels; give a list for each record")
        listed = list(row)
        if any(isinstance(label, bool | np.bool_) for label in listed):
            raise RowError("", record, f" of y is a list of truth values; {AS_MATRIX}")
        labels.extend(listed)
        sizes.add(len(listed))
        record_of_label.extend([record] * len(listed))
    if not labels:
        return matrix
    if _look_like_truth(sizes, labels):
        raise InputError(
            "y has lists of 0 and 1, as many in each, which look like one for each class;"
            f" {AS_MATRIX}"
        )

    try:
        values = composed_texts(clean_labels(labels, len(labels), classes.tolist()))
        columns = class_indices(values, classes)
    except RowError as error:
        # the error counts labels of all records; it should name the record
        raise RowError("", record_of_label[error.row], f" of y{error.after}") from None
    matrix[record_of_label, columns] = True
    return matrix


def _look_like_truth(sizes: set[int], labels: list[Any]) -> bool:
    """Tell whether lists of these sizes are equally long, longer than 2, and hold the numbers 0 and
    1 alone: as labels, these would repeat.
    """
    if len(sizes) != 1 or min(sizes) <= 2:
        return False
    are_whole = all(isinstance(label, int | np.integer) for label in labels)
    return are_whole and set(labels) <= {0, 1}
