"""The data of a plan, as workers see them: read from the same files by memory map, never sent."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
from tacit.data.imports import Data, read_data
from tacit.data.labels import ClassValue, encode_labels
from tacit.data.locations import splits
from tacit.data.names import carried_names, check_through, names_of
from tacit.data.overlap import holds_private, shared_persons
from tacit.data.rows import check_rows
from tacit.data.sizes import check_width
from tacit.data.splits import first_rows
from tacit.data.synthetic import check_not_synthetic
from tacit.errors import InputError
from tacit.experiments.plan import DataSet

# the built-in public sets: other digits, and the same with their columns in another order
BUILTIN_PUBLIC = ("own", "scrambled")

# seed of the order of columns in "scrambled"
SHUFFLE = 0

# principal components that "digits-components" keeps
COMPONENTS = 16

# parts of a data set, beside "train", "test" and the public sets
NAMES = "names"
PERSONS = "persons"

# in place of the path of class names: the training store carries them
CARRIED = ""


@dataclass(frozen=True)
class DataSource:
    """Paths of the parts of a data set, and hashes of their content.

    It is the key of the caches below, so it holds pairs and not dicts.

    Attributes
    ----------
    builtin : str or None
        Name of a built-in data set, which has no paths.
    train, test : str
        Paths of the private records and of those that the classifiers are tested on.
    public : tuple of (name, path)
        The public sets.
    classes : tuple
        The class list, which an experiment takes to be public.
    hashes : tuple of (part, hash)
        Of each part of the data set; "persons" is among them if the training records have ids.
    rows, test_rows : int or None
        Only that many records are used: the first of a shuffle that all cells share.
    names : str or None
        Path of the rows of class names; CARRIED if the training store carries them, None if there
        are none.
    persons : str or None
        Ids of the training records: the whole path of a file of ids, or the name of a column or
        array of the training data. If None, the training store may carry ids.
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
        """True if the training records have ids of persons."""
        return PERSONS in dict(self.hashes)

    def hash_of(self, part: str) -> str:
        """Return the hash of "train", "test", "names", "persons" or `public_part(name)`."""
        return dict(self.hashes)[part]


@dataclass(frozen=True, eq=False)
class Records:
    """The training and test records of a cell.

    Labels are class indices; `persons` has the ids of the training records.
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


def public_part(name: str) -> str:
    """Return the part under which a public set's hash is stored.

    It differs from the private parts, so that no public set is taken for the private data.
    """
    return f"public {name}"


def data_source(data: DataSet, root: Path) -> DataSource:
    """Read and check the data of a plan, whose paths are relative to `root`.

    Raises InputError if a part is missing, unlabelled or too wide.
    """
    if data.builtin is not None:
        return _builtin_source(data, data.builtin)

    # a plan states both, or a built-in data set
    train_path = str(root / str(data.train))
    test_path = str(root / str(data.test))
    public = tuple((name, str(root / path)) for name, path in data.public.items())
    persons = _persons_option(data.persons, root)
    test_persons = _persons_option(data.test_persons, root)

    # all parts have the width of the training rows
    train = _read(train_path, "train", persons=persons)
    check_not_synthetic(train.card, train_path)
    width = train.x.shape[1]
    test = _read(test_path, "test", width, test_persons)
    parts = {"train": train, "test": test}
    paths = {"train": train_path, "test": test_path}
    for name, path in public:
        # of a folder with splits, the training split
        part = public_part(name)
        parts[part] = _read(path, "train", width)
        paths[part] = path

    for name, part_data in parts.items():
        check_rows(part_data.x, name=paths[name])
    classes = _class_list(train, test, paths)
    _check_shared_persons(train, test, paths)

    source = DataSource(
        builtin=None,
        train=train_path,
        test=test_path,
        public=public,
        classes=classes,
        hashes=_hashes(parts),
        rows=data.rows,
        test_rows=data.test_rows,
        names=_names_path(data, train, root),
        persons=persons,
    )
    if source.names is None:
        return source

    # The hash of the names needs the source, which says where they are. Names without labels need a
    # class list that is declared, whose order they have.
    class_list_declared = train.classes_declared or test.classes_declared
    names_hash = digest(_names(source, class_list_declared))
    return replace(source, hashes=(*source.hashes, (NAMES, names_hash)))


def _class_list(train: Data, test: Data, paths: Mapping[str, str]) -> tuple[ClassValue, ...]:
    """Return the class list of a data set; refuse labels that are not in it."""
    labels_of_parts = [_labels(train, paths["train"]), _labels(test, paths["test"])]
    classes = _declared_or_occurring_classes([train, test])
    for part, labels in zip((train, test), labels_of_parts, strict=True):
        # raises for a label that is not in the list
        encode_labels(labels, list(classes), part.label_kind)
    return classes


def _check_shared_persons(train: Data, test: Data, paths: Mapping[str, str]) -> None:
    """Refuse persons with both training and test records."""
    n_shared = shared_persons(train, test)
    if n_shared:
        raise InputError(
            f"{n_shared} persons are both in {paths['train']} and in {paths['test']}; keep each in"
            " one of them (tacit split)"
        )


def _hashes(parts: Mapping[str, Data]) -> tuple[tuple[str, str], ...]:
    """Return the hash of each part, with its name, and of the ids of persons of the training
    records.
    """
    hashes = []
    for name, data in parts.items():
        hashes.append((name, digest([data.content_hash, data.identity])))
    person_ids = parts["train"].persons
    if person_ids is not None:
        hashes.append((PERSONS, digest([person_ids])))
    return tuple(hashes)


def _builtin_source(data: DataSet, builtin: str) -> DataSource:
    """Return the source of the built-in digits, all parts of which have one hash."""
    digits = load_digits_split()
    content_hash = digest(
        [digits.private_x, digits.private_y, digits.test_x, digits.test_y, digits.public_x]
    )
    parts = ("train", "test", *map(public_part, BUILTIN_PUBLIC))
    return DataSource(
        builtin=builtin,
        train="",
        test="",
        public=tuple((name, "") for name in BUILTIN_PUBLIC),
        classes=tuple(range(10)),
        hashes=tuple((part, content_hash) for part in parts),
        rows=data.rows,
        test_rows=data.test_rows,
    )


def _names_path(data: DataSet, train: Data, root: Path) -> str | None:
    """Return where the rows of class names are; those of the plan come before carried ones."""
    if data.names is not None:
        return str(root / data.names)
    if train.names is not None:
        return CARRIED
    return None


def _labels(part: Data, path: str) -> NDArray[Any]:
    if part.labels is None:
        raise InputError(
            f"{path} holds no labels; name a file that has them, or put NAME_targets.npy beside"
            " NAME.npy"
        )
    if part.several:
        raise InputError(
            f"{path} has several labels a record, and plans compare methods by the one class of"
            " each; fit and evaluate each method with tacit fit --most-labels and tacit evaluate"
        )
    return part.labels


def _persons_option(persons: str | None, root: Path) -> str | None:
    """Return the option `persons`, with the whole path where it names a file."""
    if persons is None:
        return None
    path = str(root / persons)
    if is_ids_file(path):
        return path
    return persons


def _read(path: str, role: str, width: int | None = None, persons: str | None = None) -> Data:
    """Read the part of a file or folder that has the role, or that the path names, as FOLDER#test.

    Pictures become rows.
    """
    file_path, _, named_part = path.partition("#")
    file = Path(file_path)
    part = named_part or role
    if file.suffix == ".npz" and file.is_file():
        arrays = _part_of_npz(file, part, width, persons)
        if arrays is not None:
            return arrays
        if named_part:
            raise InputError(
                f"{file} has no array {part}_x; name a part that it has, or leave #{part} out"
            )

    # a file without parts, or a folder with one split, serves in any role
    has_splits = file.is_dir() and len(splits(file_path)) > 1
    split = part if has_splits or named_part else None

    # rows are checked once, by `data_source`, and not again in each cell
    return read_data(file_path, persons=persons, split=split, width=width, check=False)


def _part_of_npz(file: Path, part: str, width: int | None, persons: str | None) -> Data | None:
    """Return the arrays train_x and train_y, or those of another part, if the file has them."""
    archive = Archive(file)
    rows_name = f"{part}_x"
    labels_name = f"{part}_y"
    if rows_name not in archive.names:
        return None

    # The header states the shape: too wide an array is refused before it is read. Pictures have
    # more than two sides, and become rows of all their values.
    shape = archive.header(rows_name).shape
    check_width(file, (*shape[:1], math.prod(shape[1:])), width)

    labels = None
    if labels_name in archive.names:
        x, labels = archive.read([rows_name, labels_name])
    else:
        (x,) = archive.read([rows_name])
    x = np.atleast_1d(x)  # a single number has no length
    rows = x.reshape(len(x), math.prod(x.shape[1:]))  # -1 would need a row

    ids = None
    if persons is not None:
        ids = _ids_of_npz(archive, file, persons)
    return make_arrays(rows, labels, (file,), f"{file.stem}-{part}", persons=ids)


def _ids_of_npz(archive: Archive, file: Path, persons: str) -> Any:
    """Read ids of persons from a file of ids, or from the array of this name."""
    if is_ids_file(persons):
        return read_ids(persons)
    choose(archive.names, persons, (), "persons", file)  # refuses a name that the file lacks
    return archive.read([persons])[0]


def _declared_or_occurring_classes(parts: Sequence[Data]) -> tuple[ClassValue, ...]:
    """Return the declared classes, or all that occur: an experiment takes them to be public."""
    for part in parts:
        if part.classes_declared and part.classes is not None:
            return tuple(part.classes)

    labels = [np.asarray(part.labels) for part in parts]
    kinds = {"numbers" if array.dtype.kind in "iu" else "text" for array in labels}
    if len(kinds) > 1:
        raise InputError(
            "labels of train are numbers and those of test text, or the other way round; use one"
            " type for both"
        )
    return tuple(np.unique(np.concatenate(labels)).tolist())


# These caches are small, since subsets of rows are copies in memory.
@lru_cache(maxsize=2)
def records(source: DataSource, imbalance: float | None, seed: int) -> Records:
    """Return the records of a cell; cells with this ratio and seed share the imbalanced subset.

    Without a ratio all records are used.
    """
    whole = _whole(source)
    leaves_out_none = imbalance == 1 and has_equal_sizes(source)
    if imbalance is None or leaves_out_none:
        return whole

    # Worker processes share the subset. The first function returns what decides it, for the key;
    # the second computes it.
    y = whole.y
    rows = shared(
        "subset",
        lambda: (y, len(source.classes), imbalance, seed),
        lambda: np.sort(imbalanced_subset(y, imbalance, seed, len(source.classes))),
    )

    persons = None
    if whole.persons is not None:
        persons = whole.persons[rows]
    return replace(whole, x=whole.x[rows], y=y[rows], persons=persons)


def has_equal_sizes(source: DataSource) -> bool:
    """Return whether all classes that have records have equally many."""
    sizes = _whole(source).sizes
    return len(np.unique(sizes[sizes > 0])) == 1


@lru_cache(maxsize=2)
def public_rows(source: DataSource, name: str, n: int | None) -> Any:
    """Return a public set, or n of its rows, the first of the shuffle."""
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
    """Return the rows of class names of each class."""
    return _names(source)


def _names(source: DataSource, declared: bool = True) -> list[NDArray[Any]]:
    """Read the rows of class names.

    Rows without labels are refused unless the class list is `declared`.
    """
    train = _read(source.train, "train")
    if source.names == CARRIED:
        carried = carried_names(train, source.classes, source.train)
        if carried is None:
            return []
        return carried.rows

    path = str(source.names)
    names_data = _read(path, "train", train.x.shape[1])
    if holds_private(names_data, train):
        raise InputError(
            f"names: {path} are private records; name public rows of each class, or leave it out"
        )
    check_rows(names_data.x, name=path)
    names = names_of(names_data, source.classes, path, declared=declared)
    check_through(names, train, f"names: {path}")  # nor were they made through private records
    return names.rows


@lru_cache(maxsize=2)
def _whole(source: DataSource) -> Records:
    """Return the records without an imbalanced subset."""
    x: Any
    test_x: Any
    if source.builtin is not None:
        digits = load_digits_split()
        x = _builtin(source.builtin, digits.private_x)
        test_x = _builtin(source.builtin, digits.test_x)
        y = digits.private_y
        test_y = digits.test_y
        persons = None
    else:
        train = _read(source.train, "train", persons=source.persons)
        test = _read(source.test, "test")  # its persons were only compared, by `data_source`
        x = train.x
        test_x = test.x
        y = _class_indices(train, source.train, source.classes)
        test_y = _class_indices(test, source.test, source.classes)
        persons = train.persons

    x, y, persons = _first(source.rows, x, y, persons)
    test_x, test_y = _first(source.test_rows, test_x, test_y)
    return Records(x, y, test_x, test_y, source.classes, persons)


def _class_indices(part: Data, path: str, classes: Sequence[ClassValue]) -> NDArray[np.int64]:
    return encode_labels(_labels(part, path), list(classes), part.label_kind).astype(np.int64)


def _first(n: int | None, *columns: Any) -> tuple[Any, ...]:
    """Return the same n entries of each column, or all of them; a column may be None."""
    n_rows = len(columns[0])
    if n is None or n >= n_rows:
        return columns
    rows = first_rows(n_rows, n)
    return tuple(None if column is None else column[rows] for column in columns)


@lru_cache(maxsize=4)
def _public(source: DataSource, name: str) -> Any:
    """Return a whole public set, of which `public_rows` takes several numbers of rows."""
    if source.builtin is None:
        return _read(dict(source.public)[name], "train").x

    rows = _builtin(source.builtin, load_digits_split().public_x)
    if name == "own":
        return rows
    order = np.random.default_rng(SHUFFLE).permutation(rows.shape[1])
    return rows[:, order]


def _builtin(name: str, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return digits less the public mean, or their first components.

    The axes are the principal axes of the public rows.
    """
    public = load_digits_split().public_x
    centre = public.mean(axis=0)
    if name == "digits":
        return np.asarray(rows - centre)
    # the right singular vectors are the principal axes, (d, d), with the largest first
    _, _, all_axes = np.linalg.svd(public - centre, full_matrices=False)
    axes = all_axes[:COMPONENTS]
    return np.asarray((rows - centre) @ axes.T)
