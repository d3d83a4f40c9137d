"""From similarities to probabilities: a softmax that keeps the decision.

A row with similarities s_c has the probabilities

    P_c = (1 - even) exp(scale s_c) / sum_k exp(scale s_k) + even / (classes that are possible)

A class of similarity minus infinity is impossible and has probability 0; if all are, they are
equally likely. The most likely class is the one that the decision predicts, also where rounding
would make two probabilities equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.models.rows import Floats

ARRAY = "probabilities"  # among those of a release: scale and even share
LARGEST_SCALE = 1e9

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Probabilities:
    """Rule by which probabilities follow from similarities.

    Parameters
    ----------
    scale : float
        Similarities are multiplied by it, and become logits.
    even : float, default=0.0
        Share of the probability that is spread evenly over the classes.
    """

    scale: float
    even: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.scale <= LARGEST_SCALE:
            raise InputError(
                f"scale={self.scale} must be above 0 and at most {LARGEST_SCALE:g}; correct it"
            )
        if not 0 <= self.even < 1:
            raise InputError(f"even={self.even} must be from 0 to below 1; correct it")

    def arrays(self) -> dict[str, Floats]:
        """The array that a release carries."""
        return {ARRAY: np.array([self.scale, self.even])}

    def of(self, similarities: Floats, nearest: NDArray[np.int64] | None = None) -> Floats:
        """Probabilities of similarities (n, C), of shape (n, C); `nearest` (n,), by default the
        most similar, leads.
        """
        rows = np.arange(len(similarities))
        possible = similarities > -np.inf
        possible[~possible.any(axis=1)] = True
        largest = similarities.max(axis=1, keepdims=True)
        below = np.subtract(
            similarities, largest, out=np.zeros_like(similarities), where=np.isfinite(largest)
        )
        shares = np.exp(self.scale * below)
        shares /= shares.sum(axis=1, keepdims=True)
        shares = (1 - self.even) * shares + self.even * possible / possible.sum(
            axis=1, keepdims=True
        )
        leading = np.argmax(similarities, axis=1) if nearest is None else nearest
        tied = np.flatnonzero(np.argmax(shares, axis=1) != leading)
        shares[rows[tied], leading[tied]] = np.nextafter(shares[tied].max(axis=1), 2.0)
        return np.asarray(shares)


def stated(arrays: Arrays) -> Probabilities | None:
    """Read the rule that the arrays of a release state; None if the release is older than
    probabilities.
    """
    return Probabilities(*map(float, arrays[ARRAY])) if ARRAY in arrays else None


def misfit(arrays: Arrays) -> str | None:
    """Describe the fault of the array; None if it is valid or absent."""
    array = arrays.get(ARRAY)
    if array is None:
        return None
    if array.dtype != np.float64 or array.shape != (2,):
        return (
            f"{ARRAY} of type {array.dtype} and shape {array.shape} must be float64 of shape (2,)"
        )
    try:
        stated(arrays)
    except InputError as error:
        return f"{ARRAY}: {error}"
    return None


def by_spread(similarities: Floats) -> Probabilities:
    """The scale by which similarities (n, C) of some rows have standard deviation 1 about the mean
    of their row.
    """
    finite = np.where(np.isfinite(similarities), similarities, np.nan)
    finite = finite[:, ~np.isnan(finite).all(axis=0)]
    if not finite.size:
        return Probabilities(1.0)
    deviation = float(np.nanstd(finite - np.nanmean(finite, axis=1, keepdims=True)))
    usual = deviation > 1e-9 * max(float(np.nanmax(np.abs(finite))), 1e-300)
    return Probabilities(min(1 / deviation, LARGEST_SCALE) if usual else 1.0)
