"""The window to which 1 + cosine is clipped: two numbers, or quantiles of the similarities among
public rows.
"""

from typing import Any

import numpy as np

from tacit.compute.shared import cached
from tacit.errors import InputError
from tacit.learners.common.parameters import real
from tacit.models.rows import Floats, unit_rows_about

PUBLIC = "public"
QUANTILES = (0.9, 0.999)  # of similarities, for d_min and d_max
SAMPLE = 2048  # public rows whose similarities are computed
# resolution of the integer scores, less the error of a difference in float64
NARROWEST = 1e-6 * (1 - 1e-9)


def needs_public(d_min: Any, d_max: Any) -> bool:
    """Whether a bound follows from public rows; bounds that are numbers are checked."""
    numbers = {
        name: bound for name, bound in (("d_min", d_min), ("d_max", d_max)) if not _is_public(bound)
    }
    for name, bound in numbers.items():
        if isinstance(bound, str):
            raise InputError(
                f"{name}={bound!r} must be {PUBLIC!r} or a number from 0 to 2; correct it"
            )
        real(name, bound, 0, 2)
    if len(numbers) == 2 and float(d_max) - float(d_min) < NARROWEST:
        raise InputError(
            f"d_min={d_min} must be below d_max={d_max} by 1e-6 at least; correct one of them"
        )
    return len(numbers) < 2


def window(d_min: Any, d_max: Any, public: Any, centre: Floats | None) -> tuple[float, float]:
    """Clip bounds as floats, 0 <= d_min < d_max <= 2.

    "public" is 1 plus a quantile of the similarities between pairs of (at most 2048, evenly spaced)
    public rows: .9 for d_min, .999 for d_max; 0 and 2 if the two quantiles are equal, as with fewer
    than three rows.
    """
    if not needs_public(d_min, d_max):
        return float(d_min), float(d_max)
    bounds = zip((d_min, d_max), cached(_quantiles, public, centre), strict=True)
    low, high = (quantile if _is_public(bound) else float(bound) for bound, quantile in bounds)
    if high - low < NARROWEST:
        bounds_are = (
            f"d_min={d_min!r}, d_max={d_max!r} are {low:.6f} and {high:.6f} with these public rows"
        )
        rule = "d_min must be below d_max by 1e-6 at least"
        raise InputError(f"{bounds_are}, and {rule}; pass two numbers, or leave both out")
    return low, high


def _is_public(bound: Any) -> bool:
    return isinstance(bound, str) and bound == PUBLIC


def _quantiles(public: Any, centre: Floats | None) -> tuple[float, float]:
    """1 plus the quantiles, rounded to six digits so that machines agree; 0 and 2 if they are then
    equal.
    """
    chosen = np.unique(np.linspace(0, len(public) - 1, min(len(public), SAMPLE)).astype(np.int64))
    rows = unit_rows_about(np.asarray(public[chosen]), centre)
    pairs = (rows @ rows.T)[~np.tri(len(rows), dtype=np.bool_)]
    low, high = (
        (1 + np.quantile(pairs, QUANTILES)).round(6).clip(0, 2).tolist()
        if len(pairs)
        else (1.0, 1.0)
    )
    return (low, high) if low < high else (0.0, 2.0)
