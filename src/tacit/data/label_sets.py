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
        # a sparse matrix
        y = y.toarray()
    if isinstance(y, list | tuple):
        return _of_lists(y, classes)

    matrix = np.asarray(y)
    if matrix.dtype == object and matrix.ndim == 1:
        return _of_lists(matrix.tolist(), classes)
    if matrix.ndim != 2 or matrix.shape[1] != len(classes):
        raise InputError(
            f"y has shape {matrix.shape}; give one column of 0 and 1 for each of the"
            f" {len(classes)} classes, or a list of labels for each record"
        )
    if matrix.dtype.kind not in "biuf":
        raise InputError(
            f"y has dtype {matrix.dtype}; give a matrix of 0 and 1, or lists of labels"
        )

    outside = (matrix != 0) & (matrix != 1)
    if outside.any():
        row = int(outside.any(axis=1).argmax())
        raise RowError("", row, " of y has an entry that is neither 0 nor 1; correct it")
    return matrix.astype(bool)


def _of_lists(rows: Any, classes: NDArray[Any]) -> NDArray[np.bool_]:
    """Return the matrix of lists, tuples, sets or arrays of labels."""
    matrix = np.zeros((len(rows), len(classes)), dtype=bool)
    record_of_label = []
    labels: list[Any] = []
    for record, row in enumerate(rows):
        if isinstance(row, str | bytes) or not hasattr(row, "__iter__"):
            raise RowError("", record, " of y is no list of labels; give a list for each record")
        listed = list(row)
        labels.extend(listed)
        record_of_label.extend([record] * len(listed))
    if not labels:
        return matrix

    try:
        values = composed_texts(clean_labels(labels, len(labels), classes.tolist()))
        columns = class_indices(values, classes)
    except RowError as error:
        # the error counts labels of all records; it should name the record
        raise RowError("", record_of_label[error.row], f" of y{error.after}") from None
    matrix[record_of_label, columns] = True
    return matrix
