"""Features and labels read from files, and the functions that all readers share."""

import hashlib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.remote import RemotePath, as_path
from tacit.data.label_sets import holds_sets, indicators
from tacit.data.labels import (
    MOST_CLASSES,
    ClassValue,
    LabelKind,
    class_list,
    clean_labels,
    kind_beside,
    values_of,
)
from tacit.data.origin import Origin
from tacit.data.persons import stored_ids
from tacit.data.places import ROWS, Places
from tacit.data.rows import as_rows
from tacit.data.sizes import check_width
from tacit.errors import InputError, excerpt

# usual names of arrays in files
FEATURES = ("x", "X", "features", "embeddings")
LABELS = ("y", "labels", "targets")

# key of a card: names of the columns of features, where the source has names for them
COLUMNS = "columns"


@dataclass(frozen=True, eq=False)
class Arrays:
    """Features and labels read from `files`, with the public facts declared about them.

    The other attributes are those of an `EmbeddingStore`; `x` is memory-mapped where the format
    allows it. Files carry no rows of class names. `label_kind` is "index" if the source states that
    whole numbers are positions in a class list, which it may not name. `left_out` has the columns
    that are no features, each with the reason. `places` names the rows in messages. `groups` has
    the values of a column by which figures are told apart, as the source holds them.

    Where records may have several labels, `labels` is a matrix, (n, K), whose columns are those of
    `classes`. If the source does not declare these, they were read off the labels
    (`classes_derived`), or are None if nothing names the columns.
    """

    x: Any = field(repr=False)
    labels: NDArray[Any] | None = field(repr=False)
    classes: list[ClassValue] | None
    identity: str
    files: tuple[Path, ...]
    card: dict[str, Any] = field(default_factory=dict)
    names: list[NDArray[Any]] | None = None
    names_card: dict[str, Any] = field(default_factory=dict)
    persons: NDArray[Any] | None = field(default=None, repr=False)
    declared_public: bool = False
    stated_origin: Origin | None = field(default=None, repr=False)
    label_kind: LabelKind = "value"
    left_out: tuple[str, ...] = ()
    places: Places = ROWS
    classes_derived: bool = False
    groups: NDArray[Any] | None = field(default=None, repr=False)

    @property
    def several(self) -> bool:
        """Tell whether a record may have any number of labels."""
        return self.labels is not None and self.labels.ndim == 2

    @property
    def origin(self) -> Origin:
        """Position and name of each row in its source; rows of files are the source themselves."""
        return self.stated_origin or Origin.of_source(len(self.x))

    @property
    def classes_declared(self) -> bool:
        """Tell whether `classes` is a declared, public fact."""
        return self.classes is not None and not self.classes_derived

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 over the hashes of the files; reads them once."""
        return combined_hash(file_hash(path) for path in self.files)


def make_arrays(
    x: Any,
    y: Any,
    files: tuple[Path, ...],
    identity: str,
    classes: Iterable[Any] | None = None,
    card: dict[str, Any] | None = None,
    persons: Any = None,
    label_kind: LabelKind = "value",
    left_out: Iterable[str] = (),
    places: Places = ROWS,
    groups: NDArray[Any] | None = None,
) -> Arrays:
    """Make arrays of features, raw labels and ids; labels beside classes become the class values.

    Pictures of bytes become rows, and the card states their `shape`, (channels, height, width).
    """
    facts = card or {}
    shape = _picture_shape(x, files[0])
    if shape is not None:
        x = x.reshape(len(x), math.prod(shape))
        facts = facts | {"shape": list(shape)}
    x = as_rows(x, str(files[0]))

    class_values = None if classes is None else class_list(classes)
    classes_derived = False
    labels = None
    ids = None
    with places.in_errors():
        if y is not None and holds_sets(y):
            sets = indicators(y, len(x), class_values, label_kind)
            labels = sets.matrix
            classes_derived = class_values is None and sets.classes is not None
            class_values = sets.classes
        elif y is not None:
            labels = clean_labels(y, len(x), class_values)
            if class_values is not None:
                labels = values_of(labels, class_values, label_kind)
        if persons is not None:
            ids = stored_ids(persons, len(x))
    return Arrays(
        x,
        labels,
        class_values,
        identity,
        files,
        facts,
        persons=ids,
        label_kind=label_kind,
        left_out=tuple(left_out),
        places=places,
        classes_derived=classes_derived,
        groups=groups,
    )


def named_columns(names: Iterable[str]) -> dict[str, Any]:
    """Return the fact on a card that names the columns of features, by which a release matches
    those of new rows.
    """
    return {COLUMNS: list(names)}


def _picture_shape(x: Any, path: Path) -> tuple[int, ...] | None:
    """Return channels, height and width of pictures of bytes, (n, h, w) or (n, c, h, w); None for
    other arrays.
    """
    if getattr(x, "dtype", None) != np.uint8 or x.ndim not in (3, 4):
        return None
    shape: tuple[int, ...] = x.shape[1:]
    if len(shape) == 2:
        # grey pictures without an axis of channels
        return (1, *shape)
    if shape[0] not in (1, 3):
        fault = (
            f"{path} has pictures of shape {x.shape}, whose channels, 1 or 3, must come before"
            " height and width"
        )
        raise InputError(f"{fault}; save x.transpose(0, 3, 1, 2)")
    return shape


def from_named(
    path: Path,
    names: list[str],
    shape: Callable[[str], tuple[int, ...]],
    read: Callable[[list[str]], list[NDArray[Any]]],
    x: str | None,
    y: str | None,
    persons: str | None,
    width: int | None,
) -> Arrays:
    """Make arrays of a file of named arrays, by functions that give the shape of one array and read
    several.

    Features of another width are refused before any are read.
    """
    features = choose(names, x, FEATURES, "x", path)
    if features is None:
        raise features_missing(names, path)
    labels = choose(names, y, LABELS, "y", path)
    ids = choose(names, persons, (), "persons", path)
    check_width(path, shape(features), width)
    has_classes = "classes" in names
    if has_classes and math.prod(shape("classes")) > MOST_CLASSES:
        raise InputError(
            f"{path} has more than {MOST_CLASSES} classes; declare the classes there are"
        )

    # all are read in one call, which sees how large they are together
    array_names = [features]
    if labels is not None:
        array_names.append(labels)
    if has_classes:
        array_names.append("classes")
    if ids is not None:
        array_names.append(ids)
    arrays = dict(zip(array_names, read(array_names), strict=True))

    classes = arrays["classes"].tolist() if has_classes else None
    return make_arrays(
        arrays[features],
        None if labels is None else arrays[labels],
        (path,),
        path.stem,
        classes=classes,
        persons=None if ids is None else arrays[ids],
        label_kind=kind_beside(classes),
    )


def choose(
    names: list[str], name: str | None, usual_names: tuple[str, ...], option: str, path: Path
) -> str | None:
    """Choose the array to use: the one of that `name`, else the first usual name in the file, else
    the first that is usual but for case and white space at its ends, else None.
    """
    if name is None:
        exact = next((usual for usual in usual_names if usual in names), None)
        if exact is not None:
            return exact
        plain_names = [name.strip().lower() for name in names]
        return next((names[plain_names.index(u)] for u in usual_names if u in plain_names), None)
    if name not in names:
        choices = excerpt(", ".join(sorted(names)))
        raise InputError(f"{path} has nothing named {name!r}; choose {option} from: {choices}")
    return name


def features_missing(names: list[str], path: Path) -> InputError:
    """Return the error for a file in which no features could be recognised."""
    choices = excerpt(", ".join(sorted(names)))
    return InputError(
        f"{path} has no array with a usual name for features; choose x from: {choices}"
    )


def commands_of_a_table(path: Path) -> str:
    """Return the commands that make rows of a table with texts, for messages."""
    return (
        f"tacit schema {path} --out schema.yaml, then tacit encode {path} --encoder table"
        " --schema schema.yaml"
    )


def existing(path: Path | str) -> Path:
    """Return `path` if a file or a folder is there; an error if not."""
    path = as_path(path)
    if not path.exists():
        raise InputError(f"{path} does not exist; check its name")
    if not (path.is_file() or path.is_dir()):
        raise InputError(f"{path} is neither a file nor a folder; give one of them")
    return path


def existing_here(path: Path | str) -> Path:
    """Return `path` if it is there, on this machine; for readers that take no URL."""
    path = existing(path)
    if isinstance(path, RemotePath):
        raise InputError(f"{path} is a URL, which is not read here; copy it to this machine first")
    return path


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def combined_hash(hashes: Iterable[str]) -> str:
    """Return the SHA-256 over hashes in order, one on each line."""
    lines = "\n".join(hashes)
    return hashlib.sha256(lines.encode()).hexdigest()
