"""Whether a public set holds records of a private one: the same content, nearly the same direction,
or of a person.

What this finds is about private records: it is for their owner, and enters no release.
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
from tacit.data.person_ids import as_texts
from tacit.errors import InputError

NEAR = 0.98
BLOCK_VALUES = 1 << 24
CONTENT = "content"
OVERLAP = "whether public rows are among the private ones (checked by the owner)"
"""What statements of fits that use public rows list as unprotected, whatever was found."""
COMPARED = 64  # columns by which rows are compared before they are compared whole
# share of the smaller data that may be the same by chance, such as a query in the words of a name
MOST_PRIVATE = 0.1


@dataclass(frozen=True, eq=False)
class Overlap:
    """Private rows that a public set has too, as pairs of rows (private, public), of shape (pairs,
    2).

    `same` has the pairs of the same content, with the first such public row, and is empty unless
    both stores hold hashes of the content (`hashed`). `near` has the pairs whose cosine reaches the
    threshold, with the nearest public row, and `cosines` their cosines, (pairs,). `near_names` and
    `names_cosines` are the same with the rows of class names that the public store carries, all
    classes one after another. `persons` is the number of persons with records in both stores, None
    unless both carry ids.
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
    carrier = private if public is None else public
    width, others_width = private.x.shape[1], carrier.x.shape[1]
    if width != others_width:
        raise InputError(
            f"the private rows have {width} columns and the public {others_width}; encode both the"
            " same way"
        )
    if not encoded_alike(private, carrier):
        raise InputError(
            "the private rows are from another encoder than the public rows; encode both the"
            " same way"
        )
    names = np.empty((0, width)) if carrier.names is None else np.concatenate(carrier.names)
    of_names = _near(private.x, names, cosine)
    if public is None:
        return Overlap(
            np.empty((0, 2), np.int64), *_near(private.x, names[:0], cosine), False, *of_names, None
        )
    persons = shared_persons(private, public)
    own, others = _content_hashes(private), _content_hashes(public)
    hashed = own is not None and others is not None
    same = np.empty((0, 2), np.int64) if own is None or others is None else _same(own, others)
    return Overlap(same, *_near(private.x, public.x, cosine), hashed, *of_names, persons)


def shared_persons(one: Data, other: Data) -> int | None:
    """Number of persons with records in both, by their canonical ids; None unless both carry
    ids.
    """
    if one.persons is None or other.persons is None:
        return None
    if one.persons.dtype.kind != other.persons.dtype.kind:
        return len(np.intersect1d(as_texts(one.persons), as_texts(other.persons)))
    return len(np.intersect1d(one.persons, other.persons))


def private_rows(rows: Any, private: Any) -> int:
    """How many of the rows (m, d) are private rows (n, d), entry by entry at the lower of both
    precisions.

    Rows of zeros, which hold nothing of a record, are not counted. The private rows are read once,
    in blocks.

    >>> private = np.arange(12, dtype=np.float16).reshape(4, 3)
    >>> private_rows(np.array([[3, 4, 5], [3, 4, 6], [9, 10, 11.0001]]), private)
    2
    """
    width = rows.shape[1]
    dtype = np.dtype(np.float16 if np.float16 in (rows.dtype, private.dtype) else np.float32)
    columns = np.unique(np.linspace(0, width - 1, min(width, COMPARED)).astype(np.int64))
    weights = np.random.default_rng(0).integers(0, 2**63, len(columns), dtype=np.uint64)
    weights = weights * np.uint64(2) + np.uint64(1)  # odd, so that no bit of an entry is lost

    def keys(block: NDArray[Any]) -> NDArray[np.uint64]:
        """A number for each row, equal for equal rows, from some of the columns."""
        entries = _rounded(block[:, columns], dtype).view(f"u{dtype.itemsize}").astype(np.uint64)
        return np.asarray(entries @ weights)

    # whole rows are compared only where keys are equal, which is seldom
    keys_of_rows = np.concatenate([keys(np.asarray(block)) for block in _parts(rows, width)])
    candidates = np.zeros(len(keys_of_rows), dtype=bool)
    digests: set[bytes] = set()
    for part in _parts(private, width):
        block = np.asarray(part)
        keys_of_block = keys(block)
        same_key = np.isin(keys_of_block, keys_of_rows)
        digests.update(_digest(row) for row in _rounded(block[same_key], dtype) if row.any())
        candidates |= np.isin(keys_of_rows, keys_of_block[same_key])

    number = 0
    for part, chosen in zip(_parts(rows, width), _parts(candidates, width), strict=True):
        whole_rows = _rounded(np.asarray(part)[chosen], dtype)
        number += sum(_digest(row) in digests for row in whole_rows)
    return number


def holds_private(rows: Data, private: Data) -> bool:
    """Whether public rows are private records, or the other way round: more than a tenth of the
    smaller data.
    """
    if rows.content_hash == private.content_hash:
        return True
    return private_rows(rows.x, private.x) > MOST_PRIVATE * min(len(rows.x), len(private.x))


def _parts(array: Any, width: int) -> Iterator[Any]:
    step = max(1, BLOCK_VALUES // width)
    return (array[start : start + step] for start in range(0, len(array), step))


def _rounded(rows: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Rows as this type; zeros have no sign."""
    with np.errstate(over="ignore"):
        return np.asarray(np.ascontiguousarray(rows, dtype=dtype) + dtype.type(0))


def _digest(row: NDArray[Any]) -> bytes:
    return hashlib.blake2b(row.tobytes(), digest_size=16).digest()


def encoded_alike(one: Data, other: Data) -> bool:
    """Whether the weights of both encoders are the same, or not both are stated."""
    encoders = [data.card.get("encoder") for data in (one, other)]
    weights = [
        encoder.get("weights_sha256") if isinstance(encoder, dict) else None for encoder in encoders
    ]
    return None in weights or weights[0] == weights[1]


def _content_hashes(data: Data) -> NDArray[Any] | None:
    """The hash of each record's content, which stores that `tacit encode` made hold."""
    if not isinstance(data, EmbeddingStore):
        return None
    table = data.metadata([CONTENT])
    return np.asarray(table[CONTENT].to_numpy()) if CONTENT in table.column_names else None


def _same(private: NDArray[Any], public: NDArray[Any]) -> NDArray[np.int64]:
    """Pairs of rows with the same hash."""
    first = {value: row for row, value in reversed(list(enumerate(public)))}
    pairs = [(row, first[value]) for row, value in enumerate(private) if value in first]
    return np.array(pairs, np.int64).reshape(-1, 2)


def _near(
    private: Any, public: Any, cosine: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The nearest public row of each private one, where it is near enough; both are read in
    blocks.
    """
    best, where = np.full(len(private), -np.inf), np.zeros(len(private), np.int64)
    step = max(1, BLOCK_VALUES // max(private.shape[1], 4096))
    for start in progress(range(0, len(public), step), "comparing", -(-len(public) // step)):
        others = _unit(public[start : start + step])
        for first in range(0, len(private), step):
            block = slice(first, first + step)
            products = _unit(private[block]) @ others.T
            nearest, cosines = products.argmax(axis=1), products.max(axis=1)
            better = cosines > best[block]
            best[block][better] = cosines[better]
            where[block][better] = nearest[better] + start
    rows = np.flatnonzero(best >= cosine - 1e-6)  # products of float32
    return np.stack([rows, where[rows]], axis=1), best[rows]


def _unit(rows: NDArray[np.floating]) -> NDArray[np.float32]:
    values = np.asarray(rows, np.float32)
    return np.asarray(values / np.linalg.norm(values, axis=1, keepdims=True), np.float32)
