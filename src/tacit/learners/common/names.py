"""Directions of class names about the public centre, for learners."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from tacit.models.rows import Floats, row_parts, unit_rows

# A mean of unit rows that is shorter is rounding error; a smaller sum of probabilities counts as
# this, so that no row is divided by 0.
LEAST = 1e-9

# Of expectation maximisation: rounds, concentration of a class about its direction, and the number
# of rows as which the name of a class counts.
ROUNDS = 10
CONCENTRATION = 15.0
NAME_WEIGHT = 10.0


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
