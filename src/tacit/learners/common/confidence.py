"""The scale of probabilities where neither a posterior nor training gives one: by the spread over
known rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.learners.common.parameters import public_rows
from tacit.models.probabilities import Probabilities, by_spread
from tacit.models.released import Released
from tacit.models.rows import Floats
from tacit.models.spectra import spaced

PUBLIC_ROWS = 1024


def reference_scale(released: Released, width: int, public: Any) -> Probabilities:
    """`by_spread` over public rows or, without them, over the released prototypes or
    coefficients.
    """
    rows = (
        _own_rows(released, width)
        if public is None
        else spaced(public_rows(public, width), PUBLIC_ROWS)
    )
    return by_spread(released.similarities(np.asarray(rows)))


def _own_rows(released: Released, width: int) -> Floats:
    """Prototypes, or the means of sets of them, or coefficients, as rows of this width."""
    arrays = released.arrays
    rows = np.asarray(
        arrays["prototypes" if "prototypes" in arrays else "coefficients"], np.float64
    )
    rows = rows.mean(axis=1) if rows.ndim == 3 else rows
    wide = np.repeat(rows, width // rows.shape[1], axis=1)  # those of pooled columns
    return np.pad(wide, ((0, 0), (0, width - wide.shape[1])))
