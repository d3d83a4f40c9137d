"""Rows that a release takes, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.compute.features import array_of, refuse_one_dimension
from tacit.compute.foreign import SparseRows
from tacit.errors import InputError
from tacit.models.rows import check_finite


def checked_rows(X: Any, width: int) -> Any:
    """Return X as rows to predict; refuse what is not finite numbers of shape (n, `width`).

    Rows of a store stay in its files, and those of a sparse matrix stay sparse.
    """
    rows: Any
    if hasattr(X, "tocsr"):
        # a sparse matrix of scipy
        rows = SparseRows(X)
    elif hasattr(X, "shards"):
        # rows of a store
        rows = X
    else:
        values = array_of(X, "X")
        try:
            rows = np.asarray(values)
        except ValueError as error:
            raise InputError("X is ragged; pass an array of numbers of shape (n, d)") from error

    # floats, signed and unsigned whole numbers, and bools
    if rows.dtype.kind not in "fiub":
        raise InputError(f"X has dtype {rows.dtype}, not numbers; pass for example X.astype(float)")
    refuse_one_dimension(rows, "X")
    if rows.ndim != 2 or rows.shape[1] != width:
        fault = f"X has shape {rows.shape} and must have shape (n, {width})"
        raise InputError(f"{fault}; encode as the private rows were")
    check_finite(rows)
    return rows


def some_rows(rows: Any, name: str) -> Any:
    """Return the rows; refuse none."""
    if len(rows) == 0:
        raise InputError(f"{name} holds no rows; leave it out, or pass one row or more")
    return rows
