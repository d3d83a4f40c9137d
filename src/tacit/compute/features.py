"""Features as other libraries hold them, as arrays: a column of vectors, such as the embeddings
of a data frame, and data frames whose types numpy does not have. No such library is imported.
"""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.foreign import of_tensor, refuse_times
from tacit.errors import InputError


def array_of(values: Any, name: str) -> Any:
    """Return tensors, columns of vectors and data frames with missing values of their own as
    arrays; anything else unchanged.

    One row or one column of numbers is refused: nothing says which of them it is.
    """
    refuse_times(values, name)
    if hasattr(values, "columns") and hasattr(values, "dtypes"):
        return _of_frame(values, name)
    if hasattr(values, "num_columns") and values.num_columns == 1:
        # a table of Arrow
        values = values.column(0)

    entries = _column(values)
    if entries is None:
        return of_tensor(values)
    if entries.ndim != 1:
        # an array of polars whose vectors have one stated length
        return entries
    if entries.dtype != object or len(entries) == 0 or isinstance(entries[0], str):
        refuse_one_dimension(entries, name)
        return entries
    return _stacked(entries, name)


def refuse_one_dimension(values: Any, name: str) -> None:
    """Refuse numbers of one dimension, which may be one row or one column; texts pass."""
    if values.ndim == 1 and values.dtype.kind in "biuf":
        raise one_dimension(name)


def one_dimension(name: str) -> InputError:
    """Return the error for one row of numbers, or one column."""
    # scikit-learn's own tests look for the words "Reshape your data"
    return InputError(
        f"{name} has one dimension, and rows have two. Reshape your data: pass one row as"
        f" df.iloc[[0]] (data frame) or {name}[None] (array)"
    )


def _of_frame(frame: Any, name: str) -> Any:
    """Return a data frame of pandas with types that numpy does not have as an array, and a frame
    with one column of vectors as their array; other frames unchanged.
    """
    if len(frame.columns) == 1:
        entries = _column(frame[frame.columns[0]])
        if entries is not None and _holds_vectors(entries):
            return array_of(frame[frame.columns[0]], name)

    # pandas: Float64, Int64 and boolean with NA, and types of Arrow; the kinds are those of numpy
    types = [dtype for dtype in frame.dtypes if not isinstance(dtype, np.dtype)]
    if types and hasattr(frame, "iloc"):
        kinds = {getattr(dtype, "kind", "O") for dtype in frame.dtypes}
        if kinds <= set("biuf"):
            return frame.to_numpy(dtype=np.float64, na_value=np.nan)
    return frame


def _column(values: Any) -> NDArray[Any] | None:
    """Return one column of a table, or an array of objects of one dimension, as an array; None for
    anything else.
    """
    if isinstance(values, np.ndarray):
        is_column = values.ndim == 1 and values.dtype == object
        return values if is_column else None
    if hasattr(values, "columns"):
        return None
    # an array of Arrow, or a chunked one
    if hasattr(values, "to_pylist") and hasattr(values, "type"):
        return np.asarray(values.to_numpy(zero_copy_only=False))
    # a series of pandas or polars
    if hasattr(values, "to_numpy") and hasattr(values, "dtype"):
        return np.asarray(values.to_numpy())
    return None


def _holds_vectors(entries: NDArray[Any]) -> bool:
    """Tell whether a column has vectors as entries."""
    if entries.ndim > 1:
        return True
    if entries.dtype != object or len(entries) == 0:
        return False
    return isinstance(entries[0], list | tuple | np.ndarray)


def _stacked(entries: NDArray[Any], name: str) -> NDArray[Any]:
    """Return vectors of one shape as rows; an error names the first row that differs."""
    # numbers, as in one row of a data frame of several types
    if all(isinstance(entry, Number) for entry in entries[:2]):
        raise one_dimension(name)

    vectors: list[NDArray[Any]] = []
    for row, entry in enumerate(entries):
        vector = _vector(entry)
        if vector is None:
            raise InputError(
                f"{name} row {row} is no vector of numbers; drop that row, or encode texts first"
                " (tacit.Encoder)"
            )
        vectors.append(vector)
        if vector.shape != vectors[0].shape:
            raise InputError(
                f"{name} row {row} has shape {vector.shape}, row 0 has {vectors[0].shape}; make"
                " them equal"
            )
    return np.stack(vectors)


def _vector(entry: Any) -> NDArray[Any] | None:
    """Return an entry of a column as a vector; None if it is missing, or holds other than
    numbers.
    """
    try:
        vector = np.asarray(of_tensor(entry))
    except ValueError:
        return None
    if vector.ndim == 0 or vector.dtype.kind not in "biuf":
        return None
    return vector
