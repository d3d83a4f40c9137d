"""Directions of class names about the public centre."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.data.name_rows import rows_by_class
from tacit.errors import InputError
from tacit.models.rows import Floats, unit_rows, unit_rows_about

# A mean of unit rows that is shorter is rounding error.
LEAST = 1e-9


def name_directions(names: Any, classes: Any, width: int, centre: Floats | None) -> Floats | None:
    """Return the direction of each class's names about the public centre, (C, width).

    They are unit rows. Without names there are none (None).

    Parameters
    ----------
    names : array of shape (C, width), or sequence of C arrays of shape (k, width) or (width,)
        Rows of each class, in the order of `classes`. Several are made unit rows about the centre,
        and averaged.
    classes : sequence or int, or None
        The declared class list.
    width : int
        Columns of the private rows.
    centre : array of shape (width,), optional
        The public centre.

    Raises
    ------
    InputError
        If the class list is not declared, a row is not finite, all zeros or of another width, a
        class has no row, or its rows cancel out.
    """
    if names is None:
        return None
    if classes is None:
        raise InputError(
            "names need a declared class list, in their order; pass classes=[...] (--classes FILE)"
        )

    # a declared number of classes stands for the class list 0, 1, ...
    n_classes = classes if isinstance(classes, int | np.integer) else len(classes)
    rows_of_classes = rows_by_class(names, int(n_classes), width)
    directions = [_direction(rows, centre, c) for c, rows in enumerate(rows_of_classes)]
    return np.concatenate(directions)


def _direction(rows: Floats, centre: Floats | None, c: int) -> Floats:
    """Return the direction of the mean of the unit rows of class c, (1, width)."""
    mean = unit_rows_about(rows, centre).mean(axis=0, keepdims=True)
    if np.linalg.norm(mean) < LEAST:
        raise InputError(
            f"the rows of names[{c}] have no direction: as unit rows they cancel out; pass other"
            " ones"
        )
    return unit_rows(mean)
