"""Tables with one column of lists (or several numeric columns) as features: Parquet, and Arrow
tables in general.
"""

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.arrays import (
    Arrays,
    choose,
    commands_of_a_table,
    features_missing,
    make_arrays,
    named_columns,
)
from tacit.data.formats.arrow import (
    arrow_faults,
    as_numpy,
    check_once,
    decoded,
    decoded_type,
    is_list,
    storage_type,
)
from tacit.data.formats.parts import Parts, one_part
from tacit.data.label_lists import LabelLists, separated
from tacit.data.labels import LabelKind
from tacit.data.rows import BLOCK_VALUES, numeric_array
from tacit.data.sizes import check_width
from tacit.data.streams import StreamedRows
from tacit.errors import InputError, RowError, excerpt, quoted

# usual names of a column of labels
LABELS = ("label", "labels", "y", "target", "class")


def read(
    path: Path,
    x: str | None,
    y: str | None,
    persons: str | None,
    width: int | None,
    separator: str | None = None,
    group: str | None = None,
) -> Arrays:
    """Read the labels, ids of persons and groups of a Parquet or Arrow file, and its features as
    they are asked for; other columns are not loaded.
    """
    return read_parts(one_part(path), path, path.stem, x, y, persons, width, separator, group)


def read_parts(
    parts: Parts,
    path: Path,
    identity: str,
    x: str | None,
    y: str | None,
    persons: str | None,
    width: int | None,
    separator: str | None = None,
    group: str | None = None,
    *,
    classes: list[str] | None = None,
    label_kind: LabelKind = "value",
) -> Arrays:
    """Read the parts of a table, one after another."""
    with arrow_faults(path):
        features, label = columns(parts.schema, x, y, persons, path, group)
        other_columns = [name for name in (label, persons, group) if name is not None]
        dtype = np.result_type(*(_dtype(kind) for kind in parts.types(features)))
        for part in parts.parts:
            part.check(features, other_columns, width)
        if parts.rows == 0:
            raise InputError(f"{path} has no rows; check how it was made")

        rows = _streamed(parts, features, dtype, path)
        check_width(path, rows.shape, width)
        labels = None if label is None else labels_of(parts.column(label), separator)
        ids = None if persons is None else as_numpy(parts.column(persons))
        groups = None if group is None else as_numpy(parts.column(group))
        card = None
        if not is_list(parts.schema.field(features[0]).type):
            card = named_columns(features)
        return make_arrays(
            rows,
            labels,
            parts.files,
            identity,
            classes=classes,
            card=card,
            persons=ids,
            groups=groups,
            label_kind=label_kind,
            left_out=left_out(parts.schema, features, other_columns),
        )


def _streamed(parts: Parts, features: list[str], dtype: np.dtype[Any], path: Path) -> StreamedRows:
    """Return the features of all parts, which are read as they are asked for."""
    first_row = next(_blocks(parts, features, dtype, path, 1), None)
    if first_row is None:
        # the file is damaged: it states rows
        raise InputError(f"{path} has none of the {parts.rows} rows that it states; save it again")
    shape = first_row.shape[1:]
    batch_rows = max(1, BLOCK_VALUES // max(1, math.prod(shape)))
    return StreamedRows(
        lambda: _blocks(parts, features, dtype, path, batch_rows), (parts.rows, *shape), dtype
    )


def labels_of(column: Any, separator: str | None = None) -> NDArray[Any] | LabelLists:
    """Return a column of labels as numpy; truth values are the texts False and True.

    A column of lists, and of texts with a separator, has several labels a record.
    """
    import pyarrow as pa

    if is_list(column.type):
        if separator is not None:
            raise InputError(
                f"label_separator={separator!r} is for texts, and the labels are lists; leave it"
                " out"
            )
        return _label_lists(column)
    if separator is not None:
        if not _is_text(decoded_type(column.type)):
            raise InputError(
                f"label_separator={separator!r} is for texts, and the labels are {column.type};"
                " leave it out"
            )
        return separated(column.to_pylist(), separator)
    if pa.types.is_boolean(column.type):
        values = [None if value is None else str(value) for value in column.to_pylist()]
        return np.array(values, dtype=object)
    return as_numpy(column)


def _label_lists(column: Any) -> LabelLists:
    """Return a column of lists of labels; a row without a list is refused."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    column = _storage(column)
    if column.null_count:
        row = int(column.is_null().to_numpy(zero_copy_only=False).argmax())
        fault = "has no labels (missing value)"
        raise RowError("", row, f" {fault}; drop that row, or give an empty list if it has none")
    sizes = pc.list_value_length(column).to_numpy().astype(np.int64)
    return LabelLists(_labels_within(column.flatten()), sizes)


def _labels_within(values: Any) -> NDArray[Any]:
    """Return the labels of all lists, one after another; truth values stay such."""
    labels: NDArray[Any] = decoded(values).to_numpy(zero_copy_only=False)
    return labels


def _blocks(
    parts: Parts, features: list[str], dtype: np.dtype[Any], path: Path, batch_rows: int
) -> Iterator[NDArray[Any]]:
    """Yield the features in blocks of rows."""
    with arrow_faults(path):
        for block in blocks_of(parts.batches(features, batch_rows), features[0], path):
            yield block.astype(dtype, copy=False)


def blocks_of(batches: Iterable[Any], feature: str, path: Path) -> Iterator[NDArray[Any]]:
    """Yield the rows of batches of features; `feature` is the name of the first column."""
    start = 0
    axes = None
    for batch in batches:
        if batch.num_rows == 0:
            continue
        if is_list(batch.schema.field(0).type):
            block, axes = _rows_of_lists(batch.column(0), feature, path, start, axes)
        else:
            block = np.column_stack([_numbers(column) for column in batch.columns])
        start += len(block)
        yield block


def _dtype(kind: Any) -> np.dtype[Any]:
    """Return the type of numpy for the values of a column."""
    kind = _value_type(kind)
    if _is_text(kind):
        raise InputError(
            "the features are lists of texts, and features are numbers; join each list to one text"
            " and encode it first (tacit encode)"
        )
    numbers = np.empty(0, decoded_type(kind).to_pandas_dtype())
    return numeric_array(numbers, "X").dtype


def _value_type(kind: Any) -> Any:
    """Return the type of the values of a column, also within lists of lists."""
    while is_list(kind):
        kind = storage_type(kind).value_type
    return kind


def columns(
    schema: Any,
    x: str | None,
    y: str | None,
    persons: str | None,
    path: Path,
    group: str | None = None,
) -> tuple[list[str], str | None]:
    """Return the feature columns (one of lists, or all of floats) and the label column of a schema;
    `persons` and `group` are no features.
    """
    import pyarrow as pa

    names = schema.names
    label = choose(names, y, LABELS, "y", path)
    choose(names, persons, (), "persons", path)
    choose(names, group, (), "by", path)

    candidates = [field for field in schema if field.name not in (label, persons, group)]
    lists = [
        field.name
        for field in candidates
        if is_list(field.type) and not _is_text(_value_type(field.type))
    ]
    floats = [field.name for field in candidates if pa.types.is_floating(field.type)]
    if x is not None:
        choose(names, x, (), "x", path)
        features = [x]
    elif len(lists) > 1:
        choices = excerpt(", ".join(sorted(lists)))
        raise InputError(f"{path} has several columns of lists; choose x from: {choices}")
    elif lists:
        features = lists
    elif floats:
        features = floats
    elif any(_is_text(_value_type(field.type)) for field in candidates):
        texts = excerpt(
            ", ".join(field.name for field in candidates if _is_text(_value_type(field.type)))
        )
        remedy = f"encode texts first: tacit encode {path} --encoder sentence-transformers:NAME"
        if len(candidates) > 1:
            remedy = f"encode the table first: {commands_of_a_table(path)}"
        raise InputError(f"{path} has texts ({texts}) and no columns of floats or lists; {remedy}")
    else:
        raise features_missing(names, path)

    # checking each feature takes time where there are many: only if some name repeats
    if len(set(names)) < len(names):
        for name in features:
            check_once(names, name, path)
    if label is not None:
        check_once(names, label, path)
    if persons is not None:
        check_once(names, persons, path)
    if group is not None:
        check_once(names, group, path)
    return features, label


def left_out(schema: Any, features: list[str], other_columns: list[str]) -> list[str]:
    """Return the columns of a schema that are no features, labels or ids, each with the reason."""
    reason = "features are columns of floats: convert it to use it"
    if is_list(schema.field(features[0]).type):
        reason = f"the features are the lists in {quoted(features[0])}"
    used = {*features, *other_columns}
    return [
        f"{quoted(field.name)} ({field.type}; {reason})"
        for field in schema
        if field.name not in used
    ]


def matrix(table: Any, features: list[str], path: Path) -> NDArray[Any]:
    """Return feature columns as one array of shape (rows, columns)."""
    if table.num_rows == 0:
        raise InputError(f"{path} has no rows; check how it was made")
    if not is_list(table.schema.field(features[0]).type):
        return np.column_stack([as_numpy(table[name]) for name in features])
    return _matrix_of_lists(table[features[0]], features[0], path)


def _matrix_of_lists(column: Any, name: str, path: Path) -> NDArray[Any]:
    """Return a column of lists of one length as an array of shape (rows, length)."""
    blocks: list[NDArray[Any]] = []
    start = 0
    axes = None
    for chunk in column.chunks:
        if len(chunk):
            block, axes = _rows_of_lists(chunk, name, path, start, axes)
            start += len(block)
            blocks.append(block)
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


def _rows_of_lists(
    column: Any, name: str, path: Path, start: int, axes: tuple[int, ...] | None
) -> tuple[NDArray[Any], tuple[int, ...]]:
    """Return lists, lists of lists or tensors of one shape as rows, (rows, values), and that shape.

    Those of bytes keep their shape, as pictures. `start` is the number of the first row, `axes`
    the shape that the rows before it have, or None.
    """
    import pyarrow as pa

    if isinstance(column.type, pa.FixedShapeTensorType):
        _refuse_missing(column, name, path, start, 1)
        tensors: NDArray[Any] = column.to_numpy_ndarray()
        shape = tensors.shape[1:]
        _refuse_other_shape(shape, axes, name, path, start)
        values = tensors.reshape(-1)
    else:
        values, shape = _flattened(column, name, path, start, axes)

    if values.dtype == np.uint8 and len(shape) > 1:
        return values.reshape(len(column), *shape), shape
    return values.reshape(len(column), math.prod(shape)), shape


def _flattened(
    column: Any, name: str, path: Path, start: int, axes: tuple[int, ...] | None
) -> tuple[NDArray[Any], tuple[int, ...]]:
    """Return all values of lists, one row after another, and the shape of each row."""
    import pyarrow.compute as pc

    shape: tuple[int, ...] = ()
    n_lists_of_row = 1
    column = _storage(column)
    while is_list(column.type):
        _refuse_missing(column, name, path, start, n_lists_of_row)
        lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
        length = int(lengths[0]) if len(lengths) else 0
        if axes is not None and len(shape) < len(axes):
            length = axes[len(shape)]

        is_other_length = lengths != length
        if is_other_length.any():
            place = int(is_other_length.argmax())
            row = start + place // n_lists_of_row
            raise RowError(
                f"{path} ",
                row,
                f" has {lengths[place]} values in {quoted(name)}, the first row has {length}; make"
                " them equal",
            )
        shape = (*shape, length)
        n_lists_of_row *= max(1, length)
        column = _storage(column.flatten())

    _refuse_other_shape(shape, axes, name, path, start)
    return _numbers(column), shape


def _refuse_other_shape(
    shape: tuple[int, ...], axes: tuple[int, ...] | None, name: str, path: Path, start: int
) -> None:
    """Refuse rows, from row `start` on, of another shape than those before."""
    if axes is not None and shape != axes:
        raise RowError(
            f"{path} ",
            start,
            f" has shape {shape} in {quoted(name)}, the first row has {axes}; make them equal",
        )


def _refuse_missing(column: Any, name: str, path: Path, start: int, n_of_row: int) -> None:
    """Refuse a row without a list; each row has `n_of_row` of them."""
    if column.null_count:
        place = int(column.is_null().to_numpy(zero_copy_only=False).argmax())
        row = start + place // n_of_row
        fault = f" has no value in column {quoted(name)}; drop that row"
        raise RowError(f"{path} ", row, fault)


def _numbers(column: Any) -> NDArray[Any]:
    """Return an array of Arrow as numpy; missing values become NaN."""
    import pyarrow as pa

    column = decoded(_storage(column))
    if column.null_count and not pa.types.is_floating(column.type):
        column = column.cast(pa.float64())
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values


def _storage(column: Any) -> Any:
    """Return the storage of an array of an extension type, such as Array2D of Hugging Face."""
    return getattr(column, "storage", column)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
