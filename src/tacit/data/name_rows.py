"""Rows of class names as they are passed to learners and stores: checked, and divided by class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.rows import as_rows, check_rows
from tacit.errors import InputError


def rows_by_class(names: Any, n_classes: int, width: int) -> list[NDArray[Any]]:
    """Check rows of class names, and return those of each class, (k, width).

    Parameters
    ----------
    names : array of shape (n_classes, width), or sequence of n_classes arrays of shape (k, width)
    or (width,)

    Raises
    ------
    InputError
        If a row is not finite, all zeros or of another width, or a class has no row.
    """
    from scipy.sparse import issparse

    is_data_frame = hasattr(names, "to_numpy")
    if is_data_frame:
        names = names.to_numpy()
    has_order = hasattr(names, "__iter__") and hasattr(names, "__len__")
    is_number = getattr(names, "ndim", 1) == 0
    if not has_order or is_number or issparse(names) or isinstance(names, str | Mapping):
        fault = f"names={names!r:.60} must be rows of each class, in the order of the classes"
        raise InputError(f"{fault}; pass an array")

    if any(isinstance(entry, str) for entry in names):
        raise InputError(
            "names must be rows, not texts; encode them (tacit.encoding.names.encode_names)"
        )
    if len(names) != n_classes:
        fault = f"names has rows for {len(names)} classes and the class list {n_classes}"
        raise InputError(f"{fault}; pass one entry per class")
    return [_class_rows(entry, f"names[{c}]", width) for c, entry in enumerate(names)]


def _class_rows(entry: Any, name: str, width: int) -> NDArray[Any]:
    """Check the entry of a class, a row or several, and return it as rows, (k, width)."""
    try:
        rows = np.asarray(entry)
    except ValueError as error:
        raise InputError(
            f"{name} has entries of different lengths; pass rows of one width"
        ) from error
    if rows.ndim == 1:
        rows = rows[None]
    rows = np.asarray(as_rows(rows, name))
    if rows.shape[1] != width:
        raise InputError(
            f"{name} has shape {rows.shape} and the private rows {width} columns; encode both the"
            " same way"
        )
    check_rows(rows, name=name)
    return rows
