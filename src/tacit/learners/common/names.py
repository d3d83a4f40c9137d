"""Rows of class names: public rows, one or several of each class, in the space of the private rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.data.rows import as_rows, check_rows
from tacit.errors import InputError
from tacit.learners.common.parameters import array_of
from tacit.models.rows import Floats, unit_rows, unit_rows_about


def name_directions(names: Any, classes: Any, width: int, centre: Floats | None) -> Floats | None:
    """The direction of each class's names about the public centre, unit rows of shape (C, width); None without names.

    Parameters
    ----------
    names : array of shape (C, width), or sequence of C arrays of shape (k, width) or (width,)
        Rows of each class, in the order of `classes`. Several are made unit rows about the centre, and averaged.
    classes : sequence or int, or None
        The declared class list.

    Raises
    ------
    InputError
        If the class list is not declared, or rows are not finite, of zeros, or not one or more for each class.
    """
    if names is None:
        return None
    if classes is None:
        raise InputError("names need a declared class list, in their order; pass classes=[...] (--classes FILE)")
    n_classes = classes if isinstance(classes, int | np.integer) else len(classes)
    try:
        given = len(names)
    except TypeError as error:
        raise InputError(f"names={names!r:.60} must be rows, one or several of each class; pass an array") from error
    if given != n_classes:
        raise InputError(f"names has rows for {given} classes and the class list {n_classes}; pass one entry a class")
    return np.concatenate([_direction(of_class, c, width, centre) for c, of_class in enumerate(names)])


def _direction(of_class: Any, c: int, width: int, centre: Floats | None) -> Floats:
    rows = array_of(of_class, f"names[{c}]", "pass rows of one width")
    rows = as_rows(rows[None] if rows.ndim == 1 else rows, f"names[{c}]")
    if rows.shape[1] != width:
        raise InputError(f"names[{c}] has shape {rows.shape} and the private rows {width} columns; encode both alike")
    check_rows(rows, name=f"names[{c}]")
    return unit_rows(unit_rows_about(rows, centre).mean(axis=0, keepdims=True))
