"""Private, public and test parts of one data set, by position and a seed alone.

What a part holds must not depend on features or labels: a record that changes would move others. So
there is no stratified split here. Under the unit "replace" a record stays in its part. Where
records belong to persons, each person is dealt out whole, by the place of the person's first
record. Parts of N records are shares of the persons, so that a replaced person stays in one part
only if the number of all records stays the same, and if not, others move too.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.persons import Persons
from tacit.errors import InputError

# beside the seed: data that were shuffled by the same seed are split in another order
STREAM = 0x59117


@dataclass(frozen=True, eq=False)
class Split:
    """Positions of each part, in ascending order; no position, and no person, is in two of them.

    Attributes
    ----------
    private, public, test : int64 arrays
        A guarantee holds for records of the private part alone. The features of the public part,
        and all of the test part, are not protected.
    """

    private: NDArray[np.int64]
    public: NDArray[np.int64]
    test: NDArray[np.int64]


def split(
    n_records: int,
    *,
    n_public: int,
    n_test: int = 0,
    n_private: int | None = None,
    seed: int = 0,
    persons: Any = None,
) -> Split:
    """Deal the positions of a data set to a private, a public and a test part.

    Parameters
    ----------
    n_records : int
        Records of the data set.
    n_public, n_test : int
        Records of the public and of the test part; 0 for none.
    n_private : int, optional
        Records of the private part, 0 for none; all that remain by default, at least one.
    seed : int, default=0
        Public.
    persons : sequence of length n_records, optional
        Whose record each is: texts or whole numbers. A part of n records then has the share n /
        n_records of the persons, rounded, with all their records, so that its number of records is
        near n only if persons have about as many records each.

    Raises
    ------
    InputError
        If a number is not whole or is negative, or the parts ask for more records than there are,
        or leave none;
        if there are too few persons for the parts, or persons are missing or not one a record.

    Examples
    --------
    >>> import tacit
    >>> parts = tacit.split(10, n_public=3, n_test=2)
    >>> len(parts.private), len(parts.public), len(parts.test)
    (5, 3, 2)
    >>> visits = ["anna", "bert", "anna", "cleo", "bert", "cleo"]
    >>> tacit.split(6, n_public=2, persons=visits).public.tolist()
    [0, 2]
    """
    _check_counts(
        n_records=n_records, n_public=n_public, n_test=n_test, n_private=n_private, seed=seed
    )
    n_records = int(n_records)
    sizes = _part_sizes(n_records, int(n_public), int(n_test), n_private)
    if persons is None:
        return Split(*_deal(n_records, np.cumsum(sizes), seed))

    # a part gets the same share of the persons as of the records, rounded
    owners = Persons.of(persons, n_records)
    ends = np.rint(np.cumsum(sizes) * owners.number / n_records).astype(np.int64)
    n_persons = np.diff(ends, prepend=0)
    if ((n_persons == 0) & (sizes > 0)).any():
        fault = f"{owners.number} persons are too few for parts of {sizes.tolist()} records"
        raise InputError(f"{fault}; ask for larger parts, or fewer of them")
    places_of_parts = _deal(owners.number, ends, seed)
    return Split(*(np.flatnonzero(np.isin(owners.places, places)) for places in places_of_parts))


def _check_counts(**counts: int | None) -> None:
    """Refuse numbers that are not whole, or negative; None stands for a default."""
    for name, value in counts.items():
        if value is None:
            continue
        is_whole = isinstance(value, int | np.integer) and type(value) is not bool
        if not is_whole or value < 0:
            raise InputError(f"{name}={value!r} must be a whole number, 0 or more; correct it")


def _part_sizes(
    n_records: int, n_public: int, n_test: int, n_private: int | None
) -> NDArray[np.int64]:
    """Return the numbers of private, public and test records, (3,); refuse more than there are."""
    n_others = n_public + n_test
    if n_private is None:
        # all that remain, which must be at least one
        if n_records - n_others < 1:
            parts = f"n_public={n_public}, n_test={n_test} and a private part"
            raise InputError(f"{n_records} records are too few for {parts}; ask for fewer")
        return np.array([n_records - n_others, n_public, n_test])

    n_private = int(n_private)
    if n_private + n_others > n_records:
        parts = f"n_public={n_public}, n_test={n_test}, n_private={n_private}"
        raise InputError(f"{n_records} records are too few for {parts}; ask for fewer")
    return np.array([n_private, n_public, n_test])


def _deal(n: int, ends: NDArray[np.int64], seed: int) -> list[NDArray[np.int64]]:
    """Shuffle the positions 0 to n - 1 by the seed and cut them at `ends`; each part in ascending
    order.
    """
    order = np.random.default_rng([seed, STREAM]).permutation(n)
    parts = np.split(order[: ends[-1]], ends[:-1])
    return [np.sort(part) for part in parts]


def first_rows(n_records: int, n: int) -> NDArray[np.int64]:
    """Return positions of n records, in ascending order: the first of one shuffle, so that smaller
    choices are in larger.
    """
    order = np.random.default_rng(0).permutation(n_records)
    return np.sort(order[:n])
