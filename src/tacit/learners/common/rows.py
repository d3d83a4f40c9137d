"""Rows of embeddings, in blocks and on the unit sphere."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.progress import progress

Floats = NDArray[np.float64]

BLOCK_ROWS = 8192


def unit_rows(rows: NDArray[Any]) -> Floats:
    """Rows divided by their Euclidean norm in float64; rows of zeros stay zeros."""
    rows = np.ascontiguousarray(rows, dtype=np.float64)  # bits of a norm must not depend on the other rows
    with np.errstate(over="ignore"):
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
    extreme = ~np.isfinite(norms[:, 0]) | (norms[:, 0] < 1e-150)
    if extreme.any():  # the squares left float64's range: scale these rows by their largest entry first
        rows = rows.copy()
        rows[extreme] /= np.maximum(np.abs(rows[extreme]).max(axis=1, keepdims=True), np.finfo(float).tiny)
        norms[extreme] = np.linalg.norm(rows[extreme], axis=1, keepdims=True)
    return rows / np.where(norms > 0, norms, 1.0)


def blocks(rows: NDArray[Any], labels: NDArray[np.int64], label: str) -> Iterator[tuple[Floats, NDArray[np.int64]]]:
    """Yield float64 blocks of rows with their labels, reporting progress under `label`."""
    starts = range(0, len(rows), BLOCK_ROWS)
    pieces = ((rows[start : start + BLOCK_ROWS], labels[start : start + BLOCK_ROWS]) for start in starts)
    for piece, piece_labels in progress(pieces, label, len(rows), lambda item: len(item[1])):
        yield np.ascontiguousarray(piece, dtype=np.float64), piece_labels
