"""Directions of class names about the public centre, for learners."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import softmax

from tacit.data.name_rows import rows_by_class
from tacit.errors import InputError
from tacit.models.rows import Floats, row_parts, unit_rows, unit_rows_about

# A mean of unit rows that is shorter is rounding error; a smaller sum of probabilities counts as
# this, so that no row is divided by 0.
LEAST = 1e-9

# Of expectation maximisation: rounds, concentration of a class about its direction, and the number
# of rows as which the name of a class counts.
ROUNDS = 10
CONCENTRATION = 15.0
NAME_WEIGHT = 10.0


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


def adapted_directions(rows: Floats, names: Floats, likelihoods: Floats | None = None) -> Floats:
    """Return directions of the classes after expectation maximisation, unit rows (C, width).

    The public rows are a mixture of von Mises-Fisher distributions of equal shares and
    concentration `CONCENTRATION`. A class has the direction of the sum of its rows, by probability,
    and `NAME_WEIGHT` times its name [Banerjee et al. 2005].

    Parameters
    ----------
    rows : array of shape (n, width)
        Unit rows about the public centre; rows of zeros count for nothing.
    names : array of shape (C, width)
        Unit directions, from which the rounds start.
    likelihoods : array of shape (n, C), optional
        Likelihood of other facts about the rows, under each class.
    """
    directions = names
    for _ in range(ROUNDS):
        sums = NAME_WEIGHT * names
        for part in row_parts(rows):
            # Expectation: the probability of each class for each row, (b, C). Densities are
            # proportional to exp(concentration * cosine), with one constant for all classes.
            shares = softmax(CONCENTRATION * rows[part] @ directions.T, axis=1)
            if likelihoods is not None:
                shares *= likelihoods[part]
                shares /= np.maximum(shares.sum(axis=1, keepdims=True), LEAST)
            sums += shares.T @ rows[part]

        # Maximisation: the direction of a class is that of its weighted sum. With equal shares and
        # concentrations there is nothing else to estimate.
        directions = unit_rows(sums)
    return directions
