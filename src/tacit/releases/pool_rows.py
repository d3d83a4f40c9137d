"""The hash of public rows, by which labels are joined to the rows that were labelled."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.models.rows import row_parts


def rows_hash(rows: Any) -> str:
    """Return the SHA-256 of rows as numbers, whatever type or file they are stored in."""
    digest = new_digest(rows)
    for part in row_parts(rows):
        digest.update(row_bytes(np.asarray(rows[part])))
    return str(digest.hexdigest())


def new_digest(rows: Any) -> Any:
    """Return a SHA-256 to which the shape of the rows was added."""
    return hashlib.sha256(f"{len(rows)} x {rows.shape[1]}\n".encode())


def row_bytes(block: NDArray[Any]) -> bytes:
    """Return the bytes of rows (b, d) that are hashed."""
    return np.ascontiguousarray(block, dtype="<f8").tobytes()
