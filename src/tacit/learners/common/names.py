"""Directions of class names about the public centre, for learners."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import softmax

from tacit.data.name_rows import rows_by_class
from tacit.errors import InputError
from tacit.models.rows import Floats, row_parts, unit_rows, unit_rows_about

LEAST = 1e-9  # length of a mean of unit rows below which it is rounding error
ROUNDS, CONCENTRATION, NAME_WEIGHT = 10, 15.0, 10.0  # of expectation maximisation


def name_directions(names: Any, classes: Any, width: int, centre: Floats | None) -> Floats | None:
    """The direction of each class's names about the public centre, unit rows of shape (C, width);
    None without names.

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
    n_classes = classes if isinstance(classes, int | np.integer) else len(classes)
    return np.concatenate(
        [
            _direction(rows, centre, c)
            for c, rows in enumerate(rows_by_class(names, int(n_classes), width))
        ]
    )


def _direction(rows: Floats, centre: Floats | None, c: int) -> Floats:
    mean = unit_rows_about(rows, centre).mean(axis=0, keepdims=True)
    if np.linalg.norm(mean) < LEAST:
        raise InputError(
            f"the rows of names[{c}] have no direction: as unit rows they cancel out; pass other"
            " ones"
        )
    return unit_rows(mean)


def adapted_directions(rows: Floats, names: Floats, likelihoods: Floats | None = None) -> Floats:
    """Directions of the classes after expectation maximisation over public rows, unit rows of shape
    (C, width).

    The rows are a mixture of von Mises-Fisher distributions of equal shares and concentration
    `CONCENTRATION`. A class has the direction of the sum of its rows, by probability, and
    `NAME_WEIGHT` times its name [Banerjee et al. 2005].

    Parameters
    ----------
    rows : array of shape (n, width)
        Unit rows about the public centre; rows of zeros count for nothing.
    names : array of shape (C, width)
        Unit directions, from which the rounds start.
    likelihoods : array of shape (n, C), optional
        Of what else is known of the rows, under each class.
    """
    directions = names
    for _ in range(ROUNDS):
        sums = NAME_WEIGHT * names
        for part in row_parts(rows):
            shares = softmax(CONCENTRATION * rows[part] @ directions.T, axis=1)
            if likelihoods is not None:
                shares *= likelihoods[part]
                shares /= np.maximum(shares.sum(axis=1, keepdims=True), LEAST)
            sums += shares.T @ rows[part]
        directions = unit_rows(sums)
    return directions
