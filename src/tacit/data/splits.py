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
    counts = {
        "n_records": n_records,
        "n_public": n_public,
        "n_test": n_test,
        "n_private": n_private,
        "seed": seed,
    }
    for name, value in counts.items():
        if value is not None and (
            type(value) is bool or not isinstance(value, int | np.integer) or value < 0
        ):
            raise InputError(f"{name}={value!r} must be a whole number, 0 or more; correct it")
    n_records, n_public, n_test = int(n_records), int(n_public), int(n_test)
    private = n_records - n_public - n_test if n_private is None else int(n_private)
    if private < (n_private is None) or private + n_public + n_test > n_records:
        wanted = f"n_public={n_public}, n_test={n_test}" + (
            "" if n_private is None else f", n_private={n_private}"
        )
        rest = " and a private part" if n_private is None else ""
        raise InputError(f"{n_records} records are too few for {wanted}{rest}; ask for fewer")
    sizes = np.array([private, n_public, n_test])
    if persons is None:
        return Split(*_dealt(n_records, np.cumsum(sizes), seed))
    known = Persons.of(persons, n_records)
    ends = np.rint(np.cumsum(sizes) * known.number / n_records).astype(np.int64)
    if ((np.diff(ends, prepend=0) == 0) & (sizes > 0)).any():
        fault = f"{known.number} persons are too few for parts of {sizes.tolist()} records"
        raise InputError(f"{fault}; ask for larger parts, or fewer of them")
    return Split(
        *(np.flatnonzero(np.isin(known.places, part)) for part in _dealt(known.number, ends, seed))
    )


def _dealt(n: int, ends: NDArray[np.int64], seed: int) -> list[NDArray[np.int64]]:
    """Positions 0 to n - 1, shuffled by the seed and cut at `ends`; each part in ascending
    order.
    """
    order = np.random.default_rng([seed, STREAM]).permutation(n)
    return [np.sort(part) for part in np.split(order[: ends[-1]], ends[:-1])]


def first_rows(n_records: int, n: int) -> NDArray[np.int64]:
    """Positions of n records, in ascending order: the first of one shuffle, so that smaller choices
    are in larger.
    """
    return np.sort(np.random.default_rng(0).permutation(n_records)[:n])
