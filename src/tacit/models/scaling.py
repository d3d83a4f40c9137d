"""Rows scaled by statistics of public rows, before a learner reads them and before its release
decides.

A scaler that was fitted on private rows would be outside the guarantee. This one learns the mean
and the standard deviation of each column from public rows alone, so a release may carry both and
take rows as they were encoded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MEAN, SCALE = "input_mean", "input_scale"  # names of the arrays in a release


@dataclass(frozen=True, eq=False)
class Scaling:
    """Mean to subtract from each column, and scale to divide it by: both of shape
    (d,).
    """

    mean: Floats
    scale: Floats

    @classmethod
    def stated(cls, arrays: Mapping[str, NDArray[Any]]) -> Self | None:
        """The scaling among the arrays of a release; None if it carries none."""
        return cls(arrays[MEAN], arrays[SCALE]) if MEAN in arrays else None

    def arrays(self) -> dict[str, NDArray[Any]]:
        """For a release."""
        return {MEAN: self.mean, SCALE: self.scale}

    def scaled(self, rows: Any) -> Floats:
        """Rows of shape (n, d) after scaling, all of them in memory."""
        if hasattr(rows, "toarray"):
            rows = rows.toarray()
        return np.asarray((np.asarray(rows, dtype=np.float64) - self.mean) / self.scale)


def scaling_misfit(arrays: Mapping[str, NDArray[Any]], width: int) -> str | None:
    """Describe the fault of a scaling of rows of this width; None without a fault or a scaling."""
    stated = [name for name in (MEAN, SCALE) if name in arrays]
    if not stated:
        return None
    if len(stated) == 1:
        return f"{stated[0]} needs the other one of {MEAN} and {SCALE}"
    for name in stated:
        array = arrays[name]
        if array.dtype != np.float64 or array.shape != (width,):
            return (
                f"{name} of type {array.dtype} and shape {array.shape} must be float64 of shape"
                f" ({width},)"
            )
    if not (arrays[SCALE] > 0).all():
        return f"{SCALE} must be above 0"
    return None
