"""The data of a plan, as workers see them: read from the same files by memory map, never sent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.shared import digest, shared
from tacit.data.arrays import choose, make_arrays
from tacit.data.digits import load_digits_split
from tacit.data.formats.npz import Archive
from tacit.data.ids import is_ids_file, read_ids
from tacit.data.imbalance import imbalanced_subset
from tacit.data.imports import Data, read_data, splits
from tacit.data.labels import ClassValue, encode_labels
from tacit.data.names import carried_names, check_through, names_of
from tacit.data.overlap import holds_private, shared_persons
from tacit.data.rows import check_rows
from tacit.data.sizes import check_width
from tacit.data.splits import first_rows
from tacit.errors import InputError
from tacit.experiments.plan import DataSet

SHUFFLE = 0  # seed: in which order the columns of "scrambled" are
COMPONENTS = 16  # of digits-components
NAMES, PERSONS, CARRIED = "names", "persons", ""
# other digits, and the same with their columns in another order
BUILTIN_PUBLIC = ("own", "scrambled")


@dataclass(frozen=True)
class DataSource:
    """Where the parts of a data set are (train, test and the public sets), and hashes of their
    content.

    With `rows` or `test_rows`, only that many records are used: the first of a shuffle that all
    cells share. `names` is where the rows of class names are: CARRIED if the training store carries
    them, None if there are none. `persons` is that of the plan, a file by its whole path; without
    it the training store may carry ids.
    """

    builtin: str | None
    train: str
    test: str
    public: tuple[tuple[str, str], ...]
    classes: tuple[ClassValue, ...]
    hashes: tuple[tuple[str, str], ...]
    rows: int | None = None
    test_rows: int | None = None
    names: str | None = None
    persons: str | None = None

    @property
    def has_persons(self) -> bool:
        """Whether the training records have ids of persons."""
        return PERSONS in dict(self.hashes)

    def hash_of(self, part: str) -> str:
        """Of "train", "test", "names", "persons" or `of_public(name)`."""
        return dict(self.hashes)[part]


@dataclass(frozen=True, eq=False)
class Records:
    """The training and test records of a cell; labels are class indices, `persons` ids of the
    training records.
    """

    x: Any
    y: NDArray[np.int64]
    test_x: Any
    test_y: NDArray[np.int64]
    classes: tuple[ClassValue, ...]
    persons: NDArray[Any] | None = None

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Training records of each class."""
        return np.bincount(self.y, minlength=len(self.classes))


def of_public(name: str) -> str:
    """The part under which a public set's hash is stored, so that no public set is taken for the
    private data.
    """
    return f"public {name}"


def data_source(data: DataSet, root: Path) -> DataSource:
    """Where the data of a plan are, relative to `root`; InputError if a part is missing, unlabelled
    or too wide.
    """
    if data.builtin is not None:
        digits = load_digits_split()
        content = digest(
            [digits.private_x, digits.private_y, digits.test_x, digits.test_y, digits.public_x]
        )
        hashes = tuple(
            (name, content) for name in ("train", "test", *map(of_public, BUILTIN_PUBLIC))
        )
        public = tuple((name, "") for name in BUILTIN_PUBLIC)
        return DataSource(
            data.builtin, "", "", public, tuple(range(10)), hashes, data.rows, data.test_rows
        )
    train, test = str(root / str(data.train)), str(root / str(data.test))
    public = tuple((name, str(root / path)) for name, path in data.public.items())
    persons, test_persons = (_located(given, root) for given in (data.persons, data.test_persons))
    parts = {"train": (train, _read(train, "train", persons=persons))}
    width = parts["train"][1].x.shape[1]
    parts["test"] = (test, _read(test, "test", width, test_persons))
    parts |= {of_public(name): (path, _read(path, "train", width)) for name, path in public}
    for path, part in parts.values():
        check_rows(part.x, name=path)
    labels = [_labels(part, path) for path, part in (parts["train"], parts["test"])]
    classes = _classes([parts["train"][1], parts["test"][1]])
    for own_labels in labels:
        encode_labels(own_labels, list(classes))
    hashes = tuple(
        (name, digest([part.content_hash, part.identity])) for name, (_, part) in parts.items()
    )
    private, tested = parts["train"][1], parts["test"][1]
    if private.persons is not None:
        hashes = (*hashes, (PERSONS, digest([private.persons])))
    if several := shared_persons(private, tested):
        raise InputError(
            f"{several} persons are both in {train} and in {test}; keep each in one of them (tacit"
            " split)"
        )
    names = CARRIED if private.names is not None else None
    if data.names is not None:
        names = str(root / data.names)
    source = DataSource(
        None, train, test, public, classes, hashes, data.rows, data.test_rows, names, persons
    )
    if names is None:
        return source
    rows = _names(source, private.classes_declared or tested.classes_declared)
    return replace(source, hashes=(*hashes, (NAMES, digest(rows))))


def _labels(part: Data, path: str) -> NDArray[Any]:
    if part.labels is None:
        raise InputError(
            f"{path} holds no labels; name a file that has them, or put NAME_targets.npy beside"
            " NAME.npy"
        )
    return part.labels


def _located(persons: str | None, root: Path) -> str | None:
    """The option by the whole path of its file, if it names a file."""
    return (
        str(root / persons) if persons is not None and is_ids_file(str(root / persons)) else persons
    )


def _read(path: str, role: str, width: int | None = None, persons: str | None = None) -> Data:
    """The part of a file or folder that has the role, or that the path names, as FOLDER#test;
    pictures become rows.
    """
    path, _, part = path.partition("#")
    file, role = Path(path), part or role
    if file.suffix == ".npz" and file.is_file():
        if (found := _part_of_npz(file, role, width, persons)) is not None:
            return found
        if part:
            raise InputError(
                f"{file} has no array {part}_x; name a part that it has, or leave #{part} out"
            )
    several = file.is_dir() and len(splits(path)) > 1
    return read_data(
        path, persons=persons, split=role if several or part else None, width=width, check=False
    )


def _part_of_npz(file: Path, role: str, width: int | None, persons: str | None) -> Data | None:
    """The arrays train_x and train_y, or those of another role, if the file has them."""
    archive = Archive(file)
    if f"{role}_x" not in archive.names:
        return None
    names = [name for name in (f"{role}_x", f"{role}_y") if name in archive.names]
    shape = archive.header(names[0]).shape
    check_width(file, (*shape[:1], math.prod(shape[1:])), width)
    x, *y = archive.read(names)
    rows = np.atleast_1d(x).reshape(len(np.atleast_1d(x)), -1)
    ids = None
    if persons is not None:
        column = (
            None if is_ids_file(persons) else choose(archive.names, persons, (), "persons", file)
        )
        ids = read_ids(persons) if column is None else archive.read([column])[0]
    return make_arrays(rows, y[0] if y else None, (file,), f"{file.stem}-{role}", persons=ids)


def _classes(parts: Sequence[Any]) -> tuple[ClassValue, ...]:
    """The declared classes, or all that occur: an experiment takes them to be public."""
    declared = next((part.classes for part in parts if part.classes_declared), None)
    if declared is not None:
        return tuple(declared)
    labels = [np.asarray(part.labels) for part in parts]
    if len({part.dtype.kind in "iu" for part in labels}) > 1:
        raise InputError(
            "labels of train are numbers and those of test text, or the other way round; use one"
            " type for both"
        )
    return tuple(np.unique(np.concatenate(labels)).tolist())


@lru_cache(maxsize=2)
def records(source: DataSource, imbalance: float, seed: int) -> Records:
    """The records of a cell; all cells with this ratio and seed share the imbalanced subset."""
    whole = _whole(source)
    if imbalance == 1:
        return whole
    y = whole.y
    rows = shared(
        "subset",
        lambda: (y, len(source.classes), imbalance, seed),
        lambda: np.sort(imbalanced_subset(y, imbalance, seed, len(source.classes))),
    )
    persons = None if whole.persons is None else whole.persons[rows]
    return replace(whole, x=whole.x[rows], y=y[rows], persons=persons)


@lru_cache(maxsize=2)
def public_rows(source: DataSource, name: str, n: int | None) -> Any:
    """A public set, or n of its rows, the first of the shuffle."""
    rows = _public(source, name)
    if n is None:
        return rows
    if n > len(rows):
        raise InputError(
            f"public_rows {n} are more than the {len(rows)} rows of {name!r}; lower it, or leave"
            " it out"
        )
    return rows[first_rows(len(rows), n)]


@lru_cache(maxsize=2)
def names_rows(source: DataSource) -> list[NDArray[Any]]:
    """The rows of class names of each class."""
    return _names(source)


def _names(source: DataSource, declared: bool = True) -> list[NDArray[Any]]:
    """The rows of class names; those without labels are refused unless the class list is
    `declared`.
    """
    train = _read(source.train, "train")
    if source.names == CARRIED:
        carried = carried_names(train, source.classes, source.train)
        return [] if carried is None else carried.rows
    read = _read(str(source.names), "train", train.x.shape[1])
    if holds_private(read, train):
        raise InputError(
            f"names: {source.names} are private records; name public rows of each class, or leave"
            " it out"
        )
    check_rows(read.x, name=str(source.names))
    names = names_of(read, source.classes, str(source.names), declared=declared)
    check_through(names, train, f"names: {source.names}")
    return names.rows


@lru_cache(maxsize=2)
def _whole(source: DataSource) -> Records:
    x: Any
    test_x: Any
    persons = None
    if source.builtin is not None:
        parts = load_digits_split()
        x, test_x = (_builtin(source.builtin, rows) for rows in (parts.private_x, parts.test_x))
        y, test_y = parts.private_y, parts.test_y
    else:
        train, test = (
            _read(source.train, "train", persons=source.persons),
            _read(source.test, "test"),
        )
        x, test_x, persons = train.x, test.x, train.persons
        y, test_y = (
            encode_labels(_labels(part, path), list(source.classes)).astype(np.int64)
            for part, path in ((train, source.train), (test, source.test))
        )
    x, y, persons = _first(source.rows, x, y, persons)
    test_x, test_y = _first(source.test_rows, test_x, test_y)
    return Records(x, y, test_x, test_y, source.classes, persons)


def _first(n: int | None, *columns: Any) -> tuple[Any, ...]:
    """The same n entries of each column, or all of them; a column may be None."""
    rows = len(columns[0])
    if n is None or n >= rows:
        return columns
    chosen = first_rows(rows, n)
    return tuple(None if column is None else column[chosen] for column in columns)


@lru_cache(maxsize=4)
def _public(source: DataSource, name: str) -> Any:
    if source.builtin is not None:
        rows = _builtin(source.builtin, load_digits_split().public_x)
        return (
            rows
            if name == "own"
            else rows[:, np.random.default_rng(SHUFFLE).permutation(rows.shape[1])]
        )
    return _read(dict(source.public)[name], "train").x


def _builtin(name: str, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Digits less the public mean, or their first components; the axes are those of the public
    rows.
    """
    public = load_digits_split().public_x
    centre = public.mean(axis=0)
    if name == "digits":
        return np.asarray(rows - centre)
    return np.asarray(
        (rows - centre) @ np.linalg.svd(public - centre, full_matrices=False)[2][:COMPONENTS].T
    )
