"""The parts of writing an embedding store: check labels and metadata, then write shards and
metadata.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.progress import progress
from tacit.data.arrays import file_hash
from tacit.data.label_sets import holds_sets, indicators, no_labels
from tacit.data.labels import ClassValue, LabelKind, clean_labels, encode_labels
from tacit.data.manifest import NAMES, Manifest, StoredFile, StoredNames
from tacit.data.name_rows import rows_by_class
from tacit.data.origin import ROW
from tacit.data.persons import stored_ids
from tacit.data.rows import checked_blocks, one_line
from tacit.errors import InputError, RowError

# columns of the metadata
LABEL = "label"
PERSON = "person"


def label_indexes(
    labels: NDArray[Any] | None, classes: list[ClassValue] | None, kind: LabelKind = "value"
) -> NDArray[np.int64] | None:
    """Return labels as a store holds them: indexes into the class list, or the labels themselves if
    there is no list.
    """
    if labels is None:
        return None
    if classes is not None:
        return encode_labels(labels, classes, kind)

    limits = np.iinfo(np.int32)
    too_wide = (labels < limits.min) | (labels > limits.max)
    if too_wide.any():
        row = int(too_wide.argmax())
        raise RowError(
            "",
            row,
            f" has label {labels[row]}, which exceeds 32 bits; renumber the labels, or list the"
            " classes in classes= from public knowledge",
        )
    return labels


def label_column(indexes: NDArray[Any]) -> Any:
    """Return labels as a column: the index of each, (n,), or lists of them for a matrix, (n, K)."""
    import pyarrow as pa

    if indexes.ndim == 2:
        return lists_of_indexes(indexes)
    return pa.array(indexes, pa.int32())


def lists_of_indexes(matrix: NDArray[np.bool_]) -> Any:
    """Return sets of labels, (n, K), as a store holds them: for each record the list of its indexes
    into the class list, ascending.
    """
    import pyarrow as pa

    _, columns = np.nonzero(matrix)
    ends = np.cumsum(matrix.sum(axis=1))
    offsets = np.concatenate([[0], ends])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(columns, pa.int32()))


def sets_of_lists(column: Any, n_classes: int) -> NDArray[np.bool_] | None:
    """Return the sets of labels of a column that `lists_of_indexes` made, (n, K); None for another
    column.
    """
    import pyarrow as pa

    kind = column.type
    if not pa.types.is_list(kind) or not pa.types.is_signed_integer(kind.value_type):
        return None
    lists = column.combine_chunks()
    indexes = lists.flatten()
    if column.null_count or indexes.null_count:
        return None
    columns = indexes.to_numpy()
    if ((columns < 0) | (columns >= n_classes)).any():
        return None
    sizes = lists.value_lengths().to_numpy()
    matrix = no_labels(len(lists), n_classes)
    matrix[np.repeat(np.arange(len(lists)), sizes), columns] = True
    return matrix


def json_card(card: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the card as plain JSON values, as it will be read again."""
    try:
        text = json.dumps(dict(card or {}), allow_nan=False)
    except (TypeError, ValueError) as error:
        fault = f"card is not plain JSON ({one_line(error)})"
        raise InputError(f"{fault}; use strings, finite numbers, lists and dicts") from error
    facts: dict[str, Any] = json.loads(text)
    return facts


def metadata_table(
    rows: int,
    indexes: NDArray[Any] | None,
    persons: NDArray[Any] | None,
    metadata: Mapping[str, Sequence[Any]] | None,
) -> Any:
    """Make the metadata an Arrow table: the labels, the ids of persons, and the user's columns.

    `indexes` has the index of each label, (rows,), or the matrix of sets of labels, (rows, K).
    """
    import pyarrow as pa

    columns: dict[str, Any] = {}
    if indexes is not None:
        columns[LABEL] = label_column(indexes)
    if persons is not None:
        columns[PERSON] = pa.array(persons.tolist())

    for name, values in (metadata or {}).items():
        if name == PERSON and persons is not None:
            raise InputError(
                f"metadata column {PERSON!r} is taken by the persons; rename it, or leave"
                " persons= out"
            )
        if name == LABEL:
            raise InputError(
                f"metadata column {LABEL!r} is taken by the labels; rename it, or pass labels as y="
            )
        if len(values) != rows:
            raise InputError(
                f"metadata column {name!r} has {len(values)} values beside {rows} rows; give one"
                " per row"
            )
        try:
            columns[name] = pa.array(values)
        except (pa.ArrowException, TypeError, ValueError) as error:
            fault = f"metadata column {name!r} mixes types ({one_line(error)})"
            raise InputError(f"{fault}; give values of one type") from error
    return pa.table(columns)


def write_shards(
    folder: Path, X: Any, dtype: np.dtype[Any], shard_rows: int, first: int
) -> tuple[StoredFile, ...]:
    """Check the rows and write them in files of `shard_rows`, numbered from `first`."""
    if shard_rows < 1:
        raise InputError(f"shard_rows={shard_rows} must be positive; leave it out for 65536")
    rows, dim = X.shape

    # no block crosses the end of a shard, so each shard takes whole blocks
    blocks = checked_blocks(X, dtype=dtype, cut=shard_rows)
    starts = range(0, rows, shard_rows)
    shards = []
    for number, start in progress(enumerate(starts, first), "writing shards", len(starts)):
        name = f"shards/{number:05d}.npy"
        count = min(shard_rows, rows - start)
        _write_npy(folder / name, blocks, (count, dim), dtype)
        shards.append(stored_file(folder, name, count))
    return tuple(shards)


def _write_npy(
    path: Path, blocks: Iterator[NDArray[Any]], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> None:
    """Write the next blocks of rows as one array of this shape, and flush it to the disk."""
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    n_rows = shape[0]
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        n_written = 0
        while n_written < n_rows:
            block = next(blocks)
            file.write(np.ascontiguousarray(block).data)
            n_written += len(block)
        sync(file)


def write_metadata(folder: Path, name: str, table: Any, rows: int) -> StoredFile:
    """Write the metadata of `rows` rows."""
    import pyarrow.parquet as pq

    with (folder / name).open("wb") as file:
        pq.write_table(table, file)
        sync(file)
    return stored_file(folder, name, rows)


def write_names(
    folder: Path, names: Any, card: Mapping[str, Any] | None, store: Manifest
) -> Manifest:
    """Write rows of class names beside the records of `store`, whose manifest then names them."""
    if store.classes is None or not store.classes_declared:
        raise InputError(
            "names need a declared class list, in their order; pass classes=[...] (--classes FILE)"
        )
    rows_of_classes = rows_by_class(names, len(store.classes), store.dim)
    all_rows = np.concatenate(rows_of_classes)
    dtype = np.dtype(store.dtype)
    blocks = checked_blocks(all_rows, dtype=dtype, name="names")
    try:
        _write_npy(folder / NAMES, blocks, all_rows.shape, dtype)
    except RowError as error:
        # no row of the records, whose places their readers know
        raise InputError(str(error)) from error

    stored_names = StoredNames(
        file=stored_file(folder, NAMES, len(all_rows)),
        counts=tuple(map(len, rows_of_classes)),
        card=json_card(card),
    )
    return replace(store, names=stored_names)


def sync(file: Any) -> None:
    """Flush what was written to the disk."""
    file.flush()
    os.fsync(file.fileno())


def stored_file(folder: Path, name: str, rows: int) -> StoredFile:
    """Return the manifest entry of a file that was written."""
    path = folder / name
    return StoredFile(name, rows, path.stat().st_size, file_hash(path))


def append_rows(
    folder: Path,
    old: Manifest,
    old_table: Callable[[], Any],
    X: Any,
    y: Any,
    persons: Any,
    metadata: Mapping[str, Sequence[Any]] | None,
    shard_rows: int,
    kind: LabelKind,
) -> None:
    """Add rows to the files of a store, then its manifest; `old_table` reads the store's
    metadata.
    """
    _check_same_parts(folder, old, X, y, persons)
    n_new = len(X)
    indexes = None if y is None else _appended_labels(old, y, n_new, kind)
    ids = None if persons is None else stored_ids(persons, n_new)

    table = old_table()
    columns: dict[str, Any] = dict(metadata or {})
    if ROW in table.column_names and ROW not in columns:
        columns = {ROW: _next_positions(table[ROW], n_new), **columns}
    new_table = metadata_table(n_new, indexes, ids, columns)
    if ids is not None and new_table.schema.field(PERSON).type != table.schema.field(PERSON).type:
        # 17 and "17" are one person, so numbers become texts
        new_table = _with_text_ids(new_table)
        table = _with_text_ids(table)
    joined_table = _joined(table, new_table)

    # the store is unchanged until its manifest is replaced, after all other files
    number = len(old.shards)
    n_rows = old.rows + n_new
    try:
        shards = write_shards(folder, X, np.dtype(old.dtype), shard_rows, number)
        metadata_name = f"metadata-{number:05d}.parquet"
        metadata_file = write_metadata(folder, metadata_name, joined_table, n_rows)
        all_shards = (*old.shards, *shards)
        new = replace(old, rows=n_rows, shards=all_shards, metadata=metadata_file)
        new.save(folder)
    finally:
        _remove_unnamed(folder)


def _appended_labels(old: Manifest, y: Any, rows: int, kind: LabelKind) -> NDArray[Any] | None:
    """Return the labels of new rows as the store holds them; sets of labels only where it holds
    sets.
    """
    if holds_sets(y) != old.several_labels:
        rule = "several labels a record; give a list of labels for each row"
        if not old.several_labels:
            rule = "one label a record; give one for each row"
        raise InputError(f"the store has {rule}")
    if old.several_labels:
        return indicators(y, rows, old.classes, kind).matrix

    labels = clean_labels(y, rows, old.classes)
    if old.classes is None and labels.dtype.kind == "U":
        fault = f"row 0 has label {labels[0].item()!r} where the store has whole numbers"
        raise InputError(f"{fault}; append the same kind")
    return label_indexes(labels, old.classes, kind)


def _check_same_parts(folder: Path, old: Manifest, X: Any, y: Any, persons: Any) -> None:
    """Refuse rows of another width, and labels or ids that the store has not, or lacks."""
    if X.shape[1] != old.dim:
        raise InputError(
            f"X has {X.shape[1]} columns where the store has {old.dim}; embed with the same encoder"
        )
    if (y is not None) != old.has_labels:
        has = "has" if old.has_labels else "has no"
        raise InputError(f"{folder} {has} labels; append rows of the same kind")
    if (persons is not None) != old.has_persons:
        if old.has_persons:
            raise InputError(f"{folder} has person ids; pass persons=")
        raise InputError(f"{folder} has no person ids; leave persons= out")


def _next_positions(positions: Any, n: int) -> NDArray[np.int64]:
    """Return positions for n appended rows, which are not in the source: those after the last
    position in the store.
    """
    import pyarrow as pa
    import pyarrow.compute

    if not pa.types.is_integer(positions.type) or positions.null_count:
        raise InputError(
            f"the store has a metadata column {ROW!r} of another kind; give its values for the new"
            " rows"
        )
    first = pyarrow.compute.max(positions).as_py() + 1
    return np.arange(first, first + n)


def _joined(old: Any, new: Any) -> Any:
    """Join two metadata tables, the second below the first; their columns must agree."""
    import pyarrow as pa

    if sorted(old.column_names) != sorted(new.column_names):
        fault = f"metadata columns {new.column_names} differ from the store's {old.column_names}"
        raise InputError(f"{fault}; give the same columns")
    try:
        return pa.concat_tables([old, new.select(old.column_names).cast(old.schema)])
    except (pa.ArrowException, ValueError) as error:
        fault = f"metadata is of another type than the store's ({one_line(error)})"
        raise InputError(f"{fault}; convert it first") from error


def _with_text_ids(table: Any) -> Any:
    """Return a metadata table with the ids of persons as texts."""
    import pyarrow as pa

    column_number = table.column_names.index(PERSON)
    return table.set_column(column_number, PERSON, table[PERSON].cast(pa.string()))


def _remove_unnamed(folder: Path) -> None:
    """Remove files that the manifest does not name: replaced metadata, and leftovers of a failed
    append.
    """
    store_files = {folder / file.file for file in Manifest.load(folder).files}
    for pattern in ("shards/[0-9]*.npy", "metadata.parquet", "metadata-[0-9]*.parquet"):
        for path in set(folder.glob(pattern)) - store_files:
            path.unlink()
