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
from tacit.errors import InputError, RowError
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
        # argsort of argsort: the rank of each person's first record
        _, first_records = np.unique(self.codes, return_index=True)
        return np.argsort(np.argsort(first_records))[self.codes].astype(np.int64)

    @cached_property
    def of_same_person(self) -> Integers:
        """For each record the number of records of its person, of shape (n,)."""
        return self.sizes[self.codes]

    def at(self, rows: Any) -> Persons:
        """The persons of some of the records, by positions or a mask."""
        _, codes = np.unique(self.codes[rows], return_inverse=True)
        return Persons(codes.astype(np.int64))

    def parts(self, most: int) -> Iterator[tuple[Any, Integers]]:
        """Cut the records, ordered by person, so that a part holds whole persons and at most `most`
        records.

        A person with more records is a part alone. Yields the records, as positions or a slice, and
        the end of each person's records within the part. Without records there is one part, which
        is empty.
        """
        order = self._order

        # where the records of each person end, once they are ordered by person; (persons,)
        ends = np.cumsum(self.sizes)
        if len(ends) == 0:
            yield slice(0, 0), ends

        person = 0
        start = 0
        while person < len(ends):
            # persons that end within `most` records, or else the next person alone
            next_person = max(int(np.searchsorted(ends, start + most, side="right")), person + 1)
            stop = int(ends[next_person - 1])
            records = slice(start, stop) if order is None else order[start:stop]
            yield records, ends[person:next_person] - start
            person = next_person
            start = stop

    @cached_property
    def _order(self) -> Integers | None:
        """Positions of records by person, each person's in their order; None if any order will do
        (each person has one record), or if they stand so.
        """
        if self.number == len(self.codes):
            return None
        is_ordered = np.all(self.codes[1:] >= self.codes[:-1])
        if is_ordered:
            return None

        # numpy sorts integers of 16 bits fastest
        narrow_codes = self.codes.astype(np.min_scalar_type(self.number))
        return np.argsort(narrow_codes, kind="stable")


def persons_under(
    unit: Unit, ids: Any, n: int, *, offered: Sequence[Unit], stacklevel: int
) -> Persons | None:
    """Return the persons of n records under a unit per person; None under a unit per record, with a
    warning if there are ids.

    `offered` are the units of the method; the warning names the first of them that is per person.
    `stacklevel` is that of the caller, as in `warnings.warn`.

    Raises
    ------
    InputError
        If a unit per person comes without ids, or `person_codes` refuses them.
    """
    if not unit.per_person:
        if ids is not None:
            warnings.warn(_unused_ids(unit, offered), stacklevel=stacklevel + 1)
        return None

    if ids is None:
        fault = f"unit={unit} needs to know whose each record is"
        raise InputError(f"{fault}; pass persons=..., an id for each record")
    values = canonical_ids(ids)
    message = case_message(values)
    if message is not None:
        warnings.warn(message, PersonIdsWarning, stacklevel=stacklevel + 1)
    return Persons(_codes(values, n))


def _unused_ids(unit: Unit, offered: Sequence[Unit]) -> str:
    """Return the warning that ids are unused under a unit per record."""
    protected = "label" if unit is Unit.CHANGE_LABEL else "record"
    message = f"unit={unit} protects one {protected} at a time, so persons are unused"
    units_per_person = [offered_unit for offered_unit in offered if offered_unit.per_person]
    if not units_per_person:
        return f"{message}; leave them out"
    return f"{message}; pass unit='{units_per_person[0]}' to protect people with all their records"


def person_codes(ids: Any, n: int) -> Integers:
    """Return ids of n records as codes from 0, of shape (n,); equal canonical ids, and no others,
    have equal codes.

    Raises
    ------
    InputError
        If they are not n ids, or `canonical_ids` refuses them. It shows no id.
    """
    return _codes(canonical_ids(ids), n)


def _codes(values: NDArray[Any], n: int) -> Integers:
    """Return the codes of n canonical ids."""
    if len(values) != n:
        raise InputError(f"persons has {len(values)} ids for {n} records; {RULE}")
    if values.dtype.kind in "iu":
        _, codes = np.unique(values, return_inverse=True)
        return codes.astype(np.int64)

    # texts and large integers: a dict tells ids apart even if their hashes are equal
    code_of_id: dict[Any, int] = {}
    code_iterator = (code_of_id.setdefault(value, len(code_of_id)) for value in values.tolist())
    return np.fromiter(code_iterator, np.int64, n)


def stored_ids(ids: Any, n: int) -> NDArray[Any]:
    """Return ids of n records as a store keeps them, of shape (n,): canonical, as int64 or texts.

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

    id_list = values.tolist()
    are_texts = bool(id_list) and isinstance(id_list[0], str)
    can_be_stored = _is_storable_text if are_texts else _fits_64_bits
    for row, value in enumerate(id_list):
        if not can_be_stored(value):
            remedy = f"give texts of at most {MOST_LETTERS} letters, or whole numbers of 64 bits"
            raise RowError("persons has an id that cannot be stored (", row, f"); {remedy}")
    return np.array(id_list, dtype=np.str_ if are_texts else np.int64)


def _is_storable_text(value: str) -> bool:
    """Tell whether a text can be written, and read again by numpy, which drops zero characters at
    the end.
    """
    # half of a surrogate pair cannot be written as UTF-8
    has_half_pair = not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value)
    return not has_half_pair and len(value) <= MOST_LETTERS and not value.endswith("\0")


def _fits_64_bits(value: int) -> bool:
    return -(2**63) <= value < 2**63
