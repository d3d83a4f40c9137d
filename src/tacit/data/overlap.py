"""Search public data for private records: the same content, nearly the same direction, or the same
person.

The results are about private records: they are for the owner, and enter no release.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.progress import progress
from tacit.data.embeddings import EmbeddingStore
from tacit.data.imports import Data
from tacit.data.origin import CONTENT
from tacit.data.person_ids import as_texts
from tacit.errors import InputError

# cosine from which two rows count as near duplicates
NEAR = 0.98

# entries of a block of rows that is read at a time
BLOCK_VALUES = 1 << 24

OVERLAP = "whether public rows are among the private ones (checked by the owner)"
"""Line under "unprotected" in statements of fits that use public rows, whatever the result."""

# columns by which rows are compared before they are compared whole
COMPARED = 64

# share of the smaller data that may be the same by chance, such as a query in the words of a name
MOST_PRIVATE = 0.1


@dataclass(frozen=True, eq=False)
class Overlap:
    """Private rows that a public set has too, as pairs of rows (private, public).

    Attributes
    ----------
    same : ndarray of shape (pairs, 2)
        Pairs with the same content, with the first such public row. Empty unless `hashed`.
    near : ndarray of shape (pairs, 2)
        Pairs whose cosine reaches the threshold, with the nearest public row.
    cosines : ndarray of shape (pairs,)
        Cosines of `near`.
    hashed : bool
        Whether both stores hold hashes of the content.
    near_names, names_cosines : ndarray
        As `near` and `cosines`, with the rows of class names that the public store carries, all
        classes one after another.
    persons : int or None
        Number of persons with records in both stores; None unless both carry ids.
    """

    same: NDArray[np.int64]
    near: NDArray[np.int64]
    cosines: NDArray[np.float64]
    hashed: bool
    near_names: NDArray[np.int64]
    names_cosines: NDArray[np.float64]
    persons: int | None


def overlap(private: Data, public: Data | None = None, cosine: float = NEAR) -> Overlap:
    """Look for private records in public data, and among the rows of class names that a public
    store carries.

    Parameters
    ----------
    private, public : EmbeddingStore or Arrays
        Of one encoder. Without public data, only the class names that the private store carries are
        compared with its records.
    cosine : float
        Two rows with this cosine or more count as near duplicates.

    Raises
    ------
    InputError
        If the widths differ, or the encoders, or `cosine` is not in (0, 1].
    """
    if not 0 < cosine <= 1:
        raise InputError(
            f"cosine={cosine} must lie above 0 and be 1 at most; leave it out for {NEAR}"
        )
    names_carrier = private if public is None else public
    _check_comparable(private, names_carrier)

    names = np.empty((0, private.x.shape[1]))
    if names_carrier.names is not None:
        names = np.concatenate(names_carrier.names)
    near_names, names_cosines = _near(private.x, names, cosine)

    same = np.empty((0, 2), np.int64)
    near = np.empty((0, 2), np.int64)
    cosines = np.empty(0)
    hashed = False
    persons = None
    if public is not None:
        persons = shared_persons(private, public)
        private_hashes = _content_hashes(private)
        public_hashes = _content_hashes(public)
        if private_hashes is not None and public_hashes is not None:
            hashed = True
            same = _same(private_hashes, public_hashes)
        near, cosines = _near(private.x, public.x, cosine)
    return Overlap(same, near, cosines, hashed, near_names, names_cosines, persons)


def _check_comparable(private: Data, public: Data) -> None:
    """Refuse rows of different widths or encoders."""
    private_width = private.x.shape[1]
    public_width = public.x.shape[1]
    if private_width != public_width:
        raise InputError(
            f"the private rows have {private_width} columns and the public {public_width}; encode"
            " both the same way"
        )
    if not encoded_alike(private, public):
        raise InputError(
            "the private rows are from another encoder than the public rows; encode both the"
            " same way"
        )


def shared_persons(data: Data, other_data: Data) -> int | None:
    """Count the persons with records in both, by their canonical ids; None unless both carry
    ids.
    """
    ids = data.persons
    other_ids = other_data.persons
    if ids is None or other_ids is None:
        return None

    if ids.dtype.kind != other_ids.dtype.kind:
        # numbers and texts: compare both as texts
        ids = as_texts(ids)
        other_ids = as_texts(other_ids)
    return len(np.intersect1d(ids, other_ids))


def private_rows(rows: Any, private: Any) -> int:
    """Count the rows, (m, d), that are private rows, (n, d), entry by entry at the lower of both
    precisions.

    Rows of zeros, which hold nothing of a record, are not counted. The private rows are read once,
    in blocks.

    >>> private = np.arange(12, dtype=np.float16).reshape(4, 3)
    >>> private_rows(np.array([[3, 4, 5], [3, 4, 6], [9, 10, 11.0001]]), private)
    2
    """
    width = rows.shape[1]
    either_float16 = np.float16 in (rows.dtype, private.dtype)
    dtype = np.dtype(np.float16 if either_float16 else np.float32)
    columns, weights = _key_columns(width)

    def row_keys(block: NDArray[Any]) -> NDArray[np.uint64]:
        """Return a number for each row, from some of its columns; equal rows have equal keys."""
        bits = _rounded(block[:, columns], dtype).view(f"u{dtype.itemsize}")
        return np.asarray(bits.astype(np.uint64) @ weights)

    # whole rows are compared only where keys are equal, which is rare
    keys_of_rows = np.concatenate([row_keys(np.asarray(block)) for block in _blocks(rows, width)])
    candidates = np.zeros(len(keys_of_rows), dtype=bool)
    digests: set[bytes] = set()
    for part in _blocks(private, width):
        block = np.asarray(part)
        keys_of_block = row_keys(block)
        same_key = np.isin(keys_of_block, keys_of_rows)
        digests.update(_digest(row) for row in _rounded(block[same_key], dtype) if row.any())
        candidates |= np.isin(keys_of_rows, keys_of_block[same_key])

    count = 0
    for part, candidate in zip(_blocks(rows, width), _blocks(candidates, width), strict=True):
        whole_rows = _rounded(np.asarray(part)[candidate], dtype)
        count += sum(_digest(row) in digests for row in whole_rows)
    return count


def _key_columns(width: int) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return the columns that make up a row's key, evenly spaced, and their random odd weights."""
    columns = np.unique(np.linspace(0, width - 1, min(width, COMPARED)).astype(np.int64))
    numbers = np.random.default_rng(0).integers(0, 2**63, len(columns), dtype=np.uint64)

    # keys are sums modulo 2^64, where an odd factor loses no bit of an entry
    return columns, numbers * np.uint64(2) + np.uint64(1)


def holds_private(rows: Data, private: Data) -> bool:
    """Return whether public rows are private records, or the other way round: more than a tenth of
    the smaller data.
    """
    if rows.content_hash == private.content_hash:
        return True
    return private_rows(rows.x, private.x) > MOST_PRIVATE * min(len(rows.x), len(private.x))


def _blocks(array: Any, width: int) -> Iterator[Any]:
    """Cut an array into the blocks in which rows of this width are read."""
    length = max(1, BLOCK_VALUES // width)
    return (array[start : start + length] for start in range(0, len(array), length))


def _rounded(rows: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return rows as this type; zeros have no sign."""
    with np.errstate(over="ignore"):
        # -0. + 0. is 0.
        return np.asarray(np.ascontiguousarray(rows, dtype=dtype) + dtype.type(0))


def _digest(row: NDArray[Any]) -> bytes:
    return hashlib.blake2b(row.tobytes(), digest_size=16).digest()


def encoded_alike(data: Data, other_data: Data) -> bool:
    """Return whether both encoders have the same weights, or one of them states none."""
    weights = _encoder_weights(data)
    other_weights = _encoder_weights(other_data)
    return weights is None or other_weights is None or weights == other_weights


def _encoder_weights(data: Data) -> Any:
    """Return the hash of the encoder's weights that the card states, if any."""
    encoder = data.card.get("encoder")
    if not isinstance(encoder, dict):
        return None
    return encoder.get("weights_sha256")


def _content_hashes(data: Data) -> NDArray[Any] | None:
    """Return the hash of each record's content, which stores that `tacit encode` made hold."""
    if not isinstance(data, EmbeddingStore):
        return None
    table = data.metadata([CONTENT])
    if CONTENT not in table.column_names:
        return None
    return np.asarray(table[CONTENT].to_numpy())


def _same(private_hashes: NDArray[Any], public_hashes: NDArray[Any]) -> NDArray[np.int64]:
    """Return pairs of rows (private, first public) with the same hash, (pairs, 2)."""
    # backwards, so that the first row of a hash is the last one to be stored
    first_row: dict[Any, int] = {}
    for row in reversed(range(len(public_hashes))):
        first_row[public_hashes[row]] = row

    pairs = [
        (row, first_row[content_hash])
        for row, content_hash in enumerate(private_hashes)
        if content_hash in first_row
    ]
    return np.array(pairs, np.int64).reshape(-1, 2)


def _near(
    private: Any, public: Any, cosine: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return pairs (private row, nearest public row) of at least this cosine, and their cosines.

    Both sides are read in blocks.
    """
    best = np.full(len(private), -np.inf)
    nearest_row = np.zeros(len(private), np.int64)

    # blocks of narrow rows stay short too: the products of two blocks must fit in memory
    length = max(1, BLOCK_VALUES // max(private.shape[1], 4096))
    n_blocks = -(-len(public) // length)
    for start in progress(range(0, len(public), length), "comparing", n_blocks):
        public_rows = _unit(public[start : start + length])
        for first in range(0, len(private), length):
            block = slice(first, first + length)
            products = _unit(private[block]) @ public_rows.T
            nearest = products.argmax(axis=1)
            cosines = products.max(axis=1)

            # the slices of both arrays are views: this writes to the arrays
            better = cosines > best[block]
            best[block][better] = cosines[better]
            nearest_row[block][better] = nearest[better] + start

    # float32 products of equal rows may lie slightly below 1
    rows = np.flatnonzero(best >= cosine - 1e-6)
    return np.stack([rows, nearest_row[rows]], axis=1), best[rows]


def _unit(rows: NDArray[np.floating]) -> NDArray[np.float32]:
    """Scale rows to length 1."""
    values = np.asarray(rows, np.float32)
    return np.asarray(values / np.linalg.norm(values, axis=1, keepdims=True), np.float32)
