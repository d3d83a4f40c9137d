"""Neighbouring data sets for audits: synthetic records, and canaries that match the unit.

Under add-remove a canary is in the data or not; under replace it is itself or its twin, which is
its opposite; under change-label it has one of two labels. Under a unit per person it is a person
with several records, who are in the data or not, themselves or their twin, or have one of two
labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.models.rows import Floats
from tacit.privacy.unit import Unit

CLASSES = 3
WIDTH = 4

# In half precision a sum of more than 2,048 rows cannot change by 1: it stays, or changes by 2.
_MANY = 2049
_SEVERAL = 6

_RECORDS_OF_PERSON = 3


class Data(NamedTuple):
    """Rows (n, d), class indices (n,) and the person of each record (n,)."""

    rows: Floats
    labels: NDArray[np.int64]
    persons: NDArray[np.int64]

    def with_records(self, rows: Floats, labels: NDArray[np.int64]) -> Data:
        """The data with the records of one more person."""
        persons = np.full(len(rows), len(self.persons))
        return Data(
            np.concatenate([self.rows, rows]),
            np.concatenate([self.labels, labels]),
            np.concatenate([self.persons, persons]),
        )


class Record(NamedTuple):
    """A row, and its class."""

    row: Floats
    label: int


@dataclass(frozen=True)
class Pair:
    """Data without the canary, or with its twin, and data with it; what the canary is."""

    without: Data
    with_canary: Data
    canary: str


def pairs(unit: Unit) -> Iterator[Pair]:
    """Pairs of neighbouring data sets, of which an audit takes the one that shows most."""
    for size in (_MANY, _SEVERAL):
        data = base(size)
        for name, canary in canaries().items():
            yield pair(unit, data, canary, f"{name}, {size} records of class 0")
            if unit in (Unit.REPLACE, Unit.REPLACE_PERSON):
                yield of_other_class(data, canary, f"{name}, {size} records of class 0")


def base(size: int) -> Data:
    """Records of class 0 along the first axis, and a few of class 1 along the second; none of class
    2.
    """
    axes = np.eye(WIDTH)
    rows = np.concatenate([np.tile(axes[0], (size, 1)), np.tile(axes[1], (_SEVERAL, 1))])
    labels = np.repeat([0, 1], [size, _SEVERAL])
    return Data(rows, labels, np.arange(len(rows)))


def canaries() -> dict[str, Record]:
    """Records that may move a mechanism most, by name."""
    axes = np.eye(WIDTH)
    return {
        "a record on the axis of its class": Record(axes[0], 0),
        "a record on a free axis": Record(axes[2], 0),
        "a long record on a free axis": Record(100 * axes[2], 0),
        "a record opposite to its class": Record(-axes[0], 0),
        "a record on the axis of the other class": Record(axes[1], 0),
        "a record alone in its class": Record(axes[2], 2),
        "a record alone in its class, reversed": Record(-axes[2], 2),
    }


def pair(unit: Unit, data: Data, canary: Record, name: str) -> Pair:
    """Data without a canary and with it, under this unit."""
    repeats = 1
    if unit.per_person:
        repeats = _RECORDS_OF_PERSON
    rows = np.tile(canary.row, (repeats, 1))
    labels = np.full(repeats, canary.label)
    with_canary = data.with_records(rows, labels)

    if unit in (Unit.ADD_REMOVE, Unit.ADD_REMOVE_PERSON):
        return Pair(data, with_canary, name)
    if unit in (Unit.REPLACE, Unit.REPLACE_PERSON):
        return Pair(data.with_records(-rows, labels), with_canary, f"{name}, or its opposite")
    other_label = data.with_records(rows, (labels + 1) % CLASSES)
    return Pair(other_label, with_canary, f"{name}, or in the other class")


def of_other_class(data: Data, canary: Record, name: str) -> Pair:
    """Data with a canary, and with its opposite in the other class, which replaces it."""
    rows = canary.row[None]
    labels = np.array([canary.label])
    twin = data.with_records(-rows, (labels + 1) % CLASSES)
    return Pair(
        twin, data.with_records(rows, labels), f"{name}, or its opposite in the other class"
    )
