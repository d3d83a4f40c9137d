"""Public rows as arrays, and the mean about which rows are centred."""

from typing import Any

import numpy as np

from tacit.compute.shared import cached
from tacit.data.rows import as_rows, checked_blocks
from tacit.errors import InputError
from tacit.models.rows import Floats, unit_rows


def public_rows(public: Any, width: int) -> Any:
    """`public` as rows of shape (m, width); arrays, in memory or mapped, are not copied."""
    rows = as_rows(public, "public")
    if rows.shape[1] != width:
        raise InputError(
            f"public has shape {rows.shape} and the private rows {width} columns; encode both the"
            " same way"
        )
    return rows


def public_centre(public: Any, width: int) -> Floats | None:
    """Return the mean of the unit public rows, of shape (width,); None without public rows."""
    if public is None:
        return None
    rows = public_rows(public, width)
    # within an experiment, cells with the same public rows share the mean
    return cached(_mean_of_unit_rows, rows)


def _mean_of_unit_rows(rows: Any) -> Floats:
    """Return the mean by blocks, since rows may be larger than memory; rows of zeros count."""
    block_sums = (
        unit_rows(block).sum(axis=0)
        for block in checked_blocks(rows, dtype=np.dtype(np.float64), name="public")
    )
    return np.asarray(sum(block_sums) / len(rows))
