"""The data of a plan, as workers see them: read from the same files by memory map, never sent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.shared import digest, shared
from tacit.data.arrays import make_arrays
from tacit.data.digits import load_digits_split
from tacit.data.formats.npz import Archive
from tacit.data.formats.sizes import check_width
from tacit.data.imbalance import class_sizes, imbalanced_subset
from tacit.data.imports import Data, read_data, splits
from tacit.data.labels import ClassValue, encode_labels
from tacit.data.rows import check_rows
from tacit.data.splits import first_rows
from tacit.errors import InputError
from tacit.experiments.plan import DataSet

SHUFFLE = 0  # seed: in which order the columns of "scrambled" are
COMPONENTS = 16  # of digits-components
BUILTIN_PUBLIC = ("own", "scrambled")  # other digits, and the same with their columns in another order


@dataclass(frozen=True)
class Source:
    """Where the parts of a data set are, and hashes of what is in them: train, test and the public sets.

    Of `rows` and `test_rows` many records only the first of a shuffle that all cells share are used.
    """

    builtin: str | None
    train: str
    test: str
    public: tuple[tuple[str, str], ...]
    classes: tuple[ClassValue, ...]
    hashes: tuple[tuple[str, str], ...]
    rows: int | None = None
    test_rows: int | None = None

    def hash_of(self, part: str) -> str:
        """Of "train", "test" or `of_public(name)`."""
        return dict(self.hashes)[part]


@dataclass(frozen=True, eq=False)
class Problem:
    """What a cell learns from and is measured on; labels are class indices."""

    x: Any
    y: NDArray[np.int64]
    test_x: Any
    test_y: NDArray[np.int64]
    classes: tuple[ClassValue, ...]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Training records of each class."""
        return np.bincount(self.y, minlength=len(self.classes))


def of_public(name: str) -> str:
    """Under which name a public set's hash is kept, so that none stands for the private data."""
    return f"public {name}"


def opened(data: DataSet, root: Path) -> Source:
    """Find the data of a plan, and check that they fit each other; paths are relative to `root`.

    Raises
    ------
    InputError
        If a part is missing, has no labels, or has another width.
    """
    if data.builtin is not None:
        digits = load_digits_split()
        own = digest([digits.private_x, digits.private_y, digits.test_x, digits.test_y, digits.public_x])
        hashes = tuple((name, own) for name in ("train", "test", *map(of_public, BUILTIN_PUBLIC)))
        public = tuple((name, "") for name in BUILTIN_PUBLIC)
        return Source(data.builtin, "", "", public, tuple(range(10)), hashes, data.rows, data.test_rows)
    train, test = str(root / str(data.train)), str(root / str(data.test))
    public = tuple((name, str(root / path)) for name, path in data.public.items())
    parts = {"train": (train, _read(train, "train"))}
    width = parts["train"][1].x.shape[1]
    parts["test"] = (test, _read(test, "test", width))
    parts |= {of_public(name): (path, _read(path, "train", width)) for name, path in public}
    for path, part in parts.values():
        check_rows(part.x, name=path)
    labels = [_labels(part, path) for path, part in (parts["train"], parts["test"])]
    classes = _classes([parts["train"][1], parts["test"][1]])
    for own_labels in labels:
        encode_labels(own_labels, list(classes))
    hashes = tuple((name, digest([part.content_hash, part.identity])) for name, (_, part) in parts.items())
    return Source(None, train, test, public, classes, hashes, data.rows, data.test_rows)


def _labels(part: Data, path: str) -> NDArray[Any]:
    if part.labels is None:
        raise InputError(f"{path} holds no labels; name a file that has them, or put NAME_targets.npy beside NAME.npy")
    return part.labels


def _read(path: str, role: str, width: int | None = None) -> Data:
    """The part of a file or folder that has the role, or that the path names, as FOLDER#test; pictures become rows."""
    path, _, part = path.partition("#")
    file, role = Path(path), part or role
    if file.suffix == ".npz" and file.is_file():
        if (found := _part_of_npz(file, role, width)) is not None:
            return found
        if part:
            raise InputError(f"{file} has no array {part}_x; name a part that it has, or leave #{part} out")
    several = file.is_dir() and len(splits(path)) > 1
    return read_data(path, split=role if several or part else None, width=width, check=False)


def _part_of_npz(file: Path, role: str, width: int | None) -> Data | None:
    """The arrays train_x and train_y, or those of another role, if the file has them."""
    archive = Archive(file)
    if f"{role}_x" not in archive.names:
        return None
    names = [name for name in (f"{role}_x", f"{role}_y") if name in archive.names]
    shape = archive.header(names[0]).shape
    check_width(file, (*shape[:1], math.prod(shape[1:])), width)
    x, *y = archive.read(names)
    rows = np.atleast_1d(x).reshape(len(np.atleast_1d(x)), -1)
    return make_arrays(rows, y[0] if y else None, (file,), f"{file.stem}-{role}")


def _classes(parts: Sequence[Any]) -> tuple[ClassValue, ...]:
    """The declared classes, or all that occur: an experiment takes them to be public."""
    declared = next((part.classes for part in parts if part.classes_declared), None)
    if declared is not None:
        return tuple(declared)
    labels = [np.asarray(part.labels) for part in parts]
    if len({own.dtype.kind in "iu" for own in labels}) > 1:
        raise InputError("labels of train are numbers and those of test text, or the other way round; make them alike")
    return tuple(np.unique(np.concatenate(labels)).tolist())


@lru_cache(maxsize=2)
def problem(source: Source, imbalance: float, seed: int) -> Problem:
    """The records of a cell. An imbalanced subset is that of all cells with this ratio and seed."""
    x, y, test_x, test_y = _whole(source)
    if imbalance == 1:
        return Problem(x, y, test_x, test_y, source.classes)
    rows = shared(
        "subset",
        lambda: (y, len(source.classes), imbalance, seed),
        lambda: np.sort(imbalanced_subset(y, imbalance, seed, len(source.classes))),
    )
    return Problem(x[rows], y[rows], test_x, test_y, source.classes)


def check_imbalance(source: Source, ratio: float) -> None:
    """Refuse a ratio at which a class of the subset would have no records.

    Raises
    ------
    InputError
        If there is such a class.
    """
    sizes = problem(source, 1.0, 0).sizes
    class_sizes(int(sizes[sizes > 0].min()), len(sizes), ratio)


@lru_cache(maxsize=2)
def public_rows(source: Source, name: str, n: int | None) -> Any:
    """A public set, or n of its rows, the first of the shuffle."""
    rows = _public(source, name)
    if n is None:
        return rows
    if n > len(rows):
        raise InputError(f"public_rows {n} are more than the {len(rows)} rows of {name!r}; lower it, or leave it out")
    return rows[first_rows(len(rows), n)]


@lru_cache(maxsize=2)
def _whole(source: Source) -> tuple[Any, NDArray[np.int64], Any, NDArray[np.int64]]:
    x: Any
    test_x: Any
    if source.builtin is not None:
        parts = load_digits_split()
        x, test_x = (_builtin(source.builtin, rows) for rows in (parts.private_x, parts.test_x))
        y, test_y = parts.private_y, parts.test_y
    else:
        train, test = _read(source.train, "train"), _read(source.test, "test")
        x, test_x = train.x, test.x
        y, test_y = (
            encode_labels(_labels(part, path), list(source.classes)).astype(np.int64)
            for part, path in ((train, source.train), (test, source.test))
        )
    return *_first(x, y, source.rows), *_first(test_x, test_y, source.test_rows)


def _first(x: Any, y: NDArray[np.int64], n: int | None) -> tuple[Any, NDArray[np.int64]]:
    if n is None or n >= len(y):
        return x, y
    chosen = first_rows(len(y), n)
    return x[chosen], y[chosen]


@lru_cache(maxsize=4)
def _public(source: Source, name: str) -> Any:
    if source.builtin is not None:
        rows = _builtin(source.builtin, load_digits_split().public_x)
        return rows if name == "own" else rows[:, np.random.default_rng(SHUFFLE).permutation(rows.shape[1])]
    return _read(dict(source.public)[name], "train").x


def _builtin(name: str, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Digits less the public mean, or their first components; the axes are those of the public rows."""
    public = load_digits_split().public_x
    centre = public.mean(axis=0)
    if name == "digits":
        return np.asarray(rows - centre)
    return np.asarray((rows - centre) @ np.linalg.svd(public - centre, full_matrices=False)[2][:COMPONENTS].T)
