"""Several labels a record: sets of labels as callers, files and stores give them, as one matrix.

The matrix, (n, K), is true where a record has the label of a column. Columns are in the order of
the class list. A record may have no label. Labels are compared with classes by the rule of
`tacit.data.labels`, and a label that a record repeats counts once.

| y | labels of a record |
|---|---|
| 2-D array of 0 and 1 or truth values | the columns that are true, in the order of classes |
| sparse matrix | as for an array |
| data frame of truth values | the columns that are true, by their names |
| list of lists, tuples or sets | the class values in it |

`indicators` reads the labels of files and stores, and finds the class list of columns or lists.
`label_matrix` reads the y of a learner beside the class list that it declares.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.memory import available_memory
from tacit.compute.texts import composed_texts
from tacit.data.label_lists import LabelLists, is_set
from tacit.data.labels import (
    MOST_CLASSES,
    ClassValue,
    LabelKind,
    class_indices,
    class_list,
    clean_labels,
    encode_labels,
    is_missing,
)
from tacit.errors import InputError, RowError

# the remedy for lists that may be rows of a matrix
AS_MATRIX = "give an array for one column a class, or a list of labels for each record"


@dataclass(frozen=True, eq=False)
class Indicators:
    """The labels of n records.

    Attributes
    ----------
    matrix : bool array of shape (n, K)
    classes : list of K class values, or None
        None where nothing names the columns: they are in the order of the class list, whatever it
        is.
    """

    matrix: NDArray[np.bool_]
    classes: list[ClassValue] | None

    @property
    def listed(self) -> list[ClassValue]:
        """The class list; columns without names are 0..K-1."""
        if self.classes is None:
            return class_list(self.matrix.shape[1])
        return self.classes

    def recoded(self, classes: list[ClassValue], kind: LabelKind = "value") -> "Indicators":
        """Return the sets with a column for each of other classes; each label must be one of them.

        `kind` is that of `encode_labels`.
        """
        if self.classes is None:
            n_columns = self.matrix.shape[1]
            if n_columns != len(classes):
                raise InputError(
                    f"labels have {n_columns} columns beside {len(classes)} classes; give one"
                    " column for each class, in their order"
                )
            return Indicators(self.matrix, classes)
        if self.classes == classes:
            return self

        # labels that occur, in the order of the first record that has each
        occurring = np.flatnonzero(self.matrix.any(axis=0))
        first_records = self.matrix[:, occurring].argmax(axis=0)
        order = np.argsort(first_records, kind="stable")
        occurring = occurring[order]
        values = composed_texts(np.asarray(self.classes)[occurring])
        with _records_in_errors(first_records[order]):
            columns = encode_labels(values, classes, kind)

        matrix = no_labels(len(self.matrix), len(classes))
        matrix[:, columns] = self.matrix[:, occurring]
        return Indicators(matrix, classes)


def holds_sets(y: Any) -> bool:
    """Tell whether labels are several a record; a matrix of one column is taken for labels of the
    wrong shape.
    """
    if isinstance(y, Indicators | LabelLists) or hasattr(y, "tocsr"):
        return True
    if _is_matrix(y):
        return bool(y.shape[1] != 1)
    if hasattr(y, "__array__"):
        array = np.asarray(y)
        y = array.tolist() if array.dtype.kind == "O" and array.ndim == 1 else None
    if not isinstance(y, list | tuple):
        return False
    return is_set(next((labels for labels in y if not is_missing(labels)), None))


def indicators(
    y: Any, rows: int, classes: list[ClassValue] | None = None, kind: LabelKind = "value"
) -> Indicators:
    """Return the labels of records that may have several, (rows, K), checked.

    Parameters
    ----------
    y : matrix, data frame, list of lists, LabelLists or Indicators
        See the top of this file.
    rows : int
        Number of records.
    classes : list, optional
        The class list; without one it is that of the labels that occur, or of the columns.
    kind : {"value", "index"}
        Meaning of whole numbers in lists beside a list of names.

    Raises
    ------
    InputError
        If labels are missing or not one set a row, or are outside the class list.
    """
    if isinstance(y, Indicators):
        sets = y
    elif isinstance(y, LabelLists):
        sets = _of_lists(y, classes, kind)
    elif _is_matrix(y):
        sets = _of_matrix(y, classes)
    else:
        # columns of polars yield columns
        rows_of_labels = y.to_list() if hasattr(y, "to_list") else y
        sets = _of_lists(LabelLists.of(rows_of_labels), classes, kind)

    if len(sets.matrix) != rows:
        raise InputError(
            f"labels of {len(sets.matrix)} records beside {rows} rows; give one set of labels per"
            " row"
        )
    if classes is None:
        return sets
    return sets.recoded(classes, kind)


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
        return _matrix_of_lists(y, classes)

    matrix = np.asarray(y)
    if matrix.dtype == object and matrix.ndim == 1:
        return _matrix_of_lists(matrix.tolist(), classes)
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


def no_labels(rows: int, n_classes: int) -> NDArray[np.bool_]:
    """Return the matrix of records without labels, (rows, n_classes), unless the memory that is
    free cannot hold it.
    """
    available = available_memory()
    if available is not None and rows * n_classes > available:
        raise InputError(
            f"labels of {rows} records beside {n_classes} classes take {rows * n_classes} bytes of"
            f" memory, and {available} are free; declare fewer classes, or take fewer records"
        )
    return np.zeros((rows, n_classes), dtype=bool)


def labels_to_write(data: Any, rows: Any = slice(None)) -> Any:
    """Return the labels of some rows of a store or file, as another store takes them: sets of
    labels bring the class list of their columns.
    """
    if data.labels is None:
        return None
    labels = data.labels[rows]
    return Indicators(labels, data.classes) if data.several else labels


def _of_matrix(y: Any, classes: list[ClassValue] | None) -> Indicators:
    """Return the sets of a matrix of truth values; columns of a data frame are matched by name."""
    names = None
    # tables of Arrow have their names apart from their columns
    columns = getattr(y, "column_names", getattr(y, "columns", None))
    if columns is not None:
        names = _column_names(list(columns), classes)
    n_columns = int(y.shape[1])
    if n_columns > MOST_CLASSES:
        raise InputError(
            f"labels have {n_columns} columns, more than {MOST_CLASSES}; declare the classes there"
            " are"
        )
    return Indicators(label_matrix(y, np.arange(n_columns)), names)


def _column_names(names: list[Any], classes: list[ClassValue] | None) -> list[ClassValue] | None:
    """Return the classes of columns by their names; None where they are numbered beside texts."""
    if classes is not None and names == list(range(len(classes))):
        return None
    return class_list(names)


def _of_lists(lists: LabelLists, classes: list[ClassValue] | None, kind: LabelKind) -> Indicators:
    """Return the sets of lists of class values; lists of truth values are rows of a matrix."""
    values = lists.values
    are_truth = values.dtype.kind == "b"
    if values.dtype.kind == "O":
        are_truth = all(isinstance(value, bool) for value in values.tolist())
    if len(values) > 0 and are_truth:
        return Indicators(_rows_of_truth(lists), None)

    records = lists.records
    labels: NDArray[Any] = np.empty(0, dtype=np.int64)
    with _records_in_errors(records):
        if len(values):
            labels = clean_labels(values, len(values), classes)
    _refuse_numbers_of_truth(lists, labels)
    if classes is None:
        if not len(labels):
            raise InputError("no record has a label; declare the class list")
        classes = class_list(np.unique(labels).tolist())
    with _records_in_errors(records):
        columns = encode_labels(labels, classes, kind)

    matrix = no_labels(len(lists), len(classes))
    matrix[records, columns] = True
    return Indicators(matrix, classes)


def _rows_of_truth(lists: LabelLists) -> NDArray[np.bool_]:
    """Return lists of truth values, which must be equally long, as a matrix."""
    length = int(lists.sizes[0])
    is_other = lists.sizes != length
    if is_other.any():
        row = int(is_other.argmax())
        raise RowError(
            "",
            row,
            f" has {lists.sizes[row]} truth values as labels, the first row has {length}; give one"
            " for each class",
        )
    matrix: NDArray[np.bool_] = lists.values.astype(bool).reshape(len(lists), length)
    return matrix


def _refuse_numbers_of_truth(lists: LabelLists, labels: NDArray[Any]) -> None:
    """Refuse lists of 0 and 1 that can only be truth values: equally long, each longer than 2."""
    if labels.dtype.kind != "i" or not len(labels) or lists.sizes[0] <= 2:
        return
    are_equal = bool((lists.sizes == lists.sizes[0]).all())
    if are_equal and bool(np.isin(labels, (0, 1)).all()):
        raise InputError(
            "labels are lists of 0 and 1, as many in each row, which look like one for each class;"
            " give truth values (true, false) for that, or lists of class values"
        )


def _is_matrix(y: Any) -> bool:
    """Tell whether labels are an array, a sparse matrix or a data frame of two axes."""
    return len(getattr(y, "shape", ())) == 2


@contextmanager
def _records_in_errors(records: NDArray[Any]) -> Iterator[None]:
    """Name records in errors of the block that name one of many values; `records` has the record of
    each.
    """
    try:
        yield
    except RowError as error:
        raise RowError(error.before, int(records[error.row]), error.after) from error


def _check_shape(shape: tuple[int, ...], classes: NDArray[Any]) -> None:
    """Refuse a matrix that has not one column for each class."""
    if len(shape) != 2 or shape[1] != len(classes):
        raise InputError(
            f"y has shape {shape}; give one column of 0 and 1 for each of the {len(classes)}"
            " classes, or a list of labels for each record"
        )


def _matrix_of_lists(rows: Any, classes: NDArray[Any]) -> NDArray[np.bool_]:
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
