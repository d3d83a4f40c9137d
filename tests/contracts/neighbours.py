"""Small data sets with hard cases in them, and their neighbours under each unit."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from contracts.learners import CENTRES, WIDTH
from tacit.privacy.unit import Unit


@dataclass(frozen=True)
class Data:
    """Rows (n, d), labels (n,), and the person of each record (n,)."""

    X: Any
    y: Any
    persons: Any

    def where(self, kept):
        """The records at these positions, or of this mask."""
        return Data(self.X[kept], self.y[kept], self.persons[kept])

    def and_also(self, other):
        """The records of both."""
        pairs = zip((self.X, self.y, self.persons), (other.X, other.y, other.persons), strict=True)
        return Data(*(np.concatenate(pair) for pair in pairs))


def data_sets(size=30):
    """Data sets of `size` records and more, in which classes, rows and persons are of several
    kinds.
    """
    rng = np.random.default_rng(7)
    y = rng.integers(0, 3, size)
    X = CENTRES[y] + rng.normal(size=(size, WIDTH))
    persons = rng.integers(0, max(size // 3, 4), size)
    yield Data(X, y, persons)

    # classes of many, two and one records; the person of the last record has most others too
    y = np.where(np.arange(size) < size - 3, 0, 1)
    y[-1] = 2
    persons = np.where(np.arange(size) % 4 < 2, np.arange(size) // 4, 0)
    persons[-1] = 0
    yield Data(X, y, persons)

    # duplicates, opposite rows, and rows that are huge, tiny and of norm 1; class 2 is empty
    X = np.concatenate([np.repeat(X[:1], size // 3, axis=0), -X[: size // 3], X[: size // 3]])
    lengths = np.resize([1.0, 1e6, 1e-6], len(X))
    X = X * (lengths / np.linalg.norm(X, axis=1))[:, None]
    yield Data(X, np.arange(len(X)) % 2, np.arange(len(X)) // 3)


def neighbours(unit, data, rng, number):
    """Neighbours of a data set: of all kinds that a unit has, in turn."""
    kinds = KINDS[Unit(unit)]
    for i in range(number):
        yield kinds[i % len(kinds)](data, rng)


def stranger(unit, data, rng):
    """A data set that agrees with this one in what the unit makes public, and in nothing else."""
    unit = Unit(unit)
    n = len(data.y)
    y = np.where(rng.random(n) < 0.8, (data.y + 1) % 3, 2)
    if unit in (Unit.CHANGE_LABEL, Unit.CHANGE_LABELS_OF_PERSON):
        return replace(data, y=y)
    other = Data(rng.normal(size=data.X.shape) * 3 - data.X[::-1], y, data.persons)
    if unit is Unit.REPLACE:
        return other
    if unit is Unit.REPLACE_PERSON:
        twice = other.and_also(replace(other, X=-2 * other.X))
        return twice
    return replace(
        other.where(np.arange(n) % 3 > 0), persons=np.arange(n)[np.arange(n) % 3 > 0] // 5
    )


def _row(data, rng):
    """A row that may be hard: opposite to another, its duplicate, huge, tiny, of norm 1, a centre,
    or anything.
    """
    row = data.X[rng.integers(len(data.X))]
    length = max(np.linalg.norm(row), 1e-9)
    choices = [
        -row,
        row,
        1e8 * row,
        1e-8 * row,
        -row / length,
        -CENTRES[rng.integers(3)],
        rng.normal(size=WIDTH),
    ]
    return choices[rng.integers(len(choices))]


def _position(data, rng):
    """A record, often the only one of its class."""
    sizes = np.bincount(data.y, minlength=3)
    alone = np.flatnonzero(sizes[data.y] == 1)
    return (
        int(rng.choice(alone))
        if len(alone) and rng.random() < 0.3
        else int(rng.integers(len(data.y)))
    )


def _removed(data, rng):
    return data.where(np.arange(len(data.y)) != _position(data, rng))


def _added(data, rng):
    new = Data(_row(data, rng)[None], rng.integers(0, 3, 1), data.persons[:1])
    return data.and_also(new)


def _replaced(data, rng):
    at = _position(data, rng)
    X, y = data.X.copy(), data.y.copy()
    X[at] = _row(data, rng)
    y[at] = rng.integers(3)
    return replace(data, X=X, y=y)


def _opposite(data, rng):
    """One record becomes its opposite, in another class."""
    at = _position(data, rng)
    X, y = data.X.copy(), data.y.copy()
    X[at] *= -1
    y[at] = (y[at] + rng.integers(2)) % 3
    return replace(data, X=X, y=y)


def _relabelled(data, rng):
    at = _position(data, rng)
    y = data.y.copy()
    y[at] = (y[at] + 1 + rng.integers(2)) % 3
    return replace(data, y=y)


def _person(data, rng):
    """A person, often the one with most records."""
    ids, sizes = np.unique(data.persons, return_counts=True)
    return ids[np.argmax(sizes)] if rng.random() < 0.3 else rng.choice(ids)


def _person_removed(data, rng):
    return data.where(data.persons != _person(data, rng))


def _records_of_person(data, rng, person):
    """Records of one person: alike or not, in one class or several, few or many."""
    n = int(rng.choice([1, 2, 5, 20]))
    X = np.array([_row(data, rng) for _ in range(n)])
    y = rng.integers(0, 3, n)
    if rng.random() < 0.5:
        X[:] = X[0]
    if rng.random() < 0.5:
        y[:] = y[0]
    return Data(X, y, np.full(n, person))


def _person_added(data, rng):
    return data.and_also(_records_of_person(data, rng, data.persons.max() + 1))


def _record_of_person_added(data, rng):
    """Under a unit per person, each record of a person is protected too."""
    new = Data(_row(data, rng)[None], rng.integers(0, 3, 1), np.array([_person(data, rng)]))
    return data.and_also(new)


def _person_replaced(data, rng):
    """Another person, with another number of records, in the same place of the list of persons."""
    person = _person(data, rng)
    first = int(np.argmax(data.persons == person))
    others = np.flatnonzero(data.persons != person)
    new = _records_of_person(data, rng, person)
    return (
        data.where(others[others < first])
        .and_also(new)
        .and_also(data.where(others[others > first]))
    )


def _person_opposite(data, rng):
    own = data.persons == _person(data, rng)
    return replace(
        data, X=np.where(own[:, None], -data.X, data.X), y=np.where(own, (data.y + 1) % 3, data.y)
    )


def _person_relabelled(data, rng):
    own = data.persons == _person(data, rng)
    shift = 1 + rng.integers(2) if rng.random() < 0.5 else rng.integers(0, 3, len(data.y))
    return replace(data, y=np.where(own, (data.y + shift) % 3, data.y))


KINDS = {
    Unit.ADD_REMOVE: (_removed, _added),
    Unit.REPLACE: (_replaced, _opposite, _relabelled),
    Unit.CHANGE_LABEL: (_relabelled,),
    Unit.ADD_REMOVE_PERSON: (_person_removed, _person_added, _record_of_person_added),
    Unit.REPLACE_PERSON: (_person_replaced, _person_opposite, _person_relabelled),
    Unit.CHANGE_LABELS_OF_PERSON: (_person_relabelled,),
}
