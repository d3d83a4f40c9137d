"""Eigenvectors of symmetric matrices and principal axes of rows, in little memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.models.rows import Floats

MOST_AXES = 4096  # of wider rows
MOST_ENTRIES = 2**26  # of the rows whose axes are computed


def eigenvectors(matrix: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues, ascending, and eigenvectors, in columns, of a symmetric matrix, which is
    overwritten.

    It takes the memory of one more matrix, where numpy takes that of four.
    """
    from scipy.linalg import eigh

    values, vectors = eigh(matrix.T, overwrite_a=True, driver="evr")
    return values, vectors


def spectrum(matrix: Floats) -> tuple[Floats, Floats]:
    """Return eigenvalues and eigenvectors of the nearest positive semidefinite matrix.

    `matrix` is overwritten.
    """
    values, vectors = eigenvectors(matrix)
    return np.maximum(values, 0.0), vectors


def principal_axes(rows: Floats) -> tuple[Floats, Floats]:
    """Principal axes of rows (m, d), in the columns of an array (d, p), and mean squares along
    them, largest first.

    All d axes of rows of up to `MOST_AXES` columns. Wider rows have at most `MOST_AXES` axes, which
    span as many evenly spaced rows; they follow from the products of these rows with each other.
    """
    if rows.shape[1] <= MOST_AXES:
        values, axes = eigenvectors(rows.T @ rows / len(rows))
        return np.maximum(values[::-1], 0.0), np.ascontiguousarray(axes[:, ::-1])
    few = spaced(rows, MOST_AXES)
    values, combined = eigenvectors(few @ few.T / len(few))
    # the axes of others are rounding error
    known = np.flatnonzero(values > 1e-10 * values[-1])[::-1]
    if not len(known):
        return np.zeros(1), np.zeros((rows.shape[1], 1))
    axes = few.T @ combined[:, known]
    axes /= np.sqrt(len(few) * values[known])
    return values[known], axes


def spaced(rows: NDArray[Any], most: int) -> NDArray[Any]:
    """At most `most` of the rows, evenly spaced."""
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]
