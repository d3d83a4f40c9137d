"""How released arrays decide: all that a prediction needs, for learners and for releases alike."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.progress import progress
from tacit.errors import InputError
from tacit.learners.common.rows import BLOCK_ROWS, Floats, unit_rows

METRICS = ("cosine", "euclidean")


@dataclass(frozen=True)
class NearestPrototype:
    """The class of a row is that of the nearest prototype.

    Parameters
    ----------
    metric : {"cosine", "euclidean"}
        Cosine similarity, or minus the Euclidean distance. A prototype of zeros has no direction and is
        farthest by cosine.
    pooling : int, default=1
        Rows are first averaged over this many consecutive columns; a remainder is dropped.
    """

    metric: str = "cosine"
    pooling: int = 1

    def __post_init__(self) -> None:
        if self.metric not in METRICS:
            raise InputError(f"metric={self.metric!r} must be one of {', '.join(METRICS)}; pass metric='cosine'")

    def similarities(self, arrays: Mapping[str, NDArray[Any]], rows: NDArray[Any]) -> Floats:
        """How near each row is to each class; larger is nearer.

        Parameters
        ----------
        arrays : mapping with "prototypes", ndarray of shape (C, d) or (C, k, d)
            With k per class, nearness is the mean over the k.
        rows : ndarray of shape (n, d), before pooling

        Returns
        -------
        ndarray of shape (n, C)
        """
        prototypes = np.asarray(arrays["prototypes"], dtype=np.float64)
        if prototypes.ndim == 2:
            prototypes = prototypes[:, None, :]
        nearness = _cosine(prototypes) if self.metric == "cosine" else _euclidean(prototypes)
        result = np.empty((len(rows), len(prototypes)))
        starts = range(0, len(rows), BLOCK_ROWS)
        for start in progress(starts, "predicting", len(rows), lambda start: min(BLOCK_ROWS, len(rows) - start)):
            block = np.asarray(rows[start : start + BLOCK_ROWS], dtype=np.float64)
            result[start : start + BLOCK_ROWS] = nearness(pooled(block, self.pooling))
        return result


def pooled(rows: Floats, pooling: int) -> Floats:
    """Rows of shape (n, d) averaged over `pooling` consecutive columns, of shape (n, d // pooling)."""
    width = rows.shape[1] // pooling
    return rows if pooling == 1 else rows[:, : width * pooling].reshape(len(rows), width, pooling).mean(axis=2)


def _cosine(prototypes: Floats) -> Callable[[Floats], Floats]:
    directions = np.stack([unit_rows(prototypes[:, j]) for j in range(prototypes.shape[1])], axis=1)
    empty = ~directions.any(axis=(1, 2))
    mean = directions.mean(axis=1)

    def nearness(rows: Floats) -> Floats:
        result: Floats = unit_rows(rows) @ mean.T
        result[:, empty] = -np.inf
        return result

    return nearness


def _euclidean(prototypes: Floats) -> Callable[[Floats], Floats]:
    from scipy.spatial.distance import cdist

    def nearness(rows: Floats) -> Floats:
        distances = [cdist(rows, prototypes[:, j]) for j in range(prototypes.shape[1])]
        return np.asarray(-np.mean(distances, axis=0))

    return nearness
