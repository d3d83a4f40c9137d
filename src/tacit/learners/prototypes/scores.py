"""The clipped score of every public record for every class, in exact integers.

u_c(p) = sum over records x of class c of (clip(1 + cos(x, p), d_min, d_max) - d_min), in units of 2^-36.
Unit: add/remove one record. Unit vectors become integers of norm at most N = 2^18 (`mechanisms/rounding.py`), so
N^2 + <x, p> lies in [0, 2 N^2] and is an integer that float64 holds exactly, as is every partial sum of a
product, in any order, block shape or number of threads. Clipped between integers and less the lower one, each
record adds a whole number in [0, W], W = round(d_max N^2) - round(d_min N^2): sensitivity W, monotone, exact.
(Float products are not: adding a record can change the bits of other records' scores.)
Unclipped (d_min = 0, d_max = 2) the sum is n_c N^2 + <p, sum of x>, one product per class; float64 products of
parts of the sum small enough to be exact give the same integers.
Source: Wahdany et al. 2024, section 4; exact form by tacit.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.progress import progress
from tacit.errors import InputError
from tacit.learners.common.parameters import real
from tacit.learners.common.rows import BLOCK_ROWS, Floats, unit_rows_about
from tacit.mechanisms.noise import Integers
from tacit.mechanisms.rounding import integer_rows

NORM = 2**18
_TILE = 1024
_EXACT_BITS = 53
_MOST_ROWS = 2**26  # each adds at most 2^37


def window(d_min: float, d_max: float) -> tuple[int, int]:
    """The clip bounds as integers, in units of NORM^-2.

    Raises
    ------
    InputError
        Unless 0 <= d_min < d_max <= 2, further apart than the integers resolve.
    """
    real("d_min", d_min, 0, 2)
    real("d_max", d_max, 0, 2)
    low, high = round(d_min * NORM**2), round(d_max * NORM**2)
    if high - low < 2**16:
        raise InputError(f"d_min={d_min} must be below d_max={d_max} by 1e-6 at least; leave both out for 0 and 2")
    return low, high


def scores(
    public: NDArray[Any],
    X: NDArray[Any],
    labels: Integers,
    n_classes: int,
    low: int,
    high: int,
    centre: Floats | None = None,
) -> Integers:
    """Exact scores of shape (n_classes, m), between 0 and high - low per record; private.

    Parameters
    ----------
    public : ndarray of shape (m, d)
    X : ndarray of shape (n, d)
        Rows of zeros contribute nothing.
    labels : ndarray of shape (n,), whole numbers below n_classes
    n_classes : int
    low, high : int
        Clip bounds as `window` gives them.
    centre : ndarray of shape (d,), optional
        Public; subtracted from unit rows on both sides, which are then made unit again.
    """
    if len(labels) >= _MOST_ROWS:
        raise InputError(f"{len(labels)} rows could overflow 64-bit scores; learn from fewer than {_MOST_ROWS}")
    order = np.argsort(labels, kind="stable")
    blocks = _nonzero_blocks(X, labels, order, centre)
    if (low, high) == (0, 2 * NORM**2):
        return _unclipped(public, blocks, n_classes, len(X), centre)
    return _clipped(public, blocks, n_classes, len(X), low, high, centre)


def integers(rows: NDArray[Any], centre: Floats | None = None) -> Floats:
    """Unit rows as integers of norm at most NORM, held in float64."""
    return integer_rows(unit_rows_about(rows, centre), NORM).astype(np.float64)


def _nonzero_blocks(
    X: NDArray[Any], labels: Integers, order: Integers, centre: Floats | None
) -> Iterator[tuple[Floats, Integers]]:
    for start in range(0, len(order), _TILE):
        chosen = order[start : start + _TILE]
        rows = integers(X[chosen], centre)
        kept = rows.any(axis=1)
        yield rows[kept], labels[chosen][kept]


def _clipped(
    public: NDArray[Any],
    blocks: Iterator[tuple[Floats, Integers]],
    n_classes: int,
    n: int,
    low: int,
    high: int,
    centre: Floats | None = None,
) -> Integers:
    candidates = integers(public, centre)
    totals = np.zeros((n_classes, len(candidates)), dtype=np.int64)
    for rows, own in progress(blocks, "scores", n, lambda block: len(block[1])):
        present, starts = np.unique(own, return_index=True)
        for tile in (slice(start, start + _TILE) for start in range(0, len(candidates) if len(own) else 0, _TILE)):
            products = rows @ candidates[tile].T
            np.clip(products, low - NORM**2, high - NORM**2, out=products)
            products -= low - NORM**2
            # at most 1024 terms below 2^37: exact in float64
            totals[present, tile] += np.add.reduceat(products, starts, axis=0).astype(np.int64)
    return totals


def _unclipped(
    public: NDArray[Any], blocks: Iterator[tuple[Floats, Integers]], n_classes: int, n: int, centre: Floats | None
) -> Integers:
    sums = np.zeros((n_classes, public.shape[1]), dtype=np.int64)
    counts = np.zeros(n_classes, dtype=np.int64)
    for rows, own in progress(blocks, "class sums", n, lambda block: len(block[1])):
        np.add.at(counts, own, 1)
        present, starts = np.unique(own, return_index=True)
        if len(own):
            sums[present] += np.add.reduceat(rows, starts, axis=0).astype(np.int64)
    tiles = (integers(public[start : start + BLOCK_ROWS], centre) for start in range(0, len(public), BLOCK_ROWS))
    products = [exact_product(tile, sums) for tile in progress(tiles, "scores", len(public), len)]
    return np.concatenate(products, axis=1) + (counts * NORM**2)[:, None]


def exact_product(candidates: Floats, sums: Integers) -> Integers:
    """sums @ candidates.T for integer candidates of norm at most NORM, without overflow of float64's exact range."""
    width = sums.shape[1]
    bits = _EXACT_BITS - NORM.bit_length() + 1 - (width - 1).bit_length()  # |<p, part>| <= sqrt(d) 2^bits NORM
    total = np.zeros((len(sums), len(candidates)), dtype=np.int64)
    rest, shift = np.abs(sums), 0
    while rest.any():
        part = np.sign(sums) * (rest & (2**bits - 1))
        total += (part.astype(np.float64) @ candidates.T).astype(np.int64) << shift
        rest, shift = rest >> bits, shift + bits
    return total
