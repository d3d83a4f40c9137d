"""The embedding store: a folder of sharded float arrays, labels and a manifest.

    manifest.json        what the files are, with their sizes and hashes; replaced last, in one step
    shards/00000.npy ... rows of embeddings
    metadata.parquet     column `label` (int32, or lists of it where a record may have several
                         labels) when labelled, column `person` (int64 or text) with
                         ids of persons, columns `row` (int64) and `record` (text) with positions
                         and names in the source, and any columns of the user's
    names.npy            rows of class names, if the store carries some
    .lock                held by an append, so that a second one waits

A store is whole or absent: `write` builds it under a hidden name, `append` adds files that nothing
refers to until the manifest does. Opening reads the manifest and the sizes of the files, no arrays.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.atomic import atomic_folder
from tacit.compute.frames import text_names
from tacit.compute.progress import progress
from tacit.compute.remote import RemotePath, as_path
from tacit.compute.shared import locked
from tacit.data import writing
from tacit.data.arrays import combined_hash, existing, file_hash, named_columns
from tacit.data.formats.arrow import check_once, open_parquet
from tacit.data.formats.npy import map_npy
from tacit.data.label_sets import holds_sets, indicators
from tacit.data.labels import (
    ClassValue,
    LabelKind,
    class_list,
    clean_labels,
    decode_labels,
    label_kind,
)
from tacit.data.manifest import (
    DTYPES,
    RESTORE,
    Manifest,
    StoredFile,
    checked_identity,
    default_dtype,
    is_store,
)
from tacit.data.origin import RECORD, ROW, Origin
from tacit.data.persons import stored_ids
from tacit.data.places import ROWS
from tacit.data.rows import as_rows
from tacit.data.sharded import ShardedArray
from tacit.data.writing import LABEL, PERSON
from tacit.errors import InputError, StoreError


class EmbeddingStore:
    """Embeddings with their labels in a folder, memory-mapped and never half-written.

    Made by `EmbeddingStore.open` and `EmbeddingStore.write`.

    Attributes
    ----------
    x : array of shape (rows, dim)
        Embeddings, memory-mapped and read-only: a `numpy.memmap`, or a `ShardedArray` of several.
    y : array of shape (rows,) or None
        Indexes into `classes`, or the labels themselves when `classes` is None; None if unlabelled.
        Where `several`, as `labels`.
    labels : array of shape (rows,) or None
        Class values. Where `several`, a bool array of shape (rows, C): whether the record has the
        label, for each of `classes`.
    several : bool
        Whether a record may have any number of labels, none included.
    persons : array of shape (rows,) or None
        Whose record each row is: whole numbers or texts, private like the labels; None if they were
        not given.
    origin : Origin
        Position and name of each row in the source that the store was made from.
    classes : list or None
        Class values in order. None when whole-number labels came without a declaration.
    classes_declared : bool
        Whether `classes` was declared, hence public, rather than derived from the labels.
    identity : str
        Declared name of the private data.
    card : dict
        Public facts about the data and the encoder.
    names : list of arrays of shape (k, dim), or None
        Public rows of each class, in the order of `classes`, if the store carries some;
        `names_card` has facts.
    declared_public : bool
        Whether the owner declared that all rows and labels are public.
    rows, dim, dtype
        Size and type of `x`.
    content_hash : str
        SHA-256 over the hashes of the shards and the metadata.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from tacit.data.embeddings import EmbeddingStore
    >>> folder = tempfile.mkdtemp() + "/pets"
    >>> rows = np.random.default_rng(0).normal(size=(4, 8))
    >>> labels = ["cat", "dog", "dog", "cat"]
    >>> store = EmbeddingStore.write(folder, rows, labels, classes=["cat", "dog", "fox"])
    >>> store.y.tolist(), store.x.shape, store.x.dtype.name
    ([0, 1, 1, 0], (4, 8), 'float32')
    >>> EmbeddingStore.open(folder)
    EmbeddingStore('pets': 4 x 8 float32, 3 declared classes)
    """

    # labels of a store are values of its class list, or whole numbers without one
    label_kind: LabelKind = "value"

    # its rows are numbered in messages
    places = ROWS

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self._use(manifest)

    def _use(self, manifest: Manifest) -> None:
        """Set the attributes from a manifest, and drop arrays cached from an older one."""
        self._manifest = manifest
        self.rows = manifest.rows
        self.dim = manifest.dim
        self.dtype = np.dtype(manifest.dtype)
        self.classes = manifest.classes
        self.classes_declared = manifest.classes_declared
        self.identity = manifest.identity
        self.card = manifest.card
        self.declared_public = manifest.declared_public
        self.several = manifest.several_labels
        for cached in ("x", "y", "persons", "names", "origin"):
            self.__dict__.pop(cached, None)

    @classmethod
    def open(cls, folder: Path | str) -> "EmbeddingStore":
        """Open a store in constant time; one at a URL is copied to this machine first.

        Raises
        ------
        StoreError
            If it is missing, not a store, of another version, or a file of it is missing or cut
            short.
        """
        path = as_path(folder)
        if isinstance(path, RemotePath):
            existing(path)
            path = path.copied()
        return cls(path, Manifest.load(path))

    @classmethod
    def write(
        cls,
        folder: Path | str,
        X: Any,
        y: Any = None,
        *,
        persons: Any = None,
        classes: int | Iterable[ClassValue] | None = None,
        labels: LabelKind = "value",
        card: Mapping[str, Any] | None = None,
        identity: str | None = None,
        metadata: Mapping[str, Sequence[Any]] | None = None,
        names: Any = None,
        names_card: Mapping[str, Any] | None = None,
        declared_public: bool = False,
        dtype: str | None = None,
        shard_rows: int = 65536,
        force: bool = False,
    ) -> "EmbeddingStore":
        """Write a store and open it.

        Parameters
        ----------
        folder : path
            Where to put it; its parent must exist.
        X : array of shape (rows, dim)
            Features; read block by block, so it may be memory-mapped and larger than the memory.
        y : sequence of length rows, optional
            Class values. They are compared with `classes` as texts: 1 is the class "1", not "01".
            If records may have several labels: a list or set of class values for each row, which
            may be empty, or a matrix of truth values, (rows, C), with a column for each class.
        persons : sequence of length rows, optional
            Whose record each row is: texts or whole numbers, compared and kept by the rule of
            `tacit.data.person_ids`. They are private.
        classes : list or int, optional
            The class list as a public fact; N stands for 0..N-1. Classes need not have records.
        labels : {"value", "index"}
            Meaning of whole numbers in `y` beside a list of names: "index" for positions in the
            list, from 0.
        card : dict, optional
            Public facts about the data and the encoder, as JSON.
        identity : str, optional
            Name of the private data; the folder's name by default.
        metadata : dict of sequences of length rows, optional
            Further columns.
        names : array of shape (C, dim) or sequence of C arrays of shape (k, dim), optional
            Public rows of each declared class, in their order: of its name, or of examples that may
            be shown.
        names_card : dict, optional
            Public facts about `names`, as JSON: `name` and `hash` of their data, `encoder`,
            `templates`.
        declared_public : bool
            Whether all rows and labels are public, so that figures on them may be published. Rows
            that are appended later are then public too.
        dtype : {"float16", "float32", "float64"}, optional
            How rows are stored: by default float16 if `X` has that type, else float32.
        shard_rows : int
            Rows in one file.
        force : bool
            Replace what `folder` holds.

        Raises
        ------
        InputError
            If `folder` exists or cannot be written; if a row is not finite, all zeros, or does not
            fit `dtype`; if labels or persons are missing or not one a row, or labels outside
            `classes`; if `names` do not fit the declared classes. Nothing is left behind.
        """
        folder = Path(folder)
        identity = checked_identity(identity or folder.absolute().name)
        if dtype is not None and dtype not in DTYPES:
            raise InputError(f"dtype={dtype!r} is not one of {', '.join(DTYPES)}; pass one of them")

        # everything but the rows is checked before a file is written
        column_names = text_names(X)
        X = as_rows(X)
        dtype = dtype or default_dtype(X)
        n_rows = len(X)
        class_values = None if classes is None else class_list(classes)
        indexes, class_values = _indexes_and_classes(y, n_rows, class_values, label_kind(labels))
        ids = None if persons is None else stored_ids(persons, n_rows)
        table = writing.metadata_table(n_rows, indexes, ids, metadata)
        facts = writing.json_card(card)
        if column_names is not None:
            facts = named_columns(column_names) | facts

        with atomic_folder(folder, force=force, ours=is_store) as temporary:
            (temporary / "shards").mkdir()
            manifest = Manifest(
                rows=n_rows,
                dim=X.shape[1],
                dtype=dtype,
                shards=writing.write_shards(temporary, X, np.dtype(dtype), shard_rows, first=0),
                metadata=writing.write_metadata(temporary, "metadata.parquet", table, n_rows),
                has_labels=indexes is not None,
                several_labels=indexes is not None and indexes.ndim == 2,
                classes=class_values,
                classes_declared=classes is not None,
                identity=identity,
                card=facts,
                has_persons=ids is not None,
                declared_public=declared_public,
            )
            if names is not None:
                manifest = writing.write_names(temporary, names, names_card, manifest)
            manifest.save(temporary)
        return cls.open(folder)

    def append(
        self,
        X: Any,
        y: Any = None,
        metadata: Mapping[str, Sequence[Any]] | None = None,
        *,
        persons: Any = None,
        labels: LabelKind = "value",
        shard_rows: int = 65536,
    ) -> "EmbeddingStore":
        """Add rows at the end; until all are written the store on disk stays as it was.

        Parameters
        ----------
        X : array of shape (new_rows, dim)
            Features, stored in the store's dtype.
        y, metadata, persons, labels, shard_rows
            As for `write`; labels, persons and further columns if and only if the store has them.

        Returns
        -------
        EmbeddingStore
            This store, now with the new rows.

        Raises
        ------
        InputError
            As `write` does, and if columns, labels, persons or classes differ from the store's.
        """
        with ExitStack() as lock:
            # only an error of the lock itself means that the folder cannot be written
            try:
                lock.enter_context(locked(self.folder / ".lock"))
            except OSError as error:
                fault = f"{self.folder} cannot be appended to ({error.strerror})"
                raise StoreError(f"{fault}; copy it elsewhere first") from error

            # others may have appended since this store was opened
            current = EmbeddingStore.open(self.folder)
            writing.append_rows(
                self.folder,
                current._manifest,
                current.metadata,
                as_rows(X),
                y,
                persons,
                metadata,
                shard_rows,
                label_kind(labels),
            )
            self._use(Manifest.load(self.folder))
        return self

    @cached_property
    def x(self) -> NDArray[Any] | ShardedArray:
        """Embeddings, (rows, dim); see the class."""
        shards = [self._shard(file) for file in self._manifest.shards]
        if len(shards) == 1:
            return shards[0]
        return ShardedArray(shards)

    @cached_property
    def y(self) -> NDArray[Any] | None:
        """Label indexes, (rows,), or the matrix of several labels a record, (rows, C), or None."""
        if not self._manifest.has_labels:
            return None
        if self.several:
            return self._label_sets()
        labels = self._column(LABEL)
        valid = labels.dtype.kind == "i"
        if valid and self.classes is not None:
            valid = bool(((labels >= 0) & (labels < len(self.classes))).all())
        if not valid:
            raise self._altered(self._metadata_path)

        labels = labels.astype(np.int64)
        labels.flags.writeable = False
        return labels

    @cached_property
    def persons(self) -> NDArray[Any] | None:
        """Ids of persons, (rows,), or None."""
        if not self._manifest.has_persons:
            return None
        try:
            # a store of an earlier version holds ids as they were given
            persons = stored_ids(self._column(PERSON), self.rows)
        except InputError as error:
            raise self._altered(self._metadata_path) from error
        persons.flags.writeable = False
        return persons

    @cached_property
    def origin(self) -> Origin:
        """The position and name of each row in the source that the store was made from.

        Rows of a store that does not state them are the source themselves.
        """
        import pyarrow as pa

        table = self.metadata()
        columns = dict(zip(table.column_names, table.itercolumns(), strict=True))
        origin = Origin.of_source(self.rows)

        # a user's column of the same name may be of another kind, or have gaps
        rows = columns.get(ROW)
        if rows is not None and pa.types.is_integer(rows.type) and rows.null_count == 0:
            origin = Origin(np.array(rows.to_pylist(), dtype=np.int64))

        names = columns.get(RECORD)
        if names is not None and pa.types.is_string(names.type) and names.null_count == 0:
            origin = Origin(origin.rows, np.array(names.to_pylist(), dtype=np.str_))
        return origin

    @property
    def labels(self) -> NDArray[Any] | None:
        """Class values, (rows,), or the matrix of several labels a record, (rows, C), or None."""
        if self.y is None or self.several:
            return self.y
        return decode_labels(self.y, self.classes)

    @cached_property
    def names(self) -> list[NDArray[Any]] | None:
        """Rows of class names, (k, dim) of each class, or None."""
        stored_names = self._manifest.names
        if stored_names is None:
            return None

        # the rows of all classes lie in one file, one class after another
        starts = np.cumsum(stored_names.counts)[:-1]
        return np.split(self._shard(stored_names.file), starts)

    @property
    def names_card(self) -> dict[str, Any]:
        """Public facts about `names`; empty if there are none."""
        stored_names = self._manifest.names
        if stored_names is None:
            return {}
        return {"hash": stored_names.file.sha256, **stored_names.card}

    @property
    def content_hash(self) -> str:
        """SHA-256 over the hashes of the shards and the metadata, from the manifest alone."""
        return combined_hash(file.sha256 for file in self._manifest.records)

    def metadata(self, columns: Sequence[str] | None = None) -> Any:
        """The labels and further columns, or some of them, as a `pyarrow.Table`."""
        path = self._metadata_path
        try:
            with open_parquet(path) as file:
                # a file without columns has no rows either
                n_rows = file.metadata.num_rows
                if file.metadata.num_columns and n_rows != self.rows:
                    raise self._altered(
                        path, f", which has {n_rows} rows where {self.rows} are stated"
                    )
                for name in columns or ():
                    check_once(file.schema_arrow.names, name, path)
                return file.read(columns)
        except InputError as error:
            raise self._altered(path) from error

    def verify(self) -> "EmbeddingStore":
        """Hash every file again; return this store.

        Raises
        ------
        StoreError
            Naming the first file whose content is not what was written.
        """
        files = self._manifest.files
        n_bytes = sum(file.bytes for file in files)
        for file in progress(files, "verifying", n_bytes, lambda file: file.bytes):
            path = self.folder / file.file
            if not path.is_file() or file_hash(path) != file.sha256:
                raise self._altered(path)
        return self

    def __len__(self) -> int:
        return self.rows

    def __repr__(self) -> str:
        parts = [f"{self.rows} x {self.dim} {self.dtype}"]
        if self.classes is not None:
            kind = "declared" if self.classes_declared else "derived"
            parts.append(f"{len(self.classes)} {kind} classes")
        elif self._manifest.has_labels:
            parts.append("labels without a class list")
        else:
            parts.append("no labels")

        if self.several:
            parts.append("several labels a record")
        if self._manifest.has_persons:
            parts.append("with ids of persons")
        if self._manifest.names is not None:
            parts.append(f"{self._manifest.names.file.rows} rows of class names")
        if self.declared_public:
            parts.append("declared public")
        return f"EmbeddingStore({self.identity!r}: {', '.join(parts)})"

    def __reduce__(self) -> tuple[Callable[[Path], "EmbeddingStore"], tuple[Path]]:
        # worker processes map the files rather than receive the rows
        return EmbeddingStore.open, (self.folder,)

    @property
    def _metadata_path(self) -> Path:
        return self.folder / self._manifest.metadata.file

    def _column(self, name: str) -> NDArray[Any]:
        """Return a column of the metadata: signed whole numbers, or texts.

        A column that is absent, has gaps or is of another type is an error.
        """
        import pyarrow as pa

        table = self.metadata([name])
        if name not in table.column_names:
            raise self._altered(self._metadata_path)
        column = table[name]
        if column.null_count > 0 or len(column) != self.rows:
            raise self._altered(self._metadata_path)

        if pa.types.is_signed_integer(column.type):
            # column.to_numpy() would import pandas
            return np.concatenate([np.from_dlpack(chunk) for chunk in column.chunks])
        if pa.types.is_string(column.type):
            return np.array(column.to_pylist(), dtype=np.str_)
        raise self._altered(self._metadata_path)

    def _label_sets(self) -> NDArray[np.bool_]:
        """Read the matrix of labels, (rows, C); a column of another form is an error."""
        table = self.metadata([LABEL])
        matrix = None
        if table.column_names == [LABEL] and len(table) == self.rows:
            matrix = writing.sets_of_lists(table[LABEL], len(self.classes or ()))
        if matrix is None:
            raise self._altered(self._metadata_path)
        matrix.flags.writeable = False
        return matrix

    def _shard(self, file: StoredFile) -> NDArray[Any]:
        """Map one file of rows, (rows, dim), and compare it with the manifest."""
        path = self.folder / file.file
        try:
            shard = map_npy(path)
        except InputError as error:
            raise self._altered(path) from error
        if shard.shape != (file.rows, self.dim) or shard.dtype != self.dtype:
            raise self._altered(path)
        return shard

    def _altered(self, path: Path, detail: str = "") -> StoreError:
        fault = f"{path} is not what this store's manifest describes{detail}"
        return StoreError(f"{fault}; open the store again, or {RESTORE}")


def _indexes_and_classes(
    y: Any, rows: int, classes: list[ClassValue] | None, kind: LabelKind
) -> tuple[NDArray[Any] | None, list[ClassValue] | None]:
    """Return labels as a store holds them, and its class list: declared `classes`, or those that
    occur.
    """
    if y is None:
        return None, classes
    if holds_sets(y):
        sets = indicators(y, rows, classes, kind)
        return sets.matrix, sets.listed

    values = clean_labels(y, rows, classes)
    if classes is None and values.dtype.kind == "U":
        # a store holds labels as integers: texts are indexes into the texts that occur
        classes = class_list(np.unique(values).tolist())
    return writing.label_indexes(values, classes, kind), classes
