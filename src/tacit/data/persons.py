"""Whose each record is: ids of persons, one for each record, and records in the order of persons.

Ids are private. They are compared exactly once they are in the one form of `person_ids`, no message
quotes them, and learners see codes from 0 in their place.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.labels import MOST_LETTERS
from tacit.data.person_ids import RULE, PersonIdsWarning, canonical_ids, case_message
from tacit.errors import InputError
from tacit.privacy.unit import Unit

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Persons:
    """Whose each record is, as codes from 0, of shape (n,); each code up to the largest occurs."""

    codes: Integers

    @classmethod
    def of(cls, ids: Any, n: int) -> Persons:
        """The persons of n records from their ids; an error shows no id."""
        return cls(person_codes(ids, n))

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def sizes(self) -> Integers:
        """Number of records of each person, of shape (persons,)."""
        return np.bincount(self.codes)

    @property
    def number(self) -> int:
        """Number of persons."""
        return len(self.sizes)

    @cached_property
    def places(self) -> Integers:
        """For each record the place of its person, from 0, in the order of the persons' first
        records; (n,).
        """
        firsts = np.unique(self.codes, return_index=True)[1]
        return np.argsort(np.argsort(firsts))[self.codes].astype(np.int64)

    @cached_property
    def of_same_person(self) -> Integers:
        """For each record the number of records of its person, of shape (n,)."""
        return self.sizes[self.codes]

    def at(self, rows: Any) -> Persons:
        """The persons of some of the records, by positions or a mask."""
        return Persons(np.unique(self.codes[rows], return_inverse=True)[1].astype(np.int64))

    def parts(self, most: int) -> Iterator[tuple[Any, Integers]]:
        """Cut the records, ordered by person, so that a part holds whole persons and at most `most`
        records.

        A person with more records is a part alone. Yields the records, as positions or a slice, and
        the end of each person's records within the part. Without records there is one part, which
        is empty.
        """
        order, ends = self._order, np.cumsum(self.sizes)
        if len(ends) == 0:
            yield slice(0, 0), ends
        first = 0
        while first < len(ends):
            start = int(ends[first - 1]) if first else 0
            last = max(int(np.searchsorted(ends, start + most, side="right")), first + 1)
            stop = int(ends[last - 1])
            yield (
                (slice(start, stop) if order is None else order[start:stop]),
                ends[first:last] - start,
            )
            first = last

    @cached_property
    def _order(self) -> Integers | None:
        """Positions of records by person, each in their order; None if they stand so, or each
        person has one record.
        """
        if self.number == len(self.codes) or np.all(self.codes[1:] >= self.codes[:-1]):
            return None
        narrow = self.codes.astype(np.min_scalar_type(self.number))  # of 16 bits are sorted fastest
        return np.argsort(narrow, kind="stable")


def persons_under(
    unit: Unit, ids: Any, n: int, *, offered: Sequence[Unit], stacklevel: int
) -> Persons | None:
    """The persons of n records under a unit per person; None under a unit per record, with a
    warning if ids are given.

    `offered` are the units of the method; the warning names the first of them that is per person.
    `stacklevel` is that of the caller, as in `warnings.warn`.

    Raises
    ------
    InputError
        If a unit per person comes without ids, or `person_codes` refuses them.
    """
    if unit.per_person:
        if ids is None:
            said = f"unit={unit} needs to know whose each record is"
            raise InputError(f"{said}; pass persons=..., an id for each record")
        values = canonical_ids(ids)
        message = case_message(values)
        if message is not None:
            warnings.warn(message, PersonIdsWarning, stacklevel=stacklevel + 1)
        return Persons(_codes(values, n))
    if ids is not None:
        what = "label" if unit is Unit.CHANGE_LABEL else "record"
        others = [other for other in offered if other.per_person]
        remedy = (
            f"pass unit='{others[0]}' to protect people with all their records"
            if others
            else "leave them out"
        )
        said = f"unit={unit} protects one {what} at a time, so persons are unused"
        warnings.warn(f"{said}; {remedy}", stacklevel=stacklevel + 1)
    return None


def person_codes(ids: Any, n: int) -> Integers:
    """Ids of n records as codes from 0, of shape (n,); equal canonical ids, and no others, have
    equal codes.

    Raises
    ------
    InputError
        If they are not n ids, or `canonical_ids` refuses them. It shows no id.
    """
    return _codes(canonical_ids(ids), n)


def _codes(values: NDArray[Any], n: int) -> Integers:
    """Codes of canonical ids."""
    if len(values) != n:
        raise InputError(f"persons has {len(values)} ids for {n} records; {RULE}")
    if values.dtype.kind in "iu":
        return np.unique(values, return_inverse=True)[1].astype(np.int64)
    codes: dict[Any, int] = {}  # compares ids that share a hash
    return np.fromiter(
        (codes.setdefault(value, len(codes)) for value in values.tolist()), np.int64, n
    )


def stored_ids(ids: Any, n: int) -> NDArray[Any]:
    """Ids of n records as a store keeps them, of shape (n,): canonical, as int64 or texts.

    Raises
    ------
    InputError
        As `person_codes` does, and for ids that no file can keep: beyond 64 bits, of more than 500
        letters, or no valid text. It shows no id.
    """
    values = canonical_ids(ids)
    if len(values) != n:
        raise InputError(f"persons has {len(values)} ids for {n} records; {RULE}")
    if values.dtype.kind == "i":
        return values.astype(np.int64)
    listed = values.tolist()
    are_texts = bool(listed) and isinstance(listed[0], str)
    can_be_stored = _is_text if are_texts else _is_small
    row = next((row for row, value in enumerate(listed) if not can_be_stored(value)), None)
    if row is not None:
        fault = f"persons has an id that cannot be stored (row {row})"
        raise InputError(
            f"{fault}; give texts of at most {MOST_LETTERS} letters, or whole numbers of 64 bits"
        )
    return np.array(listed, dtype=np.str_ if are_texts else np.int64)


def _is_text(value: str) -> bool:
    """Tell whether a text can be written, and read again by numpy, which drops zero characters at
    the end.
    """
    valid = value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value)
    return valid and len(value) <= MOST_LETTERS and not value.endswith("\0")


def _is_small(value: int) -> bool:
    return -(2**63) <= value < 2**63
