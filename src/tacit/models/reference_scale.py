"""Scale of probabilities by the spread of scores over public or released rows.

For methods where neither a posterior nor training gives a scale.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.models.probabilities import Probabilities, by_spread
from tacit.models.public_rows import public_rows
from tacit.models.released import Released
from tacit.models.rows import Floats
from tacit.models.spectra import spaced

# public rows that are scored, evenly spaced among all
PUBLIC_ROWS = 1024


def reference_scale(released: Released, width: int, public: Any) -> Probabilities:
    """Return `by_spread` over public rows or, without them, over released prototypes."""
    if public is None:
        rows = _released_rows(released, width)
    else:
        rows = spaced(public_rows(public, width), PUBLIC_ROWS)
    return by_spread(released.similarities(np.asarray(rows)))


def _released_rows(released: Released, width: int) -> Floats:
    """Return prototypes, or means of sets of them, or coefficients, as rows of this width."""
    arrays = released.arrays
    name = "prototypes" if "prototypes" in arrays else "coefficients"
    rows = np.asarray(arrays[name], np.float64)
    is_sets = rows.ndim == 3
    if is_sets:
        rows = rows.mean(axis=1)

    # Prototypes of pooled columns are as wide as the rows before pooling, less a remainder.
    pooling = width // rows.shape[1]
    wide = np.repeat(rows, pooling, axis=1)
    return np.pad(wide, ((0, 0), (0, width - wide.shape[1])))
