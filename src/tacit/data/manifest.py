"""The manifest of an embedding store: it lists the files and is checked before any of them is
read.
"""

import json
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import numpy as np

from tacit.compute.atomic import KEPT, atomic_file
from tacit.compute.documents import read_json
from tacit.data.labels import MOST_LETTERS, ClassValue, class_list
from tacit.errors import InputError, StoreError, excerpt, quoted
from tacit.privacy.ledger_note import FORMAT, KEY, MANIFEST

# file names
NAME = MANIFEST
NAMES = "names.npy"

VERSION = 1
# version of stores whose records may have several labels, which earlier tacits do not read
VERSION_OF_SETS = 2
DTYPES = ("float16", "float32", "float64")
RESTORE = "restore it from a copy, or write the store again"
T = TypeVar("T")


@dataclass(frozen=True)
class StoredFile:
    """One file of a store: its name inside the folder, how many rows and bytes it has, and its
    hash.
    """

    file: str
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class StoredNames:
    """The rows of class names that a store carries: their file, how many each class has, and public
    facts.
    """

    file: StoredFile
    counts: tuple[int, ...]
    card: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Manifest:
    """All facts about a store except its rows and labels."""

    rows: int
    dim: int
    dtype: str
    shards: tuple[StoredFile, ...]
    metadata: StoredFile
    has_labels: bool
    classes: list[ClassValue] | None
    classes_declared: bool
    identity: str
    card: dict[str, Any] = field(default_factory=dict)
    names: StoredNames | None = None
    has_persons: bool = False
    declared_public: bool = False
    several_labels: bool = False
    """Whether a record may have any number of the labels, so that the column of labels holds
    lists.
    """
    has_ledger: bool = False
    """Whether a ledger counts what is spent on the records; see `tacit.privacy.ledger_note`."""

    @property
    def records(self) -> tuple[StoredFile, ...]:
        """The files that hold the records."""
        return (*self.shards, self.metadata)

    @property
    def files(self) -> tuple[StoredFile, ...]:
        """The files that belong to the store."""
        if self.names is None:
            return self.records
        return (*self.records, self.names.file)

    def save(self, folder: Path) -> None:
        """Put the manifest into `folder`, replacing an older one in a single step."""
        version = VERSION_OF_SETS if self.several_labels else VERSION
        facts = {"format": FORMAT, "version": version, **asdict(self)}

        # stores written before these facts existed have no entries for them
        for name in ("names", "has_persons", "declared_public", "several_labels", KEY):
            if not facts[name]:
                del facts[name]

        text = json.dumps(facts, indent=1, ensure_ascii=False)
        with atomic_file(folder / NAME, force=True) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> "Manifest":
        """Read and check the manifest of `folder`, and that its files are there in full length."""
        facts = stated_values(folder)
        while True:
            try:
                return cls._from_folder(folder, facts)
            except StoreError:
                # files are replaced while rows are appended: read again if the manifest changed
                new_facts = stated_values(folder)
                if new_facts == facts:
                    raise
                facts = new_facts

    @classmethod
    def _from_folder(cls, folder: Path, facts: dict[str, Any]) -> "Manifest":
        """Make a manifest of its facts, and check it and the sizes of the files."""
        try:
            manifest = cls._from_facts(facts)
            manifest._check()
        except (KeyError, TypeError, ValueError) as error:
            fault = f"lacks {error}" if isinstance(error, KeyError) else str(error)
            raise StoreError(f"{folder / NAME} is damaged: {excerpt(fault)}; {RESTORE}") from error

        for file in manifest.files:
            path = folder / file.file
            try:
                size = path.stat().st_size
            except OSError as error:
                raise StoreError(f"{path} is missing from the store; {RESTORE}") from error
            if size != file.bytes:
                raise StoreError(
                    f"{path} has {size} bytes where the manifest says {file.bytes}; {RESTORE}"
                )
        return manifest

    @classmethod
    def _from_facts(cls, facts: dict[str, Any]) -> "Manifest":
        """Make a manifest of its facts, each of which must have the right type."""
        return cls(
            shards=tuple(_stored_file(entry) for entry in facts["shards"]),
            rows=_count(facts["rows"]),
            dim=_count(facts["dim"]),
            dtype=facts["dtype"],
            metadata=_stored_file(facts["metadata"]),
            has_labels=_typed(facts["has_labels"], bool),
            classes=None if facts["classes"] is None else class_list(facts["classes"]),
            classes_declared=_typed(facts["classes_declared"], bool),
            identity=checked_identity(_typed(facts["identity"], str)),
            card=_typed(facts["card"], dict),
            names=None if facts.get("names") is None else _stored_names(facts["names"]),
            has_persons=_typed(facts.get("has_persons", False), bool),
            declared_public=_typed(facts.get("declared_public", False), bool),
            several_labels=_several_labels(facts),
            has_ledger=_typed(facts.get(KEY, False), bool),
        )

    def _check(self) -> None:
        """Raise a ValueError if the facts contradict each other."""
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype {self.dtype!r:.80} is not one of {', '.join(DTYPES)}")
        shard_rows = sum(shard.rows for shard in self.shards)
        if shard_rows != self.rows or self.metadata.rows != self.rows:
            raise ValueError(f"its files do not add up to {self.rows} rows")

        if self.several_labels and (not self.has_labels or self.classes is None):
            raise ValueError("it has several labels a record, and lacks labels or their classes")

        names = self.names
        if names is not None:
            n_classes = len(self.classes or ()) if self.classes_declared else 0
            if len(names.counts) != n_classes or sum(names.counts) != names.file.rows:
                raise ValueError(
                    f"its {names.file.rows} rows of class names do not fit its {n_classes} declared"
                    " classes"
                )

        # a file of rows has a header too, so it is longer than the rows alone
        row_bytes = self.dim * np.dtype(self.dtype).itemsize
        row_files = self.shards if names is None else (*self.shards, names.file)
        for file in row_files:
            if file.bytes <= file.rows * row_bytes:
                raise ValueError(f"{file.file} cannot hold {file.rows} rows in {file.bytes} bytes")


def dtype_of(rows: Any) -> str:
    """Return the type in which a store holds copies of rows: that of the rows if a store can hold
    it, else float32.
    """
    for name in DTYPES:
        if rows.dtype == name:
            return name
    return "float32"


def default_dtype(rows: Any) -> str:
    """Return the type in which a store holds rows unless another is asked for: float16 for rows of
    that type, else float32.

    Values decide nothing: float16 has 11 bits, and rows such as 10000 +- 3 would become one.
    """
    is_half = getattr(rows, "dtype", None) == np.float16
    return "float16" if is_half else "float32"


def is_store(folder: Path) -> bool:
    """Tell whether `folder` holds a store and nothing else."""
    if not (folder / NAME).is_file():
        return False
    fixed_names = ("shards", ".lock", NAME, NAMES)
    return all(
        path.name in fixed_names or fnmatch(path.name, "metadata*.parquet")
        for path in folder.iterdir()
    )


def holds_stores(folder: Path) -> bool:
    """Tell whether `folder` holds stores and nothing else."""
    return all(path.match(KEPT) or (path.is_dir() and is_store(path)) for path in folder.iterdir())


def plain_name(name: Any) -> str:
    """Return `name` if it points inside a folder, without `..`, drive or root; a ValueError if
    not.
    """
    if not isinstance(name, str) or not name or set(name) & set("\\:\0"):
        raise ValueError(f"{name!r:.80} is not a plain file name")
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise ValueError(f"{name!r:.80} points outside the folder")
    return name


def checked_identity(name: str) -> str:
    """Return `name` if it can be printed and written down: paths need not be text."""
    if not name.isprintable() or len(name) > MOST_LETTERS:
        raise InputError(
            f"identity must be printable text of at most {MOST_LETTERS} letters, not {quoted(name)}"
        )
    return name


def stated_values(folder: Path) -> dict[str, Any]:
    """Return the content of the manifest in a folder, not yet checked."""
    if not folder.is_dir():
        raise StoreError(
            f"{folder} is not a folder; give that of an embedding store, or make one with tacit"
            " import"
        )
    path = folder / NAME
    if not path.is_file():
        raise StoreError(
            f"{folder} is not an embedding store (no {NAME} in it); make one with tacit import"
        )
    try:
        facts = read_json(path)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be read ({error.strerror}); check its permissions"
        ) from error
    except ValueError as error:
        raise StoreError(
            f"{path} is truncated or not JSON ({excerpt(str(error))}); {RESTORE}"
        ) from error
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise StoreError(
            f"{path} is not the manifest of an embedding store; make one with tacit import"
        )
    if facts.get("version") not in (VERSION, VERSION_OF_SETS):
        version = f"format version {quoted(facts.get('version'))}"
        fault = f"{path} has {version}, this tacit reads {VERSION} and {VERSION_OF_SETS}"
        raise StoreError(f"{fault}; use the tacit that wrote it, or write the store again")
    return facts


def _stored_file(entry: Any) -> StoredFile:
    return StoredFile(
        rows=_count(entry["rows"]),
        bytes=_count(entry["bytes"]),
        file=plain_name(entry["file"]),
        sha256=_typed(entry["sha256"], str),
    )


def _stored_names(entry: Any) -> StoredNames:
    return StoredNames(
        counts=tuple(_count(number) for number in _typed(entry["counts"], list)),
        file=_stored_file(entry["file"]),
        card=_typed(entry["card"], dict),
    )


def _several_labels(facts: dict[str, Any]) -> bool:
    """Return whether records may have several labels, which the version must state too."""
    several = _typed(facts.get("several_labels", False), bool)
    if several != (facts["version"] == VERSION_OF_SETS):
        raise ValueError(f"version {facts['version']} contradicts several_labels {several}")
    return several


def _count(value: Any) -> int:
    if type(value) is not int or not 1 <= value < 2**63:
        raise ValueError(f"{value!r:.80} is not a positive whole number of 63 bits")
    return value


def _typed(value: Any, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise ValueError(f"{value!r:.40} is not of type {kind.__name__}")
    return value
