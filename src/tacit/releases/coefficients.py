"""What each level of a table's columns adds to the scores of a release that decides linearly.

A row of k columns has norm sqrt k, and its score of a class is the sum over columns of

    scale / sqrt(k) * (block of the cell) @ (coefficients of the class, at the column's entries)

plus an intercept, where `scale` turns similarities into logits. A level's block is known, so what
the level adds is known too.

Guarantee: that of the release; post-processing of its arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.models.carried import deciding
from tacit.models.decisions import Decision, LinearHead, NearestPrototype, mean_directions
from tacit.models.probabilities import stated
from tacit.models.rows import Floats
from tacit.models.scaling import Scaling
from tacit.models.table_columns import Embedded
from tacit.models.table_schema import TableSchema
from tacit.releases.columns import TableColumns, loaded, unsafe_encoder

Arrays = Mapping[str, NDArray[Any]]


def unreadable(columns: TableColumns | None, decision: Decision, arrays: Arrays) -> str | None:
    """Describe why levels have no coefficients; None if they have."""
    if not isinstance(columns, TableSchema):
        return "states no schema of a table"
    if unsafe_encoder(columns) is not None:
        return "names an encoder that is code or a file of one machine"
    if Scaling.stated(arrays) is not None:
        return "scales rows by public statistics before it decides"
    is_cosine = (
        isinstance(decision, NearestPrototype)
        and decision.metric == "cosine"
        and decision.pooling == 1
    )
    if not is_cosine and not isinstance(decision, LinearHead):
        return "does not decide by linear scores"
    return None


def by_level(
    columns: TableSchema, decision: Decision, arrays: Arrays
) -> dict[str, dict[str, Floats]]:
    """Return what each level adds to the logits of the classes, (C,), by column and level.

    Columns of texts and pictures are left out: their features have no meaning of their own.
    """
    rule = stated(arrays)
    scale = 1.0 if rule is None else rule.scale
    weights = _weights(decision, deciding(arrays)) * scale / np.sqrt(len(columns.columns))

    result: dict[str, dict[str, Floats]] = {}
    first = 0
    for name, part in loaded(columns).columns.items():
        entries = weights[:, first : first + part.width]
        first += part.width
        if isinstance(part, Embedded):
            continue
        levels, blocks = part.example_blocks()
        result[name] = dict(zip(levels, blocks @ entries.T, strict=True))
    return result


def _weights(decision: Decision, arrays: Arrays) -> Floats:
    """Return the coefficients of the unit row, of shape (C, d)."""
    if isinstance(decision, LinearHead):
        return np.asarray(arrays["coefficients"], np.float64)

    prototypes = np.asarray(arrays["prototypes"], np.float64)
    if prototypes.ndim == 2:
        prototypes = prototypes[:, None, :]
    centre = None
    if isinstance(decision, NearestPrototype) and decision.centred == "rows and prototypes":
        centre = arrays.get("centre")
    directions, _ = mean_directions(prototypes, centre)
    return directions
