"""Rows of embeddings: finite, on the unit sphere, about a public centre, and their inner
products.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.bits import first_not_finite
from tacit.errors import InputError

Floats = NDArray[np.float64]

BLOCK_ROWS = 8192
BLOCK_ENTRIES = 2**22


def check_finite(x: NDArray[Any], name: str = "X") -> None:
    """Refuse NaN and infinity with an error that names the first such row."""
    row = first_not_finite(x) if x.dtype.kind == "f" else None
    if row is not None:
        raise InputError(f"row {row} of {name} is not finite (NaN or infinity); drop or repair it")


def with_lengths(rows: NDArray[Any]) -> tuple[Floats, Floats]:
    """Rows in float64 and their Euclidean norms, (n, 1): rows are unit when divided by them.

    Rows whose squares leave float64's range are first divided by their largest entry; rows of zeros
    get length 1.
    """
    rows = np.ascontiguousarray(rows, dtype=np.float64)
    with np.errstate(over="ignore"):
        # unlike einsum, the same bits for a row alone
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
    usual = (norms > 1e-150) & (norms < 1e150)
    if not usual.all():
        extreme = ~usual[:, 0]
        rows = rows.copy()
        rows[extreme] /= np.maximum(
            np.abs(rows[extreme]).max(axis=1, keepdims=True), np.finfo(float).tiny
        )
        norms[extreme] = np.linalg.norm(rows[extreme], axis=1, keepdims=True)
        norms[norms == 0] = 1.0
    return rows, norms


def unit_rows(rows: NDArray[Any]) -> Floats:
    """Rows divided by their Euclidean norm in float64; rows of zeros stay zeros."""
    rows, lengths = with_lengths(rows)
    return rows / lengths


def with_lengths_about(rows: NDArray[Any], centre: Floats | None) -> tuple[Floats, Floats]:
    """Unit rows less a public centre, and their norms; without a centre, `with_lengths`. Rows of
    zeros stay zeros.

    However far the centre moves a row, it has norm 1 at most once divided, so no sensitivity
    changes.
    """
    if centre is None:
        return with_lengths(rows)
    unit = unit_rows(rows)
    return with_lengths(np.where(unit.any(axis=1, keepdims=True), unit - centre, 0.0))


def unit_rows_about(rows: NDArray[Any], centre: Floats | None) -> Floats:
    """Unit rows less a public centre, made unit again; without a centre, unit rows."""
    result = np.empty(rows.shape)
    for part in row_parts(rows):
        block, lengths = with_lengths_about(rows[part], centre)
        np.divide(block, lengths, out=result[part])
    return result


def block_rows(rows: NDArray[Any]) -> int:
    """Rows of a block, at most `BLOCK_ROWS`, and unless it is 1 with at most `BLOCK_ENTRIES`
    entries.
    """
    return max(1, min(BLOCK_ROWS, BLOCK_ENTRIES // max(int(rows.shape[1]), 1)))


def row_parts(rows: NDArray[Any]) -> list[slice]:
    """Cut rows so that a part has at most `BLOCK_ROWS` rows and, unless it is a single row,
    `BLOCK_ENTRIES` entries.
    """
    length = block_rows(rows)
    return [slice(start, start + length) for start in range(0, len(rows), length)]


def normalisation(centre: Floats | None) -> str:
    """Say in words what `unit_rows_about` does."""
    about = (
        ""
        if centre is None
        else ", less the mean of the unit public rows, and divided by its norm again"
    )
    return f"each row is divided by its Euclidean norm{about}"


def centre_array(centre: Floats | None) -> dict[str, Floats]:
    """The centre among the arrays of a release, where there is one."""
    return {} if centre is None else {"centre": centre}


def inner_products(rows: Floats, others: Floats) -> Floats:
    """Inner products of rows of shapes (b, d) and (C, d), of shape (b, C)."""
    return rows @ others.T


def rowwise_inner_products(rows: Floats, others: Floats) -> Floats:
    """`inner_products`, but each entry by its own two rows alone, to the last bit.

    Columns are added one by one and entry by entry, and IEEE arithmetic rounds every entry by
    itself. The last bits of a matrix product depend on its shape, and so on how many rows there
    are.
    """
    sums = np.zeros((len(others), len(rows)))
    for column, other in zip(rows.T, others.T, strict=True):
        sums += np.multiply.outer(other, column)
    return sums.T
