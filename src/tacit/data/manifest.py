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

NAME, NAMES = MANIFEST, "names.npy"
VERSION = 1
DTYPES = ("float16", "float32", "float64")
T = TypeVar("T")
RESTORE = "restore it from a copy, or write the store again"


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
    has_ledger: bool = False
    """Whether a ledger counts what is spent on the records; see `tacit.privacy.ledger_note`."""

    @property
    def records(self) -> tuple[StoredFile, ...]:
        """The files that hold the records."""
        return (*self.shards, self.metadata)

    @property
    def files(self) -> tuple[StoredFile, ...]:
        """The files that belong to the store."""
        return self.records if self.names is None else (*self.records, self.names.file)

    def save(self, folder: Path) -> None:
        """Put the manifest into `folder`, replacing an older one in a single step."""
        facts = {"format": FORMAT, "version": VERSION, **asdict(self)}
        # as stores without them were always written
        for name in ("names", "has_persons", "declared_public", KEY):
            if not facts[name]:
                del facts[name]
        text = json.dumps(facts, indent=1, ensure_ascii=False)
        with atomic_file(folder / NAME, force=True) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> "Manifest":
        """Read and check the manifest of `folder`, and that its files are there in full length."""
        stated = stated_values(folder)
        while True:
            try:
                return cls._checked(folder, stated)
            except StoreError:
                before, stated = stated, stated_values(folder)
                if stated == before:  # else rows were appended meanwhile, which replaces files
                    raise

    @classmethod
    def _checked(cls, folder: Path, stated: dict[str, Any]) -> "Manifest":
        try:
            manifest = cls._parse(stated)
        except (KeyError, TypeError, ValueError) as error:
            fault = f"lacks {error}" if isinstance(error, KeyError) else str(error)
            raise StoreError(f"{folder / NAME} is damaged: {excerpt(fault)}; {RESTORE}") from error
        for stored in manifest.files:
            path = folder / stored.file
            try:
                size = path.stat().st_size
            except OSError as error:
                raise StoreError(f"{path} is missing from the store; {RESTORE}") from error
            if size != stored.bytes:
                raise StoreError(
                    f"{path} has {size} bytes where the manifest says {stored.bytes}; {RESTORE}"
                )
        return manifest

    @classmethod
    def _parse(cls, stated: dict[str, Any]) -> "Manifest":
        shards = tuple(_stored_file(entry) for entry in stated["shards"])
        manifest = cls(
            rows=_count(stated["rows"]),
            dim=_count(stated["dim"]),
            dtype=stated["dtype"],
            shards=shards,
            metadata=_stored_file(stated["metadata"]),
            has_labels=_typed(stated["has_labels"], bool),
            classes=None if stated["classes"] is None else class_list(stated["classes"]),
            classes_declared=_typed(stated["classes_declared"], bool),
            identity=checked_identity(_typed(stated["identity"], str)),
            card=_typed(stated["card"], dict),
            names=None if stated.get("names") is None else _stored_names(stated["names"]),
            has_persons=_typed(stated.get("has_persons", False), bool),
            declared_public=_typed(stated.get("declared_public", False), bool),
            has_ledger=_typed(stated.get(KEY, False), bool),
        )
        if manifest.dtype not in DTYPES:
            raise ValueError(f"dtype {manifest.dtype!r:.80} is not one of {', '.join(DTYPES)}")
        if (
            sum(shard.rows for shard in shards) != manifest.rows
            or manifest.metadata.rows != manifest.rows
        ):
            raise ValueError(f"its files do not add up to {manifest.rows} rows")
        names = manifest.names
        if names is not None:
            listed = len(manifest.classes or ()) if manifest.classes_declared else 0
            if len(names.counts) != listed or sum(names.counts) != names.file.rows:
                raise ValueError(
                    f"its {names.file.rows} rows of class names do not fit its {listed} declared"
                    " classes"
                )
        row_bytes = manifest.dim * np.dtype(manifest.dtype).itemsize
        for file in (*shards, *([] if names is None else [names.file])):
            if file.bytes <= file.rows * row_bytes:
                raise ValueError(f"{file.file} cannot hold {file.rows} rows in {file.bytes} bytes")
        return manifest


def dtype_of(rows: Any) -> str:
    """The type in which a store holds copies of rows: theirs if a store can hold it, else
    float16.
    """
    return next((name for name in DTYPES if rows.dtype == name), "float16")


def is_store(folder: Path) -> bool:
    """Tell whether `folder` holds a store and nothing else."""
    others = [
        path.name for path in folder.iterdir() if path.name not in ("shards", ".lock", NAME, NAMES)
    ]
    return (folder / NAME).is_file() and all(fnmatch(name, "metadata*.parquet") for name in others)


def holds_stores(folder: Path) -> bool:
    """Tell whether `folder` holds stores and nothing else."""
    return all(path.match(KEPT) or (path.is_dir() and is_store(path)) for path in folder.iterdir())


def plain_name(name: Any) -> str:
    """`name` if it points inside a folder, without `..`, drive or root."""
    if not isinstance(name, str) or not name or set(name) & set("\\:\0"):
        raise ValueError(f"{name!r:.80} is not a plain file name")
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise ValueError(f"{name!r:.80} points outside the folder")
    return name


def checked_identity(name: str) -> str:
    """`name` if it can be printed and written down: paths need not be text."""
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
        stated = read_json(path)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be read ({error.strerror}); check its permissions"
        ) from error
    except ValueError as error:
        raise StoreError(
            f"{path} is truncated or not JSON ({excerpt(str(error))}); {RESTORE}"
        ) from error
    if not isinstance(stated, dict) or stated.get("format") != FORMAT:
        raise StoreError(
            f"{path} is not the manifest of an embedding store; make one with tacit import"
        )
    if stated.get("version") != VERSION:
        version = f"format version {quoted(stated.get('version'))}"
        fault = f"{path} has {version}, this tacit reads {VERSION}"
        raise StoreError(f"{fault}; use the tacit that wrote it, or write the store again")
    return stated


def _stored_file(entry: Any) -> StoredFile:
    rows, size = _count(entry["rows"]), _count(entry["bytes"])
    return StoredFile(plain_name(entry["file"]), rows, size, _typed(entry["sha256"], str))


def _stored_names(entry: Any) -> StoredNames:
    counts = tuple(_count(number) for number in _typed(entry["counts"], list))
    return StoredNames(_stored_file(entry["file"]), counts, _typed(entry["card"], dict))


def _count(value: Any) -> int:
    if type(value) is not int or not 1 <= value < 2**63:
        raise ValueError(f"{value!r:.80} is not a positive whole number of 63 bits")
    return value


def _typed(value: Any, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise ValueError(f"{value!r:.40} is not of type {kind.__name__}")
    return value
