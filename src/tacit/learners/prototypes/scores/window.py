"""The window to which 1 + cosine is clipped.

It is two numbers, or quantiles of the similarities among public rows.
"""

from typing import Any

import numpy as np

from tacit.compute.shared import cached
from tacit.errors import InputError
from tacit.learners.common.parameters import real
from tacit.models.rows import Floats, unit_rows_about

# the value of a bound that follows from public rows
PUBLIC = "public"

# quantiles of the similarities, for d_min and d_max
QUANTILES = (0.9, 0.999)

# public rows whose similarities are computed
SAMPLE = 2048

# Least width of a window: 1e-6, the resolution of integer scores, less the error of a difference in
# float64.
NARROWEST = 1e-6 * (1 - 1e-9)


def window_needs_public(d_min: Any, d_max: Any) -> bool:
    """Tell whether a bound follows from public rows, and check the bounds that are numbers."""
    bounds = {"d_min": d_min, "d_max": d_max}
    numbers = {name: bound for name, bound in bounds.items() if not _is_public(bound)}

    for name, bound in numbers.items():
        if isinstance(bound, str):
            raise InputError(
                f"{name}={bound!r} must be {PUBLIC!r} or a number from 0 to 2; correct it"
            )
        real(name, bound, 0, 2)

    if len(numbers) < 2:
        return True
    if float(d_max) - float(d_min) < NARROWEST:
        raise InputError(
            f"d_min={d_min} must be below d_max={d_max} by 1e-6 at least; correct one of them"
        )
    return False


def window(d_min: Any, d_max: Any, public: Any, centre: Floats | None) -> tuple[float, float]:
    """Return the clip bounds as floats, 0 <= d_min < d_max <= 2.

    "public" is 1 plus a quantile of the similarities between pairs of (at most 2048, evenly spaced)
    public rows: .9 for d_min, .999 for d_max. If the two quantiles are equal, as with fewer than
    three rows, the bounds are 0 and 2.
    """
    if not window_needs_public(d_min, d_max):
        return float(d_min), float(d_max)

    # within an experiment, cells with the same public rows share the quantiles
    low, high = cached(_quantiles, public, centre)
    if not _is_public(d_min):
        low = float(d_min)
    if not _is_public(d_max):
        high = float(d_max)

    if high - low < NARROWEST:
        values = (
            f"d_min={d_min!r}, d_max={d_max!r} are {low:.6f} and {high:.6f} with these public rows"
        )
        rule = "d_min must be below d_max by 1e-6 at least"
        raise InputError(f"{values}, and {rule}; pass two numbers, or leave both out")
    return low, high


def _is_public(bound: Any) -> bool:
    return isinstance(bound, str) and bound == PUBLIC


def _quantiles(public: Any, centre: Floats | None) -> tuple[float, float]:
    """Return 1 plus the quantiles, rounded to six digits, so that machines agree.

    They are 0 and 2 if the rounded quantiles are equal.
    """
    # evenly spaced positions, each once, however they are rounded
    n_sampled = min(len(public), SAMPLE)
    sample = np.unique(np.linspace(0, len(public) - 1, n_sampled).astype(np.int64))
    rows = unit_rows_about(np.asarray(public[sample]), centre)

    # each pair of different rows once: what is above the diagonal
    similarities = (rows @ rows.T)[~np.tri(len(rows), dtype=np.bool_)]
    if len(similarities) == 0:
        return 0.0, 2.0

    quantiles = 1 + np.quantile(similarities, QUANTILES)
    low, high = quantiles.round(6).clip(0, 2).tolist()
    if low < high:
        return low, high
    return 0.0, 2.0
